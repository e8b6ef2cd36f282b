"""The Score tab: any metric on this machine, for a visitor's recording or script, if the operator allows this."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import gradio_addresses
from error_messages import translate
from gradio_addresses import UNUSED_SECONDS
from gradio_events import WAITING
from markupsafe import Markup
from measure_apart import SECONDS, MeasuringTurn, open_decoded, score_apart, score_script_apart
from pages.score import EXAMPLES, read_example
from tab_parts import TabPart, answer_part
from website import Site

from podeval.board.columns import get_column
from podeval.errors import BadInput, PodevalError
from podeval.measuring.isolated import ScoreSession, read_results
from podeval.measuring.report import list_sections
from podeval.measuring.score_tables import describe_facts, sum_up
from podeval.measuring.verdict import ReportWords
from podeval.metrics import Metric, catalogue
from podeval.metrics.description import find_score_part
from podeval.reports.page import render_parts
from podeval.text.message_catalogue import FIRST
from podeval.texts import write_sentence

IN_TURN: dict[str, Any] = {"concurrency_limit": WAITING + 1, "api_visibility": "private", "show_progress": "hidden"}
"""Options that make visitors wait in our own queue, because Gradio would have one queue per language, with Gradio's
texts.
"""


OWN = "own"
MOST_SPEAKERS = 6
EXAMPLE = "Mia: Chains wear out at the pins.\nJon: And every pin loses a hair. A hundred hairs make a finger."
PARTS_ID = "score-tabs"
"""The element id of the parts in Gradio's configuration."""


def list_offered(part: str) -> list[Metric]:
    """List the metrics of the embedded profile for which the inputs in a part of the tab are sufficient."""
    return [metric for metric in catalogue.load_all_metrics() if find_score_part(metric) == part]


def name_metric(metric: Metric, language: str) -> str:
    """Return a metric's name in a reader's language."""
    if language == FIRST:
        return metric.title
    return get_column(metric.name, metric.headline.name, metric.dimension).title_in(language)


def choose_metrics(part: str, label: str, language: str) -> gr.CheckboxGroup:
    """Make the component that offers the metrics of a part; links to the tab choose a metric by its element id.

    Args:
        part: the part of the tab.
        label: the label of the component.
        language: the language of the names.
    """
    choices = [(name_metric(metric, language), metric.name) for metric in list_offered(part)]
    value = [name for _, name in choices]
    return gr.CheckboxGroup(choices, value=value, label=label, elem_id=f"score-{part}-metrics")


def check_names(names: Sequence[str], part: str) -> list[str]:
    """Return each of the named metrics once, after checking that a part of the tab offers them.

    Raises:
        BadInput: a named metric is not measured here, or there are more names than metrics.
    """
    offered = [metric.name for metric in list_offered(part)]
    if wrong := [name for name in [*names[: len(offered)], *names[-1:]] if name not in offered]:
        raise BadInput(write_sentence("metric-not-measured", metric=f"{wrong[0][:60]!r}", choices=", ".join(offered)))
    if len(names) > len(offered):
        raise BadInput(write_sentence("metrics-named-often", count=len(names), most=len(offered)))
    return list(dict.fromkeys(names))


def render_problem(sentence: str) -> str:
    """Render an error sentence for its place in the tab."""
    return f'<p class="error">{escape(sentence)}</p>' if sentence else ""


def render_work(texts: Mapping[str, Any], what: str, at: float | None = None) -> str:
    """Render the line about the current step; `at` is the finished share of the work."""
    label = escape(texts["working"]["label"])
    bar = "" if at is None else f'<progress id="progress" value="{at:.3f}" aria-label="{label}"></progress> '
    return f"<p>{bar}{escape(what)} …</p>"


def make_answers(part: str) -> list[gr.HTML]:
    """Make the places for the current step, for errors, and for the results."""
    roles = {"progress": "status", "problem": "alert", "values": "group"}
    return [answer_part(f"{part}-{name}", role) for name, role in roles.items()]


NEEDS_WORDS = tuple(metric.name for metric in list_offered("recording") if "reference_text" in metric.inputs)


class ScorePart(TabPart):
    """A part of the tab that measures recordings or scripts."""

    TEXTS = "score"

    def _wait_in_line(self, turn: MeasuringTurn) -> Iterator[tuple[str, str, str]]:
        """Report the number of people ahead of a visitor until nobody is ahead."""
        while before := turn.wait():
            yield render_work(self._texts, self._texts["working"]["turn"].format(before)), "", ""

    def _show(self, request: gr.Request, lines: Sequence[Mapping[str, Any]], title: str, report: str = "") -> str:
        """Show the results so far with the texts of `podeval score`: the verdict, defects and values, and collapsed
        details.

        Args:
            request: the visitor's request.
            lines: the lines of the program that scores.
            title: name of the recording or script.
            report: name of the complete report, once it exists.
        """
        if (results := read_results(lines, title)) is None:
            return ""
        words = ReportWords(self._language)
        values, *details = [section for section in list_sections(results, words) if section.parts]
        return self._render(
            request,
            "score_values.html",
            title=results.name,
            about=describe_facts(results, words),
            # The parts of a report escape all text that they contain.
            verdict=Markup(render_parts(sum_up(results, words))),
            table=Markup(render_parts(values.parts)),
            details=[(each.title, Markup(render_parts(each.parts))) for each in details],
            report=report,
        )


