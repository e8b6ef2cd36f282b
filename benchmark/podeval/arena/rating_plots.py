"""Draw a ranking as SVG: every system a dot with its 95 % interval, best on top, names above their lines.

The picture is for a page: colours are classes that the page's style fills for light and dark, and 360 units are wide
enough to read every word on a phone. Whatever colour shows, shape shows too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 360
_ROW, _TOP, _SIDE = 44, 26, 14


@dataclass(frozen=True)
class Dot:
    """One system: name, rating in Elo points, its interval where there is one, its ranks, and its kind."""

    name: str
    rating: float
    low: float | None
    high: float | None
    ranks: str
    kind: str = "system"


def draw_ladder(dots: Sequence[Dot], title: str) -> str:
    """Draw the picture, for a page that styles the classes `axis`, `rule`, `dot` and `dot control`.

    Args:
        dots: the systems, best first.
        title: text for screen readers.
    """
    bounds = [value for dot in dots for value in (dot.rating, dot.low, dot.high) if value is not None]
    step = _step(max(bounds, default=0.0) - min(bounds, default=0.0))
    least = step * math.floor(min(bounds, default=0.0) / step)
    most = max(least + step, step * math.ceil(max(bounds, default=0.0) / step))
    high = _TOP + _ROW * len(dots) + 8

    def across(value: float) -> float:
        return round(_SIDE + (WIDTH - 2 * _SIDE) * (value - least) / (most - least), 1)

    marks = [least + step * number for number in range(round((most - least) / step) + 1)]
    axis = "".join(
        f'<line x1="{across(mark)}" x2="{across(mark)}" y1="{_TOP - 6}" y2="{high}"/>'
        f'<text x="{across(mark)}" y="{_TOP - 12}" text-anchor="middle">{mark:g}</text>'
        for mark in marks
    )
    rows = "".join(_row(dot, _TOP + _ROW * line, across) for line, dot in enumerate(dots))
    return (
        f'<svg class="ladder" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" role="img" '
        f'font-size="12"><title>{escape(title)}</title><g class="axis">{axis}</g>{rows}</svg>'
    )


def _row(dot: Dot, top: int, across: Callable[[float], float]) -> str:
    middle, x = top + 30, across(dot.rating)
    shape = (
        f'<rect class="dot control" x="{x - 5:g}" y="{middle - 5}" width="10" height="10"/>'
        if dot.kind == "control"
        else f'<circle class="dot" cx="{x}" cy="{middle}" r="6"/>'
    )
    rule = ""
    if dot.low is not None and dot.high is not None:
        low, high = across(dot.low), across(dot.high)
        ends = "".join(f"M{end} {middle - 6}v12" for end in (low, high))
        rule = f'<path class="rule" d="M{low} {middle}H{high}{ends}"/>'
    name = dot.name if len(dot.name) <= 40 else dot.name[:39] + "…"
    return (
        f'<g><text x="{_SIDE}" y="{top + 16}"><tspan font-weight="600">{escape(dot.ranks)}</tspan> '
        f"{escape(name)}</text>{rule}{shape}</g>"
    )


def _step(span: float) -> float:
    """Return a round distance between the axis's marks that gives four to nine of them."""
    raw = max(span, 1.0) / 5
    power = 10 ** math.floor(math.log10(raw))
    return float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw))
