"""Measure agreement and screening on tables of real raters, whose licences do not allow copies here.

    python studies/real_raters.py yourtts metrics/MOS/EN/naturalness-MOS.csv
    python studies/real_raters.py spanish analysis/subjective_results_corrected.csv

The tables are those of https://github.com/Edresson/YourTTS (CC BY-NC-ND 4.0) and of
https://github.com/asosawelford/tesis (no licence stated); neither is part of this repository. The first argument states
the form of the columns. The script prints the lines for the table in docs/validity.md. It uses podeval's own analysis:
alpha, the agreement of every rater with the mean of the others, screening by this agreement, and, for the second table,
the agreement of NISQA with people.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podeval.stats.agreement import Estimate, krippendorff_alpha, leave_one_out, srcc
from podeval.stats.mushra_scores import Mark, tabulate_marks
from podeval.validation.agreement import correlate

LEAST_AGREEMENT = 0.2
"""SRCC with the mean of the others below which a rater is excluded, as in the listening test of docs/validity.md."""
FEWEST = 10
"""Minimum number of marks for a rater to be assessed."""


@dataclass(frozen=True)
class RatedTable:
    """The marks in a table, and the values of a metric for the same outputs, if the table has any."""

    marks: tuple[Mark, ...]
    metric: Mapping[tuple[str, str], float]


def read_yourtts(rows: Iterable[Mapping[str, str]]) -> RatedTable:
    """Read `audio_path`, `score` and `evaluator_id`; the folders in a path are the system, and the file is the item."""
    marks = []
    for row in rows:
        system, _, item = row["audio_path"].partition(",")[0].rpartition("/")
        marks.append(Mark(row["evaluator_id"], item, system, float(row["score"]), ""))
    return RatedTable(tuple(marks), {})


def read_spanish(rows: Iterable[Mapping[str, str]]) -> RatedTable:
    """Read `participant_id`, `stimuli`, `stimuli_service`, `score`, and NISQA's prediction."""
    marks, metric = [], {}
    for row in rows:
        output = row["stimuli_service"], row["stimuli"]
        marks.append(Mark(row["participant_id"], output[1], output[0], float(row["score"]), ""))
        if row["mos_pred"] and row["model"].startswith("NISQA"):
            metric[output] = float(row["mos_pred"])
    return RatedTable(tuple(marks), metric)


READERS: Mapping[str, Callable[[Iterable[Mapping[str, str]]], RatedTable]] = {
    "yourtts": read_yourtts,
    "spanish": read_spanish,
}


def careless(marks: Sequence[Mark]) -> set[str]:
    """Return the raters with enough marks whose order hardly agrees with the mean of the others."""
    raters, table = tabulate_marks(marks)
    return {
        rater
        for rater, (order, _, _) in zip(raters, leave_one_out(table), strict=True)
        if order.count >= FEWEST and (order.value is None or order.value < LEAST_AGREEMENT)
    }


def by_output(marks: Iterable[Mark]) -> dict[tuple[str, str], float]:
    """Return the mean mark of each output."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for mark in marks:
        sums[mark.stimulus, mark.page].append(mark.value)
    return {output: sum(values) / len(values) for output, values in sums.items()}


def halves(marks: Sequence[Mark], seed: int = 0) -> Estimate:
    """Return how well the systems' means by one half of the raters agree with those by the other half."""
    raters = sorted({mark.rater for mark in marks})
    one = {raters[at] for at in np.random.default_rng(seed).permutation(len(raters))[: len(raters) // 2]}
    sums: tuple[dict[str, list[float]], dict[str, list[float]]] = (defaultdict(list), defaultdict(list))
    for mark in marks:
        sums[mark.rater in one][mark.stimulus].append(mark.value)
    systems = sorted(sums[0].keys() & sums[1].keys())
    return srcc(*([float(np.mean(part[system])) for system in systems] for part in sums))


def describe(table: RatedTable) -> list[str]:
    """Return the findings as sentences."""
    marks = table.marks
    raters, ratings = tabulate_marks(marks)
    each = [order for order, _, _ in leave_one_out(ratings) if order.count >= FEWEST and order.value is not None]
    middle = np.percentile([order.value for order in each if order.value is not None], [10, 50, 90])
    left_out = careless(marks)
    kept = [mark for mark in marks if mark.rater not in left_out]
    lines = [
        f"{len(marks)} marks of {len(raters)} raters on {len(by_output(marks))} outputs of "
        f"{len({mark.stimulus for mark in marks})} systems",
        f"Krippendorff's alpha, ordinal: {_figure(krippendorff_alpha(ratings))}",
        f"a rater against the mean of the others: SRCC {middle[1]:.2f} in the middle, {middle[0]:.2f} to "
        f"{middle[2]:.2f} for four in five ({len(each)} raters with {FEWEST} shared outputs)",
        f"screening leaves out {len(left_out)} of them; alpha is then "
        f"{_figure(krippendorff_alpha(tabulate_marks(kept)[1]))}",
        f"systems by one half of the raters against the other: SRCC {_figure(halves(marks))}",
    ]
    if table.metric:
        people = by_output(kept)
        outputs = sorted(people.keys() & table.metric.keys())
        pairs = [table.metric[output] for output in outputs], [people[output] for output in outputs]
        estimate = correlate(srcc, *pairs, outputs)
        by_system = srcc(*(_by_system(outputs, values) for values in pairs))
        found = f"SRCC {_figure(estimate)}, {len(outputs)} outputs; of the systems' means {_figure(by_system)}"
        lines.append(f"NISQA against people, over systems and outputs: {found}")
    return lines


def _by_system(outputs: Sequence[tuple[str, str]], values: Sequence[float]) -> list[float]:
    """Return the mean of each system, in the order of the systems' names."""
    sums: dict[str, list[float]] = defaultdict(list)
    for (system, _), value in zip(outputs, values, strict=True):
        sums[system].append(value)
    return [float(np.mean(sums[system])) for system in sorted(sums)]


def _figure(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    bounds = "" if estimate.low is None else f" [{estimate.low:.2f}, {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{bounds}"


def main() -> None:
    """Read a table, and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=READERS)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    with options.file.open(encoding="utf-8", newline="") as file:
        print("\n".join(describe(READERS[options.form](csv.DictReader(file)))))


if __name__ == "__main__":
    main()
