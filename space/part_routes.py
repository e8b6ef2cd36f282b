"""Routes of parts: what a component of a tab asks for at the tab's own address, by a header; and the style it has."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

HERE = Path(__file__).parent
PART = "x-podeval-part"
"""Header of a request of a component for its content, without the page around it."""
PARTS_STYLES = ("site.css", "board.css", "arena.css", "submit.css", "score.css")
OF_ONE_PART = {"compare.css": "board-compare"}
"""Styles whose rules hold in one part alone, by its element id."""


@cache
def build_parts_style() -> str:
    """The rules of documents as they hold within parts of tabs, and there alone."""
    rules = "\n".join((HERE / "static" / name).read_text(encoding="utf-8") for name in PARTS_STYLES)
    # Gradio's own rules name a class and an attribute: these weigh more.
    text = f".podeval-part.podeval-part.podeval-part {{\n{rules}\n}}\n"
    for name, part in OF_ONE_PART.items():
        text += f"#{part} .podeval-part {{\n{(HERE / 'static' / name).read_text(encoding='utf-8')}\n}}\n"
    return text


class PartRoute(APIRoute):
    """Answers what a component of a tab asks for; the same address without its header is the tab's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether this route answers."""
        if PART not in Headers(scope=scope):
            return Match.NONE, {}
        return super().matches(scope)
