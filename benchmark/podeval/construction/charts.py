"""Draw plots of a construction's material, as plain SVG: bars of counts, words by number, histograms with means.

Colours are those of Okabe and Ito, which people of all colour vision tell apart; numbers stand beside every bar, and
dashes tell lines apart. The ground is white, so that the plots can be read on dark pages.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_WIDTH, _LINE, _HEAD = 960, 20, 34


def draw_bars(title: str, groups: Mapping[str, Mapping[str, int]], words: Mapping[str, int] | None = None) -> str:
    """Draw groups of counts below one another, each count with its share of the group; then words, common ones larger.

    Args:
        title: title above the plot.
        groups: counts by label by group.
        words: how often each word occurs.
    """
    parts, y = list[str](), float(_HEAD)
    for number, (name, counts) in enumerate(groups.items()):
        parts.append(_draw_text(12, y + 18, name, weight=600))
        y += 28
        # A bar for each label, its length relative to the group's largest count.
        total, most = sum(counts.values()), max(counts.values(), default=0)
        for label, count in counts.items():
            width = 560 * count / most if most else 0
            parts += [
                _draw_text(200, y + 14, label, anchor="end"),
                f'<rect x="208" y="{y + 2:.0f}" width="{width:.1f}" height="15" fill="{COLOURS[number % 4]}"/>',
                _draw_text(214 + width, y + 14, f"{count} ({count / total:.1%})" if total else "0"),
            ]
            y += _LINE
        y += 8
    if words:
        parts.append(_draw_text(12, y + 18, "commonest topics", weight=600))
        drawn, y = _draw_words(words, y + 30)
        parts += drawn
    return _draw_page(title, parts, y + 12)


def draw_histogram(title: str, x_label: str, series: Mapping[str, Sequence[float]], width: float) -> str:
    """Draw the distribution of each series, and its mean as a dashed line.

    Args:
        title: title above the plot.
        x_label: the quantity, with its unit.
        series: values by name; none may be negative.
        width: width of a bin.
    """
    values = [value for each in series.values() for value in each]
    bins = max(1, math.ceil((max(values, default=0) + 1e-9) / width))
    counts = {name: [0] * bins for name in series}
    for name, each in series.items():
        for value in each:
            counts[name][min(bins - 1, int(value // width))] += 1
    # Four lines across, each at a whole number.
    most = 4 * math.ceil((max((count for each in counts.values() for count in each), default=0) or 1) / 4)
    left, top, height, right = 60, 70, 300, _WIDTH - 20
    step = (right - left) / bins
    bottom = top + height
    parts = [f'<line x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#333"/>']
    for tick in range(5):
        y = bottom - height * tick / 4
        parts += [
            f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>',
            _draw_text(left - 6, y + 4, f"{most * tick / 4:.0f}", anchor="end"),
        ]
    for number in range(0, bins + 1, max(1, bins // 12)):
        parts.append(_draw_text(left + step * number, bottom + 16, f"{width * number:g}", anchor="middle"))
    parts.append(_draw_text((left + right) / 2, bottom + 36, x_label, anchor="middle"))
    for position, (name, each) in enumerate(series.items()):
        colour, bar = COLOURS[position % 4], step / max(1, len(series))
        for number, count in enumerate(counts[name]):
            tall = height * count / most
            x = left + step * number + bar * position
            parts.append(
                f'<rect x="{x:.1f}" y="{bottom - tall:.1f}" width="{max(bar - 1, 0.5):.1f}" height="{tall:.1f}" '
                f'fill="{colour}"/>'
            )
        parts += [
            f'<rect x="{12 + 300 * position}" y="42" width="12" height="12" fill="{colour}"/>',
            _draw_text(30 + 300 * position, 52, f"{name}: {len(each)}" + (f", mean {_mean(each):.1f}" if each else "")),
        ]
        if each:
            x = left + step * _mean(each) / width
            parts.append(
                f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}" stroke-width="2" '
                f'stroke-dasharray="{6 + 4 * position} 4"/>'
            )
    return _draw_page(title, parts, bottom + 50)


def _draw_words(words: Mapping[str, int], top: float) -> tuple[list[str], float]:
    """Draw words in lines; the more common a word is, the larger it is drawn."""
    parts, x, y, most = list[str](), 12.0, top, max(words.values())
    for number, (word, count) in enumerate(words.items()):
        size = 11 + 15 * math.sqrt(count / most)
        # Chinese characters are as wide as high, Latin letters about half as wide.
        width = sum(size if ord(letter) > 0x2E80 else 0.58 * size for letter in word) + 14
        if x + width > _WIDTH - 12:
            x, y = 12.0, y + 30
        parts.append(_draw_text(x, y + 20, word, size=size, colour=COLOURS[number % 4]))
        x += width
    return parts, y + 34


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _draw_text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: int = 400, size: float = 12, colour: str = "#111"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size:.1f}" '
        f'fill="{colour}">{escape(text)}</text>'
    )


def _draw_page(title: str, parts: Sequence[str], height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" '
        f'height="{height:.0f}" font-family="system-ui, sans-serif" role="img" aria-label="{escape(title)}">'
    )
    ground = f'<rect width="{_WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([head, ground, _draw_text(12, 22, title, weight=600, size=15), *parts, "</svg>"]) + "\n"
