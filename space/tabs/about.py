"""About: what this board is, its rules in a few lines, and where programs and readers go on."""

from __future__ import annotations

from typing import Any

import gradio as gr


def build(texts: dict[str, Any]) -> None:
    """Put the tab's components where they are called for.

    Args:
        texts: the texts of the tab, in its language.
    """
    gr.Markdown(f"# {texts['title']}\n\n{texts['content']}", elem_id="about-content")
