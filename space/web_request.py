"""The request of a reader's browser that an event of Gradio's came with."""

from __future__ import annotations

import gradio as gr
from fastapi import Request


def web_request(event: gr.Request) -> Request:
    """Return the browser's request of an event.

    Args:
        event: as Gradio hands it to a function.
    """
    assert event.request is not None, "Gradio calls our functions for requests alone"
    request: Request = event.request
    return request
