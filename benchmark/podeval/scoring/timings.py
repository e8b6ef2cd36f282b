"""How long each piece of work took on this machine, so that the next estimate knows it.

A piece takes so many seconds once in a process (libraries and models are loaded) and so many for each minute of audio.
Both are learned together, from recordings of any length: those that were timed here stand as the sums of their least
squares, beside a guess that counts little. Newer times count more than older ones.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval.errors import PodevalError
from podeval.scoring.machine import describe_machine
from podeval.store.files import find_user_folder, write_whole

_KEPT = 0.7
"""How much times count after the next one."""
_GUESSED_LOADING, _GUESSED_MINUTES = 0.005, 0.05
"""How much a guess counts beside one time; loading depends on disks and memory and is guessed worse than work is."""
_SHORTEST = 0.2
"""Seconds; times differ by their share of what was expected, and by no less than a share of this."""
_UNITS = 6


@dataclass(frozen=True)
class Pace:
    """What a piece of work takes.

    Attributes:
        loading: seconds, once in a process.
        per_minute: seconds for a minute of audio.
    """

    loading: float
    per_minute: float

    def expect(self, minutes: float, loads: float) -> float:
        """Return the seconds for some minutes of audio and a share of the loading."""
        return self.loading * loads + self.per_minute * minutes


@dataclass
class _Sums:
    """Sums over the times of a piece, each weighted by what was expected: loading and minutes, squared and times it."""

    loads: float = 0.0
    crossed: float = 0.0
    minutes: float = 0.0
    loads_seconds: float = 0.0
    minutes_seconds: float = 0.0
    times: float = 0.0

    def add(self, seconds: float, minutes: float, loads: float, weight: float) -> None:
        self.loads = _KEPT * self.loads + weight * loads**2
        self.crossed = _KEPT * self.crossed + weight * loads * minutes
        self.minutes = _KEPT * self.minutes + weight * minutes**2
        self.loads_seconds = _KEPT * self.loads_seconds + weight * loads * seconds
        self.minutes_seconds = _KEPT * self.minutes_seconds + weight * minutes * seconds
        self.times += 1

    def fit(self, guess: Pace) -> Pace:
        """Return the pace that fits the times and the guess best, neither part below zero."""
        trust_loading = _GUESSED_LOADING / max(_SHORTEST, guess.loading) ** 2
        trust_minutes = _GUESSED_MINUTES / max(0.05, guess.per_minute) ** 2
        a, b, d = self.loads + trust_loading, self.crossed, self.minutes + trust_minutes
        x = self.loads_seconds + trust_loading * guess.loading
        y = self.minutes_seconds + trust_minutes * guess.per_minute
        loading, per_minute = (d * x - b * y) / (a * d - b * b), (a * y - b * x) / (a * d - b * b)
        if loading < 0:
            return Pace(0.0, max(0.0, y / d))
        return Pace(max(0.0, x / a), 0.0) if per_minute < 0 else Pace(loading, per_minute)


class Timings:
    """Paces by the name of a piece of work, of one kind of machine; kept in the user's folder.

    Args:
        path: of the file; without it, in `PODEVAL_CACHE` or the user's cache folder.
        machine: which it is, and whose models; what others took is kept and not looked at.
    """

    def __init__(self, path: Path | None = None, machine: str = "") -> None:
        self._path = path or find_user_folder() / "timings.json"
        self._machine = machine or describe_machine()
        self._sums = _read(self._path, self._machine)

    def count(self, name: str) -> int:
        """Return how often a piece of work was timed here."""
        return int(self._sums[name].times) if name in self._sums else 0

    def get(self, name: str, guess: Pace) -> Pace:
        """Return what a piece of work takes; the guess where it was never done here."""
        return self._sums[name].fit(guess) if name in self._sums else guess

    def learn(self, name: str, seconds: float, minutes: float, loads: float, guess: Pace) -> None:
        """Take up how long a piece of work took, with a share of its loading; `save` keeps it."""
        if seconds <= 0 or minutes <= 0:
            return
        expected = max(_SHORTEST, (seconds * self.get(name, guess).expect(minutes, loads)) ** 0.5)
        self._sums.setdefault(name, _Sums()).add(seconds, minutes, loads, 1 / expected**2)

    def save(self) -> None:
        """Write what was learned; what cannot be kept is forgotten."""
        every = _read_file(self._path)
        every[self._machine] = {
            name: [float(f"{value:.6g}") for value in vars(sums).values()] for name, sums in self._sums.items()
        }
        with contextlib.suppress(PodevalError, OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(every, sort_keys=True).encode())


def _read(path: Path, machine: str) -> dict[str, _Sums]:
    entries = _read_file(path).get(machine)
    if not isinstance(entries, dict):
        return {}
    return {str(name): _Sums(*map(float, values)) for name, values in entries.items() if _is_sums(values)}


def _is_sums(values: Any) -> bool:
    """Whether they are what `_Sums` can have."""
    if not isinstance(values, list) or len(values) != _UNITS:
        return False
    numbers = all(isinstance(value, int | float) and math.isfinite(value) and 0 <= value < 1e12 for value in values)
    return numbers and values[0] + values[2] > 0


def _read_file(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
