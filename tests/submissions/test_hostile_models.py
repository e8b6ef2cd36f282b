"""Hostile models, run as a worker runs them, in the real sandbox: each is held, told, and harms no other item."""

import base64
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import sandbox
from podeval.runs.run_folder import Output, RunFolder
from podeval.sandbox import SandboxLimits
from podeval.sandbox.transcode import Bounds
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy

pytestmark = pytest.mark.skipif(
    sandbox.explain_missing_isolation() is not None, reason=f"no isolation here: {sandbox.explain_missing_isolation()}"
)
SMALL = SandboxLimits(
    wall_seconds=60, memory_bytes=500 * 2**20, processes=32, output_bytes=30 * 2**20, output_files=200
)


POLICY = Policy(failures_allowed=1)
"""The policy of the queue."""


@pytest.fixture
def run(tiny: ModuleType, queue: Queue, tmp_path: Path) -> Callable[..., tuple[Any, dict[str, Output | None]]]:
    """Work on a submission whose model does what is said on some items; the submission, and outputs by item."""

    def work(behaviour: dict[str, str], **making: Any) -> tuple[Any, dict[str, Output | None]]:
        folder = tmp_path / "models/villain"
        folder.mkdir(parents=True)
        (folder / "behaviour.json").write_text(json.dumps({"items": behaviour}))
        row = tiny.enqueue(queue, "villain")
        choices = {"limits": SMALL, "bounds": Bounds(seconds=30.0), **making}
        tiny.worker(queue, tmp_path, trusted=False, making=choices).once()
        villain_run = RunFolder(tmp_path / "board", "ten", "demo", "villain")
        return queue.get(row.id), {item: villain_run.output(item) for item in tiny.ITEMS}

    return work


def failed(outputs: dict[str, Output | None]) -> dict[str, str]:
    return {item: output.failed for item, output in outputs.items() if output and output.failed}


