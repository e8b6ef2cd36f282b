"""Work for worker processes to die of: they import it under this name, as they cannot import a test."""

import os
import time
from pathlib import Path


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
