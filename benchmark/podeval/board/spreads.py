"""Pictures of how the values of single items are spread: boxes, and densities."""

from __future__ import annotations

from collections.abc import Sequence

from podeval.board.columns import format_value
from podeval.board.item_results import read_item_values
from podeval.board.scene import Drawn, Picture, Point, Scene
from podeval.board.view import ResolvedView
from podeval.plots.charts import BoxRow, compute_five_numbers, draw_boxes
from podeval.plots.lines import Density, draw_densities
from podeval.plots.svg import SERIES

MOST_SPREADS = 8
FEWEST_ITEMS = 4
"""Fewest items that have a density."""
HEADS = ("system", "items", "least", "quartile1", "median", "quartile3", "most")


def draw_distribution(scene: Scene) -> Drawn:
    """Draw the values of all systems, and those of the items of the first ones as boxes."""
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
    """Draw how densely the values of the items lie, a curve for each of the first systems, as PodEval's Figure 5 does.

    The range in which a figure is best lies behind the curves.
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
    """Read the values of the items of the first systems, pinned ones before others."""
    chosen = [key for key, _, _ in points if scene.pinned(key)] + [key for key, _, _ in points if not scene.pinned(key)]
    filters = _select_items(scene.settled, scene.of.metric)
    return read_item_values(scene.folder, filters, scene.of.key, [key[0] for key in chosen[:most]])


def _select_items(settled: ResolvedView, metric: str) -> dict[str, str]:
    """Return the filters of a view's items; a slice by category is applied, any other is not known of items."""
    view, protocol = settled.view, settled.protocols[metric]
    benchmark, _, split = view.board.partition("/")
    filters = {"benchmark": benchmark, "split": split, "profile": view.profile, "metric": metric, "protocol": protocol}
    if view.slice.startswith("category="):
        filters["category"] = view.slice.removeprefix("category=")
    return filters
