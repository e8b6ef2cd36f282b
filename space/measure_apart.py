"""Decode and measure a stranger's recording in separate processes with limits; a failure is reported in a sentence.

The first process reads the file and writes a copy in podeval's own format; the second scores this copy. Both run in a
sandbox if one is available, as for submissions, and both are stopped if they exceed their limits; the sentence states
who is at fault. A script is measured in the same way. Each measurement takes a `MeasuringTurn`, so at most one
recording and one script are measured at the same time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gradio_events import has_left

from podeval import sandbox
from podeval.errors import BadInput, PodevalError
from podeval.files import locate_hub_source
from podeval.measuring.isolated import HEARTBEAT, ScoreJob, ScoreSession, run_job
from podeval.sandbox import transcode
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.site")
_Function = TypeVar("_Function", bound=Callable[..., Any])

SECONDS = 300
"""Maximum length of a recording in seconds; it is short because the machine also serves the board."""

CHANNELS, RATES = 8, (1_000, 192_000)
DECODING = sandbox.SandboxLimits(
    wall_seconds=60.0, memory_bytes=2 * 2**30, processes=64, output_bytes=2**30, output_files=20
)
"""Limits of the decoding process: five minutes of stereo at 192 kHz take 0.46 GB; including the copy, 1 GB is
allowed.
"""
SCORING = sandbox.SandboxLimits(
    wall_seconds=900.0, memory_bytes=10 * 2**30, processes=256, output_bytes=2 * 2**30, output_files=5_000
)
"""Limits of the scoring process; these limits apply to address space, of which models reserve more than they use."""
GPU_SECONDS = 120
"""Seconds of a shared GPU for one recording."""
SCRIPTS = replace(SCORING, wall_seconds=120.0)
_OF_REPORT = tuple(locate_hub_source("space") / name for name in ("locale", "static"))
"""Texts and styles of the report that the process reads."""
_UNHEARD = "nobody is waiting for the result any longer"


class MeasuringTurn:
    """A place in the queue of visitors who measure a recording or a script; the machine measures one recording and one
    script at a time.

    Args:
        kind: `recording` or `script`.
    """

    _lines: Mapping[str, list[MeasuringTurn]] = {"recording": [], "script": []}
    _changed = threading.Condition()  # The turn is not bound to a thread, because Gradio's threads change.
    _most = SCORING.wall_seconds + 2 * DECODING.wall_seconds
    """Number of seconds without a sign of life after which the first place in the queue no longer delays the others."""

    def __init__(self, kind: str) -> None:
        self._line, self._seen = self._lines[kind], time.monotonic()

    def __enter__(self) -> MeasuringTurn:
        """Take the last place in the queue."""
        with self._changed:
            self._line.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the queue."""
        with self._changed, contextlib.suppress(ValueError):
            self._line.remove(self)
            self._changed.notify_all()

    def wait(self, seconds: float | None = HEARTBEAT) -> int:
        """Wait until this place is first, but no longer than `seconds`; return the number of places ahead of it."""
        with self._changed:
            self._seen = time.monotonic()
            self._changed.wait_for(lambda: self._line[0] is self, seconds)
            first, self._seen = self._line[0], time.monotonic()
            if self._seen - first._seen > self._most:
                # Nothing else would remove such a place, for example if the server that created it was stopped.
                self._line.remove(first)
            return self._line.index(self)

    def wait_to_the_end(self) -> None:
        """Wait until this place is first; raise BadInput once the visitor has left."""
        while self.wait():
            if has_left():
                raise BadInput(_UNHEARD)


