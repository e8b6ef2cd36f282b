"""Estimate from a pilot how many listeners a test needs, and decide whether a running test may stop.

Both calculations use one number per listener for each pair of systems: the difference between the mean marks of the two
systems or, if a page compares the two, the mean answer (in an ABX test, the share of correct answers above chance). The
answers of one listener depend on each other, but listeners are independent. You may check after every listener whether
to stop, because the evidence from `podeval.stats.sequential` is valid at any number of listeners.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from podeval.errors import BadInput
from podeval.listening.designs import Design, read_design
from podeval.recording.recording import is_audio_name
from podeval.stats.mushra_scores import Mark
from podeval.stats.sequential import count_needed, sequential_interval

MOST = 100_000
"""A difference that needs more listeners than this is considered too small for a listening test."""

_LEVEL = 0.95
"""Confidence level: in a plan, of each interval; in a running test, of all intervals together."""

_CAUTION = 0.8
"""Confidence that the spread of all listeners is at most the planned spread; the spread in a pilot is often too
small.
"""


@dataclass(frozen=True)
class ListenersNeeded:
    """The number of listeners needed to distinguish two systems.

    Attributes:
        first, second: the systems.
        pilot: number of pilot listeners who heard both systems.
        spread: standard deviation of the listeners' differences, with the safety margin that a pilot of that size
            requires.
        listeners: number of listeners needed; None for more than `MOST`.
    """

    first: str
    second: str
    pilot: int
    spread: float
    listeners: int | None


@dataclass(frozen=True)
class StoppingVerdict:
    """The current conclusions about two systems.

    Attributes:
        first, second: the systems.
        listeners: number of listeners who heard both systems.
        mean: mean of the listeners' differences, first minus second.
        interval: interval that is valid at every check; None if there are too few listeners.
        better: the system that has been shown to be better, so that the test may stop; "" if neither has been.
        expected: total number of listeners needed for a decision if later listeners give similar marks; None if
            unknown.
    """

    first: str
    second: str
    listeners: int
    mean: float
    interval: tuple[float, float] | None
    better: str
    expected: int | None


def compute_listener_differences(marks: Iterable[Mark], first: str, second: str) -> list[float]:
    """Return, for each listener in order, the mean mark for one system minus the mean mark for another.

    Args:
        marks: marks of the listeners who finished, in the order of their places.
        first: the first system; the difference is positive if this system's marks are higher.
        second: the second system, whose marks are subtracted.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for mark in marks:
        if mark.stimulus in (first, second):
            values[mark.rater][mark.stimulus].append(mark.value)
    return [
        float(np.mean(of_rater[first]) - np.mean(of_rater[second]))
        for of_rater in values.values()
        if first in of_rater and second in of_rater
    ]


