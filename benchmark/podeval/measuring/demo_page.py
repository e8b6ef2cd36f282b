"""A page for trying one metric on one file; the widget of `evaluate` does not work with current versions of Gradio.

On a Space, visitors are strangers: their recordings are decoded in a separate process, their texts cannot name files,
and they cannot choose a judge, because a judge is sent the owner's API key.
"""

import os
from typing import Any

import gradio as gr

from podeval.errors import PodevalError
from podeval.measuring.compute import compute
from podeval.measuring.inputs import RECORDS, MetricInputs
from podeval.metrics import catalogue
from podeval.metrics.description import choose_own_profile
from podeval.metrics.facts import INPUTS
from podeval.metrics.judge_use import JudgeConfig
from podeval.recording import Recording
from podeval.recording.recording import read_source
from podeval.recording.reference_voices import ReferenceVoices


def page(name: str) -> gr.Interface:
    """Build the page of a metric, with fields for its inputs and its result as JSON."""
    metric = catalogue.get(name)
    profile = choose_own_profile(metric)
    fields = {name: _field(name) for name in metric.inputs}
    is_own = metric.asks and not os.environ.get("SPACE_ID")
    judges = [gr.Textbox(lines=1, label="The judge, as MODEL@https://host/v1")] if is_own else []

    def score(*entered: Any) -> dict[str, Any]:
        # Refuse empty fields, then measure.
        entries, judge = entered[: len(fields)], entered[len(fields) :]
        if empty := [INPUTS[name] for name, item in zip(fields, entries, strict=True) if not item]:
            raise gr.Error(f"Choose a file or enter a text first: {' and '.join(empty)}.")
        try:
            opened = {name: _open(name, item, profile) for name, item in zip(fields, entries, strict=True)}
            inputs = MetricInputs(opened, profile=profile).read()
            bench = JudgeConfig(str(judge[0] or "")) if judge else JudgeConfig()
            names = tuple(inputs)
            return compute(metric, [inputs], input_names=names, profile=profile, bench=bench, timelines=False)
        except PodevalError as error:
            raise gr.Error(str(error)) from error

    return gr.Interface(
        score, [*fields.values(), *judges], gr.JSON(label="Result"), title=metric.title, description=metric.about
    )


def _open(name: str, item: Any, profile: str) -> Any:
    """Return an input as entered, but never as the name of a file; a recording is decoded in a separate process."""
    openers: dict[str, Any] = {"recording": Recording.open, "reference_voices": ReferenceVoices.read}
    if name in openers:
        return openers[name](item, apart=True, profile=profile)
    if name == "recordings":
        return [read_source(Recording.open(file, apart=True, profile=profile)) for file in item]
    # Without a line break, records would be treated as the name of a file on this machine.
    return f"{item}\n" if name in RECORDS else item


def _field(name: str) -> gr.components.Component:
    """Return the component for entering an input."""
    label = INPUTS[name][0].upper() + INPUTS[name][1:]
    if name in ("recording", "reference_voices"):
        return gr.Audio(type="filepath", label=label)
    if name == "recordings":
        return gr.File(file_count="multiple", type="filepath", label=label)
    return gr.Textbox(lines=8 if name in ("text", "passage", "script", "dialogue") else 4, label=label)
