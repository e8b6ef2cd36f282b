"""A stranger's recording, decoded and measured each in a process of its own within bounds, whose end is a sentence.

The first reads the file and writes a copy of our own making; the second scores that copy. Both run in a sandbox where
there is one, as submissions do, and both are ended where they take more than they may: the sentence says whose fault.
A script is measured likewise. Whoever measures takes a `MeasuringTurn`: one recording and one script at a time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from gradio_events import has_left

from podeval import sandbox
from podeval.audio import transcode
from podeval.errors import BadInput, PodevalError
from podeval.hub_sources import locate_hub_source
from podeval.measuring.isolated import LINES, REPORT, ScoreJob
from podeval.models import weights
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.site")
_Function = TypeVar("_Function", bound=Callable[..., Any])

SECONDS = 300
"""The longest recording: the machine is that of the board."""

CHANNELS, RATES = 8, (1_000, 192_000)
DECODING = sandbox.SandboxLimits(
    wall_seconds=60.0, memory_bytes=2 * 2**30, processes=64, output_bytes=2**30, output_files=20
)
"""Limits of the process that decodes. Five minutes of stereo at 192 kHz are 0.46 GB of samples; a recording that takes
more than a GB with its copy is refused."""
SCORING = sandbox.SandboxLimits(
    wall_seconds=900.0, memory_bytes=10 * 2**30, processes=256, output_bytes=2 * 2**30, output_files=5_000
)
"""Limits of the process that scores; its memory is counted in addresses, of which models take more than they use."""
GPU_SECONDS = 120
"""Seconds of a shared GPU that one recording is given."""
SCRIPTS = replace(SCORING, wall_seconds=120.0)
_OF_REPORT = tuple(locate_hub_source("space") / name for name in ("locale", "static"))
"""Texts and styles of the report, which the process reads."""
_UNHEARD = "nobody waits for it any more"
HEARTBEAT = 1.0
"""Seconds after which the same is given again: Gradio cancels a measurement between two of its results only, and keeps
whoever cancels waiting until then."""
_MOST_LINES = 32 * 2**20

SETTING = "NUMBA_CACHE_DIR"
COMPILING_SECONDS = 300.0
METRICS = ("pace", "prosodic_coherence", "dialogue_naturalness")
"""Those that follow pitch."""
_PROGRAM = (
    "import numpy as np; from podeval.audio.prosody import RATE, measure_prosody; "
    "measure_prosody(np.sin(np.arange(RATE) / 20).astype(np.float32))"
)


@dataclass
class ScoreSession:
    """What the process that scores has told so far.

    Attributes:
        lines: its lines.
        at: share of the work that is done, from 0 to 1.
        what: sentence on the present step, in the language of the report.
        problem: why it ended before its end; empty where it did not.
        report: the whole report, once it is there.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    at: float = 0.0
    what: str = ""
    problem: str = ""
    report: bytes = b""


class MeasuringTurn:
    """A place in the line of those who measure a recording, or a script: the machine measures one of each at a time.

    Args:
        kind: `recording` or `script`.
    """

    _lines: Mapping[str, list[MeasuringTurn]] = {"recording": [], "script": []}
    _changed = threading.Condition()  # Bound to no thread, because Gradio's change.
    _most = SCORING.wall_seconds + 2 * DECODING.wall_seconds
    """Seconds after which the first in a line holds nobody up any more."""

    def __init__(self, kind: str) -> None:
        self._line, self._seen = self._lines[kind], time.monotonic()

    def __enter__(self) -> MeasuringTurn:
        """Take the last place."""
        with self._changed:
            self._line.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line."""
        with self._changed, contextlib.suppress(ValueError):
            self._line.remove(self)
            self._changed.notify_all()

    def wait(self, seconds: float | None = HEARTBEAT) -> int:
        """Wait for the first place, or until the seconds are over; return how many are before this one."""
        with self._changed:
            self._seen = time.monotonic()
            self._changed.wait_for(lambda: self._line[0] is self, seconds)
            first, self._seen = self._line[0], time.monotonic()
            if self._seen - first._seen > self._most:
                self._line.remove(first)  # Nothing ends it, as where a server was stopped in the middle.
            return self._line.index(self)

    def wait_to_the_end(self) -> None:
        """Wait for the first place; raises BadInput once whoever asked has left."""
        while self.wait():
            if has_left():
                raise BadInput(_UNHEARD)


@contextlib.contextmanager
def open_decoded(path: Path) -> Iterator[Path]:
    """A copy of a stranger's file for as long as the block runs; what is said of it names the file alone.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-try-", ignore_cleanup_errors=True) as folder:
        copy = path
        try:
            copy = _decode(path, Path(folder))
            yield copy
        except PodevalError as error:
            # Where the upload lies is nobody's business, nor where its copy does.
            raise BadInput(str(error).replace(str(copy), path.name).replace(str(path), path.name)) from None


