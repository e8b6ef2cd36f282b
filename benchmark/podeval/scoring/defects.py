"""Defects of a recording: where it is broken off, clipped or silent, as stretches with a sentence each.

What is found here needs no model: digital silence that breaks off sound, samples at full scale in a row, a channel
without sound. A metric that finds defects of its own (`defects` in its notes, each with `kind`, `start`, `end` and
`detail`) adds them to these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from podeval.analysis import Recording
    from podeval.metrics.score import Result

HOLE_SECONDS = 0.02
"""From which length digital silence that breaks off sound is a hole."""

BROKEN_LEVEL, BROKEN_SECONDS = 0.01, 0.002
"""Sound is broken off where it has this level (-40 dBFS) so shortly before the silence; pauses are faded into."""

CLIPPED_RUN = 3
"""Samples in a row at the highest level of the recording, at full scale, that are clipped."""

FULL_SCALE = 0.999
JOIN_SECONDS = 0.5
"""Clipped places nearer to each other than this are one stretch."""

MOST = 200
"""Stretches of a kind that are listed."""

BLOCK = 1 << 20
"""Frames that are looked at together."""


@dataclass(frozen=True)
class Defect:
    """One stretch of a recording that is not as it should be.

    Attributes:
        kind: in one word, such as `hole` or `clipped`.
        start: seconds from the beginning.
        end: seconds from the beginning.
        detail: a phrase for a reader.
    """

    kind: str
    start: float
    end: float
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def find_defects(recording: Recording) -> tuple[Defect, ...]:
    """Find the defects that need no model, in order of time."""
    if recording.defect:
        return (Defect("unusable", 0.0, round(recording.duration, 3), recording.defect),)
    found = [*_find_holes(recording), *_find_clipping(recording), *_find_dead_channels(recording)]
    return tuple(sorted(found, key=lambda defect: (defect.start, defect.end)))


def defects_of(results: Iterable[Result]) -> list[Defect]:
    """The defects that metrics note, as those of `find_defects`."""
    notes: Iterable[Mapping[str, Any]] = (getattr(result, "notes", {}) for result in results)
    listed = [entry for note in notes for entry in note.get("defects", ())]
    return [
        Defect(str(entry["kind"]), float(entry["start"]), float(entry["end"]), str(entry.get("detail", "")))
        for entry in listed
    ]


def _find_holes(recording: Recording) -> list[Defect]:
    """Stretches of exact zeros in every channel that break off sound."""
    spans = _join(_runs(recording, lambda block: ~block.any(axis=1)), 0, round(HOLE_SECONDS * recording.rate))
    before = max(1, round(BROKEN_SECONDS * recording.rate))
    inside = [
        (start, end)
        for start, end in spans
        if start > 0
        and end < len(recording.samples)
        and np.abs(recording.samples[max(0, start - before) : start]).max() > BROKEN_LEVEL
    ]
    return [
        _defect(
            recording,
            "hole",
            start,
            end,
            f"{(end - start) / recording.rate:.2f} s of digital silence break off the sound",
        )
        for start, end in inside[:MOST]
    ]


def _find_clipping(recording: Recording) -> list[Defect]:
    """Stretches in which samples stay at full scale for `CLIPPED_RUN` in a row."""
    highest = max((float(np.abs(block).max()) for block in _blocks(recording)), default=0.0)
    if highest < FULL_SCALE:
        return []
    level = highest * FULL_SCALE if highest <= 1.0 else 1.0
    runs = [
        run
        for run in _runs(recording, lambda block: (np.abs(block) >= level).any(axis=1))
        if run[1] - run[0] >= CLIPPED_RUN
    ]
    spans = _join(runs, round(JOIN_SECONDS * recording.rate), 0)
    return [_defect(recording, "clipped", start, end, "samples at full scale") for start, end in spans[:MOST]]


def _find_dead_channels(recording: Recording) -> list[Defect]:
    """Channels without any sound beside others with it."""
    if recording.channels < 2:
        return []
    sounding = np.zeros(recording.channels, dtype=bool)
    for block in _blocks(recording):
        sounding |= block.any(axis=0)
    return [
        _defect(recording, "silent channel", 0, len(recording.samples), f"channel {number + 1} holds no sound")
        for number in np.flatnonzero(~sounding)
    ]


def _blocks(recording: Recording) -> Iterable[NDArray[np.float32]]:
    starts = range(0, len(recording.samples), BLOCK)
    return (np.asarray(recording.samples[start : start + BLOCK]) for start in starts)


def _runs(recording: Recording, holds: Any) -> list[tuple[int, int]]:
    """First and last frame (not included) of every run of frames for which `holds` is true, over all blocks."""
    runs: list[tuple[int, int]] = []
    for number, block in enumerate(_blocks(recording)):
        edges = np.flatnonzero(np.diff(np.concatenate(([False], holds(block), [False])).astype(np.int8)))
        for start, end in (edges.reshape(-1, 2) + number * BLOCK).tolist():
            if runs and runs[-1][1] == start:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((start, end))
    return runs


def _join(runs: list[tuple[int, int]], gap: int, shortest: int) -> list[tuple[int, int]]:
    """Runs with those nearer than `gap` frames joined, without those shorter than `shortest` frames."""
    joined: list[tuple[int, int]] = []
    for start, end in runs:
        if joined and start - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return [(start, end) for start, end in joined if end - start >= shortest]


def _defect(recording: Recording, kind: str, start: int, end: int, detail: str) -> Defect:
    return Defect(kind, round(start / recording.rate, 3), round(end / recording.rate, 3), detail)
