"""A simulated listening test for comparing metrics with people: the necessary size, and the analysis.

    python studies/validity_listening_test.py power
    python studies/validity_listening_test.py simulate listeners.csv metrics.csv

The first command prints the table of docs/validity.md; the second writes answers in the form of a test's answers. The
listeners are simulated: a mark from 1 to 5 is the rounded sum of the system's quality, an effect of the item, the
listener's taste, and noise; one listener in ten answers without listening. The metric is simulated with the given
correlation with the systems' quality. The analysis is podeval's own (`podeval.validation.agreement`), with intervals
over systems and items.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podeval.stats.agreement import Estimate, srcc
from podeval.stats.mushra_scores import Mark
from podeval.validation.agreement import correlate

CARELESS = 0.1
"""Share of listeners who answer without listening."""
LEAST_AGREEMENT = 0.2
"""Correlation with the mean of the others below which a listener is excluded."""
SPREADS = {"system": 0.6, "item": 0.25, "listener": 0.4, "interaction": 0.3, "noise": 0.8}
"""Standard deviations of the parts of a mark, of the same size as in public MOS tests."""


@dataclass(frozen=True)
class MadeTest:
    """The simulated answers of a test, and the values of a simulated metric for the same outputs."""

    marks: tuple[Mark, ...]
    metric: dict[tuple[str, str], float]


def make(systems: int, items: int, listeners: int, correlation: float, random: np.random.Generator) -> MadeTest:
    """Simulate the answers of listeners, each of whom hears every item once, with the systems in turn.

    Args:
        systems: number of compared systems.
        items: number of texts, each spoken by every system.
        listeners: number of listeners.
        correlation: correlation of the metric with the systems' quality.
        random: generator of the draws.
    """
    quality = random.normal(0, SPREADS["system"], systems)
    of_metric = correlation * quality / SPREADS["system"] + np.sqrt(1 - correlation**2) * random.normal(size=systems)
    difficulty = random.normal(0, SPREADS["item"], items)
    interaction = random.normal(0, SPREADS["interaction"], (systems, items))
    metric = {
        (f"s{s}", f"i{i}"): float(of_metric[s] + 0.3 * interaction[s, i] + random.normal(0, 0.2))
        for s in range(systems)
        for i in range(items)
    }
    marks = []
    for listener in range(listeners):
        careless = random.random() < CARELESS
        taste = random.normal(0, SPREADS["listener"])
        for item in range(items):
            system = (listener + item) % systems
            heard = 3 + quality[system] + difficulty[item] + interaction[system, item] + taste
            mark = random.uniform(1, 5) if careless else heard + random.normal(0, SPREADS["noise"])
            value = float(np.clip(round(mark), 1, 5))
            marks.append(Mark(f"p{listener}", f"i{item}", f"s{system}", value, ""))
    return MadeTest(tuple(marks), metric)


def screen(marks: Sequence[Mark]) -> set[str]:
    """Return the listeners whose marks hardly agree with the mean of the others on the same outputs."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for mark in marks:
        sums[mark.stimulus, mark.page].append(mark.value)
    means = {output: sum(values) / len(values) for output, values in sums.items()}
    systems: dict[str, list[float]] = defaultdict(list)
    for (system, _), mean in means.items():
        systems[system].append(mean)
    expected = {system: sum(values) / len(values) for system, values in systems.items()}
    left_out = set()
    for rater in dict.fromkeys(mark.rater for mark in marks):
        pairs = [(mark.value, expected[mark.stimulus]) for mark in marks if mark.rater == rater]
        agreement = srcc([one for one, _ in pairs], [other for _, other in pairs]).value
        if agreement is None or agreement < LEAST_AGREEMENT:
            left_out.add(rater)
    return left_out


def analyse(test: MadeTest) -> Estimate:
    """Return the agreement of the metric with the screened listeners, over new systems and items."""
    left_out = screen(test.marks)
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for mark in test.marks:
        if mark.rater not in left_out:
            sums[mark.stimulus, mark.page].append(mark.value)
    outputs = sorted(sums)
    liked = [sum(sums[output]) / len(sums[output]) for output in outputs]
    ours = [test.metric[output] for output in outputs]
    return correlate(srcc, ours, liked, outputs)


def power(systems: int, items: int, listeners: int, correlation: float, rounds: int, seed: int = 0) -> float:
    """Return the share of simulated tests in which the interval of the agreement is above 0."""
    random = np.random.default_rng(seed)
    estimates = [analyse(make(systems, items, listeners, correlation, random)) for _ in range(rounds)]
    return sum(estimate.low is not None and estimate.low > 0 for estimate in estimates) / rounds


def write(test: MadeTest, listeners: Path, metrics: Path) -> None:
    """Write the answers in the form that `podeval report agreement --ratings` reads, and the metric's values."""
    with listeners.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "item", "score", "rater"])
        left_out = screen(test.marks)
        writer.writerows([m.stimulus, m.page, m.value, m.rater] for m in test.marks if m.rater not in left_out)
    with metrics.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "item", "value"])
        writer.writerows([*output, f"{value:.4f}"] for output, value in test.metric.items())


def main() -> None:
    """Print the power of tests of several sizes, or write simulated answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["power", "simulate"])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    if options.step == "simulate":
        write(make(12, 24, 36, 0.8, np.random.default_rng(0)), *options.files)
        return
    print("| systems | items | listeners | true 0.5 | true 0.8 | true 0 |\n| --- | --- | --- | --- | --- | --- |")
    for systems, items, listeners in ((6, 24, 36), (9, 24, 36), (12, 24, 18), (12, 24, 36), (16, 24, 48)):
        shares = [power(systems, items, listeners, true, options.rounds) for true in (0.5, 0.8, 0.0)]
        print(f"| {systems} | {items} | {listeners} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")


if __name__ == "__main__":
    main()
