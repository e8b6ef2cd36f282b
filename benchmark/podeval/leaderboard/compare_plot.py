"""Draw two systems' values by item as SVG: one line for each item, from one system's value to the other's.

The picture is for a page, whose style fills the classes for light and dark; whatever colour shows, shape shows too. 360
units are wide enough to read every word on a phone.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from podeval.leaderboard.columns import Column
from podeval.leaderboard.compare import SystemComparison
from podeval.plots.axis import Axis
from podeval.plots.svg import WIDTH, render_picture

MOST = 120
"""Most items that are drawn: those with the largest differences on either side."""

_ROW, _TOP, _SIDE = 11, 56, 14


def draw_differences(comparison: SystemComparison, column: Column, texts: Mapping[str, str]) -> str:
    """Draw one column, the items where a is furthest above b on top.

    Args:
        comparison: the two systems.
        column: the column to draw.
        texts: `title`, for screen readers, and `some`, shown where not all items are drawn; with places for the
            column's name and for numbers of items.
    """
    rows = [(item, *item.values(column)) for item in comparison.items]
    drawn = [(item, a, b) for item, a, b in rows if a is not None and b is not None]
    drawn.sort(key=lambda row: row[2] - row[1])
    count = len(drawn)
    if count > MOST:
        drawn = [*drawn[: MOST // 2], *drawn[-MOST // 2 :]]
    axis = Axis.over([value for _, a, b in drawn for value in (a, b)], _SIDE, WIDTH - _SIDE)
    high = _TOP + _ROW * len(drawn) + 10
    lines = "".join(
        _line(item.title, a, b, _TOP + _ROW * number + _ROW / 2, axis) for number, (item, a, b) in enumerate(drawn)
    )
    caption = texts["title"].format(column=column.header_in(texts.get("language", "en")), items=count)
    some = texts["some"].format(shown=len(drawn), items=count) if count > len(drawn) else ""
    names = (
        f'<circle class="dot a" cx="{_SIDE + 5}" cy="12" r="5"/><text x="{_SIDE + 16}" y="16">A</text>'
        f'<rect class="dot b" x="{_SIDE + 40}" y="7" width="10" height="10"/><text x="{_SIDE + 56}" y="16">B</text>'
        f'<text class="quiet" x="{WIDTH - _SIDE}" y="16" text-anchor="end">{escape(some)}</text>'
    )
    marks = f'<g class="axis">{axis.render(_TOP - 4, high)}</g>'
    return render_picture(caption, high, f"{names}{marks}{lines}", css_class="pairs", font_size=12)


def _line(title: str, a: float, b: float, y: float, axis: Axis) -> str:
    x, other = axis.at(a), axis.at(b)
    return (
        f'<g><title>{escape(title)}</title><path class="rule" d="M{x} {y:g}H{other}"/>'
        f'<rect class="dot b" x="{other - 3.5:g}" y="{y - 3.5:g}" width="7" height="7"/>'
        f'<circle class="dot a" cx="{x}" cy="{y:g}" r="4"/></g>'
    )
