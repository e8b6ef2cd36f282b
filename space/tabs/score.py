"""Score: any metric of this machine on a recording or script of one's own, where the operator lets visitors measure."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
from gradio_addresses import LARGEST_UPLOAD
from markupsafe import Markup
from measure_apart import SECONDS, ScoreSession, open_decoded, score_apart
from pages.score import EXAMPLES, read_example
from tab_parts import answer_part, place_folded_table
from website import Site, get_web_request

from podeval.errors import PodevalError
from podeval.measuring.inputs import MetricInputs
from podeval.measuring.isolated import read_results
from podeval.measuring.plots import plot_results
from podeval.measuring.recording_results import ScoreRow
from podeval.measuring.report_words import ReportWords
from podeval.measuring.standing import find_usual, format_number, format_reach
from podeval.metrics.description import VISITOR_INPUTS
from podeval.metrics.reasons import translate_reason, translate_unit
from tabs.measuring import (
    MARKS,
    SINGLE,
    choose_metrics,
    list_offered,
    list_rows,
    measure_item,
    name_metric,
    place_of_problem,
    render_problem,
    render_values_table,
)

NEEDS_WORDS = tuple(metric.name for metric in list_offered("recording") if "reference_text" in metric.inputs)
OWN = "own"
MOST_SPEAKERS = 6
_WIDE = 100.0
"""Width of a gauge in its own units."""
INPUTS = VISITOR_INPUTS["script"]
EXAMPLE = "Mia: Chains wear out at the pins.\nJon: And every pin loses a hair. A hundred hairs make a finger."
PARTS_ID = "score-tabs"
"""The element id of the parts in Gradio's configuration."""


