"""The audits of judges on the site, from their records, with the papers' figures in the same rows."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient

from podeval.judges.exchange_records import FILE, JudgeExchange, Records
from podeval.metrics.judged import dialogue_judge
from podeval.metrics.prompts import list_all_prompts
from podeval.models.chat import ChatAnswer
from tests.space.pages_fixture import build_pages

HOSTILE = "<img src=x onerror=window.hacked=1>{{7*7}}"


SCORES = "".join(f'{{"file": "{name}.json", "script_quality": {number}}}\n' for number, name in enumerate("abcde"))
HUMAN = "item,score\n" + "".join(f"{name},{score}\n" for name, score in zip("abcde", (1, 3, 2, 4, 5), strict=True))


def write_records(folder: Path, prefers_first: bool) -> None:
    """Records of a judge that prefers the first place, or the better text; people scored five items, as it did."""
    folder.mkdir(parents=True)
    records = Records(folder)
    described = {"id": "judge-1", "model": f"Judge {HOSTILE}", "backend": "endpoint", "revision": "2026-06",
                 "endpoint": "http://10.1.2.3/v1"}  # fmt: skip
    records.add_judge(described)
    for number in range(60):
        good, bad = f"good {number}", f"worse {number}"
        for first, second, better in ((good, bad, -2), (bad, good, 2)):
            ratings = dict.fromkeys(dialogue_judge.KEYS, 0) | {"overall": -2 if prefers_first else better}
            answer = ChatAnswer(json.dumps({"analysis": "x"} | ratings), "stop")
            shown = {name: {"text": text, "characters": 9} for name, text in (("first", first), ("second", second))}
            place = (first, 0, 1, dialogue_judge.COMPARE.id, "judge-1", 0, shown)
            records.add(JudgeExchange(*place, (), answer, "2026-06-01T00:00:00Z", 1.0, None))
    (folder / "scores.jsonl").write_text(SCORES)
    (folder / "human.csv").write_text(HUMAN)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    from pages import judges
    from services import Services

    from podeval.store.database import Database

    monkeypatch.setenv("PODEVAL_JUDGES", str(tmp_path / "given"))
    with Database(tmp_path / "store.db") as database:
        services = Services(tmp_path, database, None)  # type: ignore[arg-type]
        yield TestClient(build_pages(services, judges, mode="local"))


def test_without_records_the_page_says_how_they_come_and_shows_the_papers(client: TestClient) -> None:
    page = client.get("/judges").text
    assert "No judge records on this site yet." in page
    assert "MTalk-Bench, table 3" in page
    assert client.get("/api/v1/judges").json() == []


def test_a_judge_that_prefers_a_place_is_unfit_with_the_reason_and_the_papers_beside(
    client: TestClient, tmp_path: Path
) -> None:
    write_records(tmp_path / "judges/biased", prefers_first=True)
    page = client.get("/judges").text
    assert "not fit for publication" in page
    assert "whose lower bound is not above 0.5" in page
    # Wilson, 0 of 60: 0 and z^2 / (n + z^2) = 3.8415 / 63.8415 = 0.060.
    assert "0.000 [0.000, 0.060]" in page
    assert "1.000" in page, "the first place, always"
    # MTalk-Bench, table 3, TPR of people: 49.12 % [46.35, 51.89].
    assert "Human 0.491 [0.464, 0.519]" in page
    # Spearman of 0 1 2 3 4 and 1 3 2 4 5: one swap, 1 - 6 * 2 / (5 * 24) = 0.9.
    assert "0.900 [" in page, "people"
    # LFS-Bench, table 5, GPT-4o, SRCC: 0.1171; of another table than what stands before it.
    assert "LFS-Bench, table 5, expressive hierarchy: GPT-4o 0.117" in page
    assert not any(text in page for text in ("built-in method", HOSTILE, "10.1.2.3"))
    told = client.get("/api/v1/judges").json()
    assert "10.1.2.3" not in json.dumps(told)
    assert told[0]["judges"][0]["unfit"]
    chinese = client.get("/judges", headers={"accept-language": "zh"}).text
    assert all(text in chinese for text in ("不适合发布", "其下界不高于 0.5"))


def test_a_judge_that_never_compared_is_fit_and_the_page_says_what_was_not_audited(
    client: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "given").mkdir()
    records = Records(tmp_path / "given")
    records.add_judge({"id": "judge-2", "model": "Pointwise", "backend": "endpoint"})
    assert "none of its answers can be used" in client.get("/judges").text
    (prompt,) = (prompt for prompt in list_all_prompts() if prompt.name == "rubric_transcript")
    answer = ChatAnswer('{"verdicts": [{"criterion": "s_1", "met": 1}]}', "stop")
    shown = {"dialogue": {"text": "d", "characters": 1}, "criteria": {"text": "c", "characters": 1}}
    place = ("first", 0, 1, prompt.id, "judge-2", 0, shown)
    records.add(JudgeExchange(*place, (), answer, "2026-06-01T00:00:00Z", 1.0, None))
    page = client.get("/judges").text
    assert "state-published" in page
    assert "never asked to compare two things" in page
    assert "从未被要求比较" in client.get("/judges", headers={"accept-language": "zh"}).text


def test_an_audit_is_made_again_when_its_files_change_and_damaged_records_are_told(
    client: TestClient, tmp_path: Path
) -> None:
    write_records(tmp_path / "given", prefers_first=False)
    assert "state-published" in client.get("/judges").text
    (tmp_path / "given" / "human.csv").write_text("item,score\na,good\n")
    page = client.get("/judges").text
    assert "This audit could not be read." in page
    assert "human.csv, line 2: the score &#39;good&#39; is not a number" in page
    assert "state-published" not in page
    (tmp_path / "given" / FILE).write_text("this is no record\n")
    page = client.get("/judges").text
    assert "This audit could not be read." in page
    assert str(tmp_path) not in page, "no folders of ours"
