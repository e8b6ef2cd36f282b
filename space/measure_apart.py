"""A stranger's recording, decoded and measured each in a process of its own within bounds, whose end is a sentence.

The first reads the file and writes a copy of our own making; the second scores that copy. Both run in a sandbox where
there is one, as submissions do, and both are ended where they take more than they may: the sentence says whose fault.
"""

from __future__ import annotations

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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs

from podeval.audio import transcode
from podeval.audio.formats.container import read_container_and_seconds
from podeval.errors import BadInput, PodevalError
from podeval.measuring.isolated import LINES, REPORT, ScoreJob
from podeval.models import weights
from podeval.submissions import sandbox
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.site")

SECONDS = 300
"""The longest recording: the machine is that of the board."""

CHANNELS, RATES = 8, (1_000, 192_000)
DECODING = sandbox.SandboxLimits(
    wall_seconds=60.0, memory_bytes=2 * 2**30, processes=64, output_bytes=2**30, output_files=20
)
"""Of the process that decodes. Five minutes of stereo at 192 kHz are 0.46 GB of samples; what takes more than a GB with
its copy is refused."""
SCORING = sandbox.SandboxLimits(
    wall_seconds=900.0, memory_bytes=10 * 2**30, processes=256, output_bytes=2 * 2**30, output_files=5_000
)
"""Of the process that scores; its memory is counted as addresses, too, of which models take more than they use."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_OF_REPORT = (Path(__file__).parent / "locale", Path(__file__).parent / "static")
"""Texts and styles of the report, which the process reads."""
_LOOK = 0.2
_MOST_LINES = 32 * 2**20
_ODD = re.compile(r"[^\w.-]+", re.ASCII)

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
        at: how far it is, from 0 to 1.
        what: what it is at.
        problem: why it ended before its end; empty where it did not.
        report: the whole report, once it is there.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    at: float = 0.0
    what: str = ""
    problem: str = ""
    report: bytes = b""


@contextmanager
def open_decoded(path: Path) -> Iterator[Path]:
    """A copy of a stranger's file for as long as the block runs; what is said of it names the file alone.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    copy = None
    try:
        copy = decode_apart(path)
        yield copy
    except PodevalError as error:
        # Where the upload lies is nobody's business, nor where its copy does.
        raise BadInput(str(error).replace(str(copy), path.name).replace(str(path), path.name)) from None
    finally:
        if copy is not None:
            shutil.rmtree(copy.parent, ignore_errors=True)


def decode_apart(path: Path) -> Path:
    """A copy of a stranger's file in FLAC of our own making, in a new folder, which belongs to who called.

    Its header is read here, which bounds what it may decode to. It is decoded in a process of its own, with an end to
    its memory, time and bytes; in a sandbox where there is one, as submissions are.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    if read_container_and_seconds(path)[1] > SECONDS:
        raise BadInput(write_sentence("recording-too-long", most=SECONDS))
    folder = Path(tempfile.mkdtemp(prefix="podeval-try-"))
    try:
        source, out = folder / f"recording{path.suffix}", folder / "out"
        shutil.copyfile(path, source)
        out.mkdir()
        bounds = transcode.Bounds(SECONDS + 1, 0.0, CHANNELS, RATES)
        transcode.write_job(out / "job.json", {"recording": source}, out, bounds)
        command = sandbox.build_python_command("podeval.audio.transcode", str(out / "job.json"))
        ended = sandbox.run(_box(command, out, source, DECODING, _ONE_THREAD))
        return _copy(out, path.name, ended.failure)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _box(
    command: list[str], out: Path, readable: Path, limits: sandbox.SandboxLimits, settings: dict[str, str]
) -> sandbox.SandboxSpec:
    trusted = sandbox.explain_missing_isolation() is not None
    return sandbox.SandboxSpec(
        command, out, [readable, weights.locate_root(), *_OF_REPORT], limits, settings, trusted=trusted
    )


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
    if report_data.refused:
        raise BadInput(report_data.refused.replace("recording", name, 1))
    copy = out / f"recording.{'wav' if str(report_data.file).endswith('.wav') else 'flac'}"
    if copy.is_symlink() or not copy.is_file():
        raise BadInput(write_sentence("recording-not-decoded", file=name))
    return copy.rename(out.parent / copy.name)


def score_apart(
    copy: Path, name: str, text: str, speakers: int, metrics: Sequence[str], language: str = "en"
) -> Iterator[ScoreSession]:
    """Score a decoded copy in a process of its own; gives what it has told whenever that is more, and at its end.

    Args:
        copy: as `open_decoded` gives it.
        name: the name of the stranger's file, for the report.
        text: what is said in it; may be empty.
        speakers: how many people speak; 0 where nobody says.
        metrics: names of those that are wanted.
        language: the language of the report.
    """
    out = Path(tempfile.mkdtemp(prefix="podeval-score-", dir=copy.parent))
    os.chmod(copy.parent, 0o755)  # noqa: S103 - the process may be another user's
    title = _ODD.sub("_", Path(name).name)[:80]
    job = out / "job.json"
    score_job = ScoreJob(
        recording=copy, name=title, text=text, speakers=speakers, metrics=metrics, out=out, language=language
    )
    job.write_text(score_job.model_dump_json(), encoding="utf-8")
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    settings = {
        "PODEVAL_CACHE": str(out / "cache"),
        "PODEVAL_MODELS": str(weights.locate_root()),
        "PODEVAL_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **(copy_compiled(out) if needs_pitch(metrics) else {}),
    }
    command = sandbox.build_python_command("podeval.measuring.isolated", str(job))
    session, start = ScoreSession(), 0
    with sandbox.open_sandbox(_box(command, out, copy, SCORING, settings)) as running:
        alive = True
        while alive:
            # Looked at before the lines: what is written last must not be missed.
            alive = running.alive
            start, changed = _read_lines(out / LINES, start, session)
            if changed and alive:
                yield session
            elif alive:
                time.sleep(_LOOK)
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
        return (
            f"measuring was stopped, because {stopped}, the limit of this board for one recording: choose fewer "
            "metrics or a shorter part, or measure on your own machine"
        )
    if "left too little" in stopped:
        return f"measuring was stopped, because {stopped}: this is not your recording's fault; try again later"
    return "measuring failed because of a fault of this board, not of your recording; try again, and tell its operator"


def needs_pitch(metrics: Iterable[str]) -> bool:
    """Whether one of these metrics follows pitch."""
    return not set(METRICS).isdisjoint(metrics)


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
    return folder
