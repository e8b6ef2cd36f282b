"""A log of JSON lines for a process that may be killed: a line is stored completely or not at all."""

import json
from pathlib import Path
from typing import IO, Any


def read(path: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a log; none if there is no file."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def append(path: Path) -> IO[str]:
    """Open the log for appending, after ending a line that a killed run left incomplete."""
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    log = path.open("a", encoding="utf-8")
    if torn:
        log.write("\n")
    return log
