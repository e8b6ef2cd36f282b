"""Read people's and a judge's scores from files, join them by item, and measure how far they agree."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from podeval.errors import BadInput
from podeval.metrics.human_records import list_records, read_number
from podeval.stats import agreement
from podeval.stats.agreement import Estimate, format_estimate, srcc
from podeval.stats.intervals import Bounds, mean_ci
from podeval.stats.mushra_scores import Mark, tabulate_marks
from podeval.validation.raters import AnalysisLine

Named = Mapping[str, Estimate]
FEWEST_SHARED = 10
"""Minimum number of outputs that a listener must share with other listeners to be compared with them."""
HALVINGS = 100
MOST_SYSTEMS = 12
"""Maximum number of systems whose mean marks are listed."""
NOTHING = Estimate(None, None, None, 0)


@dataclass(frozen=True)
class Agreement:
    """The agreement of a judge with people, as figures over the items that both scored.

    `figures` compare the judge with the mean of the people; `alpha` treats the judge as an additional rater.
    """

    figures: Named
    items: int
    raters: int


def read_marks(path: Path, key: str | None = None, columns: Sequence[str] = ("item", "score")) -> list[Mark]:
    """Read scores from a CSV with `columns` and, optionally, the columns system, rater and measure. Lines without a
    measure are always read; of the others, only those with the measure `key`, or all if `key` is None.

    Raises:
        BadInput: the file cannot be read, a column is missing, a score is not a number, or a rater scored the same
            output twice.
    """
    rows = list_records(path, "score")
    if not set(columns) <= set(rows[0][1]):
        raise BadInput(f"{path} needs a header line with {', '.join(columns)}, and a line for each score")
    marks: dict[object, Mark] = {}
    for line, row in rows:
        if key is not None and row.get("measure") not in (None, "", key):
            continue
        if (score := read_number(row["score"])) is None:
            raise BadInput(f"{path}, {line}: the score {row['score']!r} is not a number")
        rater, item = row.get("rater") or "", row["item"] or ""
        mark = Mark(rater, item, row.get("system") or "", score, row.get("measure") or "")
        where = (rater, item, mark.stimulus, mark.scale) if rater else line
        if where in marks:
            raise BadInput(f"{path}, {line}: {item!r} has a second score by {rater}; keep only one")
        marks[where] = mark
    if not marks:
        raise BadInput(f"{path} has no scores of the measure {key!r}")
    return list(marks.values())


def read_scores(path: Path, key: str | None) -> dict[str, float]:
    """Read a judge's scores by item from `podeval measure --json`, or from a CSV with the columns item and score; `key`
    is the value to read if there are several.

    Raises:
        BadInput: the file cannot be read, or contains no such values.
    """
    if path.suffix.lower() == ".csv":
        return {mark.page: mark.value for mark in read_marks(path, key)}
    scores: dict[str, float] = {}
    for line, data in list_records(path, "value"):
        if "file" not in data:
            raise BadInput(f"{path}, {line} does not have the format of `podeval measure --json`")
        if "unscored" in data:
            continue
        if key is None:
            keys = [k for k, value in data.items() if isinstance(value, int | float) and not isinstance(value, bool)]
            if len(keys) != 1:
                raise BadInput(f"{path} contains {', '.join(keys) or 'no values'}; choose one value with --key")
            (key,) = keys
        name = Path(str(data["file"])).stem
        if not isinstance(data.get(key), int | float):
            raise BadInput(f"{path}, {line} has no value {key!r}")
        if name in scores:
            raise BadInput(f"{path} contains two scores of {name!r}; items are identified by the names of their files")
        scores[name] = float(data[key])
    return scores


def compare_with_people(
    judged: Sequence[float], truth: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> dict[str, Estimate]:
    """Return SRCC, PLCC, KRCC, QWK, MAE and pairwise accuracy between a judge's and people's scores on common items."""
    measures = agreement.MEASURES | {"pairwise accuracy": agreement.pairwise_accuracy}
    return {name: measure(judged, truth, clusters) for name, measure in measures.items()}


def compute_agreement(scores: Mapping[str, float], marks: Sequence[Mark]) -> Agreement:
    """Return the agreement of a judge's scores by item with people's scores.

    Raises:
        BadInput: there are fewer than three common items.
    """
    by_item: dict[str, list[float]] = defaultdict(list)
    for mark in marks:
        by_item[mark.page].append(mark.value)
    items = sorted(scores.keys() & by_item.keys())
    if len(items) < 3:
        raise BadInput(
            f"the judge and people both scored {len(items)} items, but at least 3 are needed; the judge's items have "
            f"names such as {_list_some(scores)}, people's items such as {_list_some(by_item)}"
        )
    judged = [scores[item] for item in items]
    figures = compare_with_people(judged, [fmean(by_item[item]) for item in items])
    raters, table = tabulate_marks(Mark(mark.rater, mark.page, "", mark.value) for mark in marks if mark.page in scores)
    alpha = partial(agreement.krippendorff_alpha, level="interval")
    figures["Krippendorff alpha, with the judge as one of the raters"] = alpha([judged, *table])
    if len(raters) > 1:
        figures["Krippendorff alpha, people alone"] = alpha(table)
    return Agreement(figures, len(items), len(raters))


def _list_some(names: Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in sorted(names)[:3]) or "nothing"


def describe_marks(measures: Mapping[str, Sequence[Mark]]) -> list[AnalysisLine]:
    """Describe people's marks by scale: their number, the means of the systems, and the listeners' agreement.

    The listeners' agreement is the ceiling for a metric. Its figures are the SRCC between the means of two random
    halves of the listeners (the mean of `HALVINGS` halvings with their middle 95 %), over outputs and over systems; the
    reliability of all listeners, computed from the SRCC over outputs by the Spearman–Brown formula, 2 r / (1 + r); and
    the SRCC of a listener with the mean of the others.
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
        says += f" of {len(means)} systems{f', the best {MOST_SYSTEMS}' if len(means) > MOST_SYSTEMS else ''}: {best}"
        lines.append(AnalysisLine("marks", measure, f"{measure}: {says}", counts | {"systems": means.to_dict()}))
        if listeners > 1:
            lines.append(_describe_ceiling(measure, table))
    return lines


