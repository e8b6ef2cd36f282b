"""Pictures of a view of the board, each with a caption, notes on what it leaves out, and a table of its data.

A picture shows only rows that the view shows, so it has one profile and one protocol for each metric; the systems that
a reader pinned are always shown and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from podeval.board.columns import FEWEST_AXES, Column, RadarAxis, choose_radar_axes
from podeval.board.item_results import read_item_values
from podeval.board.runs_folder import KIND_MARKS, Key, RunsFolder
from podeval.board.table import (
    MISSING,
    Cell,
    Row,
    build_cell,
    choose_decimals,
    format_standing,
    format_value,
    to_number,
)
from podeval.board.view import PLOTS, ResolvedView
from podeval.plots.charts import (
    LEFT,
    ON_PAGE,
    ON_PHONE,
    RIGHT,
    BoxRow,
    IntervalRow,
    RadarLayout,
    ScatterPoint,
    Series,
    Span,
    compute_five_numbers,
    draw_boxes,
    draw_intervals,
    draw_radar,
    draw_scatter,
)
from podeval.plots.svg import WIDE, WIDTH, Axis, Frame, shorten

MOST_WHISKERS, MOST_SPREADS, FEW, MOST_SERIES = 24, 8, 40, 6
TABLE = 60
"""Most rows of a picture's table; the board's own table has all."""

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

    def points(self) -> list[Point]:
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

    def frame(self, caption: str) -> Frame:
        """Return the frame of a picture of the scene's size."""
        return Frame(caption, self.size.width, self.size.font_size)


def get_kind(row: Row) -> str:
    """Return the kind of a row, one of those that have a shape."""
    if row["provenance"] == "reported":
        return "reported"
    if row["system_kind"] in ("control", "human"):
        return str(row["system_kind"])
    return "incomplete" if format_standing(row) in ("incomplete", "unscored") else "ranked"


def draw(
    settled: ResolvedView,
    order: Sequence[Key],
    folder: RunsFolder,
    words: Mapping[str, Any],
    title: Callable[[Column], str],
    size: PictureSize = NARROW,
) -> Drawn:
    """Draw the picture that a view asks for.

    Args:
        settled: the view.
        order: its rows as the table has them.
        folder: the folder of runs, for results of single items.
        words: section `plot` of the board's texts, with its `breakdowns`.
        title: returns the title of a column.
        size: the size of the picture.
    """
    of = next((column for column in settled.columns if column.id == settled.view.of), None)
    if of is None:
        return Drawn(None, words["none_value"])
    scene = Scene(settled, order, folder, words, title, of, size)
    available = list_offered_plots(settled)
    plot = settled.view.plot if settled.view.plot in available else next(iter(available), settled.view.plot)
    return replace(_WAYS[plot](scene), plot=plot)


def list_offered_plots(settled: ResolvedView) -> tuple[str, ...]:
    """Return the plots that would show something of a view."""
    sheet = settled.sheet
    rows = {key: row for key, row in sheet.rows(settled.view.of).items() if to_number(row["value"]) is not None}
    visible = [key for key in settled.keys if key in rows]
    competing = [key for key in visible if rows[key]["system_kind"] != "control"]
    rtf = sheet.rows("rtf.rtf") if "rtf" in settled.protocols else {}
    has = {
        "intervals": bool(visible),
        "radar": _has_radar(settled),
        "size": any((fact := settled.facts.get(key[0])) and fact.size for key in visible),
        "rtf": any((to_number(rtf[key]["value"]) or 0) > 0 for key in visible if key in rtf),
        "distribution": len(competing) > 1,
        "time": len({str(rows[key]["created"])[:10] for key in visible} - {""}) > 1,
    }
    return tuple(name for name in PLOTS if has[name])


def _intervals(scene: Scene) -> Drawn:
    points = sorted(scene.points(), key=lambda point: scene.of.badness(point[2]))
    if not points:
        return Drawn(None, scene.words["none_value"])
    kept = [point for number, point in enumerate(points) if number < MOST_WHISKERS or scene.pinned(point[0])]
    rows = []
    for key, row, value in kept:
        of = build_cell(row, choose_decimals([value]))
        name = ("★ " if scene.pinned(key) else "") + shorten(scene.name(key), scene.size.names - 4)
        note = str(replace(of, standing=scene.say_standing(of)))
        rows.append(IntervalRow(name, value, to_number(row["low"]), to_number(row["high"]), note, get_kind(row)))
    has_intervals = any(row.low is not None for row in rows)
    caption = scene.words["intervals" if has_intervals else "no_intervals"].format(scene.title(scene.of))
    svg = draw_intervals(rows, scene.frame(caption), scene.head(), scene.words["shapes"])
    notes = (scene.words["first"].format(len(kept), len(points)),) if len(kept) < len(points) else ()
    return Drawn(Picture(svg, caption, notes, *_table_of(scene, points, {})))


