"""A fault of the operator's machine is never the submitter's: it is queued again, the operator reads what to do."""

import errno
import json
import os
import signal
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml
from typer.testing import CliRunner

from podeval import sandbox
from podeval.cli import app
from podeval.cli.worker import stop_by_signals
from podeval.errors import BadInput, ModelMissing
from podeval.files import DiskFull, explain_write_errors
from podeval.runs.run_folder import RunFolder
from podeval.sandbox import ExitInfo, NoIsolation
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.submissions import collect_outputs, public_view
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.gate import Gate
from podeval.submissions.generation import GenerationSettings, generate_command
from podeval.submissions.queue import Queue
from podeval.submissions.rules import MachineFault, OursFailed, Policy
from podeval.submissions.service import SubmissionService
from podeval.submissions.states import OURS, WAITS, is_waiting_for_operator
from podeval.submissions.submission_runs import require_weights
from podeval.submissions.worker import recognise_machine_fault
from podeval.systems.submission import Submission

NO_BOX = "bwrap not found; install bubblewrap"
Usage = namedtuple("Usage", "total used free")


POLICY = Policy(pause_seconds=0.0)
"""The policy of the queue."""


@pytest.fixture
def no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing can be isolated."""
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: NO_BOX)


@pytest.fixture
def work(tiny: ModuleType, queue: Queue, tmp_path: Path) -> Callable[..., Any]:
    """Have a worker try the next submission; the worker, and what it told its operator."""

    def once(**choices: Any) -> tuple[Any, str]:
        log: list[str] = []
        making = choices.pop("making", None)
        worker = tiny.worker(queue, tmp_path, log=log.append, **choices)
        worker.making = making or worker.making
        worker.once()
        return worker, "\n".join(log)

    return once


def outputs_of(tiny: ModuleType, folder: Path) -> Submission:
    """A submission of outputs in a folder of the operator's: ten tones, each its own."""
    (folder / "made").mkdir(parents=True)
    time = np.arange(4_000) / 8_000
    for number, item in enumerate(tiny.ITEMS):
        soundfile.write(folder / "made" / f"{item}.wav", 0.3 * np.sin(2 * np.pi * (200 + 9 * number) * time), 8_000)
    plain = tiny.document("tones") | {"source": {"kind": "outputs", "folder": "made"}}
    (folder / "submission.yaml").write_text(yaml.safe_dump(plain))
    return Submission.model_validate(plain)


