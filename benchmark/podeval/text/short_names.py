"""Names of files as short as they can be told apart."""

import os
from collections.abc import Sequence
from pathlib import Path


def shorten_names(names: Sequence[str]) -> list[str]:
    """Paths without the folders that all of them share; the names as they are where two would become one."""
    if len(names) < 2:
        return [Path(name).name or name for name in names]
    try:
        shared = os.path.commonpath([str(Path(name).parent) for name in names])
        short = [os.path.relpath(name, shared) if shared else name for name in names]
    except ValueError:
        return list(names)
    return short if len(set(short)) == len(names) else list(names)
