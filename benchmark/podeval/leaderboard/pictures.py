"""Draw the pictures of a view of the board, each with a caption, notes on what it leaves out, and a table of its data.

A picture draws only rows that the view shows, so it has one profile and one protocol for each metric; the systems that
a reader pinned are always drawn and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from podeval.leaderboard import radar
from podeval.leaderboard.columns import Column
from podeval.leaderboard.distribution import five_numbers, spread
from podeval.leaderboard.query import Key
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.table import MISSING, Row, cell, decimals, number_or_none, standing, value_text
from podeval.leaderboard.view import ResolvedView
from podeval.plots.axis import Axis
from podeval.plots.svg import (
    SHAPES,
    WIDTH,
    Days,
    Logarithmic,
    render_axis_below,
    render_axis_beside,
    render_legend,
    render_mark,
    render_picture,
    shorten,
)

MOST_WHISKERS, MOST_SERIES, MOST_SPREADS, FEW = 24, 6, 8, 40
TABLE = 60
"""Most rows of a picture's table; the board's own table has all."""


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
    """A picture, or why there is none."""

    picture: Picture | None = None
    why_not: str = ""


@dataclass(frozen=True)
class _Scene:
    """A view to be drawn: its rows in the table's order, with the texts of a language."""

    settled: ResolvedView
    order: Sequence[Key]
    folder: RunsFolder
    words: Mapping[str, Any]
    title: Callable[[Column], str]
    of: Column

    def points(self) -> list[tuple[Key, Row, float]]:
        """Return the rows that have the figure, in the table's order."""
        rows = self.settled.sheet.rows(self.of.id)
        existing = [(key, rows[key]) for key in self.order if key in rows]
        return [(key, row, value) for key, row in existing if (value := number_or_none(row["value"])) is not None]

    def name(self, key: Key) -> str:
        return self.settled.board.names[key[0]]

    def pinned(self, key: Key) -> bool:
        return key[0] in self.settled.view.pins

    def head(self) -> str:
        arrow = {"higher": " ↑", "lower": " ↓", "in range": " ↔"}.get(self.of.better, "")
        return f"{self.title(self.of)}{arrow}" + (f" ({self.of.unit})" if self.of.unit else "")


def kind_of(row: Row) -> str:
    """Return the kind of a row, one of `SHAPES`."""
    if row["provenance"] == "reported":
        return "reported"
    if row["system_kind"] in ("control", "human"):
        return str(row["system_kind"])
    return "incomplete" if standing(row) in ("incomplete", "unscored") else "ranked"


def draw(
    settled: ResolvedView,
    order: Sequence[Key],
    folder: RunsFolder,
    words: Mapping[str, Any],
    title: Callable[[Column], str],
) -> Drawn:
    """Draw the picture that a view asks for.

    Args:
        settled: the view.
        order: its rows as the table has them.
        folder: the folder of runs, for results of single items.
        words: section `plot` of the board's texts, with its `breakdowns`.
        title: returns the title of a column.
    """
    of = next((column for column in settled.columns if column.id == settled.view.of), None)
    if of is None:
        return Drawn(None, words["none_value"])
    scene = _Scene(settled, order, folder, words, title, of)
    return _WAYS[settled.view.plot](scene)


def _intervals(scene: _Scene) -> Drawn:
    points = sorted(scene.points(), key=lambda point: scene.of.badness(point[2]))
    if not points:
        return Drawn(None, scene.words["none_value"])
    kept = [point for number, point in enumerate(points) if number < MOST_WHISKERS or scene.pinned(point[0])]
    ends = [[value, number_or_none(row["low"]), number_or_none(row["high"])] for _, row, value in kept]
    axis = Axis.over([end for three in ends for end in three if end is not None], 14, WIDTH - 14)
    step, top = 34, 6
    content = ""
    for number, ((key, row, value), (_, low, high)) in enumerate(zip(kept, ends, strict=True)):
        y = top + step * number + 24
        rule = ""
        if low is not None and high is not None:
            bars = "".join(f"M{axis.at(end):g} {y - 5}v10" for end in (low, high))
            rule = f'<path class="rule" d="M{axis.at(low):g} {y}H{axis.at(high):g}{bars}"/>'
        kind = kind_of(row)
        text = str(cell(row, decimals([value])))
        name = ("★ " if scene.pinned(key) else "") + shorten(scene.name(key), 34)
        dot = render_mark(SHAPES[kind], axis.at(value), y, 5, kind, text)
        content += (
            f'<g><text x="14" y="{y - 10}">{escape(name)}</text><text class="quiet" x="{WIDTH - 14}" y="{y - 10}" '
            f'text-anchor="end">{escape(text)}</text>{rule}{dot}</g>'
        )
    bottom = top + step * len(kept) + 6
    kinds = _kinds(kept)
    has_intervals = any(low is not None for _, low, _ in ends)
    caption = scene.words["intervals" if has_intervals else "no_intervals"].format(scene.title(scene.of))
    svg = render_picture(
        caption,
        bottom + 52,
        render_axis_below(axis, top, bottom, scene.head())
        + content
        + render_legend(kinds, scene.words["shapes"], bottom + 42),
    )
    notes = (scene.words["first"].format(len(kept), len(points)),) if len(kept) < len(points) else ()
    return Drawn(Picture(svg, caption, notes, *_table_of(scene, points, {})))


