"""How a value compares with the values of people and good systems, as a word and as the numbers that it is based on.
The module also has the list of all metrics, and their agreement with people's judgements if it was measured
(`human_agreement.csv`).
"""

from __future__ import annotations

import csv
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podeval.files import locate_hub_source
from podeval.metrics.catalogue import Metric, load_all_metrics
from podeval.text.message_catalogue import FIRST, read_messages

if TYPE_CHECKING:
    from podeval.metrics.facts import Key

TARGET = "target"
"""Word that replaces the material in the description of a band that is declared, not measured: the ideal range of a
key.
"""

AT_LEAST = "≥"
"""The mark for a value that is a lower bound."""

NEVER_COMPARED = "never measured"
IS_PEOPLE = "it is itself the judgement of people"

Word = Literal["good", "usual", "poor", ""]


def choose_word(metric: Metric, key: Key, value: float | None, profile: str = "embedded") -> Word:
    """Return whether a value is better than, within or worse than the values of people and good systems.

    If a key has an ideal range, a value is good within it and poor outside it. There is no word if no recordings by
    people and good systems were measured with this version of the metric, or if neither direction is better.
    """
    if value is None or key.better == "informative":
        return ""
    # Two values that look the same when displayed get the same word.
    value = float(f"{value:.3g}")
    if key.ideal:
        return "good" if key.ideal[0] <= value <= key.ideal[1] else "poor"
    span = find_usual(metric, key, profile)
    if span is None or span[0] <= value <= span[1]:
        return "usual" if span else ""
    return "good" if (value > span[1]) == (key.better == "higher") else "poor"


def find_usual(metric: Metric, key: Key, profile: str = "embedded") -> tuple[float, float] | None:
    """Return the values of people and good systems, if this version measured them with the models of this profile."""
    reach = key.reach
    if reach is None or reach.version != metric.version or reach.profile not in (None, profile.partition(",")[0]):
        return None
    return reach.usual


def describe_band(metric: Metric, key: Key, profile: str = "embedded") -> dict[str, Any]:
    """Return the basis of a key's word: bounds, material, and the number of recordings; empty if there is no basis."""
    if key.better == "informative":
        return {}
    if key.ideal:
        low, high = key.ideal
        return {"low": None if low == float("-inf") else low, "high": high, "material": TARGET, "n": 0}
    span, reach = find_usual(metric, key, profile), key.reach
    return {"low": span[0], "high": span[1], "material": reach.source, "n": reach.n} if span and reach else {}


def format_reach(key: Key) -> tuple[str, str]:
    """Format the values of people and of good systems, each as a text such as `2.94 – 3.39`; empty if unknown."""
    return (format_span(key, key.reach.people), format_span(key, key.reach.systems)) if key.reach else ("", "")


def format_span(key: Key, span: tuple[float | None, float | None] | None) -> str:
    """Format a range of a key's values: a single number if both ends are equal, `≤ −1` if one end is open."""
    if span is None:
        return ""
    low, high = (None if end in (None, float("-inf")) else format_value(key, end).removesuffix(".0") for end in span)
    if low is None:
        return f"≤ {high}"
    return low if low == high else f"{low} – {high}"


def format_value(key: Key, value: float | None) -> str:
    """Format a value of a key for readers: `6.4 %` for a share, otherwise the number."""
    if not key.percent or value is None:
        return format_number(value)
    return f"{100 * value:.0f} %" if value in (0, 1) else f"{100 * value:.1f} %"


def format_number(value: float | None) -> str:
    """Format a value with three significant digits, and without decimals from 100 upwards."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
    return text.replace("-", "−")


@cache
def read_human_agreements() -> tuple[dict[str, str], ...]:
    """Read the known agreement of metrics with people: one line per key and study.

    The columns are metric, key, statistic, value, low and high (empty if the paper prints none), n, of (the things
    counted by n) and source.
    """
    with Path(__file__).with_name("human_agreement.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def describe_human_agreement(metric: Metric, key: Key, language: str = "en") -> str:
    """Describe how far a key agrees with people, by study, with the number of systems or outputs, or say that this is
    unknown.
    """
    studies = [
        f"{row['statistic']} {row['value']}{_format_bounds(row)}, n {row['n']} "
        f"{translate(row['of'], language)}: {translate(row['source'], language)}"
        for row in read_human_agreements()
        if (row["metric"], row["key"]) == (metric.name, key.name)
    ]
    absent = IS_PEOPLE if metric.dimension.startswith("human.") else NEVER_COMPARED
    return "; ".join(studies) or translate(absent, language)


def _format_bounds(row: dict[str, str]) -> str:
    return f" [{row['low']}, {row['high']}]" if row["low"] else ""


# Translations of metric declarations are in a separate module, so measuring does not import them.


def translate(text: str, language: str) -> str:
    """Translate the English of a declaration: a title, a unit, a sentence; text without a translation is not changed.

    The English text is the message id in `metrics.po`, a file that exists only for other languages.
    """
    if language == FIRST:
        return text
    file = locate_hub_source("space") / "locale" / language / "LC_MESSAGES" / "metrics.po"
    return read_messages(file).get(text, text)


class MetricListing(tuple[Metric, ...]):
    """A list of metrics in the order of the board; it is printed as a table."""

    def __str__(self) -> str:
        """Return the list as text."""
        return "\n".join(f"{one.name:22} {one.purpose}\n{'':22} {_list_keys(one)}" for one in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the list as a table for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("metric", "says", "values", "people", "good systems"))
        cells = ((one.name, one.purpose, _list_keys(one), *format_reach(one.headline)) for one in self)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def list_metrics() -> MetricListing:
    """List the declarations of all metrics, each with its name, `about`, keys and inputs; the list is printed as a
    table.
    """
    return MetricListing(load_all_metrics())


def _list_keys(metric: Metric) -> str:
    """Return the values of a metric, each with its unit and direction."""
    return ", ".join(f"{key.name} {key.unit_text}".strip() for key in metric.keys)
