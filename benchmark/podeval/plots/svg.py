"""The parts of pictures as SVG text: frames, texts, marks, axes with round ticks, legends, and layers of boxes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)
"""Round distances between the ticks of a time axis, in seconds."""

WIDTH = 360
"""Width of a picture for a phone, in units; text of 12 units is never smaller than 11 px on a phone."""
WIDE = 1080
"""Width of a picture for a page, in units."""
SHAPES = {
    "ranked": "circle", "incomplete": "up", "human": "diamond", "control": "square", "reported": "down",
    "own": "circle", "people": "diamond", "median": "square",
}  # fmt: skip
"""The shape of a mark, by the kind of its system or, in a report, by the source of its values."""
SERIES = ("circle", "square", "up", "diamond", "down", "cross")
"""The shapes for several systems in one picture, in order."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Okabe and Ito's colours, which people with any colour vision can distinguish."""

STYLE = (
    "<style>text{fill:#111;font-family:system-ui,sans-serif}.quiet,.axis text{fill:#57606a}.strong{font-weight:600}"
    ".axis line,.axis path{stroke:#d0d7de;fill:none}.rule{stroke:#111;stroke-width:1.5;fill:none}"
    ".line{fill:none;stroke:#0072B2;stroke-width:1.5}.usual{fill:#009E73;opacity:.15}.defect{fill:#D55E00;opacity:.4}"
    ".box{fill:none;stroke:#111;stroke-width:1.5}.dot,.mark{fill:#0072B2}.out{fill:#D55E00}.mean{stroke-width:2;fill:none}"
    ".c0{fill:#0072B2;stroke:#0072B2}.c1{fill:#D55E00;stroke:#D55E00}.c2{fill:#009E73;stroke:#009E73}"
    ".c3{fill:#CC79A7;stroke:#CC79A7}text.c0,text.c1,text.c2,text.c3{stroke:none}.room{fill:#eef3fa;stroke:#35608f}.wire{stroke:#8a9bb0}</style>"
)
"""The style of a standalone picture; its background is white, so that it remains readable on dark pages."""

BARS = 150
"""Number of bars in a picture of a sound."""
_LAYER, _HEIGHT = 88, 34
"""Height of a layer including the space above it, and height of a box."""


@dataclass(frozen=True)
class Axis:
    """An axis from `least` at coordinate `start` to `most` at `end`, with a labelled tick at some values."""

    least: float
    most: float
    start: float
    end: float
    ticks: tuple[tuple[float, str], ...]
    logarithmic: bool = False

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, marks: int = 5, *, percent: bool = False) -> Axis:
        """Create an axis over all values with about `marks` round ticks, or from 0 to 1 if there are no values."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        step = _round_step((high - low) / marks if high > low else max(abs(high), 1.0) / 10)
        least = step * math.floor(low / step + 1e-9)
        most = max(least + step, step * math.ceil(high / step - 1e-9))
        ticks = [least + step * number for number in range(math.floor((most - least) / step + 1e-9) + 1)]
        scale, unit = (100, " %") if percent else (1, "")
        texts = [f"{round(scale * tick, 7):g}{unit}".replace("-", "−") for tick in ticks]
        return cls(least, most, start, end, tuple(zip(ticks, texts, strict=True)))

    @classmethod
    def over_magnitudes(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """Create a logarithmic axis that covers all values, which must be positive, with at least three ticks."""
        least, most = min(values) / 1.15, max(values) * 1.15
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        inside: list[float] = []
        # Use powers of ten only, or as many multiples between them as are needed.
        for factors in ((1,), (1, 3), (1, 2, 5), range(1, 10), (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9)):
            ticks = [factor * 10.0**power for power in powers for factor in factors]
            inside = [tick for tick in ticks if least <= tick <= most]
            if len(inside) >= 3:
                break
        return cls(least, most, start, end, tuple((tick, format_value(tick)) for tick in inside), logarithmic=True)

    @classmethod
    def over_dates(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """Create an axis of times in seconds since 1970 that covers all values and at least one day."""
        spare = max((max(values) - min(values)) * 0.03, 43_200.0)
        least, most = min(values) - spare, max(values) + spare
        times = [least + (most - least) * share for share in (0.1, 0.37, 0.63, 0.9)]
        dates = dict.fromkeys(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in times)
        starts = [datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() for date in dates]
        return cls(least, most, start, end, tuple(zip((max(day, least) for day in starts), dates, strict=True)))

    @classmethod
    def over_length(cls, length: float, start: float, end: float, *, seconds: bool = True) -> Axis:
        """Create an axis from 0 to the length of a recording: seconds are shown as `1:30`, other units as numbers."""
        step = float(next((step for step in _SECONDS if length / step <= 8), max(3600.0, length / 8)))
        if not seconds:
            step = _round_step(length / 8)
        ticks = [step * number for number in range(math.floor(length / step + 1e-9) + 1)]
        texts = [f"{int(tick) // 60}:{int(tick) % 60:02d}" if seconds else f"{tick:g}" for tick in ticks]
        return cls(0.0, length, start, end, tuple(zip(ticks, texts, strict=True)))

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        least, most = self.least, self.most
        if self.logarithmic:
            least, most, value = map(math.log, (least, most, value))
        return round(self.start + (self.end - self.start) * (value - least) / (most - least), 1)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the coordinates and labels of the ticks."""
        return [(self.at(value), text) for value, text in self.ticks]


