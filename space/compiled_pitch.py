"""What numba compiles of librosa to follow pitch, kept for the processes that score: each gets a copy of its own.

A sandbox begins with an empty home, in which numba would compile it all anew. The one that is copied is made by a
process of ours from a tone of ours. No sandbox sees it: what a stranger's recording makes of its copy reaches nobody.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import platformdirs

_LOG = logging.getLogger("podeval.site")

SETTING = "NUMBA_CACHE_DIR"
SECONDS = 300.0
METRICS = ("pace", "prosodic_coherence", "dialogue_naturalness")
"""Those that follow pitch."""
_PROGRAM = (
    "import numpy as np; from podeval.audio.prosody import RATE, measure_prosody; "
    "measure_prosody(np.sin(np.arange(RATE) / 20).astype(np.float32))"
)


def needs_pitch(metrics: Iterable[str]) -> bool:
    """Whether one of these metrics follows pitch."""
    return not set(METRICS).isdisjoint(metrics)


def copy_compiled(folder: Path) -> dict[str, str]:
    """Copy what is compiled into a sandbox's folder; returns the setting by which numba reads it.

    Where nothing is compiled yet, there is none, and it is compiled for the next beside this one.

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
            subprocess.run([sys.executable, "-c", _PROGRAM], env=settings, check=True, timeout=SECONDS)
            if not folder.is_dir():
                compiled.rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("each measurement compiles the pitch tracker again: %s", error)
        return folder if folder.is_dir() else None
    return folder
