"""Draw the pictures of a view of the board, each with a caption, notes on what it leaves out, and a table of its data.

A picture draws only rows that the view shows, so it has one profile and one protocol for each metric; the systems that
a reader pinned are always drawn and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from typing import Any

from podeval.leaderboard.columns import Column
from podeval.leaderboard.distribution import compute_five_numbers, draw_spread
from podeval.leaderboard.query import Key
from podeval.leaderboard.radar_picture import draw_radar, has_radar
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.scene import NARROW, PAGE, Drawn, Picture, PictureSize, Scene
from podeval.leaderboard.table import Row, build_cell, choose_decimals, format_standing, format_value, to_number
from podeval.leaderboard.view import PLOTS, ResolvedView
from podeval.plots.axis import Axis
from podeval.plots.svg import (
    SHAPES,
    Days,
    Logarithmic,
    render_axis_below,
    render_axis_beside,
    render_legend,
    render_mark,
    render_picture,
    shorten,
)

EDGE = 28
"""Left and right of an axis, where half of its first and last label stands."""
BESIDE = 56
"""Left of an upright axis, where its labels stand."""
MOST_WHISKERS, MOST_SPREADS, FEW = 24, 8, 40
TABLE = 60
"""Most rows of a picture's table; the board's own table has all."""

__all__ = ["NARROW", "PAGE", "draw", "get_kind", "list_offered_plots"]


def get_kind(row: Row) -> str:
    """Return the kind of a row, one of `SHAPES`."""
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
        size: how large.
    """
    of = next((column for column in settled.columns if column.id == settled.view.of), None)
    if of is None:
        return Drawn(None, words["none_value"])
    scene = Scene(settled, order, folder, words, title, of, size)
    available = list_offered_plots(settled)
    plot = settled.view.plot if settled.view.plot in available else next(iter(available), settled.view.plot)
    return replace(_WAYS[plot](scene), plot=plot)


def _intervals(scene: Scene) -> Drawn:
    points = sorted(scene.points(), key=lambda point: scene.of.badness(point[2]))
    if not points:
        return Drawn(None, scene.words["none_value"])
    kept = [point for number, point in enumerate(points) if number < MOST_WHISKERS or scene.pinned(point[0])]
    ends = [[value, to_number(row["low"]), to_number(row["high"])] for _, row, value in kept]
    axis = Axis.over([end for three in ends for end in three if end is not None], EDGE, scene.size.width - EDGE)
    step, top = 34, 6
    content = ""
    for number, ((key, row, value), (_, low, high)) in enumerate(zip(kept, ends, strict=True)):
        y = top + step * number + 24
        rule = ""
        if low is not None and high is not None:
            bars = "".join(f"M{axis.at(end):g} {y - 5}v10" for end in (low, high))
            rule = f'<path class="rule" d="M{axis.at(low):g} {y}H{axis.at(high):g}{bars}"/>'
        kind = get_kind(row)
        of = build_cell(row, choose_decimals([value]))
        text = str(replace(of, standing=scene.say_standing(of)))
        name = ("★ " if scene.pinned(key) else "") + shorten(scene.name(key), scene.size.names - 4)
        dot = render_mark(SHAPES[kind], axis.at(value), y, 5, kind, text)
        right = scene.size.width - 14
        content += (
            f'<g><text x="14" y="{y - 10}">{escape(name)}</text><text class="quiet" x="{right}" y="{y - 10}" '
            f'text-anchor="end">{escape(text)}</text>{rule}{dot}</g>'
        )
    bottom = top + step * len(kept) + 6
    kinds = _kinds(kept)
    has_intervals = any(low is not None for _, low, _ in ends)
    caption = scene.words["intervals" if has_intervals else "no_intervals"].format(scene.title(scene.of))
    content = render_axis_below(axis, top, bottom, scene.head()) + content
    svg = _picture(
        scene,
        caption,
        bottom + 52,
        content + render_legend(kinds, scene.words["shapes"], bottom + 42, scene.size.font_size),
    )
    notes = (scene.words["first"].format(len(kept), len(points)),) if len(kept) < len(points) else ()
    return Drawn(Picture(svg, caption, notes, *_table_of(scene, points, {})))