def format_value(value: float) -> str:
    """Format a number for display: `1.5 B` for a parameter count, `0.02` for a small number."""
    for size, letter in ((1e9, " B"), (1e6, " M")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}".replace("-", "−")


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


@dataclass(frozen=True)
class Frame:
    """The frame of a picture: its title for screen readers, its width in units, its font size, and its CSS class.

    `alone` means that the picture is shown outside our pages and includes a style and a background. `percent` means
    that the values are shares and are displayed as percentages.
    """

    title: str
    width: int = WIDTH
    font_size: int = 12
    css_class: str = ""
    alone: bool = False
    percent: bool = False

    def render(self, height: float, content: str, data_length: float | None = None) -> str:
        """Render the picture; `data_length` is the length of its time axis in seconds, for pages that play audio."""
        css = f' class="{self.css_class}"' if self.css_class else ""
        length = f' data-length="{data_length:g}"' if data_length is not None else ""
        size = f' width="{self.width}" height="{height:g}"' if self.alone else ""
        ground = f'{STYLE}<rect width="{self.width}" height="{height:g}" fill="#fff"/>' if self.alone else ""
        # To a screen reader, an image contains no links.
        role = "group" if "<a href=" in content else "img"
        return (
            f'<svg{css} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}"{size}{length} '
            f'role="{role}" font-size="{self.font_size}"><title>{escape(self.title)}</title>{ground}{content}</svg>'
        )


