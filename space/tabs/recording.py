"""A recording of one's own: any metric that hears, with its course over time."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
import pandas as pd
from gradio_routes import LARGEST_UPLOAD

from podeval.audio import transcode
from podeval.audio.formats.duration import read_container_and_seconds
from podeval.errors import BadInput, PodevalError
from podeval.metrics.inputs import MetricInputs
from podeval.submissions import sandbox
from tabs.measuring import (
    SINGLE,
    choose_metrics,
    list_offered,
    measure_item,
    place_of_problem,
    problem,
    table_of_values,
    timeline,
)

SECONDS = 300
"""The longest recording: the machine is that of the board."""

CHANNELS, RATES = 8, (1_000, 192_000)
LIMITS = sandbox.SandboxLimits(
    wall_seconds=60.0, memory_bytes=2 * 2**30, processes=64, output_bytes=2**30, output_files=20
)
"""Of the process that decodes. Five minutes of stereo at 192 kHz are 0.46 GB of samples; what takes more than a GB with
its copy is refused."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

NEEDS_WORDS = tuple(metric.name for metric in list_offered("recording") if "reference_text" in metric.inputs)
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def build() -> None:
    """Put the tab's components where they are called for."""
    gr.Markdown(
        f"Measure a recording of your own, up to {SECONDS // 60} minutes and {LARGEST_UPLOAD // 2**20} MB (a longer or "
        "larger one: `podeval score FILE` on your own machine), with the models this machine has. It is measured here, "
        "sent nowhere, and deleted within the hour."
    )
    audio = gr.Audio(sources=["upload"], type="filepath", buttons=[], label="Recording")
    words = gr.Textbox(lines=4, max_length=20_000, label="Words that should be heard (for WER and CER)")
    without = [metric.name for metric in list_offered("recording") if metric.name not in NEEDS_WORDS]
    names = choose_metrics("recording", without)
    run = gr.Button("Measure", variant="primary")
    wrong = place_of_problem("recording-problem")
    values = table_of_values()
    results = gr.State({})
    which = gr.Dropdown([], label="Over time", interactive=True, visible=False)
    course = gr.LinePlot(x="seconds", y="value", color="key", label="Over time", visible=False)
    with gr.Accordion("Protocols", open=False):
        protocols = gr.JSON(label="How each value came about")
    run.click(measure, [audio, words, names], [wrong, values, results, which, course, protocols], **SINGLE)
    which.change(plot_course, [which, results], course, **PRIVATE)


def measure(audio: str | None, words: str, names: list[str], progress: Any = None) -> Iterator[tuple[Any, ...]]:
    """Metric by metric, what was found so far, and before it what is wrong."""
    progress = progress or gr.Progress()
    rows: list[tuple[Any, ...]] = []
    results: dict[str, Any] = {}

    def so_far(wrong: str = "") -> tuple[Any, ...]:
        protocols = {name: result["protocol"] for name, result in results.items()}
        return problem(wrong), rows, results, *_courses(results), protocols

    if missing := _missing(audio, words, names):
        yield so_far(missing)
        return
    assert audio
    try:
        with decoded(Path(audio)) as copy:
            sources = {"recording": copy, **({"reference_text": words} if words.strip() else {})}
            inputs = MetricInputs(sources, keep=True)
            inputs.read()  # what cannot be read is said before anything is measured
            for number, name in enumerate(names):
                progress((number, len(names)), desc=name)
                more, results[name] = measure_item(name, inputs)
                rows += more
                yield so_far()
    except PodevalError as error:
        yield so_far(str(error))


def _missing(audio: str | None, words: str, names: list[str]) -> str:
    """What a visitor has to choose or enter first; empty where nothing is missing."""
    if not audio:
        return "Choose a recording first."
    if not names:
        return "Choose a metric first."
    if "wer" in names and not words.strip():
        return "WER compares with words: enter what should be heard, or leave WER out."
    return ""


@contextmanager
def decoded(path: Path) -> Iterator[Path]:
    """A copy of a stranger's file for as long as the block runs; what is said of it names the file alone.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    copy = None
    try:
        copy = decode_apart(path)
        yield copy
    except PodevalError as error:
        # Where the upload lies is nobody's business, nor where its copy does.
        raise BadInput(str(error).replace(str(copy), path.name).replace(str(path), path.name)) from None
    finally:
        if copy is not None:
            shutil.rmtree(copy.parent, ignore_errors=True)


def decode_apart(path: Path) -> Path:
    """A copy of a stranger's file in FLAC of our own making, in a new folder, which belongs to who called.

    Its header is read here, which bounds what it may decode to. It is decoded in a process of its own, with an end to
    its memory, time and bytes; in a sandbox where there is one, as submissions are.

    Raises:
        BadInput: it is not audio, too long, or took too much.
    """
    if read_container_and_seconds(path)[1] > SECONDS:
        raise BadInput(f"the recording is longer than {SECONDS} s; choose a part of it")
    folder = Path(tempfile.mkdtemp(prefix="podeval-try-"))
    try:
        source, out = folder / f"recording{path.suffix}", folder / "out"
        shutil.copyfile(path, source)
        out.mkdir()
        bounds = transcode.Bounds(SECONDS + 1, 0.0, CHANNELS, RATES)
        transcode.write_job(out / "job.json", {"recording": source}, out, bounds)
        command = sandbox.python("podeval.audio.transcode", str(out / "job.json"))
        box = sandbox.SandboxSpec(
            command, out, [source], LIMITS, _ONE_THREAD, trusted=sandbox.explain_missing_isolation() is not None
        )
        ended = sandbox.run(box)
        return _copy(out, path.name, ended.failure)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _copy(out: Path, name: str, failure: str | None) -> Path:
    """What a decoding process left, moved beside its folder, which was its to write to.

    Raises:
        BadInput: it refused the file, or did not end well.
    """
    try:
        with (out / transcode.REPORT).open("rb") as report:
            report_data = transcode.Transcoded(**json.loads(report.readline(2**16)))
    except (OSError, ValueError, TypeError):
        raise BadInput(f"{name} cannot be decoded here ({failure or 'it said nothing'}); export it again") from None
    if report_data.refused:
        raise BadInput(report_data.refused.replace("recording", name, 1))
    copy = out / f"recording.{'wav' if str(report_data.file).endswith('.wav') else 'flac'}"
    if copy.is_symlink() or not copy.is_file():
        raise BadInput(f"{name} cannot be decoded here; export it again")
    return copy.rename(out.parent / copy.name)


def plot_course(name: str | None, results: dict[str, Any]) -> gr.LinePlot:
    """The course of a metric."""
    frame = timeline(results[name]) if name in results else pd.DataFrame()
    return gr.LinePlot(frame, x="seconds", y="value", color="key", visible=len(frame) > 1)


def _courses(results: dict[str, Any]) -> tuple[gr.Dropdown, gr.LinePlot]:
    """The metrics that have one to choose from, and that of the last."""
    names = [name for name, result in results.items() if len(timeline(result)) > 1]
    last = names[-1] if names else None
    return gr.Dropdown(names, value=last, visible=bool(names)), plot_course(last, results)
