"""Box plots of every rater's marks by stimulus, as one SVG picture, which shows at once who gave all the same mark.

A box goes from the lower to the upper quartile with the median across, whiskers to the extremes (PodEval Figure 9).
Listeners whose marks do not count are named in words, not by colour alone.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from podeval.stats.mushra_scores import Mark
from podeval.stats.screening import ScreenedListener

_COLUMNS = 4
_BOX = 26
_HEIGHT = 150
_LEFT = 34
_TOP = 34
_BELOW = 84
_NAMED = 250
_KEPT, _DROPPED = "#0072B2", "#D55E00"


def draw_box_plots(
    marks: Sequence[Mark], screened: Sequence[ScreenedListener], title: str = "Marks by listener"
) -> str:
    """Draw one picture: a panel for each listener, a box for each stimulus, marks from 0 to 100 upwards."""
    wide, panels = _panels(marks, screened)
    high = _TOP + _HEIGHT + _BELOW
    columns = min(_COLUMNS, max(1, len(panels)))
    rows = -(-len(panels) // columns)
    placed = (
        f'<g transform="translate({(number % columns) * wide} {30 + (number // columns) * high})">{panel}</g>'
        for number, (_, panel) in enumerate(panels)
    )
    return (
        f"{_open(wide * columns, 30 + high * rows, title)}"
        f'<text x="8" y="20" font-size="14">{escape(title)}</text>{"".join(placed)}</svg>\n'
    )


def draw_panels(marks: Sequence[Mark], screened: Sequence[ScreenedListener]) -> list[str]:
    """Draw a picture for each listener, to be laid out by the page in as many columns as it has room for."""
    wide, panels = _panels(marks, screened)
    return [f"{_open(wide, _TOP + _HEIGHT + _BELOW, rater)}{panel}</svg>" for rater, panel in panels]


def _panels(marks: Sequence[Mark], screened: Sequence[ScreenedListener]) -> tuple[int, list[tuple[str, str]]]:
    """The width of a panel, and each listener's; listeners whose marks do not count come first."""
    # Group the marks.
    stimuli = sorted({mark.stimulus for mark in marks})
    verdicts = {verdict.rater: verdict for verdict in screened}
    raters = sorted(
        {mark.rater for mark in marks}, key=lambda rater: (rater in verdicts and verdicts[rater].kept, rater)
    )
    values: dict[tuple[str, str], list[float]] = {}
    for mark in marks:
        values.setdefault((mark.rater, mark.stimulus), []).append(mark.value)
    # Draw a panel for each listener.
    panels = []
    for rater in raters:
        verdict = verdicts.get(rater)
        kept = verdict is None or verdict.kept
        inside = [_axis(_BOX * len(stimuli)), _label(rater, kept, verdict)]
        for column, stimulus in enumerate(stimuli):
            values_of_box = values.get((rater, stimulus))
            inside.append(_box(column, stimulus, values_of_box, _KEPT if kept else _DROPPED))
        panels.append((rater, "".join(inside)))
    return max(_LEFT + _BOX * len(stimuli) + 24, _NAMED), panels


def _open(wide: int, high: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img" font-family="sans-serif" font-size="11"><title>{escape(title)}</title>'
        '<rect width="100%" height="100%" fill="white"/>'
    )


def _height(value: float) -> float:
    return _TOP + _HEIGHT * (1 - value / 100)


def _axis(width: int) -> str:
    lines = "".join(
        f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{_height(v):g}" y2="{_height(v):g}" stroke="#ddd"/>'
        f'<text x="{_LEFT - 5}" y="{_height(v) + 4:g}" text-anchor="end" fill="#444">{v}</text>'
        for v in (0, 20, 40, 60, 80, 100)
    )
    return f"<g>{lines}</g>"


def _label(rater: str, kept: bool, verdict: ScreenedListener | None) -> str:
    why = "" if verdict is None else "; ".join(verdict.reasons)
    suffix = "" if kept else " (left out)"
    return f'<text x="{_LEFT}" y="{_TOP - 14}">{escape(rater[:24] + suffix)}<title>{escape(why)}</title></text>'


def _box(column: int, stimulus: str, values: list[float] | None, colour: str) -> str:
    middle = _LEFT + _BOX * (column + 0.5)
    foot = _TOP + _HEIGHT + 12
    name = (
        f'<text x="{middle:g}" y="{foot}" text-anchor="end" transform="rotate(-50 {middle:g} {foot})">'
        f"{escape(stimulus[:16])}</text>"
    )
    if not values:
        return name
    low, first, median, third, high = (_height(v) for v in np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))
    half = _BOX * 0.32
    return (
        f'<line x1="{middle:g}" x2="{middle:g}" y1="{low:g}" y2="{high:g}" stroke="{colour}"/>'
        f'<rect x="{middle - half:g}" y="{third:g}" width="{2 * half:g}" height="{max(first - third, 0.5):g}" '
        f'fill="white" stroke="{colour}" stroke-width="1.5"/>'
        f'<line x1="{middle - half:g}" x2="{middle + half:g}" y1="{median:g}" y2="{median:g}" '
        f'stroke="{colour}" stroke-width="3"/>{name}'
    )
