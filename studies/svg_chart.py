"""Draw small multiples as plain SVG, without a library: a panel for each distortion, a line for each kind of speech.

The colours are Okabe and Ito's, which people with any colour vision can distinguish; each series also has its own mark.
The background is white, so the plots can be read on dark pages.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_WIDTH, _LEAST_WIDTH = 1000, 560
_PANEL_HEIGHT = 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 26, 44
_HEAD = 62

_Scale = Callable[[float], float]


@dataclass(frozen=True)
class Series:
    """Medians with quartiles, one for each tick of the panel; None for a missing value."""

    name: str
    median: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]


@dataclass(frozen=True)
class Panel:
    """One small plot; `neutral` is the tick of the undistorted signal, marked by a dotted line."""

    title: str
    x_label: str
    ticks: Sequence[str]
    series: Sequence[Series]
    neutral: int | None = None
    joined: bool = True


def small_multiples(title: str, y_label: str, panels: Sequence[Panel], *, columns: int = 4, shared: bool = True) -> str:
    """Draw panels in rows; return an SVG document.

    Args:
        title: the title at the top, above the legend.
        y_label: the quantity on the vertical axis, with its unit.
        panels: the panels, whose series have the same names.
        columns: number of panels in a row.
        shared: whether all panels have the same vertical scale, so that they can be compared.
    """
    across, rows = _WIDTH // columns, math.ceil(len(panels) / columns)
    # A few panels do not need a full row, but the text above them needs its width.
    width = max(across * min(columns, len(panels)), _LEAST_WIDTH) + 20
    height = rows * _PANEL_HEIGHT + _HEAD
    scale = _ticks(_extent(panels)) if shared else None
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="11" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="15" font-weight="600" fill="#111">{escape(title)}</text>',
        f'<text x="12" y="38" fill="#333">{escape(y_label)}; medians, whiskers from the first to the third quartile'
        "</text>",
        *_legend(panels),
    ]
    for number, panel in enumerate(panels):
        x, y = 10 + number % columns * across, _HEAD + number // columns * _PANEL_HEIGHT
        parts += [
            f'<g transform="translate({x} {y})">',
            *_panel(panel, across, scale or _ticks(_extent([panel]))),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(panels: Sequence[Panel]) -> list[str]:
    parts, x = [], 12.0
    for number, name in enumerate(dict.fromkeys(series.name for panel in panels for series in panel.series)):
        parts += [_mark(number, x + 5, 50), f'<text x="{x + 14:.0f}" y="54" fill="#111">{escape(name)}</text>']
        x += 34 + 6.5 * len(name)
    return parts


def _panel(panel: Panel, width: int, ticks: Sequence[float]) -> list[str]:
    right, bottom = width - _RIGHT, _PANEL_HEIGHT - _BOTTOM
    step = (right - _LEFT) / max(1, len(panel.ticks))
    xs = [_LEFT + step * (n + 0.5) for n in range(len(panel.ticks))]

    def y(value: float) -> float:
        return bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - _TOP)

    parts = [f'<text x="{_LEFT}" y="17" font-weight="600" fill="#111">{escape(panel.title)}</text>']
    for tick in ticks:
        parts += [
            f'<line x1="{_LEFT}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 5}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#333">{_shown(tick, ticks)}</text>',
        ]
    if panel.neutral is not None:
        x = xs[panel.neutral]
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#888" stroke-dasharray="2 3"/>'
        )
    for x, tick_label in zip(xs, panel.ticks, strict=True):
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle" fill="#333">{escape(tick_label)}</text>'
        )
    parts.append(
        f'<text x="{(_LEFT + right) / 2:.0f}" y="{bottom + 31}" text-anchor="middle" fill="#333">'
        f"{escape(panel.x_label)}</text>"
    )
    for number, series in enumerate(panel.series):
        shift = (number - (len(panel.series) - 1) / 2) * 7
        parts += _drawn(series, number, [x + shift for x in xs], [_kept(y, v) for v in series.median], y, panel.joined)
    return parts


def _drawn(
    series: Series, number: int, xs: Sequence[float], ys: Sequence[float | None], y: _Scale, joined: bool
) -> list[str]:
    colour, parts = COLOURS[number % len(COLOURS)], []
    points = [(x, at) for x, at in zip(xs, ys, strict=True) if at is not None]
    if joined and len(points) > 1:
        line = " ".join(f"{x:.1f},{at:.1f}" for x, at in points)
        dash = ' stroke-dasharray="5 3"' if number else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
    for x, at, low, high in zip(xs, ys, series.low, series.high, strict=True):
        if at is not None and low is not None and high is not None:
            parts.append(
                f'<line x1="{x:.1f}" y1="{y(low):.1f}" x2="{x:.1f}" y2="{y(high):.1f}" stroke="{colour}" '
                'stroke-width="1.4" stroke-opacity="0.6"/>'
            )
            parts.append(_mark(number, x, at))
    return parts


def _mark(number: int, x: float, y: float) -> str:
    colour = COLOURS[number % len(COLOURS)]
    match number % 4:
        case 0:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        case 1:
            return f'<rect x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2" fill="{colour}"/>'
        case 2:
            return f'<path d="M{x:.1f} {y - 4.6:.1f} l4.4 8 h-8.8 z" fill="{colour}"/>'
        case _:
            return f'<path d="M{x:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z" fill="{colour}"/>'


def _extent(panels: Sequence[Panel]) -> tuple[float, float]:
    values = [
        value
        for panel in panels
        for series in panel.series
        for column in (series.median, series.low, series.high)
        for value in column
        if value is not None
    ]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _ticks(extent: tuple[float, float]) -> list[float]:
    """Return four to seven round figures that cover the extent."""
    low, high = extent
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    raw = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.99)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * n for n in range(first, last + 1)]


def _shown(tick: float, ticks: Sequence[float]) -> str:
    """Format a tick with as many decimal places as its step needs."""
    step = ticks[1] - ticks[0]
    places = next(places for places in range(8) if math.isclose(round(step, places), step, rel_tol=1e-6))
    return f"{tick + 0.0:.{places}f}" if abs(tick) > 1e-9 else f"{0:.{places}f}"


def _kept(y: _Scale, value: float | None) -> float | None:
    return None if value is None else y(value)