def pair_differences(marks: Iterable[Mark], first: str, second: str) -> list[float]:
    """Return, for each listener in order, the mean answer to the pages that compare two systems.

    For preferences, it is the mean preference for the first system over the second; for ABX answers, it is the share of
    correct answers above chance.

    Args:
        marks: marks of a test of pairs, from `podeval.listening.session_results.read_session_marks`.
        first: the first system; a positive value means that this system is preferred.
        second: the other system.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for mark in marks:
        if mark.page.endswith((f": {first} | {second}", f": {second} | {first}")):
            # A positive preference favours the second side of a page.
            towards_first = -mark.value if mark.stimulus == first else mark.value
            values[mark.rater].append(mark.value - 0.5 if mark.scale == "abx" else towards_first)
    return [float(np.mean(of_rater)) for of_rater in values.values()]


def count_listeners(
    marks: Sequence[Mark],
    systems: Sequence[str],
    difference: float,
    *,
    power: float = 0.8,
    pairs: bool = False,
) -> list[ListenersNeeded]:
    """Compute from a pilot's marks the number of listeners needed to distinguish two systems whose means differ by
    `difference`.

    Args:
        marks: marks of the pilot.
        systems: all systems of the test.
        difference: smallest difference of means to detect, in marks.
        power: probability of detecting the difference.
        pairs: whether the marks are those of a test of pairs.

    Raises:
        BadInput: a number is out of range, or fewer than three listeners heard two systems.
    """
    if difference <= 0 or not 0 < power < 1:
        raise BadInput("the difference must be above 0, and the power must be between 0 and 1")
    counts = []
    for first, second in combinations(systems, 2):
        values = (pair_differences if pairs else compute_listener_differences)(marks, first, second)
        if len(values) < 3:
            raise BadInput(f"{len(values)} listeners heard both {first} and {second}, but a pilot needs three or more")
        freedom = len(values) - 1
        spread = float(np.std(values, ddof=1) * math.sqrt(freedom / stats.chi2.ppf(1 - _CAUTION, freedom)))
        counts.append(ListenersNeeded(first, second, len(values), spread, _find_count(difference, spread, power)))
    return counts


def judge_stopping(marks: Sequence[Mark], systems: Sequence[str], *, pairs: bool = False) -> list[StoppingVerdict]:
    """Decide for each pair of systems whether the test may stop now; this may be called after every listener.

    Args:
        marks: marks of the listeners who finished, in the order of their places.
        systems: all systems of the test; the 95 % level holds for all pairs together, at every check.
        pairs: whether the marks are those of a test of pairs; in an ABX test, `better` names the first of two systems
            that are distinguished.
    """
    compared = list(combinations(systems, 2))
    error = (1 - _LEVEL) / max(1, len(compared))
    verdicts = []
    for first, second in compared:
        values = (pair_differences if pairs else compute_listener_differences)(marks, first, second)
        interval = sequential_interval(values, 1 - error) if values else None
        better = "" if interval is None else first if interval[0] > 0 else second if interval[1] < 0 else ""
        mean = float(np.mean(values)) if values else 0.0
        expected = count_needed(values if mean > 0 else [-value for value in values], 2 / error) if mean else None
        verdicts.append(StoppingVerdict(first, second, len(values), mean, interval, better, expected))
    return verdicts


def _find_count(difference: float, spread: float, power: float) -> int | None:
    """Return the smallest sample size for which a paired t-test has this power."""
    if spread == 0:
        return 2
    count = 2 + bisect_left(range(2, MOST + 1), power, key=lambda count: _find_power(count, difference / spread))
    return count if count <= MOST else None


def _find_power(count: int, effect: float) -> float:
    """Return the probability that `count` differences of this effect size give an interval on the correct side of 0."""
    limit = stats.t.ppf(1 - (1 - _LEVEL) / 2, count - 1)
    chance = float(stats.nct.sf(limit, count - 1, effect * math.sqrt(count)))
    # Far in the tail, scipy's noncentral t distribution returns no value; there, the normal distribution agrees with it
    # to many digits.
    return chance if math.isfinite(chance) else float(stats.norm.sf(limit - effect * math.sqrt(count)))


# Draft a design of a listening test from folders of recordings: one folder for each system, with files paired by name.

KINDS = ("mos", "mushra", "abx")
ANCHORS = ("reference", "high", "low")
"""Folders that a MUSHRA test uses in addition to the folders of the systems."""


def draft_design(
    kind: str, systems: Sequence[Path], out: Path, anchors: dict[str, Path], scales: Sequence[str]
) -> Design:
    """Return the design of a test whose items are the recordings that have the same name in all folders.

    Args:
        kind: one of `KINDS`.
        systems: the folder of each system, by the system's name.
        out: the file of the design; recordings are named relative to its folder.
        anchors: folders of anchors for a MUSHRA test, by their names in `ANCHORS`.
        scales: scales of a MOS test.

    Raises:
        BadInput: the folders' files do not match, the folders are not below the design's folder, or no test is
            possible.
    """
    if kind not in KINDS:
        raise BadInput(f"the kind must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {kind!r}")
    if kind == "mushra" and "reference" not in anchors:
        raise BadInput("a mushra test needs the reference that listeners compare with; add --reference FOLDER")
    if kind != "mushra" and anchors:
        raise BadInput(f"a {kind} test cannot have {' or '.join(anchors)}; only a mushra test can")
    folders = {folder.resolve().name: folder for folder in systems}
    if len(folders) < len(systems):
        raise BadInput(
            "two folders of systems have the same name; rename one of them, because systems are named after their "
            "folders"
        )
    files_by_name = {name: _list_recordings(folder, out.parent) for name, folder in (folders | anchors).items()}
    names = sorted({stem for files in files_by_name.values() for stem in files})
    missing = {name: [stem for stem in names if stem not in files] for name, files in files_by_name.items()}
    gaps = [f"{name} lacks {', '.join(gone[:5])}{' …' if gone[5:] else ''}" for name, gone in missing.items() if gone]
    if gaps:
        raise BadInput(f"files are paired by name, ignoring the extension; some have no partner: {'; '.join(gaps)}")
    items: list[dict[str, Any]] = [
        {"id": stem}
        | {role: {"audio": files_by_name[role][stem]} for role in anchors}
        | {"stimuli": {system: {"audio": files_by_name[system][stem]} for system in folders}}
        for stem in names
    ]
    title = out.stem.replace("_", " ").replace("-", " ")
    about: dict[str, Any] = {"kind": kind, "id": out.stem.lower(), "title": title[:1].upper() + title[1:]}
    if kind == "mos":
        about |= {"scales": list(scales), "each": "all"}
    return read_design(about | {"systems": list(folders), "items": items})


def _list_recordings(folder: Path, base: Path) -> dict[str, str]:
    """Return the recordings of a folder by name without extension, as paths relative to the folder of the design."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder")
    if not folder.resolve().is_relative_to(base.resolve()):
        raise BadInput(
            f"{folder} is not in {base.resolve()}, the folder of the design; choose a path for --out in a folder "
            f"that contains all recordings"
        )
    files = [path for path in sorted(folder.iterdir()) if is_audio_name(path)]
    if not files:
        raise BadInput(f"{folder} contains no recordings")
    files_by_name = {path.stem: path.resolve().relative_to(base.resolve()).as_posix() for path in files}
    if len(files_by_name) < len(files):
        raise BadInput(f"{folder} has two recordings with the same name and different extensions; keep one of them")
    return files_by_name
