"""The audits of judges on the site: from records and from files, with the papers' figures beside."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient

from podeval.judges.exchange_records import FILE
from podeval.leaderboard.human_scores import Agreement
from podeval.leaderboard.judge_audit import audit
from podeval.leaderboard.judge_audit_page import convert_to_plain
from podeval.metrics import dialogue_judge
from podeval.metrics.judge_answers import JudgeAnswers, JudgeReply, list_leaves
from podeval.stats.agreement import Estimate

pytestmark = pytest.mark.space

HOSTILE = "<img src=x onerror=window.hacked=1>{{7*7}}"


def compared(first: str, second: str, overall: int) -> JudgeReply:
    value = dialogue_judge.Comparison(
        analysis="x", coherence=0, engagingness=0, diversity=0, informativeness=0, speaker_difference=0, overall=overall
    )
    inputs = {"first": (first, float(len(first))), "second": (second, float(len(second)))}
    return JudgeReply("dialogue_compare@1.0#x", inputs, 0, value, dict(list_leaves(value)))


def document(prefers_first: bool) -> dict[str, Any]:
    """What `podeval report judge --json` prints of a judge that prefers the first place, or the better text."""
    given = []
    for number in range(60):
        good, bad = f"good {number}", f"worse {number}"
        given += [compared(good, bad, -2), compared(bad, good, -2 if prefers_first else 2)]
    described = {"id": "judge-1", "model": f"Judge {HOSTILE}", "backend": "endpoint", "revision": "2026-06",
                 "endpoint": "http://10.1.2.3/v1"}  # fmt: skip
    answers = JudgeAnswers(described, given, asked=120, unusable=3)
    people = Agreement({"SRCC": Estimate(0.61, 0.4, 0.77, 40)}, 40, 3, 0, 0)
    return convert_to_plain([audit(answers)], [], people)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    import site_app
    import website
    from auth import SignIn
    from fastapi import FastAPI
    from pages import judges
    from services import Services

    from podeval.store.database import Database

    monkeypatch.setenv("PODEVAL_JUDGES", str(tmp_path / "given.json"))
    with Database(tmp_path / "store.db") as database:
        site = website.Site(Services(tmp_path, database, None, None), SignIn("local"))  # type: ignore[arg-type]
        app = FastAPI()
        site_app.answer_errors(app, site)
        app.include_router(judges.build_router(site))
        yield TestClient(app)


def test_without_records_the_page_says_how_they_come_and_shows_the_papers(client: TestClient) -> None:
    page = client.get("/judges").text
    assert "No judge records on this site yet." in page
    assert "MTalk-Bench, table 3" in page
    assert client.get("/api/v1/judges").json() == []


def test_a_judge_that_prefers_a_place_is_unfit_with_the_reason_and_the_papers_beside(
    client: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges/biased.json").write_text(json.dumps(document(True)))
    page = client.get("/judges").text
    assert "not fit for publication" in page
    assert "whose lower bound is not above 0.5" in page
    # Wilson, 0 of 60: 0 and z^2 / (n + z^2) = 3.8415 / 63.8415 = 0.060.
    assert "0.000 [0.000, 0.060]" in page
    assert "1.000" in page, "the first place, always"
    # MTalk-Bench, table 3, TPR of people: 49.12 % [46.35, 51.89].
    assert "Human 0.491 [0.464, 0.519]" in page
    assert "0.610 [0.400, 0.770]" in page, "people"
    # LFS-Bench, table 5, GPT-4o, SRCC: 0.1171; of another table than what stands before it.
    assert "LFS-Bench, table 5, expressive hierarchy: GPT-4o 0.117" in page
    assert "built-in method" not in page
    assert HOSTILE not in page
    assert "10.1.2.3" not in page
    told = client.get("/api/v1/judges").json()
    assert "10.1.2.3" not in json.dumps(told)
    assert told[0]["judges"][0]["fit"] is False
    assert "不适合发布" in client.get("/judges", headers={"accept-language": "zh"}).text


def test_an_audit_is_read_again_when_its_file_changes_and_a_wrong_one_is_told(
    client: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "given.json").write_text(json.dumps(document(False)))
    assert "state-published" in client.get("/judges").text
    (tmp_path / "given.json").write_text(json.dumps({"judges": [{"judge": {}}]}))
    page = client.get("/judges").text
    assert "is not what `podeval report judge --json` prints (judges.0.fit" in page
    assert "state-published" not in page


def test_records_are_audited_by_the_functions_of_the_command(client: TestClient, tmp_path: Path) -> None:
    folder = tmp_path / "judges/broken"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("this is no record\n")
    page = client.get("/judges").text
    assert "This audit could not be read." in page
    assert str(tmp_path) not in page, "no folders of ours"
