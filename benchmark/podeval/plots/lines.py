"""Draw lines (values over the length of a recording, with bands and stretches behind them), waveforms and densities."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from podeval.plots.svg import (
    SERIES,
    Axis,
    Frame,
    render_axis_below,
    render_axis_beside,
    render_bar,
    render_mark,
    render_text,
    render_tooltip,
    shorten,
)

LEFT, RIGHT = 48, 12
"""Margins of the plot area; a page needs them to compute the time that a click refers to."""
_MOST_MARKS = 60
_DENSITY_POINTS, _DENSITY_HEIGHT = 200, 200


@dataclass(frozen=True)
class Line:
    """One value over time: points of time and value (None in a gap), their intervals if there are any, and its style.

    `css_class` applies to its line, marks and band; `shape` applies to its marks, which are omitted from lines with
    many points.
    """

    points: Sequence[tuple[float, float | None]]
    intervals: Sequence[tuple[float, float] | None] = ()
    css_class: str = ""
    shape: str = "circle"
    name: str = ""


@dataclass(frozen=True)
class Highlight:
    """A marked stretch of time, in seconds, with a tooltip."""

    start: float
    end: float
    tooltip: str


def draw_lines(
    lines: Sequence[Line],
    along: Axis,
    frame: Frame,
    height: float,
    *,
    title: str = "",
    unit: str = "",
    usual: tuple[float, float] | None = None,
    usual_text: str = "",
    highlights: Iterable[Highlight] = (),
    data_length: float | None = None,
) -> str:
    """Draw lines.

    Args:
        lines: the lines; later ones are drawn in front.
        along: the time axis, from `LEFT` to the width of the frame minus `RIGHT`.
        frame: the frame of the picture.
        height: the height of the picture.
        title: the text above the vertical axis: a name or a unit.
        unit: the unit of the horizontal axis, if it is not obvious.
        usual: a range of values shown as a band behind the lines, such as the range of people's values.
        usual_text: the tooltip of the band.
        highlights: stretches of time that are marked behind the lines.
        data_length: length of the recording in seconds, if clicking on the picture plays it.
    """
    values = [value for line in lines for _, value in line.points if value is not None]
    values += [end for line in lines for span in line.intervals if span for end in span] + list(usual or ())
    bottom, right = height - (34 if unit else 20), frame.width - RIGHT
    up = Axis.over(values, bottom, 24, marks=4 if height > 150 else 3, percent=frame.percent)
    content = ""
    if usual:
        low, high = up.at(usual[0]), up.at(usual[1])
        content += render_bar("usual", LEFT, high, right - LEFT, max(1.0, low - high), usual_text)
    content += render_axis_below(along, bottom, bottom + 3, unit) + render_axis_beside(up, LEFT, right, title)
    for highlight in highlights:
        left = along.at(highlight.start)
        wide = max(2.0, min(along.at(highlight.end), right) - left)
        content += render_bar("defect", left, 24, wide, bottom - 24, highlight.tooltip)
    content += "".join(_render_line(line, along, up) for line in lines)
    return frame.render(height, content, data_length)


@dataclass(frozen=True)
class Density:
    """The values of one system, drawn as a curve."""

    name: str
    values: Sequence[float]


def draw_densities(
    densities: Sequence[Density], frame: Frame, axis_title: str = "", usual: tuple[float, float] | None = None
) -> str:
    """Draw a density curve for each system, with a Gaussian kernel and Silverman's bandwidth; each curve has an area of
    1.

    Args:
        densities: the curves; no more than the number of `SERIES` can be told apart.
        frame: the frame of the picture.
        axis_title: the name of the values.
        usual: a range of values shown behind the curves, such as the ideal range; open ends are infinite.
    """
    ends = [end for one in densities for end in (min(one.values), max(one.values))]
    across = max(max(ends) - min(ends), 1e-6)
    widths = [max(0.9 * float(np.std(one.values)) * len(one.values) ** -0.2, across / 100) for one in densities]
    finite = [end for end in usual or () if math.isfinite(end)]
    margins = [min(ends) - 3 * max(widths), max(ends) + 3 * max(widths)]
    along = Axis.over([*margins, *finite], LEFT, frame.width - RIGHT, percent=frame.percent)
    grid = np.linspace(along.least, along.most, _DENSITY_POINTS)
    curves = [estimate_density(one.values, width, grid) for one, width in zip(densities, widths, strict=True)]
    bottom = 24 + _DENSITY_HEIGHT
    up = Axis.over([0.0, *(float(curve.max()) for curve in curves)], bottom, 24, marks=4)
    content = render_axis_below(along, 24, bottom, axis_title) + render_axis_beside(up, LEFT, frame.width - RIGHT)
    if usual:
        left, right = (along.at(min(max(end, along.least), along.most)) for end in usual)
        content = render_bar("usual", left, 24, right - left, bottom - 24) + content
    y = bottom + 36.0
    for number, (one, curve, shape) in enumerate(zip(densities, curves, SERIES, strict=False), 1):
        y += 18
        outline = [(along.at(float(x)), up.at(float(height))) for x, height in zip(grid, curve, strict=True)]
        # A mark is drawn at the peak of the curve and next to its name.
        places = (min(outline, key=lambda at: at[1]), (14.0, y))
        marks = "".join(render_mark(shape, left, height, 4.5, "mk") for left, height in places)
        path = "L".join(f"{x:g} {height:g}" for x, height in outline)
        line = f'{render_tooltip(one.name)}<path class="line" d="M{path}"/>{marks}'
        content += f'<g class="series s{number}">{line}{render_text(26, y + 4, shorten(one.name, 48))}</g>'
    return frame.render(y + 12, content)


def estimate_density(values: Sequence[float], width: float, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the density of values at the points of a grid, with a Gaussian kernel of the given bandwidth."""
    distances = (grid[:, np.newaxis] - np.asarray(values, np.float64)) / width
    return np.asarray(np.exp(-0.5 * distances**2).mean(axis=1) / (width * math.sqrt(2 * math.pi)))


