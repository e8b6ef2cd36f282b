"""Draw a radar: several series on axes from 0, near the centre, to 1, the rim, with 95 % intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from podeval.plots.svg import SERIES, WIDE, WIDTH, Frame, render_mark, render_text, shorten

RINGS = (0.25, 0.5, 0.75, 1.0)
Span = tuple[float, float]


@dataclass(frozen=True)
class RadarLayout:
    """How large a radar is drawn: the width of its picture, its middle, its radius, its height, its letters."""

    width: int
    middle: tuple[float, float]
    radius: float
    height: float
    font_size: int


ON_PHONE = RadarLayout(WIDTH, (180.0, 142.0), 92.0, 284.0, 12)
ON_PAGE = RadarLayout(WIDE, (540.0, 262.0), 200.0, 524.0, 14)
ON_PAPER = RadarLayout(480, (240.0, 170.0), 118.0, 340.0, 13)


@dataclass(frozen=True)
class Series:
    """What a line of a radar stands for: its name, its value on each axis, None where it has none, and how it looks.

    `spans` are the intervals, where there are some. `group`, `line` and `mark` are classes that a page's style fills;
    `shape` is one of those of `plots.svg`.
    """

    name: str
    values: tuple[float | None, ...]
    shape: str
    group: str = ""
    line: str = ""
    mark: str = "mk"
    spans: tuple[Span | None, ...] = ()

    @classmethod
    def of_systems(
        cls, systems: Sequence[tuple[str, tuple[float | None, ...], tuple[Span | None, ...]]]
    ) -> list[Series]:
        """One series a system with its values and intervals, each with a shape and a class of its own."""
        looks = zip(systems, SERIES, strict=False)
        return [
            cls(name, values, shape, f"series s{number}", spans=spans)
            for number, ((name, values, spans), shape) in enumerate(looks, 1)
        ]


def draw_radar(
    names: Sequence[str], series: Sequence[Series], title: str, layout: RadarLayout = ON_PHONE, css_class: str = ""
) -> str:
    """Draw a radar.

    Args:
        names: names of the axes, at least three, clockwise from the top.
        series: at most six series; those with a name are named below the radar, too.
        title: text for screen readers.
        layout: size of the picture.
        css_class: class of the picture.
    """
    rays = _Rays(layout, len(names))
    content = f'<g class="axis">{rays.render_grid()}</g>' + "".join(rays.render_series(one) for one in series)
    content += "".join(rays.render_name(name, number) for number, name in enumerate(names))
    height = layout.height
    for one in series:
        if one.name:
            height += 18
            mark = render_mark(one.shape, 14, height - 10, 4.5, one.mark)
            content += f'<g class="{one.group}">{mark}{render_text(26, height - 6, shorten(one.name, 48))}</g>'
    return Frame(title, layout.width, layout.font_size, css_class).render(height + 8, content)


@dataclass(frozen=True)
class _Rays:
    """Where the axes of a radar are."""

    layout: RadarLayout
    count: int

    def locate(self, number: int, value: float, beyond: float = 0.0) -> tuple[float, float]:
        """Where a value is on an axis; the worst is a little off the middle, so that systems differ there too."""
        angle = 2 * math.pi * number / self.count - math.pi / 2
        reach = self.layout.radius * (value + 0.1) / 1.1 + beyond
        x, y = self.layout.middle
        return round(x + reach * math.cos(angle), 1), round(y + reach * math.sin(angle), 1)

    def point(self, number: int, value: float) -> str:
        """The same as a path writes it."""
        x, y = self.locate(number, value)
        return f"{x:g} {y:g}"

    def render_grid(self) -> str:
        """Rings at the quarters, rays, and the scale beside the first of them."""
        numbers = range(self.count)
        rings = "".join(f'<path d="M{" ".join(self.point(n, ring) for n in numbers)}z"/>' for ring in (0.0, *RINGS))
        x, y = self.layout.middle
        rays = "".join(f'<path d="M{x:g} {y:g} {self.point(n, 1.0)}"/>' for n in numbers)
        return f"{rings}{rays}" + "".join(render_text(x + 3, self.locate(0, r)[1] + 4, f"{r:.0%}") for r in (0.5, 1.0))

    def render_series(self, one: Series) -> str:
        """Draw a system's marks, with a line between neighbours that both have a value."""
        path, marks, whiskers = "", "", ""
        for number, value in enumerate(one.values):
            if value is None:
                continue
            after = (number + 1) % self.count
            if (following := one.values[after]) is not None:
                path += f"M{self.point(number, value)} {self.point(after, following)}"
            if number < len(one.spans) and (span := one.spans[number]):
                whiskers += f"M{self.point(number, span[0])} {self.point(number, span[1])}"
            tooltip = f"{one.name}: {value:.0%}" if one.name else ""
            marks += render_mark(one.shape, *self.locate(number, value), 3.5, one.mark, tooltip)
        spans = f'<path class="span" d="{whiskers}"/>' if whiskers else ""
        return f'<g class="{one.group}"><path class="{one.line}" d="{path}"/>{spans}{marks}</g>'

    def render_name(self, name: str, number: int) -> str:
        """The name of an axis beside its end, in as many lines as it needs."""
        width, middle = self.layout.width, self.layout.middle
        x, y = self.locate(number, 1.0, 12.0)
        side = x - middle[0]
        anchor = "middle" if abs(side) < 12 else "start" if side > 0 else "end"
        room = {"start": width - x, "end": x, "middle": width / 2}[anchor]
        letter, tall = self.layout.font_size * 0.56, self.layout.font_size + 1
        lines = textwrap.wrap(name, max(1, int(min(room, 190) / letter)), break_long_words=False) or [""]
        start = y + 4 - (tall * (len(lines) - 1) if y < middle[1] - 40 else tall / 2 * (len(lines) - 1))
        most = max(8, int(room / letter))
        return "".join(
            render_text(x, start + tall * line, shorten(text, most), anchor=anchor) for line, text in enumerate(lines)
        )
