"""How long each piece of scoring took on this machine, so that the next estimate knows it."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path

from podeval.errors import PodevalError
from podeval.store.files import find_user_folder, write_whole

SHORTEST = 20.0
"""Seconds of a recording from which on its times are kept; of a shorter one most is loading models."""

_NEWEST = 0.5
"""How much the newest time counts beside those before it."""


class Timings:
    """Seconds for a minute of audio, by the name of a piece of work; kept in the user's folder.

    Args:
        path: of the file; without it, in `PODEVAL_CACHE` or the user's cache folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or find_user_folder() / "timings.json"
        self._seconds = _read(self._path)

    def get(self, name: str, otherwise: float) -> float:
        """Return what a piece of work takes for a minute of audio; `otherwise` where it was never done here."""
        return self._seconds.get(name, otherwise)

    def learn(self, taken: Mapping[str, float], minutes: float) -> None:
        """Take up how long pieces of work took for some minutes of audio; what cannot be kept is forgotten."""
        if minutes * 60 < SHORTEST:
            return
        for name, seconds in taken.items():
            newest = seconds / minutes
            before = self._seconds.get(name, newest)
            self._seconds[name] = round(before + _NEWEST * (newest - before), 4)
        with contextlib.suppress(PodevalError, OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(self._seconds, sort_keys=True).encode())


def _read(path: Path) -> dict[str, float]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        str(name): float(seconds)
        for name, seconds in data.items()
        if isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
    }