def _decode(path: Path, folder: Path) -> Path:
    """Write a copy of a stranger's file, in FLAC of our own making, into an empty folder.

    Nothing of it is read here. It is decoded in a process of its own, with an end to its memory, time and bytes; in a
    sandbox where there is one, as submissions are.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    source, out = folder / f"recording{path.suffix}", folder / "out"
    shutil.copyfile(path, source)
    out.mkdir()
    bounds = transcode.Bounds(SECONDS + 1, 0.0, CHANNELS, RATES)
    transcode.write_job(out / "job.json", {"recording": source}, out, bounds)
    command = sandbox.build_python_command("podeval.audio.transcode", str(out / "job.json"))
    with sandbox.open_sandbox(_box(command, out, source, DECODING, sandbox.ONE_THREAD)) as running:
        while running.alive:
            _look_after(running, sandbox.TICK)
    return _copy(out, path.name, running.wait().failure)


def _look_after(running: sandbox.Running, seconds: float) -> None:
    """Let a process work for a moment; it is stopped once nobody waits for what it does."""
    if has_left():
        running.stop(_UNHEARD)
    time.sleep(seconds)


def _box(
    command: list[str], out: Path, readable: Path, limits: sandbox.SandboxLimits, settings: dict[str, str]
) -> sandbox.SandboxSpec:
    seen = [readable, weights.locate_root(), *_OF_REPORT]
    return sandbox.SandboxSpec(command, out, seen, limits, settings, own=True)


def _copy(out: Path, name: str, failure: str | None) -> Path:
    """What a decoding process left, moved beside its folder, which was its to write to.

    Raises:
        BadInput: it refused the file, or did not end well.
    """
    try:
        with (out / transcode.REPORT).open("rb") as report:
            report_data = transcode.Transcoded(**json.loads(report.readline(2**16)))
    except (OSError, ValueError, TypeError):
        raise BadInput(f"{name} cannot be decoded here ({failure or 'it said nothing'}); export it again") from None
    if report_data.seconds > SECONDS:
        raise BadInput(write_sentence("recording-too-long", most=SECONDS))
    if report_data.refused:
        raise BadInput(report_data.refused.replace("recording", name, 1))
    copy = out / f"recording.{'wav' if str(report_data.file).endswith('.wav') else 'flac'}"
    if copy.is_symlink() or not copy.is_file():
        raise BadInput(write_sentence("recording-not-decoded", file=name))
    return copy.rename(out.parent / copy.name)


def use_shared_gpu(function: _Function) -> _Function:
    """A function that has a GPU while it runs, on a Space with ZeroGPU; the function as it is everywhere else.

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
    """Score a decoded copy in a process of its own; gives what it has told whenever that is more, and at its end.

    Args:
        copy: decoded copy from `open_decoded`.
        name: the name of the stranger's file, for the report.
        text: the words that are spoken; may be empty.
        speakers: number of people who speak; 0 if nobody says.
        metrics: names of those that are wanted.
        language: the language of the report.
        upsample: whether a recording below a model's sampling rate is scored all the same.
    """
    out = Path(tempfile.mkdtemp(prefix="podeval-score-", dir=copy.parent))
    title = re.sub(r"[^\w.-]+", "_", Path(name).name, flags=re.ASCII)[:80]
    what: dict[str, Any] = {"text": text, "speakers": speakers, "metrics": metrics, "allow_upsampling": upsample}
    job = ScoreJob(recording=copy, name=title, out=out, language=language, **what)
    yield from _run_job(job, copy, SCORING)


