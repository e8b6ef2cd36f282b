"""The columns a board can have: one key of one metric each, named and directed by the metric's declaration.

A key that no declaration knows (a figure some paper reports, a metric of a later version) is still a column: a spread
over groups is better when it is lower, everything else is shown without a direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.declaration import Better, Metric
from podeval.metrics.dimension_groups import DIMENSION_GROUPS
from podeval.runs import composite_scores

ARROWS: dict[Better, str] = {"higher": " ↑", "lower": " ↓", "in range": " ↔", "informative": ""}
"""How a header says which direction is better."""


@dataclass(frozen=True)
class Column:
    """One key of one metric, as a column of the board."""

    metric: str
    key: str
    dimension: str
    title: str
    better: Better
    unit: str
    ideal: tuple[float, float] | None
    order: tuple[int, int]
    """Place of the metric among all metrics, and of the key within its metric."""
    bounds: tuple[float | None, float | None] = (None, None)
    zh: str = ""
    """The title in Chinese, where it is another."""

    @property
    def id(self) -> str:
        """`metric.key`, as links and files write it."""
        return f"{self.metric}.{self.key}"

    @property
    def header(self) -> str:
        """Name and direction, with the unit where there is one."""
        return self.header_in("en")

    def title_in(self, language: str) -> str:
        """The name in a language of the site."""
        return self.zh if language == "zh" and self.zh else self.title

    def header_in(self, language: str) -> str:
        """Name and direction in a language of the site, with the unit where there is one."""
        return f"{self.title_in(language)}{ARROWS[self.better]}" + (f" ({self.unit})" if self.unit else "")

    def badness(self, value: float) -> float:
        """A number that is smaller the better the value is."""
        if self.better == "in range" and self.ideal is not None:
            low, high = self.ideal
            return max(low - value, value - high, 0.0)
        return value if self.better == "lower" else -value


def column(metric: str, key: str, dimension: str) -> Column:
    """The column of a key, by its metric's declaration where there is one."""
    declared = _declaration(metric)
    named = {known.name: known for known in declared.keys} if declared else {}
    if declared and key in named:
        place = list(named).index(key)
        rest = key.removeprefix(f"{metric}_").replace("_", " ")
        title = declared.title if key == metric or len(named) == 1 else f"{declared.title} {rest}"
        known = named[key]
        better, unit, ideal, bounds, zh = known.better, known.unit, known.ideal, known.bounds, known.zh
    else:
        place = len(named)
        named_after = declared.title if declared else metric
        title = key if key == metric or key.startswith(metric) else f"{named_after} {key}"
        title = title.replace("_", " ")
        better = "lower" if key.startswith(composite_scores.SPREAD) else "informative"
        unit, ideal, bounds, zh = "", None, (None, None), ""
    position = catalogue.NAMES.index(metric) if metric in catalogue.NAMES else len(catalogue.NAMES)
    return Column(metric, key, dimension, title, better, unit, ideal, (position, place), bounds, zh)


def ordered(columns: Iterable[Column]) -> list[Column]:
    """Columns in the order of the board: by dimension, then metric, its headline key first."""
    return sorted(columns, key=lambda c: (*dimension_place(c.dimension), c.order, c.metric, c.key))


def headlines(columns: Iterable[Column]) -> list[Column]:
    """One column a dimension: the first in the order of the board that has a direction, else the first."""
    best: dict[str, Column] = {}
    for candidate in ordered(columns):
        current = best.get(candidate.dimension)
        if current is None or (current.better == "informative" and candidate.better != "informative"):
            best[candidate.dimension] = candidate
    return list(best.values())


def dimension_place(dimension: str) -> tuple[int, str]:
    """Where a dimension stands on the board: in the order of the groups, others after them by name."""
    group = dimension.partition(".")[0]
    groups = list(DIMENSION_GROUPS)
    return (groups.index(group) if group in groups else len(groups), group)


def dimension_title(dimension: str, language: str = "en") -> str:
    """`speech.timbre_difference` as a reader says it: `Speech · timbre difference`."""
    if language == "zh":
        for metric in catalogue.all_metrics():
            if metric.dimension == dimension and metric.dimension_zh:
                return f"{metric.group.zh} · {metric.dimension_zh}"
    group, _, name = dimension.replace("_", " ").partition(".")
    return f"{group.capitalize()} · {name}" if name else group.capitalize()


def has_default_parameters(metric: str, parameters: object) -> bool:
    """Whether a protocol's parameters are the ones its metric has unless told otherwise."""
    declared = _declaration(metric)
    return declared is not None and parameters == declared.read_parameters({})


@cache
def _declaration(metric: str) -> Metric | None:
    for benchmark in map(benchmarks.get, benchmarks.names()):
        for composite in benchmark.composites:
            if composite.name == metric:
                return composite_scores.declare(benchmark, composite)
    try:
        return catalogue.get(metric)
    except (BadInput, ImportError):
        return None
