"""From a document to the board and back: the desk, the command line, and the real program that reads outputs."""

import json
import struct
import wave
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from sqlalchemy import select
from typer.testing import CliRunner

from podeval import sandbox
from podeval.audio.decode import hash_file
from podeval.cli import app
from podeval.errors import BadInput
from podeval.hub import repo_info
from podeval.hub.retry import HubUnavailable
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem
from podeval.submissions.gate import Gate, PinnedSource
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy, SubmissionRefused
from podeval.submissions.service import SubmissionService, Submitter, ask_hub_submitter, withdraw
from podeval.submissions.worker import Worker
from podeval.systems.submission import Submission
from podeval.systems.submission_reading import load

ALICE = Submitter("alice", ("alice-lab",))


POLICY = Policy(open_per_owner=2)
"""The policy of the queue."""


def test_what_passes_is_queued_and_whose_model_it_is_is_kept(submitted: Any, queue: Queue) -> None:
    row = SubmissionService(queue, Gate()).submit(submitted(), ALICE)
    assert (row.state, row.owner, row.owner_proven) == ("queued", "alice", True)
    assert row.pinned["revision"] == row.document["source"]["revision"]
    assert [step.after for step in queue.history(row.id)] == ["received", "checked", "queued"]
    assert not Submitter("bob", ("bobs",)).owns("alice/tiny-voice")
    assert ALICE.owns("Alice-Lab/model")


def test_what_is_refused_is_kept_with_its_rule_and_reason(submitted: Any, queue: Queue) -> None:
    with pytest.raises(SubmissionRefused):
        SubmissionService(queue, Gate()).submit(submitted(changes={"run.py": b"x"}), ALICE)
    row = queue.all()[0]
    assert (row.state, row.rule) == ("refused", "code")
    assert "remove all code, or publish the model without code" in row.reason
    row = SubmissionService(queue, Gate()).submit(submitted(changes={"x": b"x"}), ALICE)
    assert row.state == "queued", "the corrected one is no duplicate"


