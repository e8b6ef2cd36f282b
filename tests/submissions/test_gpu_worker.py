"""`podeval worker --gpu`: what its sandbox hands in, what it refuses, and from queue to board, with a GPU or as if."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from podeval import sandbox
from podeval.cli import app
from podeval.errors import BadInput
from podeval.runs.run_folder import RunFolder
from podeval.sandbox import SandboxSpec, command
from podeval.store.database import Database
from podeval.submissions import generation
from podeval.submissions.queue import Queue

TESTS = Path(__file__).parents[1]
CARD = b"---\nlicense: cc0-1.0\n---\n# A voice\n" + b"Made of random numbers for a test, it says nothing at all. " * 5


def list_pairs(line: list[str], option: str) -> list[tuple[str, str]]:
    return [(line[at + 1], line[at + 2]) for at, part in enumerate(line) if part == option]


@pytest.fixture
def simulated_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that every machine has stands for those of a GPU, and the trial finds that it works."""
    monkeypatch.setattr(command, "_GPU", ("full",))
    monkeypatch.setattr(sandbox, "explain_missing_gpu", lambda *, trusted: None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SandboxSpec, dict[str, Any]]]:
    """The boxes that models were run in, with the jobs that they were given."""
    opened: list[tuple[SandboxSpec, dict[str, Any]]] = []
    open_box = generation.open_box

    def note(box: SandboxSpec) -> Any:
        opened.append((box, json.loads(Path(box.command[-1]).read_bytes())))
        return open_box(box)

    monkeypatch.setattr(generation, "open_box", note)
    return opened


@pytest.mark.usefixtures("simulated_gpu")
def test_the_devices_and_the_choice_of_the_gpu_are_in_the_box_and_in_no_other(tmp_path: Path) -> None:
    plain = SandboxSpec(["true"], tmp_path)
    with_gpu = SandboxSpec(["true"], tmp_path, gpu=True)
    line, other = (command.build_isolated_command(box, 5) for box in (with_gpu, plain))
    assert list_pairs(line, "--dev-bind") == [("/dev/full", "/dev/full")]
    # A device that is bound before /dev is made is hidden by it.
    assert line.index("--dev") < line.index("--dev-bind")
    assert ("/sys", "/sys") in list_pairs(line, "--ro-bind")
    assert ("CUDA_VISIBLE_DEVICES", "3") in list_pairs(line, "--setenv")
    assert not any(part.startswith("--as=") for part in line)
    assert not {"--dev-bind", "/sys", "CUDA_VISIBLE_DEVICES"} & set(other)
    assert any(part.startswith("--as=") for part in other)
    for box in (with_gpu, plain):
        assert "HF_TOKEN" not in command.build_environment(box)


def test_where_there_is_no_gpu_it_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "_GPU", ("no-such-device*",))
    with pytest.raises(BadInput, match=r"models cannot use a GPU here: there is no GPU.*leave --gpu out") as refused:
        CliRunner().invoke(
            app, ["worker", "--once", "--gpu", "--database", str(tmp_path / "store.db")], catch_exceptions=False
        )
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "store.db").exists()


def test_a_job_on_the_hub_has_the_gpu_of_its_flavor(tmp_path: Path) -> None:
    options = ["worker", "--once", "--gpu", "--executor", "hf-jobs", "--database", str(tmp_path / "store.db")]
    with pytest.raises(BadInput, match="get the GPU of their --flavor"):
        CliRunner().invoke(app, options, catch_exceptions=False)


