"""Say of a column what a reader has to know: what it measures, which way is better, its range, who reaches what.

All of it is taken from the declaration of the metric; of a figure that no metric declares there is only its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from podeval import benchmarks
from podeval.board.columns import Column
from podeval.measuring.standing import format_number, format_span
from podeval.metrics import catalogue
from podeval.metrics.declaration import Better, Key
from podeval.metrics.description import format_range
from podeval.runs import composite_scores, reliability
from podeval.text.message_catalogue import translate


@dataclass(frozen=True)
class Explanation:
    """What is known of a column; texts are empty where nothing is.

    Attributes:
        metric: name of the metric that has a card; empty where none has.
        metric_title: what that metric is called.
        about: what the value is, in a sentence.
        of_metric: what the metric measures, in a sentence.
        better: which way is better.
        range: from where to where.
        ideal: where it is best, of what is best in a range.
        people: what people reach.
        systems: what good systems reach.
        source: where these are from.
        unreached: why nothing comparable is known.
    """

    metric: str
    metric_title: str
    about: str
    of_metric: str
    better: Better
    range: str
    ideal: str
    people: str
    systems: str
    source: str
    unreached: str


def explain(of: Column, language: str = "en") -> Explanation:
    """Return what is known of a column, in a language of the site."""
    key, metric = find_declared_key(of, language), catalogue.get(of.metric) if of.metric in catalogue.NAMES else None
    reach = key.reach if key else None
    return Explanation(
        metric=metric.name if metric else "",
        metric_title=metric.title if metric else "",
        about=_as_sentence(translate(key.about, language) if key else "", language),
        of_metric=_as_sentence(translate(metric.purpose, language), language) if metric else "",
        better=of.better,
        range=format_range(key, language) if key else "",
        ideal=_ideal_text(key) if key and key.ideal else "",
        people=format_span(reach.people) if reach else "",
        systems=format_span(reach.systems) if reach else "",
        source=translate(reach.source, language) if reach else "",
        unreached=translate(key.unreached, language) if key else "",
    )


def find_declared_key(of: Column, language: str = "en") -> Key | None:
    """Return the declaration of a column's key, over seeds in a language of the site; None if only a paper has it."""
    if of.metric == reliability.NAME:
        return reliability.declare(of.key, language)
    if of.metric in catalogue.NAMES:
        return next((key for key in catalogue.get(of.metric).keys if key.name == of.key), None)
    for benchmark in map(benchmarks.get, benchmarks.list_benchmarks()):
        for composite in benchmark.composites:
            if composite.name == of.metric:
                keys = composite_scores.declare(benchmark, composite).keys
                return next((key for key in keys if key.name == of.key), None)
    return None


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