class RecordingPart:
    """The part of the tab for recordings, in one language.

    Args:
        site: the site of the templates and texts.
        language: the language of the texts.
    """

    def __init__(self, site: Site, language: str) -> None:
        self._site = site
        self._language = language
        self._texts = site.texts[language]["score"]

    def build(self) -> None:
        """Put the components where they are called for."""
        texts = self._texts
        gr.Markdown(texts["about"].format(SECONDS // 60, LARGEST_UPLOAD // 2**20))
        choices = [(texts["own"], OWN), *((texts["examples"][name], name) for name in EXAMPLES)]
        which = gr.Radio(choices, value=OWN, label=texts["which"], elem_id="score-which")
        with gr.Column() as fields:
            audio = gr.Audio(
                sources=["upload", "microphone"],
                type="filepath",
                buttons=[],
                label=texts["recording"],
                elem_id="score-audio",
            )
            words = gr.Textbox(lines=3, max_length=20_000, label=texts["words"], elem_id="score-words")
            numbers = [(texts["unknown"], 0), *((str(number), number) for number in range(1, MOST_SPEAKERS + 1))]
            speakers = gr.Dropdown(
                numbers, value=0, label=texts["speakers"], filterable=False, elem_id="score-speakers"
            )
        player = answer_part("score-example")
        with gr.Accordion(texts["metrics"], open=False, elem_id="score-choices"):
            names = choose_metrics("recording", texts["metrics"], self._language)
        run = gr.Button(texts["measure"], variant="primary", elem_id="score-measure")
        wrong = place_of_problem("score-problem")
        values = answer_part("score-values")
        with gr.Accordion(texts["protocols"], open=False):
            protocols = gr.JSON(label=texts["protocols_about"])
        quick: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
        which.input(self.choose, which, [fields, player], **quick)
        audio.change(self.look_at, audio, wrong, **quick)
        run.click(self.measure, [which, audio, words, speakers, names], [wrong, values, protocols], **SINGLE)

    def choose(self, request: gr.Request, which: str) -> tuple[Any, str]:
        """The fields for a recording of one's own, or the example that was chosen, to be heard."""
        if which not in EXAMPLES:
            return gr.Column(visible=True), ""
        _, words, _ = read_example(which)
        return gr.Column(visible=False), self._render(request, "score_example.html", name=which, words=words)

    def look_at(self, audio: str | None) -> str:
        """What is wrong with a recording that was just chosen; empty where nothing is known to be."""
        return render_problem(self._too_large(audio) if audio else "")

    def measure(
        self,
        request: gr.Request,
        which: str,
        audio: str | None,
        words: str,
        speakers: int,
        names: list[str],
        progress: Any = None,
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """What is wrong, what was measured so far, and how it came about; whenever there is more of it."""
        progress = progress or gr.Progress()
        if missing := self._missing(which, audio, words, names):
            yield render_problem(missing), "", {}
            return
        is_example = which in EXAMPLES
        session, title = ScoreSession(), self._texts["examples"][which] if is_example else Path(str(audio)).name
        try:
            with self._chosen(which, audio) as (path, known_words, count), open_decoded(path) as copy:
                script = known_words or words
                for session in score_apart(copy, title, script, count or speakers, names, self._language):
                    progress(session.at, desc=session.what)
                    yield "", self._show(request, session, title), {}
        except PodevalError as error:
            yield render_problem(str(error)), self._show(request, session, title), _protocols(session)
            return
        report = self._site.services.score_reports.keep(session.report)
        yield render_problem(session.problem), self._show(request, session, title, report), _protocols(session)

    @contextmanager
    def _chosen(self, which: str, audio: str | None) -> Iterator[tuple[Path, str, int]]:
        """The file that is measured, with its words and how many speak where that is known."""
        if which not in EXAMPLES:
            yield Path(str(audio)), "", 0
            return
        content, words, count = read_example(which)
        with tempfile.TemporaryDirectory(prefix="podeval-example-") as folder:
            path = Path(folder, f"{which}.flac")
            path.write_bytes(content)
            yield path, words, count

    def _missing(self, which: str, audio: str | None, words: str, names: Sequence[str]) -> str:
        """What a visitor has to choose or enter first; empty where nothing is missing."""
        texts = self._texts
        if which not in EXAMPLES:
            if not audio:
                return str(texts["choose_recording"])
            if too_large := self._too_large(audio):
                return too_large
            if set(names) == set(NEEDS_WORDS) and not words.strip():
                return str(texts["enter_words"])
        return "" if names else str(texts["choose_metric"])

    def _too_large(self, audio: str) -> str:
        size = Path(audio).stat().st_size
        most = LARGEST_UPLOAD / 2**20
        return self._texts["too_large"].format(f"{size / 2**20:.1f}", f"{most:g}") if size > LARGEST_UPLOAD else ""

    def _show(self, request: gr.Request, session: ScoreSession, title: str, report: str = "") -> str:
        """What was measured so far, as the page shows it."""
        results = read_results(session.lines, title)
        if results is None:
            return ""
        reasons = self._site.texts[self._language]["board"]["causes"]
        texts = ReportWords(self._language).plots
        pictures = plot_results(results, texts=texts).pictures.values() if results.timelines else ()
        return self._render(
            request,
            "score_values.html",
            title=title,
            results=results,
            rows=[describe_row(row, self._language) for row in results.shown_rows],
            unscored=[(name, translate_reason(one["unscored"], reasons)) for name, one in results.unscored.items()],
            notes=[(name, translate_reason(note, reasons)) for name, of in results.notes.items() for note in of],
            # Drawn here of numbers alone; every text in them is escaped.
            plots=[Markup(picture) for picture in pictures],
            report=report,
        )

    def _render(self, request: gr.Request, template: str, **values: Any) -> str:
        return self._site.render_text(get_web_request(request), template, **values)


def describe_row(row: ScoreRow, language: str) -> dict[str, Any]:
    """A value as the page shows it: in words, and as a gauge beside what people and good systems reach."""
    people, systems = format_reach(row.key)
    word = row.word("embedded")
    return {
        "title": name_metric(row.metric, language),
        "key": "" if row.metric.name == row.key.name else row.key.name,
        "about": row.key.about_in(language) or row.metric.purpose_in(language),
        "value": format_number(row.value),
        "unit": translate_unit(row.key.unit, language),
        "better": row.key.better,
        "people": people,
        "systems": systems,
        "word": word,
        "mark": MARKS.get(word, ""),
        "tone": row.tone("embedded"),
        "gauge": draw_gauge(row),
    }


def draw_gauge(row: ScoreRow) -> dict[str, Any] | None:
    """Where a value lies beside what people and good systems reach, from 0 to 100; None where nobody knows."""
    reach = row.key.reach
    if reach is None or row.value is None or find_usual(row.key) is None:
        return None
    spans = {"people": reach.people, "systems": reach.systems}
    ends = [end for span in spans.values() if span for end in span] + [row.value]
    low, high = min(ends), max(ends)
    spare = (high - low) * 0.2 or abs(high) * 0.2 or 1.0
    lowest, highest = (bound if bound is not None else None for bound in row.key.bounds)
    low = low - spare if lowest is None or lowest == float("-inf") else max(low - spare, lowest)
    high = high + spare if highest is None else min(high + spare, highest)

    def place(value: float) -> float:
        return round(_WIDE * min(1.0, max(0.0, (value - low) / ((high - low) or 1.0))), 2)

    bars = {
        name: {"x": place(span[0]), "width": max(1.0, round(place(span[1]) - place(span[0]), 2))}
        for name, span in spans.items()
        if span
    }
    return {"people": None, "systems": None, **bars, "at": place(row.value)}


def _protocols(session: ScoreSession) -> dict[str, Any]:
    return {line["metric"]: line["protocol"] for line in session.lines if "metric" in line}


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