def _size(scene: _Scene) -> Drawn:
    sizes = {key: fact.size for key in scene.order if (fact := scene.settled.facts.get(key[0])) and fact.size}
    return _against(scene, sizes, "size")


def _rtf(scene: _Scene) -> Drawn:
    protocols = scene.settled.protocols
    if "rtf" not in protocols:
        return Drawn(None, scene.words["none_rtf"])
    values = {key: number_or_none(row["value"]) for key, row in scene.settled.sheet.rows("rtf.rtf").items()}
    return _against(scene, {key: value for key, value in values.items() if value is not None and value > 0}, "rtf")


def _against(scene: _Scene, others: Mapping[Key, float], what: str) -> Drawn:
    every = scene.points()
    points = [point for point in every if point[0] in others]
    if not points:
        return Drawn(None, scene.words[f"none_{what}"])
    axis = Logarithmic.over([others[key] for key, _, _ in points], 46, WIDTH - 12)
    svg, kinds = _field(scene, points, {key: axis.at(value) for key, value in others.items()})
    caption = scene.words[f"against_{what}"].format(scene.title(scene.of))
    content = (
        render_axis_below(axis, 28, 236, scene.words[what]) + svg + render_legend(kinds, scene.words["shapes"], 276)
    )
    notes = (scene.words[f"without_{what}"].format(len(every) - len(points)),) if len(points) < len(every) else ()
    texts = {key: f"{others[key]:,.0f}" if what == "size" else f"{others[key]:.3g}" for key, _, _ in points}
    return Drawn(
        Picture(
            render_picture(caption, 286, content), caption, notes, *_table_of(scene, points, {scene.words[what]: texts})
        )
    )


def _time(scene: _Scene) -> Drawn:
    points = [point for point in scene.points() if point[1]["created"]]
    if not points:
        return Drawn(None, scene.words["none_time"])
    times = {key: datetime.fromisoformat(row["created"]).timestamp() for key, row, _ in points}
    axis = Days.over(list(times.values()), 46, WIDTH - 12)
    best = _best_so_far(scene, points, times)
    svg, kinds = _field(scene, points, {key: axis.at(time) for key, time in times.items()}, best, axis)
    caption = scene.words["time"].format(scene.title(scene.of))
    content = (
        render_axis_below(axis, 28, 236, scene.words["measured"])
        + svg
        + render_legend(kinds, scene.words["shapes"], 276)
    )
    texts = {key: str(row["created"])[:10] for key, row, _ in points}
    newest = sorted(points, key=lambda point: times[point[0]], reverse=True)
    return Drawn(
        Picture(
            render_picture(caption, 286, content),
            caption,
            (),
            *_table_of(scene, newest, {scene.words["measured"]: texts}),
        )
    )


def _best_so_far(
    scene: _Scene, points: Sequence[tuple[Key, Row, float]], times: Mapping[Key, float]
) -> list[tuple[float, float]]:
    """Return the times at which the best value among ranked systems changed, with the new best."""
    best: list[tuple[float, float]] = []
    ranked = [point for point in points if kind_of(point[1]) == "ranked"]
    if scene.of.better == "informative":
        return best
    for key, _, value in sorted(ranked, key=lambda point: times[point[0]]):
        if not best or scene.of.badness(value) < scene.of.badness(best[-1][1]):
            best.append((times[key], value))
    return best


def _field(
    scene: _Scene,
    points: Sequence[tuple[Key, Row, float]],
    places: Mapping[Key, float],
    best: Sequence[tuple[float, float]] = (),
    days: Days | None = None,
) -> tuple[str, list[str]]:
    """Draw marks at their places across and their values upward; pinned ones have names, and the first three of few."""
    axis = Axis.over([value for _, _, value in points], 236, 28)
    content = render_axis_beside(axis, 46, WIDTH - 12, scene.head())
    if best and days:
        start, value = best[0]
        path = f"M{days.at(start):g} {axis.at(value):g}"
        path += "".join(f"H{days.at(time):g}V{axis.at(then):g}" for time, then in best[1:])
        content += f'<path class="best" d="{path}H{days.end:g}"/>'
    few = points[:3] if len(points) <= FEW else ()
    labelled = {point[0] for point in few} | {point[0] for point in points if scene.pinned(point[0])}
    labels = ""
    for key, row, value in reversed(points):
        kind, x, y = kind_of(row), places[key], axis.at(value)
        label = f"{scene.name(key)}: {cell(row, decimals([value]))}"
        content += render_mark(SHAPES[kind], x, y, 4, f"{kind} pinned" if scene.pinned(key) else kind, label)
        if key in labelled:
            beside, anchor = (x - 7, "end") if x > WIDTH / 2 else (x + 7, "start")
            name = escape(shorten(scene.name(key), 22))
            labels += f'<text class="halo" x="{beside:g}" y="{y - 6:g}" text-anchor="{anchor}">{name}</text>'
    return content + labels, _kinds(points)