class RecordingPart(ScorePart):
    """The part of the tab for recordings."""

    def build(self) -> None:
        """Place the components."""
        texts = self._texts
        gr.Markdown(texts["about"].format(SECONDS // 60, gradio_addresses.LARGEST_UPLOAD // 2**20))
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
            upsample = gr.Checkbox(label=texts["upsample"], elem_id="score-upsample")
        run = gr.Button(texts["measure"], variant="primary", elem_id="score-measure")
        answers = make_answers("score")
        quick: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
        which.input(self.choose, which, [fields, player], **quick)
        audio.change(self.look_at, audio, answers[1], **quick)
        run.click(
            self.measure,
            [which, audio, words, speakers, names, upsample],
            answers,
            concurrency_id="recording",
            **IN_TURN,
        )

    def choose(self, request: gr.Request, which: str) -> tuple[Any, str]:
        """Show the fields for the visitor's own recording, or the chosen example with a player."""
        if which not in EXAMPLES:
            return gr.Column(visible=True), ""
        _, words, _ = read_example(which)
        example = self._render(request, "score_example.html", name=which, words=words)
        return gr.Column(visible=False), example

    def look_at(self, audio: str | None) -> str:
        """Return the fault in a newly chosen recording; empty if none is known."""
        return render_problem(self._too_large(audio) if audio else "")

    def measure(
        self,
        request: gr.Request,
        which: str,
        audio: str | None,
        words: str,
        speakers: int,
        names: list[str],
        upsample: bool = False,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the current step, errors, and the results so far, each time they change."""
        if missing := self._missing(which, audio, words, names):
            yield "", render_problem(missing), ""
            return
        session, title = ScoreSession(), self._texts["examples"].get(which) or Path(str(audio)).name
        try:
            names = check_names(names, "recording")
            self._site.limit_measuring(request.request)
            with MeasuringTurn("recording") as turn, self._chosen(which, audio) as (path, known_words, count):
                yield from self._wait_in_line(turn)
                yield render_work(self._texts, self._texts["working"]["reading"]), "", ""
                with open_decoded(path) as copy:
                    count_sent, script = 0, known_words or words
                    inputs = (copy, title, script, count or speakers, names, self._language)
                    for session in score_apart(*inputs, upsample=bool(upsample)):
                        # Unchanged parts are not sent again, so a section that someone expanded stays expanded.
                        is_new, count_sent = len(session.lines) > count_sent, len(session.lines)
                        so_far = self._texts["so_far"].format(title)
                        values = self._show(request, session.lines, so_far) if is_new else gr.skip()
                        yield (
                            render_work(self._texts, session.what or self._texts["working"]["reading"], session.at),
                            "",
                            values,
                        )
        except PodevalError as error:
            yield "", render_problem(self._explain(error)), self._show(request, session.lines, title)
            return
        finally:
            # The file may be measured again with other metrics.
            self._site.files.keep(str(audio), UNUSED_SECONDS)
        report = self._site.services.score_reports.keep(session.report)
        yield (
            "",
            render_problem(translate(session.problem, self._refused)[0]),
            self._show(request, session.lines, title, report),
        )

    @contextmanager
    def _chosen(self, which: str, audio: str | None) -> Iterator[tuple[Path, str, int]]:
        """Return the file to measure, with its words and number of speakers if known."""
        if which not in EXAMPLES:
            yield Path(str(audio)), "", 0
            return
        content, words, count = read_example(which)
        with tempfile.TemporaryDirectory(prefix="podeval-example-") as folder:
            path = Path(folder, f"{which}.flac")
            path.write_bytes(content)
            yield path, words, count

    def _missing(self, which: str, audio: str | None, words: str, names: Sequence[str]) -> str:
        """Return a sentence that requests a missing choice or input; empty if nothing is missing."""
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
        most = gradio_addresses.LARGEST_UPLOAD
        return self._texts["too_large"].format(f"{size / 2**20:.1f}", f"{most / 2**20:g}") if size > most else ""


class ScriptPart(ScorePart):
    """The part of the tab for scripts."""

    def build(self) -> None:
        """Place the components."""
        texts = self._texts
        gr.Markdown(texts["script_about"])
        text = gr.Textbox(EXAMPLE, lines=10, max_length=200_000, label=texts["script"])
        names = choose_metrics("script", texts["metrics"], self._language)
        run = gr.Button(texts["measure"], variant="primary")
        run.click(self.measure, [text, names], make_answers("script"), concurrency_id="script", **IN_TURN)

    def measure(self, request: gr.Request, text: str, names: list[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the current step, errors, and the values of all chosen metrics."""
        texts = self._texts
        if not text.strip():
            yield "", render_problem(texts["enter_script"]), ""
            return
        try:
            self._site.limit_measuring(request.request)
            names = check_names(names, "script")
            with MeasuringTurn("script") as turn:
                yield from self._wait_in_line(turn)
                yield render_work(texts, texts["working"]["script"]), "", ""
                lines = score_script_apart(text, names)
        except PodevalError as error:
            yield "", render_problem(self._explain(error)), ""
            return
        yield "", "", self._show(request, lines, texts["script"])


def build(site: Site, language: str, measuring: bool) -> None:
    """Place the tab's components.

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
