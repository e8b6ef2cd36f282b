"""A metric's values over time, as pictures: a line a key, the stretch of what is usual behind it, defects marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.scoring.standing import find_usual, format_number

if TYPE_CHECKING:
    from podeval.metrics.declaration import Key
    from podeval.metrics.score import Timeline
    from podeval.scoring.defects import Defect
    from podeval.scoring.recording_results import RecordingResults

WIDTH, HEIGHT = 720, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 22, 20

STYLE = (
    "<style>text{font:11px system-ui,sans-serif;fill:#57606a}.line{fill:none;stroke:#0969da;stroke-width:1.5}"
    ".usual{fill:#1a7f37;opacity:.13}.defect{fill:#cf222e;opacity:.35}.axis{stroke:#8c959f;stroke-width:.6}"
    "@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.line{stroke:#58a6ff}}</style>"
)


@dataclass(frozen=True)
class TimelinePlot:
    """Pictures of values over time; a notebook shows them.

    Attributes:
        pictures: SVG, one a value, by `metric.key`.
    """

    pictures: Mapping[str, str]

    def save(self, path: str | Path) -> Path:
        """Write them as one SVG file, one under another."""
        parts = [
            f'<g transform="translate(0 {number * HEIGHT})">{picture}</g>'
            for number, picture in enumerate(self.pictures.values())
        ]
        size = f'viewBox="0 0 {WIDTH} {HEIGHT * len(parts)}" width="{WIDTH}" height="{HEIGHT * len(parts)}"'
        target = Path(path)
        target.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>', encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the pictures, as a notebook shows them."""
        return self.to_html()

    def to_html(self) -> str:
        """Return the pictures one under another as HTML."""
        return "".join(f"<div>{picture}</div>" for picture in self.pictures.values())


@dataclass(frozen=True)
class PlotTexts:
    """What a picture says besides numbers.

    Attributes:
        usual: what the band of usual values is.
        over_time: the name of a picture, with `{}` for the value.
        describe: says what a defect is.
    """

    usual: str = "what people and good systems reach"
    over_time: str = "{} over time"
    describe: Callable[[Defect], str] = lambda defect: f"{defect.kind}: {defect.detail}"


ENGLISH = PlotTexts()


def plot_results(results: RecordingResults, name: str = "", texts: PlotTexts = ENGLISH) -> TimelinePlot:
    """Draw the timelines of a recording.

    Args:
        results: of the recording.
        name: a metric, or one value of it (`dnsmos.ovrl`); empty for every metric that has a timeline.
        texts: in the language of the reader.

    Raises:
        BadInput: it has no values over time; says which metrics have.
    """
    metric, _, key = name.partition(".")
    timelines = {one: line for one, line in results.timelines.items() if not metric or one == metric}
    if not timelines or (key and key not in timelines[metric].values):
        choices = ", ".join(results.timelines) or "none here"
        raise BadInput(f"{name or 'no metric'} has no values over time; metrics that have: {choices}")
    return plot_timelines(timelines, key, results.defects, results.facts.seconds, results.profile, texts)


def plot_timelines(
    timelines: Mapping[str, Timeline],
    key: str,
    defects: Sequence[Defect],
    seconds: float,
    profile: str,
    texts: PlotTexts = ENGLISH,
) -> TimelinePlot:
    """Draw the values of some metrics over time.

    Args:
        timelines: by metric.
        key: the one value of each that is drawn; empty for all that stand in the declaration.
        defects: marked where they are.
        seconds: the recording lasts.
        profile: whose models the values are of.
        texts: in the language of the reader.
    """
    pictures = {}
    for name, timeline in timelines.items():
        keys = {declared.name: declared for declared in catalogue.get(name).keys}
        for column, values in timeline.values.items():
            if column in keys and (not key or column == key):
                pictures[f"{name}.{column}"] = _draw(
                    f"{name}.{column}", keys[column], timeline, values, defects, seconds, profile, texts
                )
    return TimelinePlot(pictures)


def _draw(
    title: str,
    key: Key,
    timeline: Timeline,
    values: Sequence[float | None],
    defects: Sequence[Defect],
    seconds: float,
    profile: str,
    texts: PlotTexts,
) -> str:
    """One value over time, as SVG."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    usual = find_usual(key, profile)
    low, high = min(numbers), max(numbers)
    if usual:
        low, high = min(low, usual[0]), max(high, usual[1])
    spare = (high - low) * 0.06 or abs(high) * 0.05 or 0.5
    low, high = low - spare, high + spare
    in_time = timeline.unit == "s"
    length = max(seconds if in_time else 0.0, timeline.starts[-1] + timeline.window)

    def x(at: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, at / length)), 1)

    def y(value: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low), 1)

    parts = []
    if usual:
        top, bottom = y(usual[1]), y(usual[0])
        band = f'x="{_LEFT}" width="{WIDTH - _LEFT - _RIGHT}" y="{top}" height="{max(1.0, bottom - top):.1f}"'
        parts.append(f'<rect class="usual" {band}><title>{escape(texts.usual)}</title></rect>')
    for defect in defects if in_time else ():
        left = x(defect.start)
        wide = max(2.0, x(defect.end) - left)
        parts.append(
            f'<rect class="defect" x="{left}" width="{wide:.1f}" y="{_TOP}" height="{HEIGHT - _TOP - _BOTTOM}">'
            f"<title>{escape(texts.describe(defect))}</title></rect>"
        )
    for path in _strokes(timeline, values):
        points = " ".join(f"{x(at)},{y(value)}" for at, value in path)
        parts.append(
            f'<polyline class="line" points="{points}"/>' if len(path) > 1 else _dot(x(path[0][0]), y(path[0][1]))
        )
    parts += [
        f'<text x="{_LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{format_number(value)}</text>'
        for value in (low + spare, high - spare)
    ]
    parts += _draw_axis(("0:00", _clock(length)) if in_time else ("0", f"{length:.0f} {escape(timeline.unit)}"))
    unit = f" ({key.unit})" if key.unit else ""
    parts.append(f'<text x="4" y="13" font-weight="600">{escape(title + unit)}</text>')
    return _close_picture(parts, texts.over_time.format(title), length if in_time else None)


def _close_picture(parts: Sequence[str], label: str, seconds: float | None) -> str:
    """The picture of its parts; by its seconds a report knows what to play where it is clicked."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    if seconds is not None:
        size += f' data-length="{seconds:g}"'
    name = f'role="img" aria-label="{escape(label, quote=True)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {name}>{STYLE}{"".join(parts)}</svg>'


def _draw_axis(ends: tuple[str, str]) -> list[str]:
    """The axis of time with its ends."""
    base = HEIGHT - _BOTTOM
    return [
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{base}" y2="{base}"/>',
        f'<text x="{_LEFT}" y="{HEIGHT - 5}">{ends[0]}</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{ends[1]}</text>',
    ]


def _strokes(timeline: Timeline, values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Stretches without gaps, each point in the middle of its window."""
    strokes: list[list[tuple[float, float]]] = [[]]
    for start, value in zip(timeline.starts, values, strict=True):
        if value is None:
            strokes.append([])
        else:
            strokes[-1].append((start + timeline.window / 2, value))
    return [stroke for stroke in strokes if stroke]


def _dot(x: float, y: float) -> str:
    return f'<circle class="line" cx="{x}" cy="{y}" r="2"/>'


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