def _distribution(scene: _Scene) -> Drawn:
    points = [point for point in scene.points() if point[1]["system_kind"] != "control"]
    if not points:
        return Drawn(None, scene.words["none_value"])
    chosen = [key for key, _, _ in points if scene.pinned(key)] + [key for key, _, _ in points if not scene.pinned(key)]
    items = scene.folder.item_values(scene.settled, scene.of, [key[0] for key in chosen[:MOST_SPREADS]])
    values = sorted(value for _, _, value in points)
    systems = [(scene.settled.board.names[system], item_values) for system, item_values in items.items()]
    caption = scene.words["distribution" if systems else "distribution_systems"].format(
        scene.title(scene.of), len(points)
    )
    svg = spread(values, systems, scene.head(), scene.words["of_systems"].format(len(values)), caption)
    slice_ = scene.settled.view.slice
    notes = (scene.words["items_all"],) if systems and slice_ and not slice_.startswith("category=") else ()
    places = decimals(values)
    rows = [(scene.words["systems"], values), *systems]
    table = tuple(
        (name, str(len(item_values)), *(value_text(number, None, None, places) for number in five_numbers(item_values)))
        for name, item_values in rows
    )
    words = scene.words
    headers = (words["system"], words["items"], words["least"], words["quartile1"], words["median"], words["quartile3"])
    return Drawn(Picture(svg, caption, notes, (*headers, words["most"]), table))


def _radar(scene: _Scene) -> Drawn:
    words, board = scene.words, scene.settled.board
    axes = radar.spokes(scene.settled.columns, board, scene.settled.protocols)
    if len(axes) < radar.FEWEST:
        return Drawn(None, words["none_radar"])
    keys = _radar_keys(scene)
    if not keys:
        return Drawn(None, words["none_value"])
    systems = [(scene.name(key), tuple(_on_axis(scene, axis, key) for axis in axes)) for key in keys]
    titled = [(scene.title(axis.column), axis) for axis in axes]
    rows = [(name, *(MISSING if value is None else f"{value:.2f}" for value in values)) for name, values in systems]
    headers = (words["system"], *(title for title, _ in titled))
    svg = radar.draw([title for title, _ in titled], radar.Series.of_systems(systems), words["radar"])
    return Drawn(Picture(svg, words["radar"], _radar_notes(scene, titled), headers, tuple(rows)))


def _radar_keys(scene: _Scene) -> list[Key]:
    """Return the rows on the radar: pinned ones, else the first three that are not controls."""
    systems = scene.settled.board.systems
    first = [key for key in scene.order if systems[key[0]]["system_kind"] != "control"][:3]
    return ([key for key in scene.order if scene.pinned(key)] or first)[:MOST_SERIES]


def _on_axis(scene: _Scene, axis: radar.RadarAxis, key: Key) -> float | None:
    """Return the position of a row on an axis, from 1 to 5; None where it has no value."""
    row = scene.settled.sheet.rows(axis.column.id).get(key)
    value = number_or_none(row["value"]) if row else None
    return None if value is None else axis.at(value)


def _radar_notes(scene: _Scene, titled: Sequence[tuple[str, radar.RadarAxis]]) -> tuple[str, ...]:
    """Describe how the figures are placed on their axes, a sentence for each way."""
    words = scene.words
    breakdowns = {name.partition("=")[0] for name in scene.settled.board.slices} & set(radar.SCENARIOS)
    names = ", ".join(words["breakdowns"].get(name, name) for name in sorted(breakdowns))
    over = words["radar_slices"].format(names) if breakdowns else ""
    notes = []
    for way, text in (("as it is", "radar_as_is"), ("shifted", "radar_shifted"), ("spanned", "radar_spanned")):
        titles = ", ".join(title for title, axis in titled if axis.way == way)
        if titles:
            notes.append(words[text].format(*([over] if way == "spanned" else []), titles))
    return (*notes, words["radar_pinned"])


def _kinds(points: Sequence[tuple[Key, Row, float]]) -> list[str]:
    kinds = {kind_of(row) for _, row, _ in points}
    return [kind for kind in SHAPES if kind in kinds]


def _table_of(
    scene: _Scene, points: Sequence[tuple[Key, Row, float]], more: Mapping[str, Mapping[Key, str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headers and rows of the table beside a picture."""
    words = scene.words
    places = decimals(value for _, _, value in points)
    rows = []
    for key, row, _ in points[:TABLE]:
        parts = cell(row, places)
        rows.append(
            (scene.name(key), *(texts[key] for texts in more.values()), parts.number, parts.interval, parts.standing)
        )
    return (words["system"], *more, scene.head(), words["interval"], words["standing"]), tuple(rows)


_WAYS: dict[str, Callable[[_Scene], Drawn]] = {
    "intervals": _intervals,
    "radar": _radar,
    "size": _size,
    "rtf": _rtf,
    "distribution": _distribution,
    "time": _time,
}