def _size(scene: Scene) -> Drawn:
    sizes = {key: fact.size for key in scene.order if (fact := scene.settled.facts.get(key[0])) and fact.size}
    return _against(scene, sizes, "size")


def _rtf(scene: Scene) -> Drawn:
    protocols = scene.settled.protocols
    if "rtf" not in protocols:
        return Drawn(None, scene.words["none_rtf"])
    values = {key: to_number(row["value"]) for key, row in scene.settled.sheet.rows("rtf.rtf").items()}
    return _against(scene, {key: value for key, value in values.items() if value is not None and value > 0}, "rtf")


def _against(scene: Scene, others: Mapping[Key, float], what: str) -> Drawn:
    every = scene.points()
    points = [point for point in every if point[0] in others]
    if not points:
        return Drawn(None, scene.words[f"none_{what}"])
    axis = Logarithmic.over([others[key] for key, _, _ in points], BESIDE, scene.size.width - EDGE)
    svg, kinds = _field(scene, points, {key: axis.at(value) for key, value in others.items()})
    caption = scene.words[f"against_{what}"].format(scene.title(scene.of))
    content = _field_frame(scene, axis, scene.words[what], svg, kinds)
    notes = (scene.words[f"without_{what}"].format(len(every) - len(points)),) if len(points) < len(every) else ()
    texts = {key: f"{others[key]:,.0f}" if what == "size" else f"{others[key]:.3g}" for key, _, _ in points}
    return Drawn(
        Picture(
            _picture(scene, caption, scene.size.field + 52, content),
            caption,
            notes,
            *_table_of(scene, points, {scene.words[what]: texts}),
        )
    )


def _time(scene: Scene) -> Drawn:
    points = [point for point in scene.points() if point[1]["created"]]
    if not points:
        return Drawn(None, scene.words["none_time"])
    times = {key: datetime.fromisoformat(row["created"]).timestamp() for key, row, _ in points}
    axis = Days.over(list(times.values()), BESIDE, scene.size.width - EDGE)
    best = _best_so_far(scene, points, times)
    svg, kinds = _field(scene, points, {key: axis.at(time) for key, time in times.items()}, best, axis)
    caption = scene.words["time"].format(scene.title(scene.of))
    content = _field_frame(scene, axis, scene.words["measured"], svg, kinds)
    texts = {key: str(row["created"])[:10] for key, row, _ in points}
    newest = sorted(points, key=lambda point: times[point[0]], reverse=True)
    return Drawn(
        Picture(
            _picture(scene, caption, scene.size.field + 52, content),
            caption,
            (),
            *_table_of(scene, newest, {scene.words["measured"]: texts}),
        )
    )


def _best_so_far(
    scene: Scene, points: Sequence[tuple[Key, Row, float]], times: Mapping[Key, float]
) -> list[tuple[float, float]]:
    """Return the times at which the best value among ranked systems changed, with the new best."""
    best: list[tuple[float, float]] = []
    ranked = [point for point in points if get_kind(point[1]) == "ranked"]
    if scene.of.better == "informative":
        return best
    for key, _, value in sorted(ranked, key=lambda point: times[point[0]]):
        if not best or scene.of.badness(value) < scene.of.badness(best[-1][1]):
            best.append((times[key], value))
    return best


def _field(
    scene: Scene,
    points: Sequence[tuple[Key, Row, float]],
    places: Mapping[Key, float],
    best: Sequence[tuple[float, float]] = (),
    days: Days | None = None,
) -> tuple[str, list[str]]:
    """Draw marks at their places across and their values upward; pinned ones have names, and the first three of few."""
    axis = Axis.over([value for _, _, value in points], scene.size.field, 28)
    content = render_axis_beside(axis, BESIDE, scene.size.width - EDGE, scene.head())
    if best and days:
        start, value = best[0]
        path = f"M{days.at(start):g} {axis.at(value):g}"
        path += "".join(f"H{days.at(time):g}V{axis.at(then):g}" for time, then in best[1:])
        content += f'<path class="best" d="{path}H{days.end:g}"/>'
    few = points[:3] if len(points) <= FEW else ()
    labelled = {point[0] for point in few} | {point[0] for point in points if scene.pinned(point[0])}
    labels = ""
    for key, row, value in reversed(points):
        kind, x, y = get_kind(row), places[key], axis.at(value)
        label = f"{scene.name(key)}: {build_cell(row, choose_decimals([value]))}"
        content += render_mark(SHAPES[kind], x, y, 4, f"{kind} pinned" if scene.pinned(key) else kind, label)
        if key in labelled:
            beside, anchor = (x - 7, "end") if x > scene.size.width / 2 else (x + 7, "start")
            name = escape(shorten(scene.name(key), 22))
            labels += f'<text class="halo" x="{beside:g}" y="{y - 6:g}" text-anchor="{anchor}">{name}</text>'
    return content + labels, _kinds(points)


