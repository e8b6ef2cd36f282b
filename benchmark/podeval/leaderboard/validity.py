"""Validity: how far every metric and judge agrees with people, on the same outputs of the same systems.

A metric's value of an output (system, item) is compared with the mean human score of that output. Metrics that are
better when lower are turned, so that a positive correlation is agreement. Items are the clusters: the outputs of
several systems for one item are one draw. Beside it stands the agreement on systems as wholes, of which there are few.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.stats.agreement import Estimate, krcc, plcc, srcc
from podeval.stats.mushra_scores import Mark
from podeval.stats.screening import HIGH, LOW

FEWEST = 5
"""Fewest outputs with both figures for which an agreement is reported."""

Human = Mapping[str, Mapping[tuple[str, str], float]]
"""By human measure, the mean score of every output (system, item)."""


@dataclass(frozen=True)
class Validity:
    """Agreement of one key of one metric, under one protocol, with one human measure."""

    metric: str
    key: str
    protocol: str
    human: str
    turned: bool
    srcc: Estimate
    plcc: Estimate
    krcc: Estimate
    systems: Estimate
    """SRCC over the systems' means."""


def validity(items: pd.DataFrame, human: Human) -> list[Validity]:
    """Compute the agreement of every metric with every human measure, the strongest first.

    Args:
        items: rows of `items.parquet`.
        human: scores of people.

    Returns:
        The agreements; pairs with fewer than five common outputs are left out.
    """
    agreements = []
    measured: dict[tuple[str, str], list[dict[str, str]]] = {}
    for record in items[["metric", "protocol", "system", "item", "result"]].to_dict("records"):
        row = {str(name): str(value) for name, value in record.items()}
        measured.setdefault((row["metric"], row["protocol"]), []).append(row)
    for (metric, protocol), rows in sorted(measured.items()):
        declared = catalogue.get(metric)
        values: dict[str, dict[tuple[str, str], float]] = {}
        for row in rows:
            result = json.loads(row["result"])
            for key in declared.keys:
                value = result.get(key.name)
                if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                    values.setdefault(key.name, {})[row["system"], row["item"]] = value
        for key in declared.keys:
            for measure, scores in human.items():
                shared = sorted(values.get(key.name, {}).keys() & scores.keys())
                if len(shared) < FEWEST:
                    continue
                sign = -1 if key.better == "lower" else 1
                ours, theirs = [sign * values[key.name][o] for o in shared], [scores[o] for o in shared]
                clusters = [item for _, item in shared]
                agreements.append(
                    Validity(
                        metric,
                        key.name,
                        protocol,
                        measure,
                        sign == -1,
                        srcc(ours, theirs, clusters),
                        plcc(ours, theirs, clusters),
                        krcc(ours, theirs, clusters),
                        _of_systems(shared, ours, theirs),
                    )
                )
    return sorted(agreements, key=lambda v: -(v.srcc.value if v.srcc.value is not None else -2))


def of_marks(test: str, marks: Iterable[Mark]) -> Human:
    """Return human measures from the marks of a listening test: the mean of each output, by scale."""
    sums: dict[str, dict[tuple[str, str], list[float]]] = {}
    for mark in marks:
        name = f"{test} · {mark.scale}" if mark.scale else test
        sums.setdefault(name, {}).setdefault((mark.stimulus, mark.page), []).append(mark.value)
    return {name: {o: sum(values) / len(values) for o, values in outputs.items()} for name, outputs in sums.items()}


def of_listening_tests(tests: Mapping[str, Iterable[Mark]]) -> Human:
    """Return human measures from the marks of listening tests of single outputs, by test; anchors are left out."""
    measures: dict[str, Mapping[tuple[str, str], float]] = {}
    for test, marks in tests.items():
        measures |= of_marks(test, [mark for mark in marks if mark.stimulus not in (HIGH, LOW)])
    return measures


def by_measure(tests: Mapping[str, Iterable[Mark]]) -> dict[str, list[Mark]]:
    """Return the marks of listening tests themselves, anchors among them, by test and scale."""
    return {name: marks for test, all_marks in tests.items() for name, marks in _by_scale(test, all_marks).items()}


def _by_scale(name: str, marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    by_scale: dict[str, list[Mark]] = {}
    for mark in marks:
        by_scale.setdefault(f"{name} · {mark.scale}" if mark.scale else name, []).append(mark)
    return by_scale


def of_file(path: Path) -> Human:
    """Read human measures from a CSV with the columns `system`, `item`, `score` and, optionally, `measure` and `rater`.

    Raises:
        BadInput: it cannot be read, lacks a column, or holds a score that is not a number.
    """
    return of_marks(path.stem, _marks(path))


def marks_of_file(path: Path) -> dict[str, list[Mark]]:
    """Read the marks themselves, by measure.

    Raises:
        BadInput: as `of_file`.
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


def _of_systems(outputs: list[tuple[str, str]], ours: list[float], theirs: list[float]) -> Estimate:
    frame = pd.DataFrame({"system": [system for system, _ in outputs], "ours": ours, "theirs": theirs})
    means = frame.groupby("system").mean()
    return srcc(means["ours"].tolist(), means["theirs"].tolist())
