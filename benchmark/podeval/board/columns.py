"""The columns of a board: one key of one metric under one protocol; numbers of two protocols are never in one column.

A column takes its name and direction from the metric's declaration. A key that no declaration has (a figure some paper
reports, a metric of a later version) is still a column: a spread over groups is better when it is lower, everything
else is shown without a direction. Where a metric's numbers have several protocols, one is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.declaration import Better, Key, Metric
from podeval.metrics.dimension_groups import DIMENSION_GROUPS
from podeval.metrics.reasons import translate_unit
from podeval.runs import composite_scores, reliability

ARROWS: dict[Better, str] = {"higher": " ↑", "lower": " ↓", "in range": " ↔", "informative": ""}
"""Mark in a header for the direction that is better."""


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
    """The title in Chinese, where it differs."""

    @property
    def id(self) -> str:
        """The id in links and files, `metric.key`."""
        return f"{self.metric}.{self.key}"

    @property
    def header(self) -> str:
        """Name and direction, with the unit where there is one."""
        return self.header_in("en")

    def title_in(self, language: str) -> str:
        """Return the name in a language of the site."""
        return self.zh if language == "zh" and self.zh else self.title

    def header_in(self, language: str) -> str:
        """Return name and direction in a language of the site, with the unit where there is one."""
        title = self.title_in(language)
        # A unit that the title says already is not said twice.
        in_title = f" {self.unit} ".lower() in f" {self.title} ".lower()
        unit = f" ({translate_unit(self.unit, language)})" if self.unit and not in_title else ""
        return f"{title}{ARROWS[self.better]}{unit}"

    def badness(self, value: float) -> float:
        """Return a number that is smaller the better the value is."""
        if self.better == "in range" and self.ideal is not None:
            low, high = self.ideal
            return max(low - value, value - high, 0.0)
        return value if self.better == "lower" else -value


Choice = tuple[str, str]
"""A label and the value it stands for."""


@dataclass(frozen=True)
class Offer:
    """A protocol to choose from among those of a metric's numbers."""

    metric: str
    protocol: str
    label: str
    judge: str
    """Id of the judge that it asks; empty where none is asked."""


Offers = Mapping[str, tuple[Offer, ...]]
"""The protocols of each metric, the default first."""


def get_column(metric: str, key: str, dimension: str) -> Column:
    """Return the column of a key, by its metric's declaration where there is one."""
    if metric == reliability.NAME:
        return _reliability_column(key, dimension)
    declared = _declaration(metric)
    keys = {key.name: key for key in declared.keys} if declared else {}
    position = catalogue.NAMES.index(metric) if metric in catalogue.NAMES else len(catalogue.NAMES)
    if declared and key in keys:
        facts = keys[key]
        rest = key.removeprefix(f"{metric}_").replace("_", " ")
        title = facts.title or (declared.title if key == metric or len(keys) == 1 else f"{declared.title} {rest}")
        order = (position, list(keys).index(key))
        return Column(
            metric, key, dimension, title, facts.better, facts.unit, facts.ideal, order, facts.bounds, facts.zh
        )
    title = key if key.startswith(metric) else f"{declared.title if declared else metric} {key}"
    better: Better = "lower" if key.startswith(composite_scores.SPREAD) else "informative"
    return Column(metric, key, dimension, title.replace("_", " "), better, "", None, (position, len(keys)))


def _reliability_column(name: str, dimension: str) -> Column:
    """The column of a figure over seeds; the share of catastrophic outputs comes first."""
    key = reliability.declare(name) or Key(name, "informative", title=name.replace("_", " "))
    order = (len(catalogue.NAMES) + 1, 0 if name == reliability.CATASTROPHIC else 1)
    facts = (key.better, key.unit, key.ideal, order, key.bounds, key.zh)
    return Column(reliability.NAME, name, dimension, key.title, *facts)


def order_columns(columns: Iterable[Column]) -> list[Column]:
    """Sort columns into the order of the board: by dimension, then metric, its headline key first."""
    return sorted(columns, key=lambda c: (*rank_dimension(c.dimension), c.order, c.metric, c.key))


