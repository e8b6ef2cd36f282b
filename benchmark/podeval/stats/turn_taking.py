"""Turn-taking: changes of speaker, from the times at which each person speaks, compared with human conversations.

Times are in seconds. Stretches of a person's speech with pauses below `SAME_UNIT` between them form one unit. Units are
processed in order of start time, and at any time one person holds the floor. A unit by another person
is classified as follows:
- If it ends while the holder still speaks, it is a backchannel if it lasts at most `BACKCHANNEL`, or else talking over.
- If it lasts at most `BACKCHANNEL`, and the holder then continues before anyone speaks longer, it is a backchannel.
- Otherwise it takes the floor. Its floor-transfer offset is its start minus the end of the holder's speech: a gap if
  positive, an overlap if negative (Heldner and Edlund 2010; Levinson and Torreira 2015).
Only times are considered: a short answer between two turns of one person counts as a backchannel, regardless of its
words.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAME_UNIT = 0.25
"""Pause in seconds below which a person's speech is not split; VoxConverse does not annotate shorter pauses."""

BACKCHANNEL = 1.0
"""Maximum length of a backchannel in seconds."""

OFFSETS = (-0.5, 0.0, 0.2, 0.5, 1.0)
"""Bounds, in seconds, that divide transfers into kinds by their offset."""

OVERLAPPING = OFFSETS.index(0.0) + 1
"""Number of kinds of transfers that are overlaps."""

KINDS = (*(f"up to {bound:g} s" for bound in OFFSETS), f"over {OFFSETS[-1]:g} s", "backchannel", "talking over")
"""Kinds of events in which someone other than the holder of the floor speaks, in the order used for counts."""

Spoken = tuple[str, float, float]
"""A person, and the start and end of their speech."""


@dataclass(frozen=True)
class FloorEvents:
    """The events on the floor of one conversation.

    Attributes:
        offsets: floor-transfer offsets in seconds, in chronological order.
        kinds: the kind of each event, in chronological order, as an index into `KINDS`.
        backchannels: number of events that are backchannels.
        pauses: pauses within the turn of the person who holds the floor, in seconds.
        talk: seconds of speech for each person.
        speech: seconds in which someone speaks.
        overlap: seconds in which two or more speak at once.
        duration: seconds from the first to the last word.
    """

    offsets: tuple[float, ...]
    kinds: tuple[int, ...]
    backchannels: int
    pauses: tuple[float, ...]
    talk: Mapping[str, float]
    speech: float
    overlap: float
    duration: float

    @property
    def turns(self) -> int:
        """Number of turns."""
        return len(self.offsets) + 1 if self.talk else 0

    @property
    def overlapping(self) -> int:
        """Number of overlapping events: turn changes before the previous turn ends, backchannels, talking over."""
        return sum(kind < OVERLAPPING or kind >= len(OFFSETS) + 1 for kind in self.kinds)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of events of each kind in `KINDS`."""
        return np.bincount(np.asarray(self.kinds, dtype=np.int64), minlength=len(KINDS))


def follow_the_floor(spoken: Iterable[Spoken]) -> FloorEvents:
    """Return the floor events in a conversation.

    Args:
        spoken: the turns of all speakers, in any order; people may overlap.
    """
    units = join_units(spoken)
    offsets: list[float] = []
    kinds: list[int] = []
    pauses: list[float] = []
    holder, until = units[0][0] if units else "", units[0][2] if units else 0.0
    for index, (person, start, end) in enumerate(units[1:], start=1):
        short = end - start <= BACKCHANNEL
        if person == holder:
            pauses.append(start - until)
            until = end
        elif end <= until:
            kinds.append(KINDS.index("backchannel" if short else "talking over"))
        elif short and _goes_on(units[index + 1 :], holder):
            kinds.append(KINDS.index("backchannel"))
        else:
            # Times are rounded to the millisecond, which is their resolution.
            offsets.append(round(start - until, 3))
            kinds.append(int(np.searchsorted(OFFSETS, offsets[-1])))
            holder, until = person, end
    speech, overlap = measure_overlap(units)
    return FloorEvents(
        offsets=tuple(offsets),
        kinds=tuple(kinds),
        backchannels=kinds.count(KINDS.index("backchannel")),
        pauses=tuple(pauses),
        talk={person: sum(e - s for p, s, e in units if p == person) for person in dict.fromkeys(u[0] for u in units)},
        speech=speech,
        overlap=overlap,
        duration=max((end for _, _, end in units), default=0.0) - (units[0][1] if units else 0.0),
    )


def join_units(spoken: Iterable[Spoken]) -> list[Spoken]:
    """Join each person's speech across pauses below `SAME_UNIT`; return units in order of start time."""
    units: list[Spoken] = []
    last: dict[str, int] = {}
    for person, start, end in sorted(spoken, key=lambda unit: (unit[1], -unit[2])):
        at = last.get(person)
        if at is not None and start - units[at][2] < SAME_UNIT:
            units[at] = (person, units[at][1], max(end, units[at][2]))
        else:
            last[person] = len(units)
            units.append((person, start, end))
    return units


def _goes_on(later: Sequence[Spoken], holder: str) -> bool:
    """Return whether the holder speaks again before anyone else speaks longer than a backchannel."""
    counting = (person for person, start, end in later if person == holder or end - start > BACKCHANNEL)
    return next(counting, None) == holder


def measure_overlap(units: Sequence[Spoken]) -> tuple[float, float]:
    """Return the seconds in which someone speaks, and the seconds in which two or more people speak."""
    edges = sorted([(start, 1) for _, start, _ in units] + [(end, -1) for _, _, end in units])
    speech = overlap = 0.0
    speaking, before = 0, 0.0
    for time, change in edges:
        speech += (time - before) * (speaking > 0)
        overlap += (time - before) * (speaking > 1)
        speaking, before = speaking + change, time
    return speech, overlap


@cache
def read_people() -> dict[str, dict[str, Any]]:
    """Read statistics on human turn-taking by kind of conversation, each with its source and licence.

    `studies/turn_times.py` computes these statistics from public turn times.
    """
    text = resources.files("podeval.stats").joinpath("data", "people_turn_taking.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def count_people(kind: str) -> NDArray[np.int64]:
    """Return the number of events of each kind in `KINDS` among people in one kind of conversation."""
    counts = read_people()[kind]["counts"]
    return np.array([counts[name] for name in KINDS], dtype=np.int64)


def jensen_shannon_distance(counts: NDArray[np.generic], people: NDArray[np.generic]) -> float:
    """Return the Jensen–Shannon distance between two lists of counts: the square root of the divergence in bits.

    The distance is 0 if the frequencies are equal and 1 if the lists have no event in common.
    """
    from scipy.spatial.distance import jensenshannon

    return float(jensenshannon(counts, people, base=2))


def bootstrap_distance(kinds: Sequence[int], people: NDArray[np.generic], draws: int = 1000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval for the distance of one conversation, over its events and with a fixed seed.

    Half an event is first added to each kind, so events absent from a short conversation are not impossible.
    """
    counts = np.bincount(np.asarray(kinds, dtype=np.int64), minlength=len(KINDS)) + 0.5
    drawn = np.random.default_rng(0).multinomial(len(kinds), counts / counts.sum(), size=draws)
    distances = [jensen_shannon_distance(row, people) for row in drawn]
    low, high = np.percentile(distances, [2.5, 97.5])
    return float(low), float(high)
