"""Pictures of a board view, each with a caption, notes on omitted data, and a table of its data.

A picture shows only rows of the view, so it covers one profile, and one protocol for each metric; pinned systems are
always shown and marked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from podeval.board.columns import (
    Column,
    Row,
    build_cell,
    format_standing,
    format_value,
    to_number,
)
from podeval.board.item_results import read_item_values
from podeval.board.runs_folder import Key, RunsFolder
from podeval.board.scene import (
    FEWEST_AXES,
    NARROW,
    Drawn,
    Picture,
    PictureSize,
    Point,
    Scene,
    choose_radar_axes,
    choose_radar_keys,
    format_share,
    has_radar,
    locate,
)
from podeval.board.view import PLOTS, ResolvedView
from podeval.plots.charts import (
    LEFT,
    RIGHT,
    BoxRow,
    IntervalRow,
    ScatterPoint,
    Series,
    compute_five_numbers,
    draw_boxes,
    draw_intervals,
    draw_radar,
    draw_scatter,
)
from podeval.plots.lines import Density, draw_densities
from podeval.plots.svg import SERIES, Axis, shorten

MOST_WHISKERS, FEW = 24, 40
TABLE = 60
"""Maximum number of rows in a picture's table; the board's own table contains all rows."""


def get_kind(row: Row) -> str:
    """Return the kind of a row, as one of the kinds that have their own marker shape."""
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
    link: Callable[[str], str] = lambda system: "",
) -> Drawn:
    """Draw the picture that a view requests.

    Args:
        settled: the view.
        order: the rows of the view, in table order.
        folder: the folder of runs, for per-item results.
        words: the section `plot` of the board's texts, with the section `breakdowns`.
        title: function that returns the title of a column.
        size: the size of the picture.
        link: function that returns the address of a system's page; empty if there is none.
    """
    of = next((column for column in settled.columns if column.id == settled.view.of), None)
    if of is None:
        return Drawn(None, words["none_value"])
    scene = Scene(settled, order, folder, words, title, of, size, link)
    available = list_offered_plots(settled)
    plot = settled.view.plot if settled.view.plot in available else next(iter(available), settled.view.plot)
    drawn, beyond = replace(_WAYS[plot](scene), plot=plot), len(scene.every_point) - len(scene.points())
    if drawn.picture is None or not beyond or plot in ("radar", "distribution", "density"):
        return drawn
    notes = (*drawn.picture.notes, words["beyond"].format(beyond))
    return replace(drawn, picture=replace(drawn.picture, notes=notes))


def list_offered_plots(settled: ResolvedView) -> tuple[str, ...]:
    """Return the plots that would not be empty for a view."""
    sheet = settled.sheet
    rows = {key: row for key, row in sheet.rows(settled.view.of).items() if to_number(row["value"]) is not None}
    visible = [key for key in settled.keys if key in rows]
    competing = [key for key in visible if rows[key]["system_kind"] != "control"]
    rtf = sheet.rows("rtf.rtf") if "rtf" in settled.protocols else {}
    has = {
        "intervals": bool(visible),
        "radar": has_radar(settled),
        "size": sum(bool((fact := settled.facts.get(key[0])) and fact.size) for key in visible) > 1,
        "rtf": sum((to_number(rtf[key]["value"]) or 0) > 0 for key in visible if key in rtf) > 1,
        "distribution": len(competing) > 1,
        "density": len(competing) > 1 and sheet.rows(settled.view.of)[competing[0]]["provenance"] != "reported",
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
        of = build_cell(row, scene.of.choose_decimals([value]))
        name = ("★ " if scene.pinned(key) else "") + shorten(scene.name(key), scene.size.names - 4)
        note = str(replace(of, standing=scene.say_standing(of)))
        low, high = to_number(row["low"]), to_number(row["high"])
        rows.append(IntervalRow(name, value, low, high, note, get_kind(row), scene.link(key[0])))
    has_intervals = any(row.low is not None for row in rows)
    caption = scene.words["intervals" if has_intervals else "no_intervals"].format(scene.title(scene.of))
    svg = draw_intervals(rows, scene.frame(caption), scene.head(), scene.words["shapes"])
    notes = (scene.words["first"].format(len(kept), len(points)),) if len(kept) < len(points) else ()
    return Drawn(Picture(svg, caption, notes, *_table_of(scene, points, {})))


def _size(scene: Scene) -> Drawn:
    sizes = {key: fact.size for key in scene.order if (fact := scene.settled.facts.get(key[0])) and fact.size}
    return _against(scene, sizes, "size", "{:,.0f}")


def _rtf(scene: Scene) -> Drawn:
    rows = scene.settled.sheet.rows("rtf.rtf") if "rtf" in scene.settled.protocols else {}
    values = {key: to_number(row["value"]) or 0.0 for key, row in rows.items()}
    return _against(scene, {key: value for key, value in values.items() if value > 0}, "rtf", "{:.3g}")


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
    """Return the times at which the best value among ranked systems changed, each with the new best value."""
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
    """Draw the figure against another quantity; label the pinned systems, or all systems if their names fit."""
    labelled = {key for key, _, _ in (points if len(points) <= FEW else ())}
    drawn = [
        ScatterPoint(
            others[key],
            value,
            get_kind(row),
            f"{scene.name(key)}: {build_cell(row, scene.of.choose_decimals([value]))}",
            scene.name(key) if key in labelled or scene.pinned(key) else "",
            scene.pinned(key),
            (to_number(row["low"]), to_number(row["high"])),
            scene.link(key[0]),
        )
        for key, row, value in points
    ]
    titles, shapes = (title, scene.head()), scene.words["shapes"]
    return draw_scatter(drawn, across, scene.frame(caption), titles, scene.size.field, shapes, steps)


def _table_of(
    scene: Scene, points: Sequence[Point], more: Mapping[str, Mapping[Key, str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headers and rows of the table next to a picture."""
    words = scene.words
    places = scene.of.choose_decimals(value for _, _, value in points)
    rows = []
    for key, row, _ in points[:TABLE]:
        cell = build_cell(row, places)
        texts = (of_key[key] for of_key in more.values())
        rows.append((scene.name(key), *texts, cell.number, cell.interval, scene.say_standing(cell)))
    return (words["system"], *more, scene.head(), words["interval"], words["standing"]), tuple(rows)


