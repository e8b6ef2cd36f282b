"""A log of JSON lines that survives being killed: a line is there whole, or not at all."""

import json
from pathlib import Path
from typing import IO, Any


def read(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; none where there is no file."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def append(path: Path) -> IO[str]:
    """The log, open at its end; what a killed run left of a line is closed off."""
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    log = path.open("a", encoding="utf-8")
    if torn:
        log.write("\n")
    return log
