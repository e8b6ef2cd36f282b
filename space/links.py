"""Addresses that restore what a reader sees."""

from __future__ import annotations

import gradio as gr

ABSOLUTE = """(link) => {
  if (!link || link.startsWith('http')) return link;
  return window.location.origin + window.location.pathname + link;
}"""
"""Run in the reader's browser, which alone knows the address of this board behind proxies."""


def link_box() -> gr.Textbox:
    """A box that takes a query string and shows the whole address, with a button to copy it."""
    box = gr.Textbox(label="Link to this view", interactive=False, buttons=["copy"], max_lines=1)
    box.change(None, [box], [box], js=ABSOLUTE, api_visibility="private", queue=False, show_progress="hidden")
    return box
