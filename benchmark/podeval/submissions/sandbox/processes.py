"""The processes of a sandbox, as /proc shows them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def list_descendants(pid: int) -> Iterator[int]:
    """List all processes below one."""
    try:
        children = [
            int(child)
            for tasks in Path(f"/proc/{pid}/task").iterdir()
            for child in (tasks / "children").read_text(encoding="ascii").split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from list_descendants(child)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and not been waited for does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def list_views(pid: int) -> list[Path]:
    """List the /proc folders of a process and all its descendants, one for each.

    A process whose first thread has ended shows nothing under its own number; another thread's folder is used then.
    """
    folders = (find_view(each) for each in (pid, *list_descendants(pid)))
    return [folder for folder in folders if folder is not None]


def find_view(pid: int) -> Path | None:
    """Return the /proc folder of a process, through its first living thread; None if there is none."""
    folder = Path(f"/proc/{pid}")
    if read_resident(folder):
        return folder
    with contextlib.suppress(OSError):
        return next((task for task in (folder / "task").iterdir() if read_resident(task)), None)
    return None


def read_resident(folder: Path) -> int:
    """Return the bytes of memory in the tables of the process behind a folder of /proc; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * int((folder / "statm").read_text(encoding="ascii").split()[1])
    return 0


def read_shared(folder: Path) -> int:
    """Return how much of that memory is shared between processes, or files that lie in memory."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("RssShmem:"):
                return 1024 * int(line.split()[1])
    return 0