def stack_pictures(pictures: Sequence[str], title: str, columns: int = 1) -> str:
    """Combine separate pictures into one, in rows whose cells are as wide and high as the largest picture."""
    sizes = [re.findall(r' width="([\d.]+)" height="([\d.]+)"', one)[0] for one in pictures]
    wide, high = (max((float(size[side]) for size in sizes), default=1.0) for side in (0, 1))
    content = "".join(
        f'<g transform="translate({number % columns * wide:g} {number // columns * high:g})">{one}</g>'
        for number, one in enumerate(pictures)
    )
    frame = Frame(title, int(wide * min(columns, max(1, len(pictures)))), alone=True)
    return frame.render(high * -(-len(pictures) // columns), content)


def render_text(x: float, y: float, text: str, css_class: str = "", anchor: str = "start", size: float = 0) -> str:
    """Render a text; `size` is its font size if it differs from the picture's."""
    css = f' class="{css_class}"' if css_class else ""
    end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    letters = f' font-size="{size:.1f}"' if size else ""
    return f'<text{css} x="{x:g}" y="{y:g}"{end}{letters}>{escape(text)}</text>'


def render_tooltip(text: str) -> str:
    """Render the tooltip for the enclosing shape; empty if there is no text."""
    return f"<title>{escape(text)}</title>" if text else ""


def render_link(content: str, address: str, name: str) -> str:
    """Render parts of a picture as a link with a name; return them unchanged if there is no address."""
    return f'<a href="{escape(address)}" aria-label="{escape(name)}">{content}</a>' if address else content


def render_bar(css_class: str, x: float, y: float, width: float, height: float, tooltip: str = "") -> str:
    """Render a rectangle."""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css_class}" x="{x:.1f}" y="{y:.1f}" {size}>{render_tooltip(tooltip)}</rect>'


def render_mark(shape: str, x: float, y: float, radius: float, css_class: str, tooltip: str = "") -> str:
    """Render one mark."""
    r, wide = radius, 1.4 * radius
    if shape == "circle":
        return f'<circle class="{css_class}" cx="{x:g}" cy="{y:g}" r="{r:g}">{render_tooltip(tooltip)}</circle>'
    paths = {
        "square": f"M{x - r:g} {y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z",
        "up": f"M{x:g} {y - 1.3 * r:g}l{1.2 * r:g} {2.2 * r:g}h{-2.4 * r:g}z",
        "down": f"M{x:g} {y + 1.3 * r:g}l{1.2 * r:g} {-2.2 * r:g}h{-2.4 * r:g}z",
        "diamond": f"M{x:g} {y - wide:g}l{wide:g} {wide:g}l{-wide:g} {wide:g}l{-wide:g} {-wide:g}z",
        "cross": f"M{x - 1.3 * r:g} {y - 0.4 * r:g}h{0.9 * r:g}v{-0.9 * r:g}h{0.8 * r:g}v{0.9 * r:g}h{0.9 * r:g}"
        f"v{0.8 * r:g}h{-0.9 * r:g}v{0.9 * r:g}h{-0.8 * r:g}v{-0.9 * r:g}h{-0.9 * r:g}z",
    }
    return f'<path class="{css_class}" d="{paths[shape]}">{render_tooltip(tooltip)}</path>'


def render_axis_below(axis: Axis, top: float, bottom: float, title: str = "") -> str:
    """Render a horizontal axis: a line from `top` to `bottom` at each tick, the labels below it, and then the title."""
    lines = "".join(f'<line x1="{at}" x2="{at}" y1="{top:g}" y2="{bottom:g}"/>' for at, _ in axis.marks)
    texts = "".join(render_text(at, bottom + 13, text, anchor="middle") for at, text in axis.marks)
    caption = render_text(axis.end, bottom + 28, title, anchor="end") if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_axis_beside(axis: Axis, left: float, right: float, title: str = "") -> str:
    """Render a vertical axis: a line from `left` to `right` at each tick, and the title above."""
    lines = "".join(f'<line x1="{left:g}" x2="{right:g}" y1="{at}" y2="{at}"/>' for at, _ in axis.marks)
    texts = "".join(render_text(left - 5, at + 4, text, anchor="end") for at, text in axis.marks)
    caption = render_text(4, axis.end - 12, title) if title else ""
    return f'<g class="axis">{lines}{texts}{caption}</g>'


def render_legend(kinds: Iterable[str], words: Mapping[str, str], y: float, font_size: int = 12) -> str:
    """Render a legend of the shapes."""
    entries, x = "", 14.0
    for kind in kinds:
        entries += render_mark(SHAPES[kind], x, y, 4.5, kind) + render_text(x + 9, y + 4, words[kind])
        x += 28 + measure_text(words[kind], font_size)
    return f"<g>{entries}</g>"


def render_labels(places: Iterable[tuple[float, float, str, bool]], width: float, size: float) -> str:
    """Render names next to points, each with its position, its name, and whether it is required; an overlapping name is
    omitted.
    """
    labels, boxes = "", list[tuple[float, float, float]]()
    for x, y, name, needed in places:
        left, wide = x > width / 2, measure_text(name, size)
        begin = x - 7 - wide if left else x + 7
        free = all(abs(y - other) > size or begin > end or begin + wide < start for start, end, other in boxes)
        if free or needed:
            boxes.append((begin, begin + wide, y))
            labels += render_text(x - 7 if left else x + 7, y - 6, name, "halo", "end" if left else "start")
    return labels


def measure_text(text: str, size: float) -> float:
    """Estimate how wide a text is: Chinese characters are square, Latin letters about half as wide."""
    return size * sum(1.1 if ord(letter) > 0x2E80 else 0.6 for letter in text)


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def draw_layers(layers: Sequence[Sequence[str]], lines: Iterable[tuple[str, str]], title: str, width: int = 900) -> str:
    """Draw the layers.

    Args:
        layers: the names of the boxes of each layer, the lowest first.
        lines: pairs of boxes, the upper one first.
        title: the text for screen readers.
        width: the width of the picture.
    """
    places: dict[str, tuple[float, float]] = {}
    boxes = []
    for number, names in enumerate(layers):
        y = (len(layers) - 1 - number) * _LAYER + 40
        boxes.append(render_text(14, y + 5, str(number + 1), "strong"))
        step = (width - 50) / len(names)
        for column, name in enumerate(names):
            x = round(40 + step * (column + 0.5))
            places[name] = (x, y)
            size = f'y="{y - _HEIGHT / 2:.0f}" rx="5" width="{step - 12:.0f}" height="{_HEIGHT}"'
            boxes.append(f'<rect class="room" x="{x - step / 2 + 6:.0f}" {size}/>')
            boxes.append(render_text(x, y + 5, name, anchor="middle"))
    wires = [
        f'<line class="wire" x1="{places[upper][0]}" y1="{places[upper][1] + _HEIGHT / 2:.0f}" '
        f'x2="{places[lower][0]}" y2="{places[lower][1] - _HEIGHT / 2:.0f}"/>'
        for upper, lower in lines
    ]
    frame = Frame(title, width, font_size=14, alone=True)
    return frame.render(len(layers) * _LAYER, "\n".join(["", *wires, *boxes, ""])) + "\n"


def draw_badge(label: str, message: str) -> str:
    """Draw a standalone badge: a label on a grey background, and a message next to it.

    Args:
        label: the text on the grey background.
        message: the text next to it.
    """
    left, right = (round(measure_text(text, 11)) + 14 for text in (label, message))
    grounds = f'<path d="M0 0h{left}v20H0z" fill="#44515e"/><path d="M{left} 0h{right}v20h-{right}z" fill="#0b5ea8"/>'
    texts = "".join(
        f'<text x="{x}" y="14" text-anchor="middle" fill="#fff" font-family="sans-serif">{escape(text)}</text>'
        for x, text in ((left / 2, label), (left + right / 2, message))
    )
    title = escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" font-size="11">'
        f"<title>{title}</title>{grounds}{texts}</svg>"
    )


def draw_bars(peaks: Sequence[float]) -> str:
    """Draw the peaks of a sound, each 0 to 1, as bars without colours, through which a player shows its own colours."""
    most, wide = max(0.05, 0, *peaks), math.ceil(len(peaks) / BARS) or 1
    parts = [(place, max(0.03, max(peaks[place : place + wide]) / most)) for place in range(0, len(peaks), wide)]
    path = "".join(f"M{x} {1 - y:.3f}h{0.7 * wide:.3g}v{2 * y:.3f}h{-0.7 * wide:.3g}z" for x, y in parts)
    box = f'viewBox="0 0 {len(peaks)} 2" preserveAspectRatio="none"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><path d="{path}"/></svg>'
