"""Score: any metric of this machine on a recording or script of one's own, where the operator lets visitors measure."""

from __future__ import annotations

from typing import Any

import gradio as gr
from tab_parts import place_folded_table
from website import Site

from podeval.errors import PodevalError
from podeval.metrics.description import VISITOR_INPUTS
from podeval.metrics.inputs import MetricInputs
from tabs.measuring import (
    SINGLE,
    choose_metrics,
    list_rows,
    measure_item,
    place_of_problem,
    render_problem,
    render_values_table,
)
from tabs.recording import RecordingPart

INPUTS = VISITOR_INPUTS["script"]
EXAMPLE = "Mia: Chains wear out at the pins.\nJon: And every pin loses a hair. A hundred hairs make a finger."


class ScriptPart:
    """The part of the tab for scripts, in one language.

    Args:
        site: the site of the texts.
        language: the language of the texts.
    """

    def __init__(self, site: Site, language: str) -> None:
        self._all_texts, self._language = site.texts[language], language
        self._texts = self._all_texts["score"]

    def build(self) -> None:
        """Put the components where they are called for."""
        texts = self._texts
        gr.Markdown(texts["script_about"])
        text = gr.Textbox(EXAMPLE, lines=10, max_length=200_000, label=texts["script"])
        names = choose_metrics("script", texts["metrics"], self._language)
        run = gr.Button(texts["measure"], variant="primary")
        wrong = place_of_problem("script-problem")
        values = place_folded_table("script-values", texts["values"])
        with gr.Accordion(texts["protocols"], open=False):
            protocols = gr.JSON(label=texts["protocols_about"])
        run.click(self.measure, [text, names], [wrong, values, protocols], **SINGLE)

    def measure(self, text: str, names: list[str]) -> tuple[str, str, dict[str, Any]]:
        """What `measure_rows` gives, with the values as HTML."""
        wrong, rows, protocols = self.measure_rows(text, names)
        return wrong, render_values_table(rows, self._texts), protocols

    def measure_rows(self, text: str, names: list[str]) -> tuple[str, list[tuple[Any, ...]], dict[str, Any]]:
        """What is wrong, if anything is; and the values of all chosen metrics with their protocols."""
        rows: list[tuple[Any, ...]] = []
        protocols: dict[str, Any] = {}
        if not text.strip():
            return render_problem(self._texts["enter_script"]), rows, protocols
        try:
            inputs = MetricInputs(dict.fromkeys(INPUTS, text), keep=True)
            inputs.read()  # what cannot be read is said before anything is measured
            for name in names:
                metric, result = measure_item(name, inputs)
                rows += list_rows(metric, result, self._all_texts, self._language)
                protocols[name] = result["protocol"]
        except PodevalError as error:
            return render_problem(str(error)), rows, protocols
        return "", rows, protocols


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