def _radar(scene: Scene) -> Drawn:
    """Draw the radar of the pinned systems, or of the first three systems; if there are too few figures, return the
    reason.
    """
    words, settled = scene.words, scene.settled
    keys = choose_radar_keys(settled, scene.order, 3)
    axes = [
        axis
        for axis in choose_radar_axes(settled.columns)
        if any(locate(scene.settled, axis, key)[0] is not None for key in keys)
    ]
    if len(axes) < FEWEST_AXES:
        return Drawn(None, words["none_radar"])
    titles = [scene.title(axis.column) for axis in axes]
    systems, rows = [], []
    for key in keys:
        places = [locate(scene.settled, axis, key) for axis in axes]
        systems.append((scene.name(key), tuple(at for at, _ in places), tuple(span for _, span in places)))
        rows.append((scene.name(key), *(format_share(*place) for place in places)))
    on_axes = {axis.column.id for axis in axes}
    without = [
        scene.title(column) for column in settled.columns if column.better != "informative" and column.id not in on_axes
    ]
    notes = [words["radar_without"].format(", ".join(without))] if without else []
    svg = draw_radar(titles, Series.of_systems(systems), words["radar"], scene.size.radar)
    return Drawn(Picture(svg, words["radar"], (*notes, words["radar_pinned"]), (words["system"], *titles), tuple(rows)))


# Pictures of the distribution of item values: boxes, and densities.