def _size(scene: Scene) -> Drawn:
    sizes = {key: fact.size for key in scene.order if (fact := scene.settled.facts.get(key[0])) and fact.size}
    return _against(scene, sizes, "size", "{:,.0f}")


def _rtf(scene: Scene) -> Drawn:
    values = {key: to_number(row["value"]) for key, row in scene.settled.sheet.rows("rtf.rtf").items()}
    if "rtf" not in scene.settled.protocols:
        values = {}
    return _against(
        scene, {key: value for key, value in values.items() if value is not None and value > 0}, "rtf", "{:.3g}"
    )


def _against(scene: Scene, others: Mapping[Key, float], what: str, form: str) -> Drawn:
    every = scene.points()
    points = [point for point in every if point[0] in others]
    if not points:
        return Drawn(None, scene.words[f"none_{what}"])
    values = [others[key] for key, _, _ in points]
    axis = Axis.over_magnitudes(values, LEFT, scene.size.width - RIGHT)
    caption = scene.words[f"against_{what}"].format(scene.title(scene.of))
    svg = _scatter(scene, points, others, axis, scene.words[what], caption)
    notes = (scene.words[f"without_{what}"].format(len(every) - len(points)),) if len(points) < len(every) else ()
    texts = {key: form.format(others[key]) for key, _, _ in points}
    return Drawn(Picture(svg, caption, notes, *_table_of(scene, points, {scene.words[what]: texts})))


def _time(scene: Scene) -> Drawn:
    points = [point for point in scene.points() if point[1]["created"]]
    if not points:
        return Drawn(None, scene.words["none_time"])
    times = {key: datetime.fromisoformat(row["created"]).timestamp() for key, row, _ in points}
    axis = Axis.over_dates(list(times.values()), LEFT, scene.size.width - RIGHT)
    caption = scene.words["time"].format(scene.title(scene.of))
    svg = _scatter(
        scene, points, times, axis, scene.words["measured"], caption, _find_best_so_far(scene, points, times)
    )
    texts = {key: str(row["created"])[:10] for key, row, _ in points}
    newest = sorted(points, key=lambda point: times[point[0]], reverse=True)
    return Drawn(Picture(svg, caption, (), *_table_of(scene, newest, {scene.words["measured"]: texts})))


def _find_best_so_far(scene: Scene, points: Sequence[Point], times: Mapping[Key, float]) -> list[tuple[float, float]]:
    """Return the times at which the best value among ranked systems changed, with the new best."""
    best: list[tuple[float, float]] = []
    ranked = [point for point in points if get_kind(point[1]) == "ranked"]
    if scene.of.better == "informative":
        return best
    for key, _, value in sorted(ranked, key=lambda point: times[point[0]]):
        if not best or scene.of.badness(value) < scene.of.badness(best[-1][1]):
            best.append((times[key], value))
    return best


def _scatter(
    scene: Scene,
    points: Sequence[Point],
    others: Mapping[Key, float],
    across: Axis,
    title: str,
    caption: str,
    steps: Sequence[tuple[float, float]] = (),
) -> str:
    """Draw the figure against other values; pinned systems have names, and the first three of few."""
    labelled = {key for key, _, _ in (points[:3] if len(points) <= FEW else ())}
    drawn = [
        ScatterPoint(
            others[key],
            value,
            get_kind(row),
            f"{scene.name(key)}: {build_cell(row, choose_decimals([value]))}",
            scene.name(key) if key in labelled or scene.pinned(key) else "",
            scene.pinned(key),
        )
        for key, row, value in points
    ]
    titles, shapes = (title, scene.head()), scene.words["shapes"]
    return draw_scatter(drawn, across, scene.frame(caption), titles, scene.size.field, shapes, steps)