def score_script_apart(text: str, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Score a script in a process of its own; gives a line for each metric, with `result` and `protocol`.

    Raises:
        BadInput: it cannot be read, or took too much.
    """
    with tempfile.TemporaryDirectory(prefix="podeval-try-") as folder:
        out = Path(folder, "out")
        out.mkdir()
        job = ScoreJob(recording=None, name="", text=text, speakers=0, metrics=metrics, out=out)
        *_, session = _run_job(job, out, SCRIPTS)
    if session.problem:
        raise BadInput(session.problem)
    return session.lines


def _run_job(score_job: ScoreJob, readable: Path, limits: sandbox.SandboxLimits) -> Iterator[ScoreSession]:
    """Run the program that scores; gives what it has told whenever that is more, and at its end."""
    out, metrics = score_job.out, score_job.metrics
    os.chmod(out.parent, 0o755)  # noqa: S103 - the process may be another user's
    job = out / "job.json"
    job.write_text(score_job.model_dump_json(), encoding="utf-8")
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    settings = {
        "PODEVAL_CACHE": str(out / "cache"),
        "PODEVAL_MODELS": str(weights.locate_root()),
        "PODEVAL_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **({} if set(METRICS).isdisjoint(metrics) else copy_compiled(out)),
    }
    command = sandbox.build_python_command("podeval.measuring.isolated", str(job))
    session, start = ScoreSession(), 0
    with sandbox.open_sandbox(_box(command, out, readable, limits, settings)) as running:
        alive, last = True, time.monotonic()
        while alive:
            # Looked at before the lines: what is written last must not be missed.
            alive = running.alive
            start, changed = _read_lines(out / LINES, start, session)
            if alive and (changed or time.monotonic() - last > HEARTBEAT):
                yield session
                last = time.monotonic()
            elif alive:
                _look_after(running, 0.2)
        ended = running.wait()
    if not session.problem and ended.failure:
        session.problem = _blame(ended)
    report = out / REPORT
    if not report.is_symlink() and report.is_file():
        session.report = report.read_bytes()
    yield session


def _read_lines(path: Path, start: int, session: ScoreSession) -> tuple[int, bool]:
    """Take in the whole lines from a position on; returns the position of the next, and whether there were any."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(_MOST_LINES)
    except OSError:
        return start, False
    whole = content[: content.rfind(b"\n") + 1]
    for text in whole.splitlines():
        line = json.loads(text)
        if "at" in line:
            session.at, session.what = float(line["at"]), str(line["what"])
        elif "refused" in line:
            session.problem = str(line["refused"])
        else:
            session.lines.append(line)
    return start + len(whole), bool(whole)


def _blame(ended: sandbox.ExitInfo) -> str:
    """Why the process that scores was ended, and whose fault that is."""
    stopped = ended.stopped or ""
    if "longer than" in stopped or "more than" in stopped:
        return write_sentence("measuring-over-limit", why=stopped)
    if "left too little" in stopped:
        return write_sentence("measuring-no-room", why=stopped)
    return write_sentence("measuring-failed")


def copy_compiled(folder: Path) -> dict[str, str]:
    """Copy what numba compiles of librosa to follow pitch into a sandbox's folder; returns the setting for it.

    A sandbox begins with an empty home, in which numba would compile it all anew. The one that is copied is made by a
    process of ours from a tone of ours. No sandbox sees it: what a stranger's recording makes of its copy reaches
    nobody. Where nothing is compiled yet, there is none, and it is compiled for the next beside this one.

    Args:
        folder: the sandbox's own, before it starts.
    """
    compiled = _folder()
    if compiled is None or not compiled.is_dir():
        _begin()
        return {}
    shutil.copytree(compiled, folder / "numba")
    return {SETTING: str(folder / "numba")}


@cache
def _begin() -> None:
    """Compile in a thread of its own; once, also where it fails."""
    threading.Thread(target=prepare, name="compiling pitch", daemon=True).start()


def _folder() -> Path | None:
    """Where it lies on this machine; None where librosa is not installed."""
    try:
        key = "-".join(f"{name}{metadata.version(name)}" for name in ("librosa", "numba", "numpy"))
    except metadata.PackageNotFoundError:
        return None
    root = Path(os.environ.get("PODEVAL_CACHE") or platformdirs.user_cache_dir("podeval"), "numba")
    return root / f"python{sys.version_info.major}.{sys.version_info.minor}-{key}"


def prepare() -> Path | None:
    """Compile what is not compiled yet on this machine, and return its folder; None where it cannot be."""
    folder = _folder()
    if folder is None or folder.is_dir():
        return folder
    root = folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=root) as making:
            compiled = Path(making, "numba")
            compiled.mkdir()
            settings = {**os.environ, SETTING: str(compiled)}
            subprocess.run([sys.executable, "-c", _PROGRAM], env=settings, check=True, timeout=COMPILING_SECONDS)
            if not folder.is_dir():
                compiled.rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("each measurement compiles the pitch tracker again: %s", error)
    return folder if folder.is_dir() else None
