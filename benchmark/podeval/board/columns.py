"""The columns of a board and their cells; a column never mixes numbers from two protocols.

A column is one key of one metric under one protocol. Its name and direction come from the metric's declaration. A key
without a declaration (a figure from a paper, a metric from a later version) still gets a column: for a spread over
groups, lower is better; any other key is shown without a direction. If a metric has numbers under several protocols,
one protocol is chosen (`protocol_offers`).

A cell is a number formatted for readers: value, 95 % interval, and rank as a range, or `incomplete` if too few items
were scored for a rank. A cell also contains the raw number, for sorting.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.aggregate import COMPLETE
from podeval.metrics.catalogue import Metric
from podeval.metrics.facts import DIMENSION_GROUPS, Better, Key
from podeval.metrics.standing import translate
from podeval.runs import composite_scores, reliability
from podeval.runs.board_tables import EVIDENT, NOT_RANKED, read_object
from podeval.stats.intervals import Interval
from podeval.texts import CAUSES, find_kinds, translate_reason

ARROWS: dict[Better, str] = {"higher": " ↑", "lower": " ↓", "in range": " ↔", "informative": ""}
"""Mark in a header that shows the better direction."""

MISSING = "–"
OVERVIEW, EVERYTHING = "overview", "all"
"""Choices of columns that are not a dimension: the headline columns, and all columns."""
JUDGED = "dialogue"
"""Column group of ratings from battles that judges decided; in this group, the arena's metric is `dialogue_arena`."""
PERCENT = -1
"""Special value for the number of decimals that means a percentage with one decimal."""
ALIKE = "{0} of {0}"
"""Text shown instead of an interval if the values of all items are at the same bound."""
Row = Mapping[Any, Any]


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
    """Position of the metric among all metrics, and of the key within its metric."""
    bounds: tuple[float | None, float | None] = (None, None)
    percent: bool = False

    @property
    def id(self) -> str:
        """The id in links and files, `metric.key`."""
        return f"{self.metric}.{self.key}"

    @property
    def header(self) -> str:
        """Name and direction, with the unit if there is one."""
        return self.header_in("en")

    def title_in(self, language: str) -> str:
        """Return the name in one of the site's languages."""
        if self.metric == reliability.NAME and (figure := reliability.declare(self.key, language)):
            return figure.title
        return translate(self.title, language)

    def header_in(self, language: str) -> str:
        """Return the name and direction in one of the site's languages, with the unit if there is one."""
        title = self.title_in(language)
        # Do not repeat a unit that is part of the title.
        in_title = f" {self.unit} ".lower() in f" {self.title} ".lower()
        unit = f" ({translate(self.unit, language)})" if self.unit and not in_title else ""
        return f"{title}{ARROWS[self.better]}{unit}"

    def choose_decimals(self, values: Iterable[float | None]) -> int:
        """Return the number of decimals that suits the values of the column, or `PERCENT`."""
        return PERCENT if self.percent else choose_decimals(values)

    def badness(self, value: float) -> float:
        """Return a number that is smaller for better values."""
        if self.better == "in range" and self.ideal is not None:
            low, high = self.ideal
            return max(low - value, value - high, 0.0)
        return value if self.better == "lower" else -value


Choice = tuple[str, str]
"""A label and its value."""


def get_column(metric: str, key: str, dimension: str) -> Column:
    """Return the column of a key, as declared by its metric if the metric has a declaration."""
    if metric == reliability.NAME:
        return _reliability_column(key, dimension)
    declared = find_declaration(metric)
    keys = {key.name: key for key in (*declared.keys, *declared.courses)} if declared else {}
    is_catalogued = declared is not None and declared.name in catalogue.NAMES
    position = catalogue.NAMES.index(declared.name) if declared and is_catalogued else len(catalogue.NAMES)
    if declared and key in keys:
        facts = keys[key]
        order = (position, list(keys).index(key))
        values = (facts.unit, facts.ideal, order, facts.bounds, facts.percent)
        return Column(metric, key, dimension, declared.title_of(facts), facts.better, *values)
    title = (
        key
        if key.startswith(declared.name if declared else metric)
        else f"{declared.title if declared else metric} {key}"
    )
    base, _, part = key.rpartition("_")
    if declared and base in keys and part in ("q", "j"):
        # PodEval prints two figures, Q and J, for each question.
        title = f"{declared.title_of(keys[base])} ({part.upper()})"
    better: Better = "lower" if key.startswith(composite_scores.SPREAD) else "informative"
    return Column(metric, key, dimension, title.replace("_", " "), better, "", None, (position, len(keys)))


