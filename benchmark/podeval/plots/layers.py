"""Draw layers of boxes, one above another, with lines between neighbouring layers."""

from collections.abc import Iterable, Sequence

from podeval.plots.svg import Frame, render_text

_LAYER, _HEIGHT = 88, 34
"""Height of a layer with the space above it, and of a box."""


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
