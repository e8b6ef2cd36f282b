"""Publish a finished run: it is copied to the board completely or not at all, and its predecessor is kept."""

import shutil
from pathlib import Path

from podeval.runs.run_folder import SUPERSEDED, RunFolder
from podeval.store.files import lock_folder


def publish(run: RunFolder, board: Path) -> Path:
    """Copy a run to the board's folder; copying it again changes nothing. Return its path there.

    Args:
        run: a finished run.
        board: folder of runs.

    Raises:
        DiskFull: there is no space; the board is unchanged.
    """
    relative = run.path.relative_to(run.runs)
    target = board / relative
    with lock_folder(board, wait=True):
        incoming = board / f".incoming-{'-'.join(relative.parts)}"
        shutil.rmtree(incoming, ignore_errors=True)
        shutil.copytree(run.path, incoming, ignore=shutil.ignore_patterns(".lock", ".*.partial"))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            _set_aside(target, board)
        incoming.rename(target)
    return target


def take_down(run: RunFolder) -> bool:
    """Move a run off the board and keep it aside; return whether it was on the board."""
    with lock_folder(run.runs, wait=True):
        if not run.path.exists():
            return False
        _set_aside(run.path, run.runs)
        return True


def _set_aside(target: Path, board: Path) -> None:
    aside = board / SUPERSEDED / target.relative_to(board)
    aside.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.name) for path in aside.iterdir() if path.name.isdigit()), default=0)
    target.rename(aside / str(number))
