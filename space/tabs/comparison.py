"""Two systems of the leaderboard side by side: chosen in fields of Gradio's, shown by a part of ours.

The part asks the route of the document /compare for its content, in which strangers' words are escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import urlencode

import gradio as gr
from components.part import make_part
from web_request import get_web_request
from website import Site

from podeval.errors import PodevalError
from podeval.leaderboard.compare import list_sides

RATE = "120/minute"
LONGEST_ID = 200
EVENT: dict[str, Any] = {
    "api_visibility": "private", "queue": False, "show_progress": "hidden", "preprocess": False,
}  # fmt: skip


def build(site: Site, language: str, app: gr.Blocks) -> None:
    """Put the components where they are called for, and say what happens.

    Args:
        site: the site of the systems.
        language: the language of the fields.
        app: the app that is being built.
    """
    texts = site.texts[language]["compare"]
    make_part("compare-head", content=f"<h2>{escape(texts['in_tab'])}</h2>")
    with gr.Row(elem_id="compare-fields"):
        fields = [
            gr.Dropdown([], label=texts[name], elem_id=f"f-compare-{letter}", interactive=True, min_width=160)
            for name, letter in (("first", "a"), ("second", "b"))
        ]
    view = make_part("board-compare", "compare_part.js")

    def arrive(request: gr.Request) -> list[Any]:
        """The systems there are."""
        site.limit(get_web_request(request), RATE, "comparison")
        try:
            board = site.results.board()
            systems = [(side.title, side.system) for side in list_sides(board)] if len(board) else []
        except PodevalError:
            systems = []
        return [gr.Dropdown(choices=systems, value=None, visible=len(systems) > 1) for _ in fields]

    def show(request: gr.Request, a: Any, b: Any) -> Any:
        """The address of what is shown, once two are chosen."""
        site.limit(get_web_request(request), RATE, "comparison")
        if not all(isinstance(id, str) and 0 < len(id) <= LONGEST_ID for id in (a, b)):
            return gr.skip()
        return f"/compare?{urlencode({'a': a, 'b': b})}"

    app.load(arrive, None, fields, **EVENT)
    for field in fields:
        # Who chooses twice before the first answer is there sees the second choice.
        field.input(show, fields, view, trigger_mode="always_last", **EVENT)
