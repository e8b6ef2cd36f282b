"""The picture on a metric's card of biases: each effect as a point with its interval, with 0 in the middle."""

from collections.abc import Sequence

from studies.bias_effects import PartialEffect


def draw(metric: str, effects: Sequence[PartialEffect]) -> str:
    """Draw the effects of one metric: a panel for each key, and a line for each effect with its interval; 0 is in the
    middle.
    """
    keys = list(dict.fromkeys(effect.key for effect in effects))
    lines = list(dict.fromkeys((effect.factor, effect.level) for effect in effects))
    left, wide, row, top = 230, 210, 17, 56
    bottom = top + row * len(lines)
    height, width = bottom + 24, max(left + wide * len(keys) + 10, 620)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="11" ',
        f'font-family="system-ui, sans-serif" fill="#1a1a1a"><title>What moves {metric} besides quality</title>',
        f'<rect width="{width}" height="{height}" fill="#fff"/><text x="8" y="18" font-size="13" font-weight="600">',
        f"{metric}: difference from the plain clip of the same voice</text>",
    ]
    for number, (factor, level) in enumerate(lines):
        count = max(effect.voices for effect in effects if (effect.factor, effect.level) == (factor, level))
        parts.append(f'<text x="8" y="{top + row * number + 12}">{factor}: {level} ({count})</text>')
    for column, key in enumerate(keys):
        of_key = {(e.factor, e.level): e for e in effects if e.key == key}
        bounds = [abs(bound) for e in of_key.values() for bound in (e.effect, e.low, e.high) if bound]
        reach, middle = max(bounds, default=1.0), left + wide * column + wide / 2
        parts.append(f'<text x="{middle}" y="40" text-anchor="middle">{key.partition(".")[2]}, ±{reach:.3g}</text>')
        parts.append(f'<line x1="{middle}" x2="{middle}" y1="{top - 8}" y2="{bottom}" stroke="#767676"/>')
        for number, line in enumerate(lines):
            if effect := of_key.get(line):
                parts += _mark(effect, middle, (wide / 2 - 16) / reach, top + row * number + 8)
    parts.append(
        f'<text x="8" y="{height - 8}" fill="#555">Full: the 95 % interval leaves out 0. In brackets: how many voices. '
        "Made by studies/bias.py.</text></svg>\n"
    )
    return "".join(parts)


def _mark(effect: PartialEffect, middle: float, scale: float, y: float) -> list[str]:
    """Return one effect as a point with its interval; the point is filled if the interval does not contain 0."""
    at = middle + scale * effect.effect
    if effect.low is None or effect.high is None:
        return [f'<circle cx="{at:.1f}" cy="{y}" r="3.5" fill="#fff" stroke="#1a1a1a"/>']
    ends = (middle + scale * effect.low, middle + scale * effect.high)
    fill = "#fff" if effect.low <= 0 <= effect.high else "#1a1a1a"
    return [
        f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}" stroke="#444"/>',
        f'<circle cx="{at:.1f}" cy="{y}" r="3.5" fill="{fill}" stroke="#1a1a1a"/>',
    ]
