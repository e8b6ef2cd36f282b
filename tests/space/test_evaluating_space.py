"""A Space that evaluates what is submitted to it in its own process, shown end to end in a browser; and who says so."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from podeval.store.database import Database
from podeval.submissions.queue import Queue
from tests.space.walkthrough import REPO, SETTINGS, evaluating_space, walk


@pytest.mark.browser
@pytest.mark.long
def test_a_repo_typed_into_the_submit_tab_becomes_a_row_on_the_leaderboard(
    visit: Any, hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with evaluating_space(tmp_path, hub_client, monkeypatch) as address:
        walk(visit.page, address)
        (row,) = visit.rows()
        assert "tiny-voice" in row
        assert "run by us" in row
        with Database(tmp_path / "runs" / "podeval.db") as database:
            (submission,) = Queue(database).all()
            states = [step.after for step in Queue(database).history(submission.id)]
    assert states[-4:] == ["queued", "running", "measured", "published"]
    assert submission.document["source"]["repo"] == REPO
    (spec,) = hub_client.repos.jobs.specs
    assert {volume["source"] for volume in spec["volumes"] if volume["type"] == "model"} == {REPO}
    assert visit.errors == []
    assert visit.abroad == []


def desk_of(folder: Path, database: Database) -> Any:
    from services import Services

    return Services(folder, database, None).desk  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Submissions are not evaluated here yet. You operate this site: set `PODEVAL_EXECUTOR=hf-jobs`"),
        ({"PODEVAL_EXECUTOR": "elsewhere"}, "Workers on other machines evaluate"),
        (
            {"PODEVAL_EXECUTOR": "hf-jobs"},
            "Submissions are not evaluated here at present: no image for jobs is given",
        ),
        (
            {**SETTINGS, "PODEVAL_JOBS_BUDGET": ""},
            "Submissions are not evaluated here at present: set a budget for all jobs together",
        ),
        (SETTINGS, "as jobs on Hugging Face (a10g-large) and are measured here; 0.00 of 50.00 USD have been spent."),
    ],
)
def test_the_queue_says_in_a_sentence_who_works_or_what_is_missing(
    board_app: Any, tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    from job_worker import Evaluation

    from podeval.text.message_catalogue import read_texts

    texts = read_texts(Path(__file__).parents[2] / "space/locale", "en", ("submit",))["submit"]
    with Database(tmp_path / "podeval.db") as database:
        evaluation = Evaluation(desk_of(tmp_path, database), tmp_path, settings)
        assert said in evaluation.sentence(texts, operator=True)
        assert "PODEVAL_" not in evaluation.sentence(texts), "a visitor is not told how to set the site up"
        assert (evaluation.worker is not None) is (settings == SETTINGS)


def test_a_site_leaves_claiming_to_a_worker_that_is_at_work_elsewhere(
    board_app: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from job_worker import Evaluation

    from podeval import benchmarks
    from tests.fakes import tiny_worker as tiny

    monkeypatch.setitem(benchmarks.find_all(), "ten", tiny.BENCHMARK)
    with Database(tmp_path / "podeval.db") as database:
        queue = Queue(database)
        waiting = [tiny.enqueue(queue, name, owner=name).id for name in ("one", "two")]
        worker = Evaluation(desk_of(tmp_path, database), tmp_path, {**SETTINGS, "PODEVAL_WORK": str(tmp_path)}).worker
        assert worker is not None
        claim = queue.claim("elsewhere:1")
        assert claim is not None
        assert worker.once() is None
        assert sorted(queue.get(id).state for id in waiting) == ["queued", "running"]
        assert set(worker.list_chores()) == {"sweep", "gate", "catch up", "leftovers", "sign of life"}
