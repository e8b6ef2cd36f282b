"""A view of the board that is to be drawn, and what a picture of it consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from podeval.board.columns import ARROWS, Cell, Column, Row, to_number
from podeval.board.runs_folder import Key, RunsFolder
from podeval.board.view import ResolvedView
from podeval.plots.charts import ON_PAGE, ON_PHONE, RadarLayout
from podeval.plots.svg import WIDE, WIDTH, Frame
from podeval.runs.board_tables import KIND_MARKS

Point = tuple[Key, Row, float]


@dataclass(frozen=True)
class PictureSize:
    """How large pictures are: units across, how tall the field of one with two axes is, the letters, the radar."""

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
    """A picture, or why there is none, and which plot it is: another than asked for, where that would be empty."""

    picture: Picture | None = None
    why_not: str = ""
    plot: str = ""


@dataclass(frozen=True)
class Scene:
    """A view to be drawn: its rows in the table's order, with the texts of a language."""

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
        """The rows that have the figure, in the table's order."""
        rows = self.settled.sheet.rows(self.of.id)
        existing = [(key, rows[key]) for key in self.order if key in rows]
        return [(key, row, value) for key, row in existing if (value := to_number(row["value"])) is not None]

    def points(self) -> list[Point]:
        """Return the rows that are drawn: without controls far from all others, which would set the axis."""
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
        """Return what a row's system is called."""
        name = self.settled.board.names[key[0]]
        kinds = self.words.get("kinds", {})
        kind = next((kind for kind, mark in KIND_MARKS.items() if kind in kinds and name.endswith(mark)), "")
        return f"{name.removesuffix(KIND_MARKS[kind])} ({kinds[kind]})" if kind else name

    def say_standing(self, of: Cell) -> str:
        """Return what a cell says of the row's place, in the reader's language."""
        return str(self.words.get("standings", {}).get(of.standing, of.standing))

    def pinned(self, key: Key) -> bool:
        """Tell whether the reader pinned a row's system."""
        return key[0] in self.settled.view.pins

    def head(self) -> str:
        """Return name, direction and unit of the figure."""
        return f"{self.title(self.of)}{ARROWS[self.of.better]}" + (f" ({self.of.unit})" if self.of.unit else "")

    def frame(self, caption: str) -> Frame:
        """Return the frame of a picture of the scene's size."""
        return Frame(caption, self.size.width, self.size.font_size, percent=self.of.percent)