MOST_SPREADS = 8
FEWEST_ITEMS = 4
"""Minimum number of items for a density."""
HEADS = ("system", "items", "least", "quartile1", "median", "quartile3", "most")


def draw_distribution(scene: Scene) -> Drawn:
    """Draw the values of all systems, and boxes for the item values of the first few systems."""
    points = [point for point in scene.points() if point[1]["system_kind"] != "control"]
    if not points:
        return Drawn(None, scene.words["none_value"])
    items = _read_items(scene, points, MOST_SPREADS)
    values = sorted(value for _, _, value in points)
    words = scene.words
    systems = [BoxRow(scene.settled.board.names[system], of_items) for system, of_items in items.items()]
    caption = words["distribution" if systems else "distribution_systems"].format(scene.title(scene.of), len(points))
    everybody = BoxRow(words["systems"], values, words["of_systems"].format(len(values)))
    svg = draw_boxes(systems, scene.frame(caption), scene.head(), histogram=everybody)
    slice_ = scene.settled.view.slice
    notes = (words["items_all"],) if systems and slice_ and not slice_.startswith("category=") else ()
    places = scene.of.choose_decimals(values)
    table = []
    for row in (everybody, *systems):
        numbers = (format_value(number, None, None, places) for number in compute_five_numbers(row.values))
        table.append((row.name, str(len(row.values)), *numbers))
    return Drawn(Picture(svg, caption, notes, tuple(words[head] for head in HEADS), tuple(table)))


def draw_density(scene: Scene) -> Drawn:
    """Draw the density of item values, with a curve for each of the first systems, as in PodEval's Figure 5.

    If the metric has an ideal range, this range is shaded behind the curves.
    """
    points = [point for point in scene.points() if point[1]["system_kind"] != "control"]
    items = {system: of for system, of in _read_items(scene, points, len(SERIES)).items() if len(of) >= FEWEST_ITEMS}
    if not items:
        return Drawn(None, scene.words["none_density"].format(FEWEST_ITEMS))
    words, names = scene.words, scene.settled.board.names
    caption = words["density"].format(scene.title(scene.of))
    densities = [Density(names[system], of_items) for system, of_items in items.items()]
    svg = draw_densities(densities, scene.frame(caption), scene.head(), scene.of.ideal)
    places = scene.of.choose_decimals([value for one in densities for value in one.values])
    rows = []
    for one in densities:
        numbers = [format_value(number, None, None, places) for number in compute_five_numbers(one.values)]
        rows.append((one.name, str(len(one.values)), *numbers))
    return Drawn(Picture(svg, caption, (), tuple(words[head] for head in HEADS), tuple(rows)))


def _read_items(scene: Scene, points: Sequence[Point], most: int) -> dict[str, list[float]]:
    """Read the item values of the first systems, with pinned systems before others."""
    chosen = [key for key, _, _ in points if scene.pinned(key)] + [key for key, _, _ in points if not scene.pinned(key)]
    filters = _select_items(scene.settled, scene.of.metric)
    return read_item_values(scene.folder, filters, scene.of.key, [key[0] for key in chosen[:most]])


def _select_items(settled: ResolvedView, metric: str) -> dict[str, str]:
    """Return the filters for a view's items; the only slices that are available for items are those by category."""
    view, protocol = settled.view, settled.protocols[metric]
    benchmark, _, split = view.board.partition("/")
    filters = {"benchmark": benchmark, "split": split, "profile": view.profile, "metric": metric, "protocol": protocol}
    if view.slice.startswith("category="):
        filters["category"] = view.slice.removeprefix("category=")
    return filters


_WAYS: dict[str, Callable[[Scene], Drawn]] = {
    "intervals": _intervals,
    "radar": _radar,
    "size": _size,
    "rtf": _rtf,
    "distribution": draw_distribution,
    "density": draw_density,
    "time": _time,
}
