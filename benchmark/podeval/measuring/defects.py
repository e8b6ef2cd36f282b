"""Defects of a recording: what is wrong with the file itself, and what metrics noted while they listened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podeval.metrics.score import Result, Score

if TYPE_CHECKING:
    from podeval.recording import Recording

BLOCK = 1 << 20
"""Frames that are looked at together."""


@dataclass(frozen=True)
class Defect:
    """One stretch of a recording that is not as it should be.

    Attributes:
        kind: kind of the defect in a word, such as `hole` or `clipped`.
        start: seconds from the beginning.
        end: seconds from the beginning.
        detail: phrase for a reader.
    """

    kind: str
    start: float
    end: float
    detail: str


def find_defects(recording: Recording) -> tuple[Defect, ...]:
    """Find what is wrong with the file itself: nothing to measure at all, or a channel without sound."""
    length = round(recording.duration, 3)
    if recording.defect:
        return (Defect("unusable", 0.0, length, recording.defect),)
    if recording.channels < 2:
        return ()
    sounding = np.zeros(recording.channels, dtype=bool)
    for start in range(0, len(recording.samples), BLOCK):
        sounding |= recording.samples[start : start + BLOCK].any(axis=0)
    silent = (f"channel {number + 1} holds no sound" for number in np.flatnonzero(~sounding))
    return tuple(Defect("silent channel", 0.0, length, detail) for detail in silent)


def list_noted_defects(results: Iterable[Result]) -> list[Defect]:
    """List the defects that metrics noted, in order of time; what two of them found is there once."""
    noting = [result for result in results if isinstance(result, Score) and "defects" in result.notes]
    if not noting:
        return []
    from podeval.metrics.defects import collect_defects

    return [
        Defect(one.kind, round(one.start, 3), round(one.end, 3), one.detail or one.kind)
        for one in collect_defects(noting)
    ]
