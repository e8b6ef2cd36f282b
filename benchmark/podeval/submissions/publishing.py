"""A finished run becomes one of the board's: whole or not at all, its predecessor kept."""

import shutil
from pathlib import Path

from podeval.runs.run_folder import SUPERSEDED, RunFolder
from podeval.store.files import only_one


def publish(run: RunFolder, board: Path) -> Path:
    """Put a copy of a run where the board reads it; done again, it changes nothing.

    Args:
        run: finished.
        board: folder of runs.

    Raises:
        DiskFull: no space; the board is as it was.
    """
    relative = run.path.relative_to(run.runs)
    target = board / relative
    with only_one(board, wait=True):
        incoming = board / f".incoming-{'-'.join(relative.parts)}"
        shutil.rmtree(incoming, ignore_errors=True)
        shutil.copytree(run.path, incoming, ignore=shutil.ignore_patterns(".lock", ".*.partial"))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            _set_aside(target, board)
        incoming.rename(target)
    return target


def take_down(run: RunFolder) -> bool:
    """Take a run off the board; whether it was there. It is kept aside."""
    with only_one(run.runs, wait=True):
        if not run.path.exists():
            return False
        _set_aside(run.path, run.runs)
        return True


def _set_aside(target: Path, board: Path) -> None:
    aside = board / SUPERSEDED / target.relative_to(board)
    aside.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.name) for path in aside.iterdir() if path.name.isdigit()), default=0)
    target.rename(aside / str(number))