def _reliability_column(name: str, dimension: str) -> Column:
    """Return the column for a figure over several seeds; the share of catastrophic outputs comes first."""
    key = reliability.declare(name) or Key(name, "informative", title=name.replace("_", " "))
    order = (len(catalogue.NAMES) + 1, 0 if name == reliability.CATASTROPHIC else 1)
    facts = (key.better, key.unit, key.ideal, order, key.bounds, key.percent)
    return Column(reliability.NAME, name, dimension, key.title, *facts)


def order_columns(columns: Iterable[Column]) -> list[Column]:
    """Sort columns into the order of the board: by dimension, then by metric, and the metric's headline key first."""
    return sorted(columns, key=lambda c: (*rank_dimension(c.dimension), c.order, c.metric, c.key))


def choose_headlines(columns: Iterable[Column]) -> list[Column]:
    """Return one column for each dimension: the first column in board order that has a direction or, if none has one,
    the first column.
    """
    best: dict[str, Column] = {}
    for candidate in order_columns(columns):
        current = best.get(candidate.dimension)
        if current is None or (current.better == "informative" and candidate.better != "informative"):
            best[candidate.dimension] = candidate
    return list(best.values())


def rank_dimension(dimension: str) -> tuple[int, str]:
    """Return the sort key of a dimension: known groups come first, in their fixed order, then all other dimensions by
    name.
    """
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


@cache
def find_declaration(metric: str) -> Metric | None:
    """Return the declaration of a metric or a benchmark's composite; None if there is none."""
    for benchmark in map(benchmarks.get, benchmarks.list_benchmarks()):
        for composite in benchmark.composites:
            if composite.name == metric:
                return composite_scores.declare(benchmark, composite)
    groups = [track.group for one in map(benchmarks.get, benchmarks.list_benchmarks()) for track in one.tracks]
    inner = [metric.removeprefix(f"{group}_") for group in (*groups, JUDGED) if group and metric not in catalogue.NAMES]
    try:
        return catalogue.get(next((name for name in inner if name in catalogue.NAMES), metric))
    except (BadInput, ImportError):
        return None


@cache
@dataclass(frozen=True)
class Cell:
    """One number as a reader sees it, split into parts.

    Attributes:
        number: the value, or `–`, or `unscored (6)`.
        interval: `±0.08`, `[3.40, 3.71]`, `6 of 6` if the values of all items are at the bound, or empty.
        standing: `#1–2`, `incomplete`, `unscored`, `not ranked`, or empty.
        value: the raw number; None if there is none.
    """

    number: str
    interval: str = ""
    standing: str = ""
    value: float | None = None

    def translate(self, texts: Mapping[str, Any]) -> "Cell":
        """Return the same cell with the texts of the page `board`."""
        number, standing = self.number.replace("unscored", texts["unscored"]), texts["standings"]
        return replace(self, number=number, standing=standing.get(self.standing, self.standing))

    def __str__(self) -> str:
        figure = " ".join(filter(None, (self.number, self.interval)))
        return "  ".join(filter(None, (figure, self.standing)))


def to_number(value: Any) -> float | None:
    """Return a number, or None for the missing values of Parquet and pandas."""
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else float(value)


