"""A recording of one's own: any metric that hears, with its course over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pandas as pd

from podeval.analysis import Recording
from podeval.audio.decode import Limits, decode
from podeval.audio.duration import container_and_seconds
from podeval.errors import BadInput, PodevalError
from podeval.metrics.inputs import read_input
from tabs.measuring import SINGLE, choices, measured, place_of_problem, problem, table_of_values, timeline

SECONDS = 300
"""The longest recording: the machine is that of the board."""

INPUTS = ("recording", "reference_text")
FIRST = ["loudness", "dnsmos"]
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def build() -> None:
    """Put the tab's components where they are called for."""
    gr.Markdown(
        f"Measure a recording of your own, up to {SECONDS // 60} minutes, with the models this machine has. It is "
        "measured here, sent nowhere, and deleted within the hour."
    )
    audio = gr.Audio(sources=["upload"], type="filepath", buttons=[], label="Recording")
    words = gr.Textbox(lines=4, max_length=20_000, label="Words that should be heard (for WER and CER)")
    names = gr.CheckboxGroup(choices(INPUTS), value=FIRST, label="Metrics")
    run = gr.Button("Measure", variant="primary")
    wrong = place_of_problem()
    values = table_of_values()
    results = gr.State({})
    which = gr.Dropdown([], label="Over time", interactive=True, visible=False)
    course = gr.LinePlot(x="seconds", y="value", color="key", label="Over time", visible=False)
    with gr.Accordion("Protocols", open=False):
        protocols = gr.JSON(label="How each value came about")
    run.click(measure, [audio, words, names], [wrong, values, results, which, course, protocols], **SINGLE)
    which.change(plotted, [which, results], course, **PRIVATE)


def measure(audio: str | None, words: str, names: list[str], progress: Any = None) -> Iterator[tuple[Any, ...]]:
    """Metric by metric, what was found so far, and before it what is wrong."""
    progress = progress or gr.Progress()
    rows: list[tuple[Any, ...]] = []
    found: dict[str, Any] = {}

    def so_far(wrong: str = "") -> tuple[Any, ...]:
        protocols = {name: result["protocol"] for name, result in found.items()}
        return problem(wrong), rows, found, *_courses(found), protocols

    if missing := _missing(audio, words, names):
        yield so_far(missing)
        return
    assert audio
    try:
        _require_short(Path(audio))
        inputs = {"recording": Recording.open(audio)}
        if words.strip():
            inputs["reference_text"] = read_input("reference_text", words)
        for number, name in enumerate(names):
            progress((number, len(names)), desc=name)
            more, found[name] = measured(name, inputs)
            rows += more
            yield so_far()
    except PodevalError as error:
        # Where the upload lies is nobody's business.
        yield so_far(str(error).replace(audio, Path(audio).name))


def _missing(audio: str | None, words: str, names: list[str]) -> str:
    """What a visitor has to choose or enter first; empty where nothing is missing."""
    if not audio:
        return "Choose a recording first."
    if not names:
        return "Choose a metric first."
    if "wer" in names and not words.strip():
        return "WER compares with words: enter what should be heard, or leave WER out."
    return ""


def _require_short(path: Path) -> None:
    """What the file says of its length, then what it holds: a header may say anything."""
    if container_and_seconds(path)[1] > SECONDS:
        raise BadInput(f"the recording is longer than {SECONDS} s; choose a part of it")
    decode(path, limits=Limits(seconds=SECONDS + 1, channels=8))


def plotted(name: str | None, results: dict[str, Any]) -> gr.LinePlot:
    """The course of a metric."""
    frame = timeline(results[name]) if name in results else pd.DataFrame()
    return gr.LinePlot(frame, x="seconds", y="value", color="key", visible=len(frame) > 1)


def _courses(found: dict[str, Any]) -> tuple[gr.Dropdown, gr.LinePlot]:
    """The metrics that have one to choose from, and that of the last."""
    known = [name for name, result in found.items() if len(timeline(result)) > 1]
    last = known[-1] if known else None
    return gr.Dropdown(known, value=last, visible=bool(known)), plotted(last, found)