def _describe_ceiling(measure: str, table: pd.DataFrame) -> AnalysisLine:
    halves, systems, alone = _compare_halves(table, "output"), _compare_halves(table, "system"), _leave_one_out(table)
    reliability = None if halves.value is None or halves.value <= -1 else 2 * halves.value / (1 + halves.value)
    says = (
        f"SRCC between random halves of the listeners {format_estimate(halves)} over outputs, "
        f"{format_estimate(systems)} over systems; {format_estimate(alone)} between a listener and the mean of the "
        f"other listeners"
    )
    figures = {"halves": asdict(halves), "systems_halves": asdict(systems), "leave_one_out": asdict(alone)}
    data = figures | {"all_listeners": reliability}
    return AnalysisLine("ceiling", measure, f"{measure}: {says}", data)


def _compare_halves(table: pd.DataFrame, column: str) -> Estimate:
    """Return the mean SRCC between two random halves of the listeners, over the means of outputs or of systems."""
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
    low, high = np.quantile(figures, (0.025, 0.975))
    return Estimate(fmean(figures), float(low), float(high), table[column].nunique())


def _leave_one_out(table: pd.DataFrame) -> Estimate:
    """Return the mean SRCC of a listener with the mean of the other listeners, on at least ten shared outputs."""
    every = table.groupby("output")["mark"].agg(["sum", "count"])
    figures = []
    for _, of_one in table.groupby("listener"):
        marks = of_one.groupby("output")["mark"].agg(["sum", "count"])
        rest = every.loc[marks.index] - marks
        shared = rest["count"] > 0
        if shared.sum() >= FEWEST_SHARED:
            sides = [(of["sum"] / of["count"])[shared].tolist() for of in (marks, rest)]
            figures += [value] if (value := srcc(*sides).value) is not None else []
    return average_figures(figures, None, (-1, 1))


def average_figures(values: Sequence[float], clusters: Sequence[Hashable] | None, bounds: Bounds = (0, 1)) -> Estimate:
    """Return the mean of figures within bounds, with its clustered interval."""
    if not values:
        return NOTHING
    mean = mean_ci(values, clusters, bounds=bounds)
    return Estimate(mean.mean, mean.low, mean.high, mean.n)
