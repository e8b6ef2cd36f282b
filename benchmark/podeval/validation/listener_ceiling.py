"""People's marks of a scale, and how far listeners agree with each other: the ceiling for a metric."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

import numpy as np
import pandas as pd

from podeval.stats.agreement import Estimate, format_estimate, srcc
from podeval.stats.intervals import mean_ci
from podeval.stats.mushra_scores import Mark
from podeval.validation.raters import AnalysisLine

FEWEST_SHARED = 10
"""Outputs that a listener must share with others to be compared with them."""
HALVINGS = 100
MOST_SYSTEMS = 12
"""Systems whose mean marks are named."""
NOTHING = Estimate(None, None, None, 0)


def describe_marks(measures: Mapping[str, Sequence[Mark]]) -> list[AnalysisLine]:
    """Describe people's marks by scale: their number, the means of the systems, and how far listeners agree.

    That agreement is the ceiling for a metric: SRCC between the means of two random halves of the listeners (the mean
    of `HALVINGS` halvings with their middle 95 %) over outputs and over systems; from the former the reliability of all
    listeners by Spearman and Brown's formula, 2 r / (1 + r); and SRCC of a listener with the mean of the others.
    """
    lines = []
    for measure, marks in measures.items():
        rows = [(mark.rater, (mark.stimulus, mark.page), mark.stimulus, mark.value) for mark in marks]
        table = pd.DataFrame(rows, columns=["listener", "output", "system", "mark"])
        means = table.groupby("system")["mark"].mean().sort_values(ascending=False)
        listeners = table.loc[table["listener"] != "", "listener"].nunique()
        counts = {"marks": len(table), "listeners": listeners, "outputs": table["output"].nunique()}
        says = ", ".join(f"{count} {what}" for what, count in counts.items())
        best = ", ".join(f"{system} {mean:.3g}" for system, mean in means.head(MOST_SYSTEMS).items())
        says += f" of {len(means)} systems{f', the first {MOST_SYSTEMS}' if len(means) > MOST_SYSTEMS else ''}: {best}"
        lines.append(AnalysisLine("marks", measure, f"{measure}: {says}", counts | {"systems": means.to_dict()}))
        if listeners > 1:
            lines.append(_describe_ceiling(measure, table))
    return lines


def _describe_ceiling(measure: str, table: pd.DataFrame) -> AnalysisLine:
    halves, systems, alone = _compare_halves(table, "output"), _compare_halves(table, "system"), _leave_one_out(table)
    reliability = None if halves.value is None or halves.value <= -1 else 2 * halves.value / (1 + halves.value)
    says = (
        f"listeners' own SRCC {format_estimate(halves)} between halves of them over outputs, "
        f"{format_estimate(systems)} over systems; {format_estimate(alone)} of a listener with the mean of the others"
    )
    figures = {"halves": halves, "systems_halves": systems, "leave_one_out": alone}
    data = {name: asdict(figure) for name, figure in figures.items()} | {"all_listeners": reliability}
    return AnalysisLine("ceiling", measure, f"{measure}: {says}", data)


def _compare_halves(table: pd.DataFrame, column: str) -> Estimate:
    """Return the mean SRCC between two random halves of the listeners over the means of outputs, or of systems."""
    random = np.random.default_rng(0)
    listeners = table["listener"].unique()
    figures = []
    for _ in range(HALVINGS):
        first = table["listener"].isin(random.permutation(listeners)[: len(listeners) // 2])
        means = table.groupby([column, first])["mark"].mean().unstack().dropna()
        if means.shape[1] == 2 and (value := srcc(*(means[side].tolist() for side in (True, False))).value) is not None:
            figures.append(value)
    if not figures:
        return NOTHING
    return Estimate(fmean(figures), *map(float, np.quantile(figures, (0.025, 0.975))), table[column].nunique())


def _leave_one_out(table: pd.DataFrame) -> Estimate:
    """Return the mean over listeners of the SRCC with the mean of the others, on at least ten shared outputs."""
    every = table.groupby("output")["mark"].agg(["sum", "count"])
    figures = []
    for _, of_one in table.groupby("listener"):
        own = of_one.groupby("output")["mark"].agg(["sum", "count"])
        rest = every.loc[own.index] - own
        shared = rest["count"] > 0
        if shared.sum() >= FEWEST_SHARED:
            sides = [(of["sum"] / of["count"])[shared].tolist() for of in (own, rest)]
            figures += [value] if (value := srcc(*sides).value) is not None else []
    return average_figures(figures, None, (-1, 1))


def average_figures(
    values: Sequence[float], clusters: Sequence[object] | None, bounds: tuple[float, float] = (0, 1)
) -> Estimate:
    """Return the mean of figures within bounds, with its clustered interval."""
    if not values:
        return NOTHING
    mean = mean_ci(values, clusters, bounds=bounds)
    return Estimate(mean.mean, mean.low, mean.high, mean.n)