def test_what_comes_while_the_hub_is_down_is_checked_later(
    submitted: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise HubUnavailable("the Hub does not answer as expected; try again later")

    document, desk = submitted(), SubmissionService(queue, Gate())
    with monkeypatch.context() as patch:
        patch.setattr(repo_info, "collect_facts", down)
        row = desk.submit(document, ALICE)
        assert row.state == "received"
        assert desk.look_over_all() == []
    assert [each.state for each in desk.look_over_all()] == ["queued"]


@dataclass(frozen=True)
class Stumbling(Gate):
    """A gate that falls over a submission, as nobody expected."""

    def check(self, document: Submission, document_folder: Path | None = None) -> PinnedSource:
        if document.system.id == "tiny_voice":
            raise KeyError("maybe")
        return PinnedSource(licence="cc0-1.0")


def test_one_that_the_gate_falls_over_keeps_nobody_else_waiting(
    submitted: Any, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    document = submitted()
    other = document.model_copy(
        update={
            "system": document.system.model_copy(update={"id": "other_voice"}),
            "source": document.source.model_copy(update={"revision": "b" * 40}),
        }
    )
    for each in (document, other):
        queue.receive(each.model_dump(mode="json"), owner="alice", quotas=False)
    assert [row.system for row in SubmissionService(queue, Stumbling()).look_over_all()] == ["other_voice"]
    assert {row.system: row.state for row in queue.all()} == {"tiny_voice": "received", "other_voice": "queued"}
    assert "could not be checked" in caplog.text


@dataclass(frozen=True)
class Overtaken(Gate):
    """A gate whose Hub answers late: a worker looks the same submission over meanwhile."""

    worker: SubmissionService | None = None

    def check(self, document: Submission, document_folder: Path | None = None) -> PinnedSource:
        assert self.worker
        self.worker.look_over_all()
        return super().check(document, document_folder)


def overtaken(queue: Queue) -> SubmissionService:
    return SubmissionService(queue, Overtaken(worker=SubmissionService(queue, Gate())))


def test_a_submission_that_a_worker_looked_over_meanwhile_is_queued_once(submitted: Any, queue: Queue) -> None:
    row = overtaken(queue).submit(submitted(), ALICE)
    assert row.state == "queued"
    assert [step.after for step in queue.history(row.id)] == ["received", "checked", "queued"]


def test_one_that_was_refused_meanwhile_is_refused_by_the_rules_that_are_kept(submitted: Any, queue: Queue) -> None:
    document = submitted(changes={"run.py": b"x", "model.bin": b"x"})
    with pytest.raises(SubmissionRefused) as caught:
        overtaken(queue).submit(document, ALICE)
    row = queue.all()[0]
    assert (caught.value.rule, caught.value.reason) == (row.rule, row.reason)
    assert len(row.reason.splitlines()) > 1
    assert [step.after for step in queue.history(row.id)] == ["received", "refused"]


def test_a_closed_board_says_why(submitted: Any, queue: Queue) -> None:
    with pytest.raises(SubmissionRefused, match="open: submissions would be lost at the next restart"):
        SubmissionService(queue, Gate(), closed="submissions would be lost at the next restart").submit(
            submitted(), ALICE
        )
    assert queue.all() == []


def test_who_submits_is_the_hubs_word(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi

    assert ask_hub_submitter(HfApi(token="hf_x")) == Submitter("podeval", ())
    monkeypatch.setattr("huggingface_hub.hf_api.get_token", lambda: None)
    with pytest.raises(BadInput, match="run `hf auth login`"):
        ask_hub_submitter()


@pytest.fixture
def outputs(tiny: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    """A folder with a submission of outputs for the benchmark `ten`; its document."""

    def make(system: str = "tones", items: int = 10) -> Path:
        folder = tmp_path / system
        (folder / "audio").mkdir(parents=True)
        for number, item in enumerate(tiny.ITEMS[:items]):
            with wave.open(str(folder / f"audio/{item}.wav"), "wb") as file:
                file.setparams((1, 2, 16_000, 0, "NONE", ""))
                file.writeframes(struct.pack("<8000h", *([1000 + number, -1000 - number] * 4000)))
        plain = tiny.document(system) | {"source": {"kind": "outputs", "folder": "audio"}}
        (folder / "submission.yaml").write_text(yaml.safe_dump(plain))
        return folder / "submission.yaml"

    return make


def submit_file(queue: Queue, file: Path) -> SubmissionRow:
    return SubmissionService(queue, Gate()).submit(load(file), document_folder=file.parent)


def working(queue: Queue, tmp_path: Path, **making: Any) -> Worker:
    choices = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None, **making)
    return Worker(queue, tmp_path / "work", tmp_path / "board", lambda board: None, choices)


def test_supplied_outputs_go_from_a_folder_to_the_board_and_can_be_withdrawn(
    outputs: Any, queue: Queue, tmp_path: Path
) -> None:
    row = submit_file(queue, outputs())
    assert row.state == "queued"
    working(queue, tmp_path).once()
    current = queue.get(row.id)
    assert current.state == "published", current.reason
    run = RunFolder(tmp_path / "board", "ten", "demo", "tones")
    assert run.plan().provenance == "outputs supplied"
    output = run.output("item_4")
    assert output
    assert (output.audio, output.wall_seconds, output.details["supplied"]) == ("item_4.flac", None, True)
    assert run.summaries()[0].metrics[0].keys["level"].mean == pytest.approx(1004.5 / 32768, abs=1e-5)  # type: ignore[union-attr]
    assert len(withdraw(queue, row.id, "operator", tmp_path / "board")) == 1
    assert queue.get(row.id).state == "withdrawn"
    assert not run.path.exists()
    assert list((tmp_path / "board/.superseded/ten/demo/tones").iterdir())


def test_a_new_submission_of_a_system_takes_the_place_of_the_old_one(
    outputs: Any, queue: Queue, tmp_path: Path
) -> None:
    document = outputs()
    first = submit_file(queue, document)
    working(queue, tmp_path).once()
    recording = tmp_path / "board/ten/demo/tones/outputs/item_4.flac"
    same = tmp_path / "board/ten/demo/tones/outputs/item_5.flac"
    with queue.database.writing() as session:
        taken_in = {"loudness": None, "seconds": 1.0, "added_at": datetime.now(UTC)}
        session.add(ArenaSystem(id="tones", title="Tones", added_at=datetime.now(UTC)))
        for file, item, sha in ((recording, "i4", "0" * 64), (same, "i5", hash_file(same))):
            session.add(ArenaItem(id=item, dimension="d", added_at=datetime.now(UTC)))
            session.flush()
            session.add(ArenaOutput(id=item, system="tones", item=item, audio=str(file), sha256=sha, **taken_in))
    with wave.open(str(document.parent / "audio/item_0.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(struct.pack("<8000h", *([500, -500] * 4000)))
    second = submit_file(queue, document)
    working(queue, tmp_path).once()
    assert queue.get(second.id).state == "published"
    run = RunFolder(tmp_path / "board", "ten", "demo", "tones")
    assert run.plan().generation["submission"] == second.id
    with queue.database.reading() as session:
        result = {output.id: output.active for output in session.scalars(select(ArenaOutput))}
    assert result == {"i4": False, "i5": True}, "the arena plays no other sound in the place of what it took in"
    withdraw(queue, first.id, "operator", tmp_path / "board")
    assert run.path.exists(), "what took its place stays"


def test_the_command_line_takes_a_submission_from_its_document_to_a_published_row(outputs: Any, tmp_path: Path) -> None:
    path, document = str(tmp_path / "cli.db"), outputs()

    def podeval(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--database", path], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "Tones passes all checks" in podeval("submit", str(document), "--check")
    id_, _, message = podeval("submit", str(document.parent)).partition(":")
    assert message == " queued, number 1 in the queue\n"
    assert f"{id_}  queued     tones  operator  outputs, number 1 in the queue" in podeval("submissions", "list")
    assert "cancelled" in podeval("submissions", "cancel", id_)
    assert "queued" in podeval("submissions", "retry", id_)
    trust = ["--trust-models"] if sandbox.explain_missing_isolation() else []
    options = ["--once", *trust, "--runs", str(tmp_path / "board"), "--work", str(tmp_path / "work")]
    assert podeval("worker", *options) == f"{id_}: published\n"
    assert podeval("worker", *options) == "nothing to do\n"
    shown_document = json.loads(podeval("submissions", "show", id_, "--json"))
    assert (shown_document["state"], shown_document["items_done"]) == ("published", 10)
    assert [step["after"] for step in shown_document["history"]][-2:] == ["measured", "published"]
    assert podeval("submissions", "list", "--state", "failed") == "no submissions were found\n"
    assert (tmp_path / "board/board.parquet").exists()


def test_wrong_usage_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="give either --once or --watch"):
        CliRunner().invoke(app, ["worker", "--database", str(tmp_path / "x.db")], catch_exceptions=False)
    Database(tmp_path / "x.db").close()
    with pytest.raises(BadInput, match="there is no submission s0"):
        CliRunner().invoke(
            app, ["submissions", "show", "s0", "--database", str(tmp_path / "x.db")], catch_exceptions=False
        )


def test_the_document_survives_its_way_through_the_database(submitted: Any, queue: Queue) -> None:
    document = submitted()
    row = SubmissionService(queue, Gate()).submit(document, ALICE)
    assert Submission.model_validate(queue.get(row.id).document) == document
