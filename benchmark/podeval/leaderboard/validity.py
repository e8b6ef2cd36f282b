"""Validity: how far every metric and judge agrees with people, on the same outputs of the same systems.

A metric's value of an output (system, item) is compared with the mean human score of that output. Metrics that are
better when lower are turned, and those that are best in a range are folded to the distance from it, so that a positive
correlation is agreement; keys without a direction are left out. Both systems and items are draws: a metric is wanted
for systems that nobody has measured yet. Beside it stands the agreement on systems as wholes, of which there are few,
without each of them in turn, and what the best of so many keys would reach by chance.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.declaration import Key
from podeval.stats.agreement import Estimate, krcc, plcc, srcc
from podeval.stats.mushra_scores import Mark
from podeval.stats.screening import HIGH, LOW
from podeval.stats.two_way import WithoutSystem, best_by_chance, correlate, leave_out_systems

FEWEST = 5
"""Fewest outputs with both figures for which an agreement is reported."""

ENOUGH_SYSTEMS = 12
"""Systems from which a key that is as good as .8 is told from none in four of five tests (docs/validity.md, power)."""

Human = Mapping[str, Mapping[tuple[str, str], float]]
"""By human measure, the mean score of every output (system, item)."""


@dataclass(frozen=True)
class Validity:
    """Agreement of one key of one metric, under one protocol, with one human measure.

    Attributes:
        turned: whether lower is better.
        folded: whether a range is best, so that the distance from it is compared.
        systems: SRCC over the systems' means.
        left_out: that SRCC without each system in turn.
        keys: how many keys were compared with this measure.
        by_chance: the SRCC over systems that the best of so many keys reaches in one of twenty cases by chance alone.
    """

    metric: str
    key: str
    protocol: str
    human: str
    turned: bool
    folded: bool
    srcc: Estimate
    plcc: Estimate
    krcc: Estimate
    systems: Estimate
    left_out: tuple[WithoutSystem, ...]
    keys: int = 1
    by_chance: float | None = None

    @property
    def thin(self) -> bool:
        """Whether so few systems were heard that no correlation is more than a hint."""
        return self.systems.count < ENOUGH_SYSTEMS

    @property
    def without_one(self) -> tuple[float, float] | None:
        """The lowest and the highest SRCC over systems without one of them."""
        values = [left.value for left in self.left_out if left.value is not None]
        return (min(values), max(values)) if values else None


def compute_validity(items: pd.DataFrame, human: Human) -> list[Validity]:
    """Compute the agreement of every metric with every human measure, the strongest first.

    Args:
        items: rows of `items.parquet`.
        human: scores of people.

    Returns:
        The agreements; pairs with fewer than five common outputs are left out.
    """
    agreements: list[Validity] = []
    means: dict[str, list[dict[str, float]]] = {}
    for metric, protocol, key, values in _values_by_key(items):
        for measure, scores in human.items():
            shared = sorted(values.keys() & scores.keys())
            if len(shared) < FEWEST:
                continue
            ours = [to_badness(key, values[output]) for output in shared]
            agreements.append(compare(metric, key, protocol, measure, shared, ours, [scores[o] for o in shared]))
            means.setdefault(measure, []).append(_means_by_system(shared, ours))
    by_chance = {measure: _best_by_chance(columns, human[measure]) for measure, columns in means.items()}
    counted = [replace(row, keys=len(means[row.human]), by_chance=by_chance[row.human]) for row in agreements]
    return sorted(counted, key=lambda row: -(row.srcc.value if row.srcc.value is not None else -2))


def compare(
    metric: str,
    key: Key,
    protocol: str,
    measure: str,
    outputs: Sequence[tuple[str, str]],
    ours: Sequence[float],
    theirs: Sequence[float],
) -> Validity:
    """Return the agreement of one key with people.

    Args:
        metric: its name.
        key: the key's declaration.
        protocol: how its values came about.
        measure: the name of the human measure.
        outputs: system and item of each value.
        ours: the key's values as `to_badness` gives them.
        theirs: people's scores.
    """
    systems, items = [system for system, _ in outputs], [item for _, item in outputs]
    by_system = _means_by_system(outputs, ours)
    liked = _means_by_system(outputs, theirs)
    names = list(by_system)
    of_systems = [by_system[name] for name in names], [liked[name] for name in names]
    return Validity(
        metric,
        key.name,
        protocol,
        measure,
        key.better == "lower",
        key.better == "in range",
        correlate(srcc, ours, theirs, systems, items),
        correlate(plcc, ours, theirs, systems, items),
        correlate(krcc, ours, theirs, systems, items),
        srcc(*of_systems),
        leave_out_systems(srcc, *of_systems, names),
    )


def to_badness(key: Key, value: float) -> float:
    """Return a value so that more is better: turned where lower is, minus the distance where a range is."""
    if key.better == "in range" and key.ideal is not None:
        low, high = key.ideal
        return -max(low - value, value - high, 0.0)
    return -value if key.better == "lower" else value


def has_direction(key: Key) -> bool:
    """Return whether it can be said which of two values of a key is better."""
    return key.better in ("higher", "lower") or (key.better == "in range" and key.ideal is not None)


def _values_by_key(items: pd.DataFrame) -> Iterator[tuple[str, str, Key, dict[tuple[str, str], float]]]:
    """Yield each key of each metric and protocol with its values by output."""
    measured: dict[tuple[str, str], list[dict[str, str]]] = {}
    for record in items[["metric", "protocol", "system", "item", "result"]].to_dict("records"):
        row = {str(name): str(value) for name, value in record.items()}
        measured.setdefault((row["metric"], row["protocol"]), []).append(row)
    for (metric, protocol), rows in sorted(measured.items()):
        for key in filter(has_direction, catalogue.get(metric).keys):
            values = {}
            for row in rows:
                value = json.loads(row["result"]).get(key.name)
                if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                    values[row["system"], row["item"]] = value
            yield metric, protocol, key, values


def _means_by_system(outputs: Sequence[tuple[str, str]], values: Sequence[float]) -> dict[str, float]:
    of_system: dict[str, list[float]] = {}
    for (system, _), value in zip(outputs, values, strict=True):
        of_system.setdefault(system, []).append(value)
    return {system: sum(several) / len(several) for system, several in of_system.items()}


def _best_by_chance(columns: Sequence[Mapping[str, float]], scores: Mapping[tuple[str, str], float]) -> float | None:
    """Return what the best of these keys reaches by chance, on the systems that all of them have."""
    shared = sorted(set.intersection(*(set(column) for column in columns)))
    liked = _means_by_system(list(scores), list(scores.values()))
    return best_by_chance([[column[name] for name in shared] for column in columns], [liked[name] for name in shared])


def collect_from_marks(test: str, marks: Iterable[Mark]) -> Human:
    """Return human measures from the marks of a listening test: the mean of each output, by scale."""
    sums: dict[str, dict[tuple[str, str], list[float]]] = {}
    for mark in marks:
        name = f"{test} · {mark.scale}" if mark.scale else test
        sums.setdefault(name, {}).setdefault((mark.stimulus, mark.page), []).append(mark.value)
    return {name: {o: sum(values) / len(values) for o, values in outputs.items()} for name, outputs in sums.items()}


def collect_from_listening_tests(tests: Mapping[str, Iterable[Mark]]) -> Human:
    """Return human measures from the marks of listening tests of single outputs, by test; anchors are left out."""
    measures: dict[str, Mapping[tuple[str, str], float]] = {}
    for test, marks in tests.items():
        measures |= collect_from_marks(test, [mark for mark in marks if mark.stimulus not in (HIGH, LOW)])
    return measures


def group_by_measure(tests: Mapping[str, Iterable[Mark]]) -> dict[str, list[Mark]]:
    """Return the marks of listening tests themselves, anchors among them, by test and scale."""
    return {name: marks for test, all_marks in tests.items() for name, marks in _by_scale(test, all_marks).items()}


def _by_scale(name: str, marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    by_scale: dict[str, list[Mark]] = {}
    for mark in marks:
        by_scale.setdefault(f"{name} · {mark.scale}" if mark.scale else name, []).append(mark)
    return by_scale


def read_human_file(path: Path) -> Human:
    """Read human measures from a CSV with the columns `system`, `item`, `score` and, optionally, `measure` and `rater`.

    Raises:
        BadInput: it cannot be read, lacks a column, or holds a score that is not a number.
    """
    return collect_from_marks(path.stem, _marks(path))


def read_marks_file(path: Path) -> dict[str, list[Mark]]:
    """Read the marks themselves, by measure.

    Raises:
        BadInput: as `read_human_file`.
    """
    return _by_scale(path.stem, _marks(path))


def _marks(path: Path) -> list[Mark]:
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    if not rows or not {"system", "item", "score"} <= set(rows[0]):
        raise BadInput(f"{path} needs a line of names with system, item and score, and a line for each score")
    marks = []
    for number, row in enumerate(rows, start=2):
        try:
            score = float(row["score"])
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            raise BadInput(f"{path}, line {number}: a score is a number, not {row['score']!r}")
        marks.append(Mark(row.get("rater") or "", row["item"], row["system"], score, row.get("measure") or ""))
    return marks
