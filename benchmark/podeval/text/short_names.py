"""File names, as short as possible while they remain distinct."""

import os
from collections.abc import Sequence
from pathlib import Path


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return paths without their common folders; unchanged names if two would become equal."""
    if len(names) < 2:
        return [Path(name).name or name for name in names]
    try:
        shared = os.path.commonpath([str(Path(name).parent) for name in names])
        short = [os.path.relpath(name, shared) if shared else name for name in names]
    except ValueError:
        return list(names)
    return short if len(set(short)) == len(names) else list(names)