@contextlib.contextmanager
def open_decoded(path: Path) -> Iterator[Path]:
    """Open a copy of a stranger's file for the duration of the block; messages about the file contain only its name.

    Raises:
        BadInput: the file is not audio, is too long, or took too much time or memory.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-try-", ignore_cleanup_errors=True) as folder:
        copy = path
        try:
            copy = _decode(path, Path(folder))
            yield copy
        except PodevalError as error:
            # The paths of the upload and its copy are private.
            raise BadInput(str(error).replace(str(copy), path.name).replace(str(path), path.name)) from None


def _decode(path: Path, folder: Path) -> Path:
    """Write a copy of a stranger's file, as FLAC written by podeval, into an empty folder.

    The file is not read in this process. A separate process decodes it, with limits on memory, time and bytes, and in a
    sandbox if one is available, as for submissions.

    Raises:
        BadInput: the file is not audio, is too long, or took too much time or memory.
    """
    source, out = folder / f"recording{path.suffix}", folder / "out"
    shutil.copyfile(path, source)
    out.mkdir()
    bounds = transcode.Bounds(SECONDS + 1, 0.0, CHANNELS, RATES)
    transcode.write_job(out / "job.json", {"recording": source}, out, bounds)
    command = sandbox.build_python_command("podeval.sandbox.transcode", str(out / "job.json"))
    box = sandbox.SandboxSpec(command, out, [source], DECODING, sandbox.ONE_THREAD, own=True)
    with sandbox.open_sandbox(box) as running:
        while running.alive:
            _stop_unheard(running)
            time.sleep(sandbox.TICK)
    return _copy(out, path.name, running.wait().failure)


def _stop_unheard(running: sandbox.Running) -> None:
    """Stop a process once nobody is waiting for its result."""
    if has_left():
        running.stop(_UNHEARD)


def _copy(out: Path, name: str, failure: str | None) -> Path:
    """Return the output of a decoding process, moved out of the folder that the process could write to.

    Raises:
        BadInput: the process refused the file, or did not end successfully.
    """
    try:
        with (out / transcode.REPORT).open("rb") as report:
            report_data = transcode.Transcoded(**json.loads(report.readline(2**16)))
    except (OSError, ValueError, TypeError):
        raise BadInput(f"{name} cannot be decoded here ({failure or 'no reason given'}); export it again") from None
    if report_data.seconds > SECONDS:
        raise BadInput(write_sentence("recording-too-long", most=SECONDS))
    if report_data.refused:
        raise BadInput(report_data.refused.replace("recording", name, 1))
    copy = out / f"recording.{'wav' if str(report_data.file).endswith('.wav') else 'flac'}"
    if copy.is_symlink() or not copy.is_file():
        raise BadInput(write_sentence("recording-not-decoded", file=name))
    return copy.rename(out.parent / copy.name)


def use_shared_gpu(function: _Function) -> _Function:
    """Return a function that has a GPU while it runs, on a Space with ZeroGPU; elsewhere, return it unchanged.

    Args:
        function: a function or generator whose arguments and results can be pickled.
    """
    with contextlib.suppress(ImportError):
        import spaces

        function = spaces.GPU(duration=GPU_SECONDS)(function)
    return function


@use_shared_gpu
def score_apart(
    copy: Path,
    name: str,
    text: str,
    speakers: int,
    metrics: Sequence[str],
    language: str = "en",
    upsample: bool = False,
) -> Iterator[ScoreSession]:
    """Score a decoded copy in a separate process; yield its reports as they become available, ending with the final
    report.

    Args:
        copy: decoded copy from `open_decoded`.
        name: the name of the stranger's file, for the report.
        text: the spoken words, which may be empty.
        speakers: number of speakers; 0 if unknown.
        metrics: names of the chosen metrics.
        language: the language of the report.
        upsample: whether a recording below a model's sampling rate is scored anyway.
    """
    out = Path(tempfile.mkdtemp(prefix="podeval-score-", dir=copy.parent))
    title = re.sub(r"[^\w.-]+", "_", Path(name).name, flags=re.ASCII)[:80]
    what: dict[str, Any] = {"text": text, "speakers": speakers, "metrics": metrics, "allow_upsampling": upsample}
    job = ScoreJob(recording=copy, name=title, out=out, language=language, **what)
    yield from run_job(job, [copy, *_OF_REPORT], SCORING, _stop_unheard)


def score_script_apart(text: str, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Score a script in a separate process; yield a line for each metric, with `result` and `protocol`.

    Raises:
        BadInput: the script cannot be read, or took too much time or memory.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-try-") as folder:
        out = Path(folder, "out")
        out.mkdir()
        job = ScoreJob(recording=None, name="", text=text, speakers=0, metrics=metrics, out=out)
        *_, session = run_job(job, _OF_REPORT, SCRIPTS, _stop_unheard)
    if session.problem:
        raise BadInput(session.problem)
    return session.lines
