"""A view of the board to draw, and the parts of its picture."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from podeval.board.columns import ARROWS, MISSING, Cell, Column, Row, to_number
from podeval.board.runs_folder import Key, RunsFolder
from podeval.board.view import ResolvedView
from podeval.plots.charts import ON_PAGE, ON_PHONE, RadarLayout, Span
from podeval.plots.svg import WIDE, WIDTH, Frame
from podeval.runs.board_tables import KIND_MARKS

Point = tuple[Key, Row, float]


@dataclass(frozen=True)
class PictureSize:
    """Sizes in a picture's own units: its width, the height of a plot area with two axes, and the sizes of text and
    radar.
    """

    width: int
    field: int
    font_size: int
    names: int
    radar: RadarLayout


NARROW = PictureSize(WIDTH, 236, 12, 32, ON_PHONE)
PAGE = PictureSize(WIDE, 420, 14, 80, ON_PAGE)


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, with its caption, notes and table."""

    svg: str
    caption: str
    notes: tuple[str, ...]
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Drawn:
    """A picture, or the reason why there is none; if the requested plot would be empty, `plot` names the plot drawn
    instead.
    """

    picture: Picture | None = None
    why_not: str = ""
    plot: str = ""


@dataclass(frozen=True)
class Scene:
    """A view to be drawn: its rows in table order, with the texts of one language."""

    settled: ResolvedView
    order: Sequence[Key]
    folder: RunsFolder
    words: Mapping[str, Any]
    title: Callable[[Column], str]
    of: Column
    size: PictureSize
    link: Callable[[str], str]

    @cached_property
    def every_point(self) -> list[Point]:
        """The rows that have the figure, in table order."""
        rows = self.settled.sheet.rows(self.of.id)
        existing = [(key, rows[key]) for key in self.order if key in rows]
        return [(key, row, value) for key, row in existing if (value := to_number(row["value"])) is not None]

    def points(self) -> list[Point]:
        """Return the rows to draw, leaving out controls that are so far from all other rows that they would dominate
        the axis.
        """
        others = [
            end
            for _, row, value in self.every_point
            if row["system_kind"] != "control"
            for end in (value, to_number(row["low"]), to_number(row["high"]))
            if end is not None
        ]
        if not others:
            return self.every_point
        room = (max(others) - min(others)) / 2
        return [
            (key, row, value)
            for key, row, value in self.every_point
            if row["system_kind"] != "control" or self.pinned(key) or min(others) - room <= value <= max(others) + room
        ]

    def name(self, key: Key) -> str:
        """Return the name of a row's system."""
        name = self.settled.board.names[key[0]]
        kinds = self.words.get("kinds", {})
        kind = next((kind for kind, mark in KIND_MARKS.items() if kind in kinds and name.endswith(mark)), "")
        return f"{name.removesuffix(KIND_MARKS[kind])} ({kinds[kind]})" if kind else name

    def say_standing(self, of: Cell) -> str:
        """Return the text that describes a cell's standing, in the reader's language."""
        return str(self.words.get("standings", {}).get(of.standing, of.standing))

    def pinned(self, key: Key) -> bool:
        """Return whether the reader pinned a row's system."""
        return key[0] in self.settled.view.pins

    def head(self) -> str:
        """Return the name, direction and unit of the figure."""
        return f"{self.title(self.of)}{ARROWS[self.of.better]}" + (f" ({self.of.unit})" if self.of.unit else "")

    def frame(self, caption: str) -> Frame:
        """Return the frame of a picture with the scene's size."""
        return Frame(caption, self.size.width, self.size.font_size, percent=self.of.percent)


# The axes of a radar: each is a column between fixed ends, so a point farther out is better, and equal values have
# equal positions.
#
# The ends are the bounds of the metric's own scale and never depend on the displayed systems. The axis of an error rate
# ends at 1, where there are as many errors as words; the axis of a figure with an ideal range ends far from that range.

FEWEST_AXES, MOST_AXES = 3, 12
"""Minimum and maximum number of axes of a radar."""
MOST_SERIES = 6
"""Maximum number of systems on a radar."""
ERROR_RATES = ("wer", "cer", "wer_raw", "cer_raw", "cpwer", "cpcer")
FARTHEST = {"LUFS": 12.0, "dBTP": 4.0, "LU": 14.0}
"""Distance from the ideal range at the centre of a radar, by unit."""


@dataclass(frozen=True)
class RadarAxis:
    """One axis between fixed ends, given as the badness (see `Column.badness`) at the centre and at the rim."""

    column: Column
    worst: float
    best: float

    def at(self, value: float) -> float:
        """Return the position of a value from 0 (centre) to 1 (rim); a value beyond an end is placed at that end."""
        share = (self.worst - self.column.badness(value)) / (self.worst - self.best)
        return min(max(share, 0.0), 1.0)

    def span(self, low: float | None, high: float | None) -> Span | None:
        """Return the positions of an interval's ends; None if there is no interval."""
        return None if low is None or high is None else (self.at(low), self.at(high))


def find_axis(column: Column) -> RadarAxis | None:
    """Return the axis of a column; None for a figure without a direction or fixed ends."""
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
    """Return the axes of the columns that have an axis; at most twelve axes are returned."""
    return [axis for axis in map(find_axis, columns) if axis is not None][:MOST_AXES]


def choose_radar_keys(settled: ResolvedView, order: Sequence[Key], most: int | None) -> list[Key]:
    """Return the rows on the radar: the pinned rows or, if there are none, the first rows that are not controls."""
    systems = settled.board.systems
    pinned = [key for key in order if key[0] in settled.view.pins]
    return (pinned or [key for key in order if systems[key[0]]["system_kind"] != "control"][:most])[
        : most and MOST_SERIES
    ]


def locate(settled: ResolvedView, axis: RadarAxis, key: Key) -> tuple[float | None, Span | None]:
    """Return a row's position on an axis, from 0 to 1, and its interval; the position is None if there is no value."""
    row = settled.sheet.rows(axis.column.id).get(key)
    value = to_number(row["value"]) if row else None
    if row is None or value is None:
        return None, None
    return axis.at(value), axis.span(to_number(row["low"]), to_number(row["high"]))


def format_share(value: float | None, span: Span | None) -> str:
    """Format a position on an axis as a percentage, followed by its interval if there is one."""
    if value is None:
        return MISSING
    return f"{value:.0%}" if span is None else f"{value:.0%} [{min(span):.0%}, {max(span):.0%}]"


def has_radar(settled: ResolvedView) -> bool:
    """Return whether there are enough figures for a radar."""
    keys = choose_radar_keys(settled, settled.keys, None)
    valued = sum(
        any(to_number(rows[key]["value"]) is not None for key in keys if key in rows)
        for rows in (settled.sheet.rows(axis.column.id) for axis in choose_radar_axes(settled.columns))
    )
    return valued >= FEWEST_AXES
