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
from functools import cache
from importlib import metadata
from pathlib import Path

import platformdirs

_LOG = logging.getLogger("podeval.site")

SETTING = "NUMBA_CACHE_DIR"
SECONDS = 300.0
_PROGRAM = (
    "import numpy as np; from podeval.audio.prosody import RATE, measure_prosody; "
    "measure_prosody(np.sin(np.arange(RATE) / 20).astype(np.float32))"
)


def copy_compiled(folder: Path) -> dict[str, str]:
    """Copy what is compiled into a sandbox's folder; returns the setting by which numba reads it, none without librosa.

    Args:
        folder: the sandbox's own, before it starts.
    """
    compiled = prepare()
    if compiled is None:
        return {}
    shutil.copytree(compiled, folder / "numba")
    return {SETTING: str(folder / "numba")}


@cache
def prepare() -> Path | None:
    """Compile what is not compiled yet on this machine, and return its folder; None where it cannot be."""
    try:
        key = "-".join(f"{name}{metadata.version(name)}" for name in ("librosa", "numba", "numpy"))
    except metadata.PackageNotFoundError:
        return None
    root = Path(os.environ.get("PODEVAL_CACHE") or platformdirs.user_cache_dir("podeval"), "numba")
    folder = root / f"python{sys.version_info.major}.{sys.version_info.minor}-{key}"
    if folder.is_dir():
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=root) as making:
            made = Path(making, "numba")
            made.mkdir()
            settings = {**os.environ, SETTING: str(made)}
            subprocess.run([sys.executable, "-c", _PROGRAM], env=settings, check=True, timeout=SECONDS)
            if not folder.is_dir():
                made.rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("what follows pitch is compiled in each measurement anew: %s", error)
        return folder if folder.is_dir() else None
    return folder
