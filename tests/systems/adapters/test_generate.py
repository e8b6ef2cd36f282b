"""The process that generates: run as a process, killed, short of memory, out of time, in two copies."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval import sandbox
from podeval.errors import BadInput
from podeval.files import lock_folder
from podeval.systems.adapters import generate, text_to_speech
from podeval.systems.adapters.adapter import TRIES, Generated, Job, Log
from podeval.systems.adapters.generate import Batches, OutOfMemory, TookTooLong, limit_time
from podeval.systems.speech import Ask, SpeechFailed, WrittenScript

MODULE = "podeval.systems.adapters.generate"
REPOSITORY = Path(__file__).parents[3]
NO_NETWORK = """
import socket
def refuse(self, address, *rest):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"no network, {address} was asked for")
    return real(self, address, *rest)
real = socket.socket.connect
socket.socket.connect = refuse
"""


def asks(count: int) -> list[dict[str, Any]]:
    return [{"id": f"ep{n}", "script": [{"speaker": "A", "text": f"Salt {'and salt ' * n}"}]} for n in range(count)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a process that reaches loopback only."""
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(NO_NETWORK)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    paths = os.pathsep.join([str(tmp_path / "guard"), str(REPOSITORY / "benchmark")])
    return kept | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def lines(job: Path) -> list[dict[str, Any]]:
    log = job.parent / "out" / "generated.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.long
def test_a_killed_process_goes_on_where_it_was(job: Any, fetched: Any, environment: dict[str, str]) -> None:
    file = job("text-to-speech", fetched("vits"), asks(16))
    process = subprocess.Popen([sys.executable, "-m", MODULE, str(file)], env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(lines(file)) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = lines(file)
    assert 3 <= len(before) < 16
    written = {line["audio"]: (file.parent / "out" / line["audio"]).stat().st_mtime_ns for line in before}
    with (file.parent / "out" / "generated.jsonl").open("a") as log:
        log.write('{"item": "ep3')  # what a kill in the middle of a line leaves
    assert generate.run(Job.read(file), file) == 0
    assert [line["item"] for line in lines(file)] == [ask["id"] for ask in asks(16)]
    assert lines(file)[: len(before)] == before
    assert {name: (file.parent / "out" / name).stat().st_mtime_ns for name in written} == written


@pytest.mark.long
def test_two_copies_share_the_work(job: Any, fetched: Any, environment: dict[str, str]) -> None:
    file = job("text-to-speech", fetched("vits"), asks(5), processes=2, seeds=[0, 1])
    done = subprocess.run(
        [sys.executable, "-m", MODULE, str(file)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted((line["item"], line["seed"]) for line in lines(file)) == sorted(
        (ask["id"], seed) for ask in asks(5) for seed in (0, 1)
    )
    lives = {json.loads(line)["life"] for line in (file.parent / "out" / "begun.jsonl").read_text().splitlines()}
    assert len(lives) == 2
    alone = job("text-to-speech", fetched("vits"), asks(1), out_folder="alone")
    assert generate.run(Job.read(alone), alone) == 0
    assert (file.parent / "alone" / "ep0.0.flac").read_bytes() == (file.parent / "out" / "ep0.0.flac").read_bytes()


@pytest.mark.long
def test_a_model_speaks_in_a_sandbox(job: Any, fetched: Any, tmp_path: Path) -> None:
    """No network, another user, read-only files, one folder to write to."""
    if why := sandbox.explain_missing_isolation():
        pytest.skip(why)
    asked, out = tmp_path / "asked", tmp_path / "out"
    asked.mkdir()
    out.mkdir()
    file = job("text-to-speech", fetched("vits"), asks(2), items_file="asked/items.jsonl")
    (tmp_path / "items.jsonl").rename(asked / "items.jsonl")
    command = sandbox.build_python_command(MODULE, str(file))
    ended = sandbox.run(
        sandbox.SandboxSpec(command, out, [file, asked, fetched("vits")], environment={"OMP_NUM_THREADS": "1"})
    )
    assert ended.failure is None, ended.log
    assert [line["item"] for line in lines(file)] == ["ep0", "ep1"]


def test_a_file_that_may_not_be_read_is_a_sentence(job: Any, fetched: Any, monkeypatch: Any, capsys: Any) -> None:
    def unreadable(*_: Any) -> None:
        raise PermissionError(13, "Permission denied", "/model/model.safetensors")

    monkeypatch.setattr(generate, "_without_network", lambda: None)
    monkeypatch.setattr(text_to_speech, "ADAPTER", replace(text_to_speech.ADAPTER, check=unreadable))
    assert generate.main([str(job("text-to-speech", fetched("vits"), asks(1)))]) == 2
    assert "is not permitted to read or write /model/model.safetensors" in capsys.readouterr().err


def test_a_refused_job_is_a_sentence_and_a_file(job: Any, fetched: Any, capsys: Any, monkeypatch: Any) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "0")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    file = job("text-to-speech", fetched("lm"), asks(1))
    assert generate.main([str(file)]) == 2
    assert "cannot open a model of type 'llama'" in capsys.readouterr().err
    reason = json.loads((file.parent / "out" / generate.REFUSED).read_text())["reason"]
    assert "cannot open a model of type 'llama'" in reason


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"adapter": "mind-reading"}, "no adapter for 'mind-reading'"),
        ({"preset": "lsf"}, "did you mean lfs"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"items_file": "none.jsonl"}, "the items file"),
        ({"trust": True}, "trust"),
        ({"device": "cuda:7"}, "cuda:7 cannot be used here"),
    ],
)
def test_a_job_that_cannot_be_used_says_why(
    job: Any, fetched: Any, capsys: Any, monkeypatch: Any, change: dict[str, Any], says: str
) -> None:
    monkeypatch.setattr(generate, "_without_network", lambda: None)
    adapter = change.pop("adapter", "text-to-speech")
    file = job(adapter, fetched("vits"), asks(1), **change)
    assert generate.main([str(file)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"id": "../x", "prompt": "a"}, "id"),
        ({"id": "a", "prompt": "a", "script": [{"speaker": "A", "text": "b"}]}, "one task"),
        ({"id": "a", "language": "xx"}, "language"),
    ],
)
def test_an_item_that_is_none_names_its_line(job: Any, tmp_path: Path, item: Any, says: str) -> None:
    file = job("outputs", tmp_path, [{"id": "fine"}, item])
    with pytest.raises(BadInput, match=f"line 2.*{says}"):
        Job.read(file).asks()