def test_a_gpu_that_a_program_in_the_box_cannot_use_is_told_by_what_it_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The trial runs a program as models are run; here Python stands for one whose driver does not answer."""
    driverless = tmp_path / "python"
    driverless.write_text("#!/bin/sh\necho warned\necho RuntimeError: CUDA error: 304\nexit 1\n")
    driverless.chmod(0o755)
    monkeypatch.setattr(command, "_GPU", ("full",))
    monkeypatch.setattr(sys, "executable", str(driverless))
    why = sandbox.explain_missing_gpu(trusted=True)
    assert why == "torch cannot use it in the sandbox (RuntimeError: CUDA error: 304)"


@pytest.mark.usefixtures("simulated_gpu")
def test_a_submission_goes_from_queue_to_board_with_the_gpu_in_its_box(
    tiny: ModuleType, store: Path, tmp_path: Path, boxes: list[tuple[SandboxSpec, dict[str, Any]]]
) -> None:
    trusted = sandbox.explain_missing_isolation() is not None
    with Database(store) as database:
        queue = Queue(database)
        row = tiny.enqueue(queue, "singer")
        tiny.worker(queue, tmp_path, trusted=trusted, making={"gpu": True}).once()
        current = queue.get(row.id)
    assert current.state == "published", current.reason
    (box, job) = boxes[0]
    assert box.gpu
    assert "device" not in job, "the adapter takes the GPU that it sees"
    assert command.build_environment(box)["CUDA_VISIBLE_DEVICES"] == "3"


def submit_and_work(makers: Path, name: str, tiny: ModuleType, hub: Any, store: Path, folder: Path) -> RunFolder:
    """Publish a model on the loopback Hub, submit it, and have `podeval worker --once --gpu` work on it."""
    files = {path.name: path.read_bytes() for path in makers.iterdir() if path.is_file()}
    commit = hub.repos.publish("models", f"alice/{name}", {**files, "README.md": CARD}).refs["main"]
    plain = tiny.document(name)
    plain["source"] = {"kind": "model", "repo": f"alice/{name}", "revision": commit, "task": "text-to-speech"}
    document = folder / "submission.yaml"
    document.write_text(yaml.safe_dump(plain))
    trust = ["--trust-models"] if sandbox.explain_missing_isolation() else []
    places = ["--database", str(store), "--runs", str(folder / "board")]
    for words in (
        ["submit", str(document), "--database", str(store)],
        ["worker", "--once", "--gpu", *trust, *places, "--work", str(folder / "work")],
    ):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert "published" in done.output
    return RunFolder(folder / "board", "ten", "demo", name)


def explain_no_gpu() -> str:
    """Why the test with a real GPU cannot run here; empty where it can. Imports torch only where there is a driver."""
    if not list(Path("/dev").glob("nvidia[0-9]*")) and not Path("/dev/kfd").exists():
        return "no GPU here: there is no /dev/nvidia0 and no /dev/kfd"
    return sandbox.explain_missing_gpu(trusted=sandbox.explain_missing_isolation() is not None) or ""


@pytest.mark.long
def test_a_full_size_random_model_goes_from_queue_to_board_on_a_real_gpu(
    tiny: ModuleType,
    hub_client: Any,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    boxes: list[tuple[SandboxSpec, dict[str, Any]]],
) -> None:
    """VITS in the size published with 109 voices, its weights drawn at random; which GPU it ran on is in its output."""
    if why := explain_no_gpu():
        pytest.skip(why)
    monkeypatch.setattr("podeval.board.build.build", lambda board: None)
    from studies.speed import full_size_models as models

    mms = next(one for one in models.MODELS if one.published == "facebook/mms-tts-eng")
    voices = {"vocab_size": 38, "num_speakers": 109, "speaker_embedding_size": 256}
    model = replace(mms, parts=(models.Part("", "VitsModel", voices),))
    assert models.count_parameters(model) > 3e7
    models.write_model(model, tmp_path / "model", "float32")
    run = submit_and_work(tmp_path / "model", "vits", tiny, hub_client, store, tmp_path)
    assert run.summaries()[0].metrics[0].scored == 10
    output = run.output("item_0")
    assert output
    assert output.details["hardware"].startswith("1 × ")
    assert all(box.gpu for box, _ in boxes)