def choose_headlines(columns: Iterable[Column]) -> list[Column]:
    """Return one column for each dimension: the first in the board's order that has a direction, else the first."""
    best: dict[str, Column] = {}
    for candidate in order_columns(columns):
        current = best.get(candidate.dimension)
        if current is None or (current.better == "informative" and candidate.better != "informative"):
            best[candidate.dimension] = candidate
    return list(best.values())


def rank_dimension(dimension: str) -> tuple[int, str]:
    """Return the sort key of a dimension: in the order of the groups, others after them by name."""
    group = dimension.partition(".")[0]
    groups = list(DIMENSION_GROUPS)
    return (groups.index(group) if group in groups else len(groups), group)


def write_dimension_title(dimension: str, language: str = "en") -> str:
    """Return the title of a dimension: `Speech · timbre difference` for `speech.timbre_difference`."""
    if language == "zh":
        if dimension in DIMENSION_GROUPS:
            return DIMENSION_GROUPS[dimension].zh
        if dimension in (reliability.NAME, reliability.DIMENSION):
            return " · ".join(reliability.DIMENSION_ZH[: 1 + dimension.count(".")])
        if composite := composite_scores.find_dimension(dimension):
            return composite.zh
        for metric in catalogue.load_all_metrics():
            if metric.dimension == dimension and metric.dimension_zh:
                return f"{metric.group.zh} · {metric.dimension_zh}"
    group, _, name = dimension.replace("_", " ").partition(".")
    return f"{group.capitalize()} · {name}" if name else group.capitalize()


def rank_offers(protocols: Iterable[tuple[str, str, str, int, str]]) -> Offers:
    """Return the available protocols by metric, the default first.

    The order: those with the metric's default parameters, then those most systems have, then the newest.

    Args:
        protocols: for each, the metric, the id, the content as JSON, the number of systems, and when it was last used.
    """
    ranked: dict[str, list[tuple[tuple[bool, int, str], Offer]]] = {}
    for metric, protocol, text, systems, newest in protocols:
        content = _content(text)
        declared = _declaration(metric)
        default = declared is not None and _parameters(content) == declared.read_parameters({})
        offer = Offer(metric, protocol, label_protocol(protocol, text), judge_of(content))
        ranked.setdefault(metric, []).append(((default, systems, newest), offer))
    return {
        metric: tuple(offer for _, offer in sorted(entries, key=lambda entry: entry[0], reverse=True))
        for metric, entries in sorted(ranked.items())
    }


def choose(offers: Offers, wishes: Sequence[str], judge: str = "") -> dict[str, str]:
    """Choose one protocol for each metric: the last one wished for, else the first there is.

    Args:
        offers: as `rank_offers` gives.
        wishes: protocol ids.
        judge: id of a judge; where given, judged metrics are shown by this judge or not at all.
    """
    chosen: dict[str, str] = {}
    for metric, entries in offers.items():
        ids = [entry.protocol for entry in entries if not judge or entry.judge in ("", judge)]
        if ids:
            chosen[metric] = next((wish for wish in reversed(wishes) if wish in ids), ids[0])
    return chosen


def judge_of(content: Mapping[str, object]) -> str:
    """Return the id of the judge in a protocol's content; empty where none is asked."""
    models = content.get("models")
    judge = models.get("judge") if isinstance(models, dict) else None
    return str(judge.get("id", "")) if isinstance(judge, dict) else ""


def label_protocol(protocol: str, text: str) -> str:
    """Return a short label of a protocol: its metric, its parameters, its judge, its id."""
    content = _content(text)
    parts = [f"{name}={value}" for name, value in _parameters(content).items()]
    if judge := judge_of(content):
        parts.append(f"judge {judge}")
    metric = protocol.partition("@")[0]
    return f"{metric}: {', '.join(parts)} — {protocol}" if parts else protocol


def _content(text: str) -> dict[str, object]:
    try:
        content = json.loads(text)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _parameters(content: Mapping[str, object]) -> dict[str, object]:
    parameters = content.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


@cache
def _declaration(metric: str) -> Metric | None:
    for benchmark in map(benchmarks.get, benchmarks.list_benchmarks()):
        for composite in benchmark.composites:
            if composite.name == metric:
                return composite_scores.declare(benchmark, composite)
    try:
        return catalogue.get(metric)
    except (BadInput, ImportError):
        return None
