"""A page that tries one metric on one file; the stock widget of `evaluate` does not work with the present Gradio."""

from pathlib import Path
from typing import Any

import gradio as gr

from podeval.analysis import Recording
from podeval.errors import PodevalError
from podeval.metrics import catalogue
from podeval.metrics.compute import compute
from podeval.text.script import Script


def page(name: str) -> gr.Interface:
    """The page of a metric: what it takes, and its result as JSON."""
    metric = catalogue.get(name)
    hears = metric.inputs[0] == "recording"
    first = gr.Audio(type="filepath", label="Recording") if hears else gr.Textbox(lines=8, label="Script or text")
    texts = [gr.Textbox(lines=4, label="What should be heard")] if "reference_text" in metric.inputs else []

    def score(item: Any, reference: str | None = None) -> dict[str, Any]:
        if not item:
            raise gr.Error("Choose a file or enter a text first.")
        try:
            inputs: dict[str, Any] = {}
            inputs |= {"recording": Recording.open(Path(item))} if hears else {"text": Script.parse(item).text}
            if reference:
                inputs["reference_text"] = Script.parse(reference).text
            result = compute(metric, [inputs], given=tuple(inputs))
        except PodevalError as error:
            raise gr.Error(str(error)) from error
        result["items"] = [{k: v for k, v in item.items() if k != "timeline"} for item in result["items"]]
        return result

    return gr.Interface(score, [first, *texts], gr.JSON(label="Result"), title=metric.title, description=metric.about)