class Model:
    """A maker whose memory holds three items, and that does as an item's name says."""

    at_once = 8

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def make(self, asks: Sequence[Ask], seed: int) -> list[WrittenScript]:
        import torch

        self.batches.append([ask.id for ask in asks])
        if len(asks) > 3 or any(ask.id == "huge" for ask in asks):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
        if any(ask.id == "slow" for ask in asks):
            while True:
                time.sleep(0.01)
        if any(ask.id == "odd" for ask in asks):
            raise ValueError("probabilities\n contain nan")
        if any(ask.id == "poisoned" for ask in asks):
            raise RuntimeError("CUDA error: device-side assert triggered")
        if any(ask.id == "broken" for ask in asks):
            raise SpeechFailed("the model failed")
        return [WrittenScript(ask.id, None, wall_seconds=0.1) for ask in asks]


@pytest.fixture
def little_garbage() -> Iterator[None]:
    """What is given back when memory ran out is looked for among new objects, not among those of every library."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def injected(little_garbage: None, monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    adapter = replace(text_to_speech.ADAPTER, check=lambda *_: None, open=lambda *_: model)
    monkeypatch.setattr(text_to_speech, "ADAPTER", adapter)
    return model


def test_a_copy_makes_its_share_and_ends_with_its_launcher(
    job: Any, injected: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accelerate, called = pytest.importorskip("accelerate"), []

    class Second:
        """The second of two copies, as accelerate tells it to a process."""

        def __init__(self, cpu: bool) -> None:
            called.append("began")

        @contextmanager
        def split_between_processes(self, work: Sequence[Any]) -> Iterator[Sequence[Any]]:
            yield work[1::2]

        def destroy_process_group(self) -> None:
            called.append("ended")

    # The variable by which a copy of the process knows itself.
    monkeypatch.setenv(generate._COPY, "1")
    monkeypatch.setattr(accelerate, "PartialState", Second)
    monkeypatch.setattr(generate, "_die_with_parent", lambda: called.append("bound"))
    file = job("text-to-speech", tmp_path, asks(5))
    assert generate.run(Job.read(file), file) == 0
    assert [line["item"] for line in lines(file)] == ["ep1", "ep3"]
    assert called == ["bound", "began", "ended"]


def test_a_batch_that_does_not_fit_is_halved_and_stays_so(run: Any, injected: Model, tmp_path: Path) -> None:
    made = run("text-to-speech", tmp_path, asks(9))
    assert [len(batch) for batch in injected.batches] == [8, 4, 2, 2, 2, 2, 1]
    assert all(line.script for line in made.values())


def test_one_item_too_large_fails_by_itself_and_is_ours(run: Any, injected: Model, tmp_path: Path) -> None:
    made = run("text-to-speech", tmp_path, [*asks(2), {"id": "huge"}, {"id": "last"}], batch=2)
    assert "does not fit into memory" in made["huge"].error
    assert made["huge"].cause == "ours"
    assert all(made[name].script for name in ("ep0", "ep1", "last"))


@pytest.mark.parametrize(
    ("item", "error"),
    [("broken", "the model failed"), ("odd", "the model failed (ValueError: probabilities contain nan)")],
)
def test_whatever_one_item_raises_does_not_take_its_neighbours(
    run: Any, injected: Model, tmp_path: Path, item: str, error: str
) -> None:
    made = run("text-to-speech", tmp_path, [{"id": "one"}, {"id": item}, {"id": "two"}], batch=3)
    assert (made[item].error, made[item].cause) == (error, "system")
    assert made["one"].script
    assert made["two"].script


def test_an_error_that_spoils_the_process_ends_it(run: Any, injected: Model, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="device-side assert"):
        run("text-to-speech", tmp_path, [{"id": "poisoned"}])


def test_an_item_that_takes_too_long_is_interrupted(run: Any, injected: Model, tmp_path: Path) -> None:
    begin = time.monotonic()
    made = run("text-to-speech", tmp_path, [{"id": "slow"}, {"id": "one"}], batch=1, item_seconds=1.0)
    assert time.monotonic() - begin < 60
    assert "did not finish the item within 1 s" in made["slow"].error
    assert made["slow"].cause == "system"
    assert made["one"].script


def test_a_limit_that_was_caught_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Five seconds, which nobody waits for here.
    monkeypatch.setattr("podeval.systems.adapters.generate._AGAIN", 0.05)
    caught = 0

    def stubborn() -> None:
        nonlocal caught
        while True:
            try:
                # Long, so that no alarm comes between two sleeps, where it is not caught.
                time.sleep(60)
            except TookTooLong:
                caught += 1
                if caught == 2:
                    raise

    with pytest.raises(TookTooLong), limit_time(0.05):
        stubborn()
    assert caught == 2


def test_two_processes_do_not_generate_into_one_folder(job: Any, injected: Model, tmp_path: Path) -> None:
    file = job("text-to-speech", tmp_path, asks(1))
    with lock_folder(tmp_path / "out"), pytest.raises(BadInput, match="another podeval run is writing"):
        generate.run(Job.read(file), file)


def test_what_kills_its_process_again_and_again_is_given_up(run: Any, injected: Model, tmp_path: Path) -> None:
    for _ in range(TRIES):
        Log(tmp_path / "out").begin([("ep1", 0)])
    made = run("text-to-speech", tmp_path, asks(2))
    assert f"died {TRIES} times on this item" in made["ep1"].error
    assert made["ep1"].cause == "ours"
    assert injected.batches == [["ep0"]]


def test_retries_of_one_process_do_not_count_as_deaths(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for _ in range(3 * TRIES):
        log.begin([("ep1", 0)])
    assert log.died_on() == set()


def test_a_line_whose_audio_is_gone_is_not_finished(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.finish(Generated(item="a", seed=0, audio="a.0.flac"))
    log.finish(Generated(item="b", seed=0, error="the model failed", cause="system"))
    assert set(log.finished()) == {("b", 0)}


@pytest.mark.usefixtures("little_garbage")
def test_memory_of_the_processor_counts_too() -> None:
    def work(batch: Sequence[int]) -> int:
        if len(batch) > 1:
            raise MemoryError
        return batch[0]

    assert [result for _, result in Batches(4).over([1, 2, 3], work)] == [1, 2, 3]

    def never(batch: Sequence[int]) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    ((_, failed),) = Batches(1).over([1], never)
    assert isinstance(failed, OutOfMemory)
