"""Draw the picture of `podeval score` at the top of the README: the actual table for the tutorial's dialogue.

.venv/bin/python studies/score_picture.py [docs/pictures/score.svg]
"""

import io
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

import podeval
from podeval.measuring.score_tables import build_table

FOLDER = Path(__file__).parents[1] / "docs"


def draw() -> str:
    """Return the picture as SVG."""
    audio = FOLDER / "tutorials" / "audio"
    scores = podeval.score(audio / "dialogue.mp3", text=audio / "dialogue.json")
    console = Console(
        file=io.StringIO(), record=True, width=110, highlight=False, markup=False, emoji=False, force_terminal=True
    )
    console.print("$ podeval score dialogue.mp3 --text dialogue.json")
    console.print(build_table(replace(scores, name="dialogue.mp3")))
    return console.export_svg(title="podeval score", unique_id="score")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "pictures" / "score.svg"
    target.write_text(draw(), encoding="utf-8")
