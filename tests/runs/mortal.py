"""Work for worker processes to die of: they import it under this name, as they cannot import a test."""

import contextlib
import os
import time
from pathlib import Path

from podeval.runs.executor import MemoryRanOut


def note(task: tuple[Path, str, float]) -> int:
    """Write down who began what, then take so many seconds; on the first `deadly` the process dies."""
    folder, name, seconds = task
    with (folder / "begun").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {name}\n")
    if name == "deadly" and not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(1)
    time.sleep(seconds)
    return os.getpid()


def fit_in(task: tuple[Path, str, int]) -> int:
    """Hold one of so many places, as of a GPU's memory, while this process lives; where none is left memory ran out."""
    folder, name, places = task
    for place in range(places):
        with contextlib.suppress(FileExistsError):
            if str(os.getpid()) not in holders(folder).values():
                (folder / f"place-{place}").symlink_to(str(os.getpid()))
    if str(os.getpid()) not in holders(folder).values():
        raise MemoryRanOut(f"no place for {name}")
    time.sleep(0.01)
    return os.getpid()


def holders(folder: Path) -> dict[Path, str]:
    """Processes by the places they hold; that of a process which has ended is free again."""
    held = {}
    for place in folder.glob("place-*"):
        process = os.readlink(place)
        if Path("/proc", process).exists():
            held[place] = process
        else:
            place.unlink(missing_ok=True)
    return held
