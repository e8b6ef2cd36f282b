"""The leaderboard as a Gradio table: for Spaces that embed it and for programs that speak with Gradio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr
import pandas as pd

from podeval.errors import PodevalError
from podeval.leaderboard import table
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.view import BoardView, ResolvedView, resolve_view


def build(folder: RunsFolder) -> tuple[Any, list[Any]]:
    """Put the tab's components where they are called for.

    Returns:
        What fills them when somebody arrives, and the components it fills.
    """
    gr.Markdown("Values with 95 % intervals and rank ranges, as on [the board](/), which has filters and plots too.")
    with gr.Row():
        board = gr.Dropdown([], label="Benchmark", interactive=True)
        profile = gr.Dropdown([], label="Profile", interactive=True)
    values = gr.Dataframe(label="Systems", interactive=False, wrap=True)

    def shown(chosen: str | None, of: str | None) -> tuple[Any, Any, pd.DataFrame]:
        """The rows of a benchmark under a profile; what is not known falls to the first."""
        view = settle_view(folder, chosen or "", of or "")
        if view is None:
            return gr.Dropdown([]), gr.Dropdown([]), pd.DataFrame({"": ["Nothing has been measured here yet."]})
        rows = table.build(view)
        return (
            gr.Dropdown(list(view.choices.boards), value=view.view.board),
            gr.Dropdown(list(view.choices.profiles), value=view.view.profile),
            gr.Dataframe(
                pd.DataFrame(rows.display, columns=list(rows.headers)),
                column_widths=[_width(texts) for texts in zip(rows.headers, *rows.display, strict=True)],
            ),
        )

    outputs = [board, profile, values]
    # `input`, not `change`: what the program sets asks for nothing.
    for choice in (board, profile):
        choice.input(shown, [board, profile], outputs, api_visibility="private", queue=False, show_progress="hidden")
    return lambda: shown("", ""), outputs


def _width(texts: Sequence[str]) -> int:
    """Pixels: so wide that no word of a column breaks; on a phone the table scrolls."""
    return min(400, max(130, 10 * max(map(len, texts))))


def rows(folder: RunsFolder, board: str = "", profile: str = "") -> list[dict[str, Any]]:
    """The numbers of a benchmark under a profile, one a row, with interval, ranks, counts and protocol.

    Args:
        folder: of runs.
        board: `benchmark/split`; empty for the first.
        profile: `embedded`, `reference` or `paper`; empty for the first there is.
    """
    view = settle_view(folder, board, profile)
    if view is None:
        return []
    frame = table.tidy(view)
    return list(frame.astype(object).where(frame.notna(), None).to_dict("records"))


def settle_view(folder: RunsFolder, board: str, profile: str) -> ResolvedView | None:
    """The view of a benchmark under a profile; None where nothing has been measured."""
    try:
        index = folder.index()
        return None if index.empty else resolve_view(BoardView(board=board, profile=profile, dimension="all"), index)
    except PodevalError as error:
        raise gr.Error(str(error)) from error