def test_a_disk_that_fills_waits_for_the_operator_and_is_done_once_there_is_room(
    tiny: ModuleType, queue: Queue, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tiny.enqueue(queue, "singer")
    with monkeypatch.context() as full:
        full.setattr(
            "podeval.submissions.collect_outputs.shutil.disk_usage", lambda folder: Usage(10**9, 10**9, 3 * 2**20)
        )
        worker, message = work()
    sentence = "the disk with the work folder is almost full: 3 MiB is left"
    current = queue.get(row.id)
    assert (current.state, current.failures) == ("queued", 0)
    assert current.reason.startswith(f"{WAITS}: {sentence}")
    assert is_waiting_for_operator(current)
    assert sentence in message
    assert queue.history(row.id)[-1].reason == current.reason, "everybody reads it in the history"
    assert worker.once() is None, "it does not spin while its machine can do nothing"
    assert queue.get(row.id).attempt == 1
    assert work()[0].fault is None
    assert queue.get(row.id).state == "published", "a worker that is started anew tries at once"


def test_a_machine_at_fault_rests_and_no_attempt_counts(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    def refresh(board: Path) -> None:
        raise DiskFull("the disk is full while writing the board")

    row = tiny.enqueue(queue, "singer")
    worker = tiny.worker(queue, tmp_path, refresh=refresh)
    for _ in range(queue.policy.failures_allowed + 1):
        assert worker.once() == row.id
        assert worker.once() is None, "it rests"
        worker.rests.clear()
    current = queue.get(row.id)
    assert (current.state, current.failures) == ("queued", 0)
    assert current.reason == f"{WAITS}: the disk is full while writing the board"


@pytest.mark.parametrize(
    ("error", "everything"),
    [
        (NoIsolation("no sandbox"), False),
        (ModelMissing("the weights of X are not installed; run `podeval models install`"), False),
        (DiskFull("full"), True),
        (OSError(errno.EROFS, "Read-only file system", "/work"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (MemoryError(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_operator_can_mend_is_the_machines(error: BaseException, everything: bool) -> None:
    fault = recognise_machine_fault(error)
    assert fault
    assert fault.everything is everything


@pytest.mark.parametrize(
    "error", [BadInput("its list of outputs is damaged"), OSError(errno.ENAMETOOLONG, "File name too long"), KeyError()]
)
def test_what_strangers_hand_in_is_not_the_machines(error: BaseException) -> None:
    assert recognise_machine_fault(error) is None


def test_a_folder_that_cannot_be_written_is_the_machines() -> None:
    with pytest.raises(BadInput) as refused, explain_write_errors(Path("/work/x")):
        raise OSError(errno.EROFS, "Read-only file system")
    fault = recognise_machine_fault(refused.value)
    assert fault
    assert str(fault) == "cannot write /work/x: Read-only file system; choose a folder that you can write to"


def test_a_job_file_that_is_not_there_is_never_the_models_fault(tiny: ModuleType, queue: Queue, work: Any) -> None:
    row = tiny.enqueue(queue, "singer")
    making = GenerationSettings(command=lambda job: generate_command(job.with_name("gone.json")), trusted=True)
    message = [work(making=making)[1] for _ in range(3)]
    reason = f"{OURS}: the program that runs models could not start the model: there is no job file …/gone.json"
    states = [(step.after, step.reason) for step in queue.history(row.id)][3:]
    assert states[1] == ("queued", reason)
    assert reason in message[0]
    # What a program in a box says is not believed for ever.
    assert states[-1] == ("failed", f"given up after 3 attempts without a finished item; the last problem: {reason}")


def test_a_library_that_is_not_installed_waits_for_the_operator(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from podeval.systems.adapters.text_to_speech import ADAPTER

    refusal = '{"reason": "transformers is not installed", "cause": "ours"}'
    folder = tmp_path / "models/singer"
    folder.mkdir(parents=True)
    code = f"(out / 'refused.json').write_text({refusal!r}); raise SystemExit(2)"
    (folder / "behaviour.json").write_text(json.dumps({"items": {"item_0": code}}))
    row = tiny.enqueue(queue, "singer")
    message = "text-to-speech needs transformers; run `pip install 'podeval[reference]'`"
    with monkeypatch.context() as bare:
        bare.setattr(type(ADAPTER), "available", lambda self: message)
        tiny.worker(queue, tmp_path).once()
    assert (queue.get(row.id).failures, queue.get(row.id).reason) == (0, f"{WAITS}: {message}")
    # The library is there: whoever says otherwise from inside the box is not believed for ever.
    tiny.worker(queue, tmp_path).once()
    assert (queue.get(row.id).failures, queue.get(row.id).reason) == (1, f"{OURS}: transformers is not installed")


def test_a_model_that_the_kernel_kills_for_want_of_memory_is_not_blamed(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models/singer"
    folder.mkdir(parents=True)
    code = "import os; os.kill(os.getpid(), 9)"
    (folder / "behaviour.json").write_text(json.dumps({"items": {"item_4": code}}))
    kills = iter(range(100))
    row = tiny.enqueue(queue, "singer")
    with monkeypatch.context() as short:
        short.setattr(sandbox, "count_memory_kills", lambda: next(kills))
        tiny.worker(queue, tmp_path).once()
    current = queue.get(row.id)
    assert current.state == "queued"
    assert current.reason.startswith(f"{OURS}: the machine ran out of memory")
    tiny.worker(queue, tmp_path).once()
    failed = RunFolder(tmp_path / "board", "ten", "demo", "singer").output("item_4")
    assert failed
    assert "it was ended by SIGKILL" in str(failed.failed), "one that ends itself is"


def test_a_box_that_does_not_open_any_more_is_the_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_box: None
) -> None:
    ended = ExitInfo(1, None, "bwrap: No permissions to create new namespace\n", 0.1)
    with pytest.raises(MachineFault, match="sandboxes can no longer be opened: bwrap not found"):
        collect_outputs.require_no_fault(ended, tmp_path, 0)
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: None)
    with pytest.raises(OursFailed, match="the sandbox could not be opened"):
        collect_outputs.require_no_fault(ended, tmp_path, 0)


def test_a_disk_that_the_model_itself_filled_is_its_own_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "podeval.submissions.collect_outputs.shutil.disk_usage", lambda folder: Usage(10**9, 10**9, 2**20)
    )
    ended = ExitInfo(1, "it left too little space free on the disk", "", 0.1)
    with pytest.raises(MachineFault):
        collect_outputs.require_no_fault(ended, tmp_path, 0)
    monkeypatch.setattr(collect_outputs, "measure_disk_use", lambda folder: collect_outputs.LEAST_FREE)
    collect_outputs.require_no_fault(ended, tmp_path, 0)


def test_a_recording_is_not_blamed_for_a_disk_on_which_its_copy_has_no_room(
    tiny: ModuleType, queue: Queue, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from podeval.sandbox.transcode import Transcoded
    from podeval.submissions.collect_outputs import Intake

    row = tiny.enqueue(queue, "singer")
    usages = iter([Usage(10**9, 0, 10**9)])
    # The disk fills while the box is at work, which only its method knows.
    box = Intake._transcode_in_box

    def without_room(self: Any, files: Any, clean: Path) -> Any:
        monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: None)
        return box(self, files, clean)

    def refuse(*_: Any, **__: Any) -> Transcoded:
        return Transcoded(next(iter(tiny.ITEMS)), refused="item_0.wav cannot be transcoded (No space left on device)")

    monkeypatch.setattr(Intake, "_transcode_in_box", without_room)
    monkeypatch.setattr("podeval.submissions.collect_outputs.Transcoded", refuse)
    monkeypatch.setattr(
        "podeval.submissions.collect_outputs.shutil.disk_usage", lambda folder: next(usages, Usage(10**9, 10**9, 0))
    )
    work()
    assert queue.get(row.id).reason.startswith(f"{WAITS}: the disk with the work folder is almost full")


def test_weights_that_are_not_installed_wait_for_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.models.card import ModelCard

    entry = RunEntry("real_pod", "topics", "voice")
    monkeypatch.setattr(ModelCard, "missing", lambda self: f"the weights of {self.title} are not installed; run `X`")
    with pytest.raises(MachineFault, match=r"nothing can be measured here: the weights of .* run `X`"):
        require_weights(entry, "embedded")
    monkeypatch.setattr(ModelCard, "missing", lambda self: None if self.job == "transcriber" else "absent")
    require_weights(entry, "embedded")


def test_a_dataset_that_is_not_built_here_waits_for_the_operator(
    tiny: ModuleType, queue: Queue, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tiny.enqueue(queue, "singer")

    def not_here(self: RunEntry, data: Path | None = None) -> None:
        raise BadInput("run `podeval data build ten`, then specify the folder of the build with --data")

    monkeypatch.setattr(RunEntry, "items", not_here)
    work()
    assert (
        queue.get(row.id).reason
        == f"{WAITS}: run `podeval data build ten`, then specify the folder of the build with --data"
    )


@pytest.mark.long
def test_outputs_of_the_operators_own_wait_for_no_box(
    tiny: ModuleType, tmp_path: Path, no_box: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without bubblewrap: a model that came first waits, the outputs behind it are published."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("podeval.board.build.build", lambda board: None)
    outputs_of(tiny, tmp_path / "mine")
    with Database("runs/podeval.db") as database:
        model = tiny.enqueue(Queue(database), "singer").id
    runner = CliRunner()
    submitted = runner.invoke(app, ["submit", "mine"], catch_exceptions=False).output
    done = runner.invoke(app, ["worker", "--once"], catch_exceptions=False)
    outputs = submitted.partition(":")[0]
    assert done.exit_code == 0, done.output
    assert f"{outputs}: published" in done.output
    message = [line for line in done.output.splitlines() if "isolation" in line]
    assert len(message) == 1
    assert message[0].startswith(f"{model}: {WAITS}: untrusted models are not run without isolation: {NO_BOX}")
    before = signal.getsignal(signal.SIGTERM)
    alone = runner.invoke(app, ["worker", "--once"], catch_exceptions=False)
    assert signal.getsignal(signal.SIGTERM) is before
    assert alone.exit_code == 1
    assert f"{model}: queued, waiting until this machine is repaired" in alone.output
    listing = runner.invoke(app, ["submissions", "list"], catch_exceptions=False).output
    assert "number 1 in the queue" in listing
    assert f": {WAITS}: untrusted models" in listing


def test_recordings_of_strangers_are_not_opened_without_a_box(
    tiny: ModuleType, queue: Queue, work: Any, no_box: None
) -> None:
    source = {"kind": "outputs", "repo": "x/tones", "revision": "a" * 40}
    row = queue.receive(tiny.document("tones") | {"source": source}, owner="alice", quotas=False)
    queue.move(row.id, "received", "checked", by="gate", pinned={"passed": True})
    queue.move(row.id, "checked", "queued", by="gate")
    work(trusted=False)
    assert queue.get(row.id).reason == f"{WAITS}: recordings from the Hub are not opened without isolation: {NO_BOX}"


def test_everybody_reads_that_it_waits_for_the_board_and_not_where(tiny: ModuleType, queue: Queue, work: Any) -> None:
    row = tiny.enqueue(queue, "singer")

    def refresh(board: Path) -> None:
        raise DiskFull("the disk is full while writing /srv/secret/board/table.parquet")

    work(refresh=refresh)
    about = public_view.describe_publicly(queue.get(row.id))
    assert about["waits_for_operator"] is True
    assert about["reason"] == f"{WAITS}: the disk is full while writing …/table.parquet"
    assert public_view.describe_steps(queue.history(row.id))[-1]["reason"] == about["reason"]


def test_a_folder_of_outputs_that_is_elsewhere_waits_for_the_operator(
    tiny: ModuleType, queue: Queue, tmp_path: Path
) -> None:
    from podeval.submissions.source_files import fetch

    document = outputs_of(tiny, tmp_path / "mine")
    row = SubmissionService(queue, Gate()).submit(document, document_folder=tmp_path / "mine")
    (tmp_path / "mine").rename(tmp_path / "moved")
    worker = tiny.worker(queue, tmp_path)
    worker.fetch = fetch
    worker.once()
    assert queue.get(row.id).reason.startswith(f"{WAITS}: the folder {tmp_path}/mine/made no longer exists here")


def test_a_work_folder_by_a_relative_path_or_a_link_is_made_whole(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from podeval.submissions.source_files import fetch

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").symlink_to("elsewhere")
    row = SubmissionService(queue, Gate()).submit(
        outputs_of(tiny, tmp_path / "mine"), document_folder=tmp_path / "mine"
    )
    monkeypatch.chdir(tmp_path)
    worker = tiny.worker(queue, Path())
    worker.fetch, worker.making = fetch, type(worker.making)(trusted=sandbox.explain_missing_isolation() is not None)
    assert worker.folder == tmp_path / "elsewhere"
    worker.once()
    assert queue.get(row.id).state == "published", queue.get(row.id).reason


def test_the_first_signal_lets_it_finish_and_says_so_the_second_stops_it(
    tiny: ModuleType, queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "podeval")
    worker = tiny.worker(queue, tmp_path)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_by_signals(worker) as stopped:
        assert not stopped()
        worker.at_work = "s0123456789ab"
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()
        assert caplog.messages == [
            "the worker finishes s0123456789ab, then stops; "
            "a second Ctrl-C or SIGTERM stops the worker immediately and requeues the submission"
        ]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_worker_without_work_gives_a_sign_of_life(tiny: ModuleType, queue: Queue, tmp_path: Path) -> None:
    rounds = iter([False, True, True])
    tiny.worker(queue, tmp_path).watch(0.0, lambda: next(rounds))
    with queue.database.reading() as session:
        assert operator_settings.read_done(session, operator_settings.WORKER_SEEN) is not None
