"""What a picture is drawn from and what comes of it: a view with its rows and words, a size, SVG with its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.leaderboard import radar
from podeval.leaderboard.columns import Column
from podeval.leaderboard.query import KIND_MARKS, Key
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.table import Cell, Row, to_number
from podeval.leaderboard.view import ResolvedView
from podeval.plots.svg import WIDE, WIDTH


@dataclass(frozen=True)
class PictureSize:
    """How large pictures are: units across, how tall the field of one with two axes is, the letters, the radar."""

    width: int
    field: int
    font_size: int
    names: int
    radar: radar.RadarLayout


NARROW = PictureSize(WIDTH, 236, 12, 32, radar.ON_BOARD)
PAGE = PictureSize(WIDE, 420, 14, 80, radar.ON_WIDE_BOARD)


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

    def points(self) -> list[tuple[Key, Row, float]]:
        """Return the rows that have the figure, in the table's order."""
        rows = self.settled.sheet.rows(self.of.id)
        existing = [(key, rows[key]) for key in self.order if key in rows]
        return [(key, row, value) for key, row in existing if (value := to_number(row["value"])) is not None]

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
        arrow = {"higher": " ↑", "lower": " ↓", "in range": " ↔"}.get(self.of.better, "")
        return f"{self.title(self.of)}{arrow}" + (f" ({self.of.unit})" if self.of.unit else "")
