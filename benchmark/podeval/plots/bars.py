"""Draw counts: bars of groups, words by how common they are, and histograms with means."""

import math
from collections.abc import Mapping, Sequence

from podeval.plots.axis import Axis
from podeval.plots.svg import Frame, measure_text, render_axis_beside, render_bar, render_text

_WIDTH, _LINE = 960, 20


def draw_bars(title: str, groups: Mapping[str, Mapping[str, int]], words: Mapping[str, int] | None = None) -> str:
    """Draw groups of counts below one another, each count with its share of the group; then words, common ones larger.

    Args:
        title: title above the plot.
        groups: counts by label by group.
        words: how often each word occurs.
    """
    content, y = render_text(12, 22, title, "strong", size=15), 34.0
    for number, (name, counts) in enumerate(groups.items()):
        content += render_text(12, y + 18, name, "strong")
        y += 28
        # A bar for each label, its length relative to the group's largest count.
        total, most = sum(counts.values()), max(counts.values(), default=0)
        for label, count in counts.items():
            width = 560 * count / most if most else 0
            content += render_text(200, y + 14, label, anchor="end")
            content += render_bar(f"c{number % 4}", 208, y + 2, width, 15)
            content += render_text(214 + width, y + 14, f"{count} ({count / total:.1%})" if total else "0")
            y += _LINE
        y += 8
    if words:
        content += render_text(12, y + 18, "commonest topics", "strong")
        drawn, y = _draw_words(words, y + 30)
        content += drawn
    return Frame(title, _WIDTH, alone=True).render(round(y + 12), content)


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
    left, right, top, bottom = 60.0, _WIDTH - 20.0, 70.0, 370.0
    up = Axis(0, most, bottom, top, tuple((most * part / 4, f"{most * part / 4:.0f}") for part in range(5)))
    along = Axis(0, width * bins, left, right, ())
    content = render_text(12, 22, title, "strong", size=15) + render_axis_beside(up, left, right)
    for number in range(0, bins + 1, max(1, bins // 12)):
        content += render_text(along.at(width * number), bottom + 16, f"{width * number:g}", anchor="middle")
    content += render_text((left + right) / 2, bottom + 36, x_label, anchor="middle")
    bar = (right - left) / bins / max(1, len(series))
    for position, (name, each) in enumerate(series.items()):
        css, mean = f"c{position % 4}", sum(each) / len(each) if each else None
        for number, count in enumerate(counts[name]):
            x, y = along.at(width * number) + bar * position, up.at(count)
            content += render_bar(css, x, y, max(bar - 1, 0.5), bottom - y)
        text = f"{name}: {len(each)}" + (f", mean {mean:.1f}" if mean is not None else "")
        content += render_bar(css, 12 + 300 * position, 42, 12, 12) + render_text(30 + 300 * position, 52, text)
        if mean is not None:
            x, dashes = along.at(mean), f'stroke-dasharray="{6 + 4 * position} 4"'
            content += f'<line class="{css} mean" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" {dashes}/>'
    return Frame(title, _WIDTH, alone=True).render(bottom + 50, content)


def _draw_words(words: Mapping[str, int], top: float) -> tuple[str, float]:
    """Draw words in lines; the more common a word is, the larger it is drawn."""
    content, x, y, most = "", 12.0, top, max(words.values())
    for number, (word, count) in enumerate(words.items()):
        size = 11 + 15 * math.sqrt(count / most)
        width = measure_text(word, size) + 14
        if x + width > _WIDTH - 12:
            x, y = 12.0, y + 30
        content += render_text(x, y + 20, word, f"c{number % 4}", size=size)
        x += width
    return content, y + 34
