"""The columns of a board: one key of one metric under one protocol; numbers of two protocols are never in one column.

A column takes its name and direction from the metric's declaration. A key that no declaration has (a figure some paper
reports, a metric of a later version) is still a column: a spread over groups is better when it is lower, everything
else is shown without a direction. Where a metric's numbers have several protocols, one is chosen.

On a radar are the columns between fixed ends, so that outward is better and what is equal is drawn as equal: those of
the metric's own scale, its bounds, and never those of the systems that happen to be shown. An error rate ends at 1,
where everything is wrong; what is best in a range ends where it is far from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.measuring.standing import format_number, format_span
from podeval.metrics import catalogue
from podeval.metrics.declaration import DIMENSION_GROUPS, Better, Key, Metric
from podeval.metrics.description import format_range
from podeval.plots.charts import Span
from podeval.runs import composite_scores, reliability
from podeval.text.message_catalogue import translate

ARROWS: dict[Better, str] = {"higher": " ↑", "lower": " ↓", "in range": " ↔", "informative": ""}
"""Mark in a header for the direction that is better."""

FEWEST_AXES, MOST_AXES = 3, 12
"""Fewest and most axes of a radar."""
ERROR_RATES = ("wer", "cer", "wer_raw", "cer_raw", "cpwer", "cpcer")
FARTHEST = {"LUFS": 12.0, "dBTP": 4.0, "LU": 14.0}
"""By unit: how far from its ideal range a value is at the centre."""


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
        if self.metric == reliability.NAME and (figure := reliability.declare(self.key, language)):
            return figure.title
        return translate(self.title, language)

    def header_in(self, language: str) -> str:
        """Return name and direction in a language of the site, with the unit where there is one."""
        title = self.title_in(language)
        # A unit that the title says already is not said twice.
        in_title = f" {self.unit} ".lower() in f" {self.title} ".lower()
        unit = f" ({translate(self.unit, language)})" if self.unit and not in_title else ""
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
        title = declared.title_of(facts)
        order = (position, list(keys).index(key))
        return Column(metric, key, dimension, title, facts.better, facts.unit, facts.ideal, order, facts.bounds)
    title = key if key.startswith(metric) else f"{declared.title if declared else metric} {key}"
    better: Better = "lower" if key.startswith(composite_scores.SPREAD) else "informative"
    return Column(metric, key, dimension, title.replace("_", " "), better, "", None, (position, len(keys)))


def _reliability_column(name: str, dimension: str) -> Column:
    """The column of a figure over seeds; the share of catastrophic outputs comes first."""
    key = reliability.declare(name) or Key(name, "informative", title=name.replace("_", " "))
    order = (len(catalogue.NAMES) + 1, 0 if name == reliability.CATASTROPHIC else 1)
    facts = (key.better, key.unit, key.ideal, order, key.bounds)
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
    group, _, name = dimension.replace("_", " ").partition(".")
    title = f"{group.capitalize()} · {name}" if name else group.capitalize()
    translated = translate(title, language)
    if name and translated == title:
        return f"{translate(group.capitalize(), language)} · {translate(name, language)}"
    return translated


def rank_offers(protocols: Iterable[tuple[str, str, str, int, str]]) -> Offers:
    """Return the available protocols by metric, the default first.

    The order: those with the metric's default parameters, then those most systems have, then the newest.

    Args:
        protocols: for each, the metric, the id, the content as JSON, the number of systems, and when it was last used.
    """
    ranked: dict[str, list[tuple[tuple[bool, int, str], Offer]]] = {}
    for metric, protocol, text, systems, newest in protocols:
        content = read_object(text)
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
    content = read_object(text)
    parts = [f"{name}={value}" for name, value in _parameters(content).items()]
    if judge := judge_of(content):
        parts.append(f"judge {judge}")
    metric = protocol.partition("@")[0]
    return f"{metric}: {', '.join(parts)} — {protocol}" if parts else protocol


def read_object(text: object) -> dict[str, Any]:
    """Read the JSON object in a column of the tables; empty where there is none."""
    try:
        content = json.loads(str(text))
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


@dataclass(frozen=True)
class RadarAxis:
    """One axis between fixed ends: the badness, as `Column.badness`, of its centre and of its rim."""

    column: Column
    worst: float
    best: float

    def at(self, value: float) -> float:
        """Return the position of a value from 0, the centre, to 1, the rim; a value beyond an end lies on it."""
        share = (self.worst - self.column.badness(value)) / (self.worst - self.best)
        return min(max(share, 0.0), 1.0)

    def span(self, low: float | None, high: float | None) -> Span | None:
        """Return the positions of an interval's ends; None without one."""
        return None if low is None or high is None else (self.at(low), self.at(high))


def find_axis(column: Column) -> RadarAxis | None:
    """Return the axis of a column; None of a figure without a direction or without fixed ends."""
    low, high = column.bounds
    if column.better == "informative":
        return None
    if column.better == "in range":
        far = FARTHEST.get(column.unit)
        return RadarAxis(column, far, 0.0) if far and column.ideal is not None else None
    if column.key in ERROR_RATES:
        high = 1.0
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    ends = sorted((column.badness(low), column.badness(high)))
    return RadarAxis(column, ends[1], ends[0])


def choose_radar_axes(columns: Sequence[Column]) -> list[RadarAxis]:
    """Return the axes of those columns that have one, at most twelve."""
    return [axis for axis in map(find_axis, columns) if axis is not None][:MOST_AXES]


def explain(of: Column, language: str = "en") -> dict[str, str]:
    """Return what is known of a column, in a language of the site; texts are empty where nothing is.

    They are by name: `metric` (that has a card), `about` (what the value is), `of_metric` (what the metric measures),
    `range`, `ideal` (where it is best, of what is best in a range), `people` and `systems` (what they reach), `source`
    (where these are from), and `unreached` (why nothing comparable is known).
    """
    key, metric = find_declared_key(of, language), catalogue.get(of.metric) if of.metric in catalogue.NAMES else None
    reach = key.reach if key else None
    return {
        "metric": metric.name if metric else "",
        "about": _as_sentence(translate(key.about, language) if key else "", language),
        "of_metric": _as_sentence(translate(metric.purpose, language), language) if metric else "",
        "range": format_range(key, language) if key else "",
        "ideal": _ideal_text(key) if key and key.ideal else "",
        "people": format_span(reach.people) if reach else "",
        "systems": format_span(reach.systems) if reach else "",
        "source": translate(reach.source, language) if reach else "",
        "unreached": translate(key.unreached, language) if key else "",
    }


def find_declared_key(of: Column, language: str = "en") -> Key | None:
    """Return the declaration of a column's key; None of a figure that only some paper has."""
    if of.metric == reliability.NAME:
        return reliability.declare(of.key, language)
    declared = _declaration(of.metric)
    return next((key for key in declared.keys if key.name == of.key), None) if declared else None


def _ideal_text(key: Key) -> str:
    low, high = key.ideal or (0.0, 0.0)
    if low == float("-inf"):
        return f"≤ {format_number(high)}"
    return f"{format_number(low)} – {format_number(high)}"


def _as_sentence(text: str, language: str) -> str:
    text = text.strip()
    if not text:
        return ""
    stop = "。" if language == "zh" else "."
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "。", "？", "）。")) else stop)
