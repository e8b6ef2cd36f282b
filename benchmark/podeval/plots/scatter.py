"""Draw systems in a field of two axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podeval.plots.axis import Axis
from podeval.plots.svg import (
    SHAPES,
    Frame,
    render_axis_below,
    render_axis_beside,
    render_legend,
    render_mark,
    render_text,
    shorten,
)

LEFT, RIGHT = 56, 28
"""Margins of the field."""
_TOP = 28


@dataclass(frozen=True)
class Point:
    """One system: its place on both axes, its kind (of `SHAPES`), its tooltip; and its name if that is written."""

    x: float
    y: float
    kind: str
    tooltip: str
    name: str = ""
    pinned: bool = False


def draw_scatter(
    points: Sequence[Point],
    across: Axis,
    frame: Frame,
    titles: tuple[str, str],
    height: float,
    legend: Mapping[str, str],
    steps: Sequence[tuple[float, float]] = (),
) -> str:
    """Draw the points.

    Args:
        points: the points; the first is in front.
        across: the horizontal axis, from `LEFT` to the width of the frame less `RIGHT`.
        frame: the frame of the picture.
        titles: the titles of the horizontal and of the vertical axis.
        height: the height of the field.
        legend: words for the kinds.
        steps: places on both axes where a line of steps, such as the best so far, begins and changes.
    """
    up = Axis.over([point.y for point in points], height, _TOP)
    content = render_axis_below(across, _TOP, height, titles[0])
    content += render_axis_beside(up, LEFT, frame.width - RIGHT, titles[1])
    if steps:
        path = "".join(f"H{across.at(x):g}V{up.at(y):g}" for x, y in steps[1:])
        start = f"M{across.at(steps[0][0]):g} {up.at(steps[0][1]):g}"
        content += f'<path class="best" d="{start}{path}H{across.end:g}"/>'
    labels = ""
    for point in reversed(points):
        x, y = across.at(point.x), up.at(point.y)
        css = f"{point.kind} pinned" if point.pinned else point.kind
        content += render_mark(SHAPES[point.kind], x, y, 4, css, point.tooltip)
        if point.name:
            beside, anchor = (x - 7, "end") if x > frame.width / 2 else (x + 7, "start")
            labels += render_text(beside, y - 6, shorten(point.name, 22), "halo", anchor)
    kinds = [kind for kind in legend if any(point.kind == kind for point in points)]
    return frame.render(height + 52, content + labels + render_legend(kinds, legend, height + 42, frame.font_size))
