"""Draw the picture with which the Hub and social media show the Spaces.

    .venv/bin/python studies/thumbnail.py space/static/thumbnail.png

The picture contains the name, a description, and intervals like those on a board, which belong to no system. It has the
size of preview cards for links.
"""

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

SIZE = (1200, 630)
GROUND, TEXT, QUIET, ACCENT, OTHER = "#ffffff", "#17202b", "#4b5b6b", "#0b5ea8", "#a84300"
ROWS = ((760, 70, ACCENT), (700, 95, ACCENT), (655, 60, OTHER), (560, 120, ACCENT), (430, 80, OTHER))
"""Centre and half width of each interval, in pixels from the left end of the axis."""


def draw(path: Path) -> None:
    """Draw the picture, and write it to a file."""
    image = Image.new("RGB", SIZE, GROUND)
    pen = ImageDraw.Draw(image)
    # Draw the icon's bars, the name, and the description.
    pen.rounded_rectangle((80, 70, 180, 170), 22, fill=ACCENT)
    for place, (top, height) in enumerate(((110, 20), (95, 50), (104, 32), (86, 68))):
        left = 99 + 16 * place
        pen.rounded_rectangle((left, top, left + 10, top + height), 5, fill=GROUND)
    pen.text((210, 66), "podeval", font=ImageFont.load_default(96), fill=TEXT)
    pen.text((80, 205), "Long-form spoken audio by machines,", font=ImageFont.load_default(44), fill=QUIET)
    pen.text((80, 260), "measured, with error bars", font=ImageFont.load_default(44), fill=QUIET)
    # Draw the intervals.
    pen.line((80, 370, 80, 580), fill=QUIET, width=3)
    for row, (middle, half, colour) in enumerate(ROWS):
        left, right, y = 80 + middle - half, 80 + middle + half, 390 + 43 * row
        pen.line((left, y, right, y), fill=colour, width=6)
        pen.line((left, y - 10, left, y + 10), fill=colour, width=6)
        pen.line((right, y - 10, right, y + 10), fill=colour, width=6)
        pen.ellipse((80 + middle - 11, y - 11, 80 + middle + 11, y + 11), fill=colour)
    image.quantize(32, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