def draw_waveform(heights: Sequence[float], marks: Sequence[tuple[float, float]], label: str) -> str:
    """Draw a waveform that fills the available width.

    Args:
        heights: the peaks, from 0 to 1, over equal parts of the recording.
        marks: marked stretches, as shares of the recording.
        label: the text for screen readers.
    """
    step, scale = 900 / len(heights), 48 / max(*heights, 1e-6)
    upper = [(round(number * step, 1), round(height * scale, 1)) for number, height in enumerate(heights)]
    outline = [(x, 50 - high) for x, high in upper] + [(x, 50 + high) for x, high in reversed(upper)]
    defects = "".join(render_bar("defect", 900 * start, 0, max(2.0, 900 * (end - start)), 100) for start, end in marks)
    return (
        f'<svg viewBox="0 0 900 100" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">{defects}'
        f'<polygon class="wave" points="{_join(outline)}"/></svg>'
    )


def _render_line(line: Line, along: Axis, up: Axis) -> str:
    """Render a line with its band, broken at its gaps."""
    css = f" {line.css_class}" if line.css_class else ""
    band = [
        (along.at(time), up.at(span[0]), up.at(span[1]))
        for (time, _), span in zip(line.points, line.intervals, strict=False)
        if span is not None
    ]
    outline = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in reversed(band)]
    content = f'<polygon class="band{css}" points="{_join(outline)}"/>' if band else ""
    few = sum(value is not None for _, value in line.points) <= _MOST_MARKS
    for stroke in _split(line.points):
        places = [(along.at(time), up.at(value)) for time, value in stroke]
        content += f'<polyline class="line{css}" points="{_join(places)}"/>' if len(places) > 1 else ""
        if few or len(places) == 1:
            content += "".join(render_mark(line.shape, x, y, 2.5, f"mark{css}") for x, y in places)
    return f"<g>{render_tooltip(line.name)}{content}</g>"


def _split(points: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """Yield the stretches of points between gaps."""
    stroke: list[tuple[float, float]] = []
    for time, value in [*points, (0.0, None)]:
        if value is not None:
            stroke.append((time, value))
        elif stroke:
            yield stroke
            stroke = []


def _join(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)