def test_what_it_hands_back_wrongly_counts_against_the_item_alone(run: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.wav"
    secret.write_bytes(b"RIFF")
    behaviour = {
        "item_0": "finish(out, item=item, audio='../../../../secret.wav')",
        "item_1": f"""
import os
os.symlink({str(secret)!r}, out / 'link.wav')
finish(out, item=item, audio='link.wav')
""",
        "item_2": "import os; os.mkfifo(out / 'pipe.wav'); finish(out, item=item, audio='pipe.wav')",
        "item_3": """
import struct, math
frames = struct.pack('<8000f', *([0.1] * 4000 + [math.nan] * 4000))
about = (16, 3, 1, 8000, 32000, 4, 32, b'data', len(frames))
head = struct.pack('<4sI4s4sIHHIIHH4sI', b'RIFF', 36 + len(frames), b'WAVE', b'fmt ', *about)
(out / 'nan.wav').write_bytes(head + frames)
finish(out, item=item, audio='nan.wav')
""",
        "item_4": """
(out / 'junk.flac').write_bytes(b'fLaC' + bytes(range(256)) * 40)
finish(out, item=item, audio='junk.flac')
""",
        "item_5": "finish(out, item=item, audio='not_there.wav')",
        "item_6": "tone(out / 'short.wav', 300, 0.01); finish(out, item=item, audio='short.wav')",
        "item_7": "finish(out, item=item)",
        "item_8": """
tone(out / 'good.wav', 300)
(out / 'generated.jsonl').open('a').write('not json\\n{"item": 3}\\n[1, 2]\\n')
finish(out, item='../../etc', audio='good.wav')
turns = [{'speaker': 'A', 'start': -5, 'end': 1e9, 'text': 'x'}]
finish(out, item=item, audio='good.wav', turns=turns, wall_seconds=1e300)
""",
    }
    row, outputs = run(behaviour)
    assert row.state == "published", row.reason
    message = failed(outputs)
    assert message["item_0"] == "'../../../../secret.wav' is not a regular file in its folder"
    assert message["item_1"] == "'link.wav' is not a regular file in its folder"
    assert message["item_2"] == "'pipe.wav' is not a regular file in its folder"
    assert "NaN or infinity" in message["item_3"]
    assert "junk.flac" in message["item_4"]
    assert message["item_5"] == "'not_there.wav' is not a regular file in its folder"
    assert "less than 0.1 s" in message["item_6"]
    assert message["item_7"] == "the system returned neither audio nor a script"
    good = outputs["item_8"]
    assert good
    assert (good.failed, good.turns, good.wall_seconds, good.duration) == (None, (), None, 0.5)
    assert outputs["item_9"]
    assert len(message) == 8
    summary = RunFolder(tmp_path / "board", "ten", "demo", "villain").summaries()[0].metrics[0]
    assert (summary.scored, summary.unscored_system, summary.unscored_ours) == (2, 8, 0)


def test_a_long_file_and_a_decompression_bomb_are_refused_before_they_cost(run: Any, tmp_path: Path) -> None:
    """Hours each: as WAV, and as a FLAC of silence that is a thousandth of what it decodes to."""
    with soundfile.SoundFile(tmp_path / "bomb.flac", "w", 8_000, 1, "PCM_16") as file:
        for _ in range(2):
            file.write(np.zeros(3600 * 8_000, np.int16))
    assert (tmp_path / "bomb.flac").stat().st_size < 3 * 2**20
    content = base64.b64encode(zlib.compress((tmp_path / "bomb.flac").read_bytes())).decode()
    bomb = f"""
import base64, zlib
(out / 'bomb.flac').write_bytes(zlib.decompress(base64.b64decode({content!r})))
finish(out, item=item, audio='bomb.flac')
"""
    long = """
import wave
with wave.open(str(out / 'long.wav'), 'wb') as file:
    file.setparams((1, 1, 8000, 0, 'NONE', ''))
    for hour in range(2):
        file.writeframes(bytes(3600 * 8000))
finish(out, item=item, audio='long.wav')
"""
    began = time.monotonic()
    limits = SandboxLimits(wall_seconds=100, memory_bytes=500 * 2**20, processes=32, output_bytes=400 * 2**20)
    row, outputs = run({"item_1": bomb, "item_2": long}, limits=limits)
    assert row.state == "published", row.reason
    message = failed(outputs)
    assert set(message) == {"item_1", "item_2"}
    assert "is longer than 0.00833333 hours" in message["item_1"]
    assert "is longer than 0.00833333 hours" in message["item_2"]
    assert time.monotonic() - began < 120


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        ("import time; time.sleep(600)", "it took longer than 5 s"),
        (
            "n = 0\nwhile True:\n    (out / f'{n}').write_bytes(bytes(4_000_000)); n += 1",
            "it wrote more than 30 MiB",
        ),
        ("import os\nwhile True:\n    os.fork()", "Resource temporarily unavailable"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by SIGSEGV"),
        # That it can do neither is what tests/test_sandbox.py says, too.
        pytest.param(
            "import socket; socket.create_connection(('127.0.0.1', 80), 2)",
            "Connection refused",
            marks=pytest.mark.long,
        ),
        pytest.param("open('/etc/owned', 'w')", "Permission denied", marks=pytest.mark.long),
    ],
    ids=["hangs", "fills the disk", "forks", "crashes", "opens a socket", "writes outside"],
)
def test_what_a_model_dies_of_counts_against_the_item_it_was_on(run: Any, attack: str, told: str) -> None:
    # Only what hangs is waited for; the others end of themselves.
    wall_seconds = 5 if "longer" in told else 60
    limits = SandboxLimits(wall_seconds=wall_seconds, memory_bytes=500 * 2**20, processes=32, output_bytes=30 * 2**20)
    row, outputs = run({"item_4": attack}, limits=limits)
    assert row.state == "published", row.reason
    reasons = failed(outputs)
    assert list(reasons) == ["item_4"]
    assert reasons["item_4"].startswith("the system stopped while it worked on this item: ")
    assert told in reasons["item_4"]


def test_one_that_only_attacks_is_failed_with_its_reason_and_not_published(run: Any, tiny: ModuleType) -> None:
    row, _ = run(dict.fromkeys(tiny.ITEMS, "raise SystemExit(7)"))
    assert row.state == "failed"
    assert "produced nothing for any of 10 items" in row.reason
    assert "it ended with exit code 7" in row.reason


def test_an_endless_log_is_cut_off(run: Any, tiny: ModuleType) -> None:
    spam = "while True: (out / 'generated.jsonl').open('ab').write(b'{}\\n' * 1_000_000)"
    row, outputs = run({"item_5": spam})
    assert row.state == "published", row.reason
    assert list(failed(outputs)) == ["item_5"]


def test_without_isolation_a_model_waits_and_the_operator_is_told(
    tiny: ModuleType, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tiny.enqueue(queue, "singer")
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: "bwrap not found; install bubblewrap")
    log: list[str] = []
    worker = tiny.worker(queue, tmp_path, trusted=False, log=log.append)
    assert worker.once() == row.id
    current = queue.get(row.id)
    assert (current.state, current.failures) == ("queued", 0)
    sentence = "untrusted models are not run without isolation: bwrap not found"
    assert current.reason.startswith(f"waits for the board's machine, through no fault of its own: {sentence}")
    assert sentence in log[-1]
    assert worker.once() is None, "it is left to machines that have isolation"