def _field_frame(scene: Scene, axis: Logarithmic | Days, title: str, field: str, kinds: Sequence[str]) -> str:
    """Return a field of marks with its axis below and the legend of its shapes."""
    bottom = scene.size.field
    return (
        render_axis_below(axis, 28, bottom, title)
        + field
        + render_legend(kinds, scene.words["shapes"], bottom + 42, scene.size.font_size)
    )


def _picture(scene: Scene, caption: str, height: float, content: str) -> str:
    return render_picture(caption, height, content, width=scene.size.width, font_size=scene.size.font_size)


def _distribution(scene: Scene) -> Drawn:
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
    count = scene.words["of_systems"].format(len(values))
    svg = draw_spread(values, systems, scene.head(), count, caption, scene.size.width, scene.size.font_size)
    slice_ = scene.settled.view.slice
    notes = (scene.words["items_all"],) if systems and slice_ and not slice_.startswith("category=") else ()
    places = choose_decimals(values)
    rows = [(scene.words["systems"], values), *systems]
    table = tuple(
        (
            name,
            str(len(item_values)),
            *(format_value(number, None, None, places) for number in compute_five_numbers(item_values)),
        )
        for name, item_values in rows
    )
    words = scene.words
    headers = (words["system"], words["items"], words["least"], words["quartile1"], words["median"], words["quartile3"])
    return Drawn(Picture(svg, caption, notes, (*headers, words["most"]), table))


def list_offered_plots(settled: ResolvedView) -> tuple[str, ...]:
    """Return the plots that would show something of a view."""
    sheet = settled.sheet
    rows = {key: row for key, row in sheet.rows(settled.view.of).items() if to_number(row["value"]) is not None}
    visible = [key for key in settled.keys if key in rows]
    competing = [key for key in visible if rows[key]["system_kind"] != "control"]
    rtf = sheet.rows("rtf.rtf") if "rtf" in settled.protocols else {}
    has = {
        "intervals": bool(visible),
        "radar": has_radar(settled),
        "size": any((fact := settled.facts.get(key[0])) and fact.size for key in visible),
        "rtf": any((to_number(rtf[key]["value"]) or 0) > 0 for key in visible if key in rtf),
        "distribution": len(competing) > 1,
        "time": len({str(rows[key]["created"])[:10] for key in visible} - {""}) > 1,
    }
    return tuple(name for name in PLOTS if has[name])


def _kinds(points: Sequence[tuple[Key, Row, float]]) -> list[str]:
    kinds = {get_kind(row) for _, row, _ in points}
    return [kind for kind in SHAPES if kind in kinds]


def _table_of(
    scene: Scene, points: Sequence[tuple[Key, Row, float]], more: Mapping[str, Mapping[Key, str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headers and rows of the table beside a picture."""
    words = scene.words
    places = choose_decimals(value for _, _, value in points)
    rows = []
    for key, row, _ in points[:TABLE]:
        parts = build_cell(row, places)
        rows.append(
            (
                scene.name(key),
                *(texts[key] for texts in more.values()),
                parts.number,
                parts.interval,
                scene.say_standing(parts),
            )
        )
    return (words["system"], *more, scene.head(), words["interval"], words["standing"]), tuple(rows)


_WAYS: dict[str, Callable[[Scene], Drawn]] = {
    "intervals": _intervals,
    "radar": draw_radar,
    "size": _size,
    "rtf": _rtf,
    "distribution": _distribution,
    "time": _time,
}