def _distribution(scene: Scene) -> Drawn:
    points = [point for point in scene.points() if point[1]["system_kind"] != "control"]
    if not points:
        return Drawn(None, scene.words["none_value"])
    chosen = [key for key, _, _ in points if scene.pinned(key)] + [key for key, _, _ in points if not scene.pinned(key)]
    items = read_item_values(scene.folder, scene.settled, scene.of, [key[0] for key in chosen[:MOST_SPREADS]])
    values = sorted(value for _, _, value in points)
    words = scene.words
    systems = [BoxRow(scene.settled.board.names[system], of_items) for system, of_items in items.items()]
    caption = words["distribution" if systems else "distribution_systems"].format(scene.title(scene.of), len(points))
    everybody = BoxRow(words["systems"], values, words["of_systems"].format(len(values)))
    svg = draw_boxes(systems, scene.frame(caption), scene.head(), histogram=everybody)
    slice_ = scene.settled.view.slice
    notes = (words["items_all"],) if systems and slice_ and not slice_.startswith("category=") else ()
    places = choose_decimals(values)
    table = []
    for row in (everybody, *systems):
        numbers = (format_value(number, None, None, places) for number in compute_five_numbers(row.values))
        table.append((row.name, str(len(row.values)), *numbers))
    heads = ("system", "items", "least", "quartile1", "median", "quartile3", "most")
    return Drawn(Picture(svg, caption, notes, tuple(words[head] for head in heads), tuple(table)))


def _table_of(
    scene: Scene, points: Sequence[Point], more: Mapping[str, Mapping[Key, str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headers and rows of the table beside a picture."""
    words = scene.words
    places = choose_decimals(value for _, _, value in points)
    rows = []
    for key, row, _ in points[:TABLE]:
        cell = build_cell(row, places)
        texts = (of_key[key] for of_key in more.values())
        rows.append((scene.name(key), *texts, cell.number, cell.interval, scene.say_standing(cell)))
    return (words["system"], *more, scene.head(), words["interval"], words["standing"]), tuple(rows)


def _radar(scene: Scene) -> Drawn:
    """Draw the radar of the pinned systems, or of the first three; says why not where too few figures can be drawn."""
    words, settled = scene.words, scene.settled
    keys = _choose_radar_keys(settled, scene.order, 3)
    axes = [
        axis
        for axis in choose_radar_axes(settled.columns)
        if any(_locate(scene, axis, key)[0] is not None for key in keys)
    ]
    if len(axes) < FEWEST_AXES:
        return Drawn(None, words["none_radar"])
    titles = [scene.title(axis.column) for axis in axes]
    systems, rows = [], []
    for key in keys:
        places = [_locate(scene, axis, key) for axis in axes]
        systems.append((scene.name(key), tuple(at for at, _ in places), tuple(span for _, span in places)))
        rows.append((scene.name(key), *(_format_share(*place) for place in places)))
    shown = {axis.column.id for axis in axes}
    without = [
        scene.title(column) for column in settled.columns if column.better != "informative" and column.id not in shown
    ]
    notes = [words["radar_without"].format(", ".join(without))] if without else []
    svg = draw_radar(titles, Series.of_systems(systems), words["radar"], scene.size.radar)
    return Drawn(Picture(svg, words["radar"], (*notes, words["radar_pinned"]), (words["system"], *titles), tuple(rows)))


def _choose_radar_keys(settled: ResolvedView, order: Sequence[Key], most: int | None) -> list[Key]:
    """Return the rows on the radar: pinned ones, else the first that are not controls."""
    systems = settled.board.systems
    pinned = [key for key in order if key[0] in settled.view.pins]
    return (pinned or [key for key in order if systems[key[0]]["system_kind"] != "control"][:most])[
        : most and MOST_SERIES
    ]


def _locate(scene: Scene, axis: RadarAxis, key: Key) -> tuple[float | None, Span | None]:
    """Return the position of a row on an axis, from 0 to 1, and its interval; None where it has no value."""
    row = scene.settled.sheet.rows(axis.column.id).get(key)
    value = to_number(row["value"]) if row else None
    if row is None or value is None:
        return None, None
    return axis.at(value), axis.span(to_number(row["low"]), to_number(row["high"]))


def _format_share(value: float | None, span: Span | None) -> str:
    """Format `62 %` of an axis, with its interval."""
    if value is None:
        return MISSING
    return f"{value:.0%}" if span is None else f"{value:.0%} [{min(span):.0%}, {max(span):.0%}]"


def _has_radar(settled: ResolvedView) -> bool:
    """Tell whether there are enough figures for a radar."""
    keys = _choose_radar_keys(settled, settled.keys, None)
    valued = sum(
        any(to_number(rows[key]["value"]) is not None for key in keys if key in rows)
        for rows in (settled.sheet.rows(axis.column.id) for axis in choose_radar_axes(settled.columns))
    )
    return valued >= FEWEST_AXES


_WAYS: dict[str, Callable[[Scene], Drawn]] = {
    "intervals": _intervals,
    "radar": _radar,
    "size": _size,
    "rtf": _rtf,
    "distribution": _distribution,
    "time": _time,
}
