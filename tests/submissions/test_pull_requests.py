"""Results proposed to a model's own repo: for who asked, once, whatever happens to the worker or the Hub."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from podeval.cli import app
from podeval.errors import BadInput
from podeval.hub.eval_results import FILE
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.hub_record import Proposals, list_forms
from podeval.submissions.queue import Queue
from podeval.systems.submission import Submission


@pytest.fixture
def repo(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return hub_client.repos.publish("models", "x/singer", {"README.md": b"---\nlicense: mit\n---\n# Singer\n"})


def enqueue(tiny: ModuleType, queue: Queue, proven: bool = True, **forms: bool) -> SubmissionRow:
    plain = tiny.document("singer")
    plain["source"]["publish"] = forms
    row = queue.receive(plain, owner="alice", owner_proven=proven, quotas=False)
    queue.move(row.id, "received", "checked", by="gate", pinned={"repo": "x/singer", "passed": True})
    return queue.move(row.id, "checked", "queued", by="gate")


def test_results_are_proposed_at_publication_to_who_asked(
    tiny: ModuleType, queue: Queue, repo: Any, tmp_path: Path
) -> None:
    row = enqueue(tiny, queue, eval_results=True, model_index=True)
    proposals = Proposals(queue, tmp_path / "board")
    worker = tiny.worker(queue, tmp_path, proposals=proposals)
    worker.once()
    assert queue.get(row.id).state == "published"
    assert {each.form: (each.state, each.url.rpartition("/")[2]) for each in proposals.of(row.id)} == {
        "eval_results": ("open", "1"),
        "model_index": ("open", "2"),
    }
    (entry,) = yaml.safe_load(repo.at("refs/pr/1")[1][FILE])
    assert entry["dataset"]["task_id"] == "demo_audio"
    assert "embedded profile, protocol" in entry["notes"]
    assert "10 items" in entry["notes"]
    worker.catch_up()
    assert len(repo.proposals) == 2


@pytest.mark.parametrize("asked", [{}, {"proven": False, "eval_results": True}], ids=["not asked", "not its owner"])
def test_who_did_not_ask_or_asks_for_somebody_elses_repo_gets_no_pull_request(
    tiny: ModuleType, queue: Queue, repo: Any, tmp_path: Path, asked: dict[str, bool]
) -> None:
    row = enqueue(tiny, queue, **asked)
    proposals = Proposals(queue, tmp_path / "board")
    tiny.worker(queue, tmp_path, proposals=proposals).once()
    assert queue.get(row.id).state == "published"
    assert proposals.of(row.id) == []
    assert not repo.proposals


def test_a_card_that_cannot_be_read_ends_no_worker(tiny: ModuleType, queue: Queue, repo: Any, tmp_path: Path) -> None:
    repo.commit({"README.md": b"---\nx: !!bool maybe\n---\n# Singer\n"})
    row = enqueue(tiny, queue, model_index=True)
    proposals = Proposals(queue, tmp_path / "board")
    tiny.worker(queue, tmp_path, proposals=proposals).once()
    (told,) = proposals.of(row.id)
    assert (told.state, told.reason) == ("refused", "the card of x/singer cannot be read (KeyError); fix its header")


def test_a_hub_that_is_down_or_a_worker_that_is_killed_doubles_nothing(
    tiny: ModuleType, queue: Queue, repo: Any, hub_client: Any, tmp_path: Path
) -> None:
    row = enqueue(tiny, queue, eval_results=True)
    now = [datetime(2026, 11, 22, tzinfo=UTC)]
    proposals = Proposals(queue, tmp_path / "board", clock=lambda: now[0])
    hub_client.repos.faults += [503] * 60
    tiny.worker(queue, tmp_path, proposals=proposals).once()
    assert queue.get(row.id).state == "published", "the Hub's trouble keeps nothing from the board"
    (waiting,) = proposals.of(row.id)
    assert waiting.state == "waiting"
    assert "does not answer" in waiting.reason
    hub_client.repos.faults.clear()
    now[0] += timedelta(minutes=11)
    with pytest.MonkeyPatch.context() as killed:  # between the pull request and the note of it
        killed.setattr(Proposals, "_record", lambda *given, **named: None)
        proposals.settle_all()
    assert len(repo.proposals) == 1
    proposals.settle_all()
    assert proposals.of(row.id)[0].state == "waiting", "who began may still be at it"
    now[0] += timedelta(minutes=11)
    proposals.settle_all()
    (done,) = proposals.of(row.id)
    assert (done.state, done.url.rpartition("/")[2]) == ("open", "1")
    assert len(repo.proposals) == 1


def test_an_operator_does_it_afterwards(tiny: ModuleType, queue: Queue, repo: Any, tmp_path: Path) -> None:
    row = enqueue(tiny, queue)
    place = ["--database", str(tmp_path / "store.db"), "--runs", str(tmp_path / "board")]

    def publish(*options: str) -> str:
        done = CliRunner().invoke(app, ["submissions", "publish", row.id, *place, *options], catch_exceptions=False)
        return done.output

    with pytest.raises(BadInput, match="is queued; only published results are proposed"):
        publish("--eval-results")
    tiny.worker(queue, tmp_path).once()
    with pytest.raises(BadInput, match="requested no format"):
        publish()
    assert "eval_results: open: http" in publish("--eval-results")
    assert "eval_results: open: http" in publish("--eval-results")
    assert len(repo.proposals) == 1
    shown = CliRunner().invoke(app, ["submissions", "show", row.id, "--database", str(tmp_path / "store.db")]).output
    assert "eval_results proposed to the model's repo: open: http" in shown


def test_asking_for_it_makes_no_other_submission(tiny: ModuleType, queue: Queue) -> None:
    from podeval.submissions.source_files import digest

    plain = Submission.model_validate(tiny.document("singer")).model_dump(mode="json")
    assert list_forms(Submission.model_validate(plain)) == ()
    asked = Submission.model_validate({**plain, "source": {**plain["source"], "publish": {"eval_results": True}}})
    assert list_forms(asked) == ("eval_results",)
    assert digest(plain, "embedded") == digest(asked.model_dump(mode="json"), "embedded")
