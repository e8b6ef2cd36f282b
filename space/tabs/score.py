"""Score: any metric of this machine on a recording or script of one's own, where the operator lets visitors measure."""

from __future__ import annotations

import gradio as gr
from website import Site

from tabs.recording import RecordingPart
from tabs.script import ScriptPart

PARTS_ID = "score-tabs"
"""The element id of the parts in Gradio's configuration."""


def build(site: Site, language: str, measuring: bool) -> None:
    """Put the tab's components where they are called for.

    Args:
        site: the site of the texts and templates.
        language: the language of the tab.
        measuring: whether visitors may measure.
    """
    texts = site.texts[language]["score"]
    gr.Markdown(f"# {texts['title']}\n\n{texts['intro'] if measuring else texts['shut']}", elem_id="score-about")
    if not measuring:
        return
    with gr.Tabs(elem_id=PARTS_ID):
        with gr.Tab(texts["recording"], id="recording"):
            RecordingPart(site, language).build()
        with gr.Tab(texts["script"], id="script"):
            ScriptPart(site, language).build()
