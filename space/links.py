"""Addresses that restore what a reader sees."""

from __future__ import annotations

import gradio as gr
from events import QUIET

ABSOLUTE = """(link) => {
  if (!link || link.startsWith('http')) return link;
  return window.location.origin + window.location.pathname + link;
}"""
"""Run in the reader's browser, which alone knows the address of this board behind proxies."""


def link_box() -> gr.Textbox:
    """A box that takes a query string and shows the whole address."""
    # Interactive, so that it can be reached by keyboard; without the copy button, which would take its label.
    box = gr.Textbox(label="Link to this view", interactive=True, max_lines=1)
    box.change(None, [box], [box], js=ABSOLUTE, **QUIET)
    return box