def choose_decimals(values: Iterable[float | None]) -> int:
    """Return the number of decimals that suits a column: three for values up to 2, two up to 100, otherwise one."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 3 if largest < 2 else 2 if largest < 100 else 1


def format_value(value: float | None, low: float | None, high: float | None, places: int) -> str:
    """Format a value as `3.52 ±0.08`, as `3.52 [3.40, 3.71]` if the interval is asymmetric, or without an interval."""
    if value is None:
        return MISSING
    return " ".join(filter(None, (_fixed(value, places), _interval(value, low, high, places))))


def format_standing(row: Row) -> str:
    """Return the standing of a number: its rank, `incomplete`, or an empty string (for a paper's row or a control)."""
    if row["rankable"]:
        best, worst = to_number(row["rank_best"]), to_number(row["rank_worst"])
        if best is None or worst is None:
            return ""
        # Write a range of ranks if the data does not separate the systems.
        return f"#{best:.0f}" if best == worst else f"#{best:.0f}–{worst:.0f}"
    if row["provenance"] == "reported":
        return ""
    scored, unscored = _count(row, "scored"), count_unscored(row)
    if _count(row, "unscored_ours") or scored < COMPLETE * (scored + unscored):
        return "incomplete" if scored else "unscored"
    return "" if row["system_kind"] == "control" else "not ranked"


def build_cell(row: Row, places: int) -> Cell:
    """Format one number for the board; a paper's figure is shown as the paper prints it."""
    value = to_number(row["value"])
    if row["provenance"] == "reported" and (text := _printed_text(row)):
        digits = text.partition(".")[2]
        if value is not None and places == PERCENT and digits.isdigit() and float(text) == value:
            text = f"{100 * value:.{max(0, len(digits) - 2)}f} %"
        return Cell(text, value=value)
    if value is None:
        return Cell(f"unscored ({count_unscored(row)})" if count_unscored(row) else MISSING)
    low, high = to_number(row["low"]), to_number(row["high"])
    # A mean equals one end of its interval only if all items have the same value, and this value is a bound of the key.
    alike = low is not None and value in (low, high)
    count = to_number(row.get("values")) or _count(row, "scored")
    interval = ALIKE.format(f"{count:.0f}") if alike and count else _interval(value, low, high, places)
    return Cell(_fixed(value, places), interval, format_standing(row), value)


def count_unscored(row: Row) -> int:
    """Return the number of items without a score, for any cause."""
    return _count(row, "unscored_system") + _count(row, "unscored_ours")


def describe_reasons(rows: Iterable[Row], words: Mapping[str, Any] = CAUSES) -> str:
    """Describe why a system has no rank and why items are unscored: `6 × the recording is silent (by the system: wer)`.

    Every row of a metric contains the metric's counts in addition to those of its own key; each count is used only
    once.
    """
    every_row = list(rows)
    unranked = dict.fromkeys(
        reason
        for row in every_row
        for reason in read_object(row["reasons"])
        if reason.startswith(NOT_RANKED) and reason not in EVIDENT.values()
    )
    kinds = find_kinds(reason for row in every_row for reason in read_object(row["reasons"]))
    metrics: dict[tuple[str, str], list[str]] = {}
    for row in filter(count_unscored, every_row):
        system, ours = _count(row, "unscored_system"), _count(row, "unscored_ours")
        alone = words["by us" if not system else "by the system"]
        cause = words["both"].format(system, ours) if system and ours else alone
        reasons: Counter[str] = Counter()
        for reason, n in read_object(row["reasons"]).items():
            reasons[kinds[reason]] += n
        whys = [f"{n} × {translate_reason(why, words)}" for why, n in reasons.items() if not why.startswith(NOT_RANKED)]
        for why in whys or [f"{system + ours} × {words['unknown']}"]:
            if not any(row["metric"] in of for (same, _), of in metrics.items() if same == why):
                metrics.setdefault((why, cause), []).append(str(row["metric"]))
    unscored = [words["one"].format(why, cause, ", ".join(dict.fromkeys(of))) for (why, cause), of in metrics.items()]
    return str(words["between"]).join([*(translate_reason(reason, words) for reason in unranked), *unscored])


def _interval(value: float, low: float | None, high: float | None, places: int) -> str:
    if low is None or high is None:
        return ""
    if places == PERCENT:
        value, low, high, places = 100 * value, 100 * low, 100 * high, 1
    below, above = _fixed(value - low, places), _fixed(high - value, places)
    return f"±{above}" if below == above else f"[{_fixed(low, places)}, {_fixed(high, places)}]"


def _printed_text(row: Row) -> str:
    """Format a paper's figure with its printed digits and standard deviation: `0.96 (SD 0.008)`."""
    content = read_object(row.get("protocol_json"))
    text = str(content.get("value", "")).replace("-", "−")
    return f"{text} (SD {content['spread']})" if text and "spread" in content else text


def _count(row: Row, name: str) -> int:
    return int(to_number(row[name]) or 0)


def _fixed(value: float, places: int) -> str:
    if places == PERCENT:
        return f"{_fixed(100 * value, 1)} %"
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{places}f}"


def format_signed(value: float, places: int) -> str:
    """Format a difference with its sign: `+0.19`, `−0.19`, `0.00`, or for percentages `+1.9 pp`."""
    if places == PERCENT:
        return f"{format_signed(100 * value, 1)} pp"
    text = f"{value:+.{places}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{places}f}"


def format_difference(interval: Interval, places: int) -> str:
    """Format a difference with its interval: `+0.19 [+0.02, +0.36]`."""
    text = format_signed(interval.mean, places)
    if interval.low is None or interval.high is None:
        return text
    return f"{text} [{format_signed(interval.low, places)}, {format_signed(interval.high, places)}]"
