"""Draw values with their intervals: a ranking, best on top; and pairs of values by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podeval.plots.axis import Axis
from podeval.plots.svg import SHAPES, Frame, render_axis_below, render_legend, render_mark, render_text, render_tooltip

EDGE = 28
"""Left and right of an axis, where half of its first and last label is."""
MOST_PAIRS = 120
"""Most items that are drawn: those with the largest differences on either side."""
_STEP, _PAIR, _TOP = 34, 11, 26


@dataclass(frozen=True)
class IntervalRow:
    """One system: its name, its value with an interval if there is one, its kind (of `SHAPES`), and a note.

    The note is at the right end of the line, and the tooltip of the mark.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    note: str
    kind: str = "ranked"


def draw_intervals(
    rows: Sequence[IntervalRow], frame: Frame, axis_title: str = "", legend: Mapping[str, str] | None = None
) -> str:
    """Draw every row as a dot with its interval, its name above.

    Args:
        rows: the rows, in the order from top to bottom.
        frame: the frame of the picture.
        axis_title: the name of the value.
        legend: words for the kinds; without it there is no legend.
    """
    bounds = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    axis = Axis.over(bounds, EDGE, frame.width - EDGE)
    content, bottom, right = "", 12 + _STEP * len(rows), frame.width - 14
    for number, row in enumerate(rows):
        y = 30 + _STEP * number
        rule = ""
        if row.low is not None and row.high is not None:
            ends = "".join(f"M{axis.at(end):g} {y - 5}v10" for end in (row.low, row.high))
            rule = f'<path class="rule" d="M{axis.at(row.low):g} {y}H{axis.at(row.high):g}{ends}"/>'
        texts = render_text(14, y - 10, row.name) + render_text(right, y - 10, row.note, "quiet", "end")
        content += f"<g>{texts}{rule}{render_mark(SHAPES[row.kind], axis.at(row.value), y, 5, row.kind, row.note)}</g>"
    content = render_axis_below(axis, 6, bottom, axis_title) + content
    if legend is not None:
        kinds = [kind for kind in legend if any(row.kind == kind for row in rows)]
        content += render_legend(kinds, legend, bottom + 42, frame.font_size)
    return frame.render(bottom + (52 if legend is not None else 20), content)


def draw_pairs(pairs: Sequence[tuple[str, float, float]], frame: Frame, some: str = "") -> str:
    """Draw a line for each item from the value of `a` to that of `b`; where `b` is furthest above `a` comes last.

    Args:
        pairs: the title of an item, the value of `a`, the value of `b`.
        frame: the frame of the picture.
        some: what is said if not all items are drawn, with places `{shown}` and `{items}`.
    """
    rows = sorted(pairs, key=lambda pair: pair[2] - pair[1])
    if len(rows) > MOST_PAIRS:
        rows = [*rows[: MOST_PAIRS // 2], *rows[-MOST_PAIRS // 2 :]]
    axis = Axis.over([value for _, a, b in rows for value in (a, b)], 14, frame.width - 14)
    bottom = _TOP + _PAIR * len(rows) + 4
    lines = ""
    for number, (title, a, b) in enumerate(rows):
        y = _TOP + _PAIR * (number + 0.5)
        marks = render_mark("square", axis.at(b), y, 3.5, "dot b") + render_mark("circle", axis.at(a), y, 4, "dot a")
        lines += f'<g>{render_tooltip(title)}<path class="rule" d="M{axis.at(a)} {y:g}H{axis.at(b)}"/>{marks}</g>'
    names = render_mark("circle", 19, 12, 5, "dot a") + render_text(30, 16, "A")
    names += render_mark("square", 59, 12, 5, "dot b") + render_text(70, 16, "B")
    if len(rows) < len(pairs):
        names += render_text(frame.width - 14, 16, some.format(shown=len(rows), items=len(pairs)), "quiet", "end")
    return frame.render(bottom + 20, names + render_axis_below(axis, _TOP - 4, bottom) + lines)
