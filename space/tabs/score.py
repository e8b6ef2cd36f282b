"""Score: any metric of this machine on a recording or script of one's own, where the operator lets visitors measure."""

from __future__ import annotations

from typing import Any

import gradio as gr

from tabs import recording, script

PARTS_ID = "score-tabs"
"""The element id of the parts in Gradio's configuration."""


def build(texts: dict[str, Any], measuring: bool) -> None:
    """Put the tab's components where they are called for.

    Args:
        texts: of the tab, in its language.
        measuring: whether visitors may measure.
    """
    gr.Markdown(f"# {texts['title']}\n\n{texts['intro'] if measuring else texts['shut']}", elem_id="score-about")
    if not measuring:
        return
    with gr.Tabs(elem_id=PARTS_ID):
        with gr.Tab(texts["recording"], id="recording"):
            recording.build()
        with gr.Tab(texts["script"], id="script"):
            script.build()
