"""A script of one's own: any metric that reads and needs no judge."""

from __future__ import annotations

from typing import Any

import gradio as gr

from podeval.errors import PodevalError
from podeval.metrics import catalogue
from podeval.metrics.inputs import read_input
from tabs.measuring import HEADERS, SINGLE, choices, measured

INPUTS = ("text", "passage")
EXAMPLE = "Mia: Chains wear out at the pins.\nJon: And every pin loses a hair. A hundred hairs make a finger."


def build() -> None:
    """Put the tab's components where they are called for."""
    gr.Markdown("Measure a script: lines of `Name: words`, plain text, or a list of turns as JSON.")
    text = gr.Textbox(EXAMPLE, lines=10, max_length=200_000, label="Script")
    known = choices(INPUTS)
    names = gr.CheckboxGroup(known, value=[name for _, name in known], label="Metrics")
    run = gr.Button("Measure", variant="primary")
    values = gr.Dataframe(headers=list(HEADERS), label="Values", interactive=False, wrap=True)
    with gr.Accordion("Protocols", open=False):
        protocols = gr.JSON(label="How each value came about")
    run.click(measure, [text, names], [values, protocols], **SINGLE)


def measure(text: str, names: list[str]) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """All chosen metrics."""
    if not text.strip():
        raise gr.Error("Enter a script first.")
    rows: list[tuple[Any, ...]] = []
    protocols = {}
    try:
        for name in names:
            inputs = {one: read_input(one, text) for one in catalogue.get(name).inputs}
            more, result = measured(name, inputs)
            rows += more
            protocols[name] = result["protocol"]
    except PodevalError as error:
        raise gr.Error(str(error)) from error
    return rows, protocols
