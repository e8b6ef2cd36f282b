"""Submit: the document's fields as Gradio's, filled in from the Hub by a repo's name, looked over, and handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from auth import NotSignedIn
from error_messages import translate
from pages.submit import get_submitter
from submission_form import (
    FormField,
    build_document,
    check_document,
    get_value,
    give_verdict,
    list_fields,
    list_kinds,
    list_refused_rules,
    read_document,
)
from tab_parts import answer_part, make_fetched_part
from website import Site, get_web_request

from podeval import benchmarks
from podeval.errors import PodevalError
from podeval.runs.hf_jobs import HfJobs
from podeval.submissions.author_kit import draft_document
from podeval.submissions.rules import RULES, SubmissionRefused
from podeval.submissions.service import SubmissionService
from podeval.systems.submission_reading import BadDocument
from tabs.recordings_upload import RecordingsUpload, explain_refusal

EVENT: dict[str, Any] = {"api_visibility": "private", "queue": False, "preprocess": False, "show_progress": "minimal"}
CHECK_RATE, SUBMIT_RATE = "20/minute", "20/hour"
SYSTEM, DRAFT = "system", "podeval-submission"
_FOLDED = ("description", "open", "organisation", "authors", "homepage", "code", "paper", "demo", "size_parameters")
"""Fields of a system that most leave empty."""
_KEEP = f"(...values) => {{ sessionStorage.setItem('{DRAFT}', JSON.stringify(values)); }}"
_RESTORE = (
    f"(...values) => {{ const kept = JSON.parse(sessionStorage.getItem('{DRAFT}') ?? '[]');"
    " return kept.length === values.length ? kept : values; }"
)
_FORGET = f"""(answer) => {{ if (answer?.includes('href="/submissions/')) sessionStorage.removeItem('{DRAFT}'); }}"""
"""Only the answer to a submission that was taken has its address in it."""
_IN_BROWSER: dict[str, Any] = {"fn": None, "queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""What is typed never leaves the browser by these events, which have no function on the server."""


class SubmitTab:
    """The tab of one language.

    Args:
        site: the site that receives the submission.
        desk: the desk that takes submissions.
        language: the language of the fields.
    """

    def __init__(self, site: Site, desk: SubmissionService, language: str) -> None:
        self._site, self._desk, self._language = site, desk, language
        self._texts = site.texts[language]["submit"]
        self._refused = site.texts[language]["refused"]
        self._groups: list[str] = []
        self._declared: list[FormField] = []
        self._fields: list[Any] = []
        self._fill: Any = None
        self._repo: Any = None
        self._recordings = RecordingsUpload(site, desk, language)

    def build(self, app: gr.Blocks) -> None:
        """Put the components where they are called for, and say what happens."""
        texts = self._texts
        make_fetched_part("submit-head", "/submit")
        sources = [(texts["kinds"][name], name) for name in list_kinds()]
        kind = gr.Radio(sources, value="model", label=texts["source"], elem_id="submit-kind")
        columns = [self._place_source(name, block) for name, block in list_kinds().items()]
        with gr.Column(visible=False, elem_id="submit-upload") as upload:
            self._recordings.build()
        columns.append(upload)
        tracks = gr.CheckboxGroup(self._tracks(), label=texts["benchmarks"], elem_id="submit-tracks")
        self._place_fields(SYSTEM, list_fields("System", SYSTEM, texts), _FOLDED)
        answer = answer_part("submit-answer")
        with gr.Row():
            check = gr.Button(texts["check"], elem_id="submit-check")
            send = gr.Button(texts["send"], variant="primary", elem_id="submit-send")
        with gr.Accordion(texts["rules"], open=False):
            gr.Markdown("\n".join(f"- **{rule}**: {texts['asks'].get(rule, asks)}" for rule, asks in RULES.items()))
        my_table = make_fetched_part("submit-own", "/submissions", "submit")
        form_inputs = [kind, tracks, *self._fields]
        # In the browser's keeping: it outlives a reload and a change of language with the values that it is about.
        written = gr.JSON(value={}, visible=False, elem_id="submit-written")
        kind.change(self.choose_kind, kind, columns, **{**EVENT, "show_progress": "hidden"})
        draft, filled = [kind, tracks, written, *self._fields], [answer, tracks, written, *self._fields]
        gr.on([self._fill.click, self._repo.submit], self.fill, draft, filled, trigger_mode="once", **EVENT)
        check.click(self.check, form_inputs, answer, trigger_mode="once", **EVENT)
        sent = send.click(self.submit, form_inputs, [answer, my_table], trigger_mode="once", **EVENT)
        self._recordings.connect(tracks)
        # What is typed stays in the browser tab until it is taken: when the server was away and answers again, Gradio
        # loads its page anew, and a language is chosen by loading it, too.
        app.load(inputs=draft, outputs=draft, js=_RESTORE, **_IN_BROWSER)
        gr.on([each.change for each in draft], inputs=draft, js=_KEEP, **_IN_BROWSER)
        sent.then(inputs=answer, js=_FORGET, **_IN_BROWSER)

    def _tracks(self) -> list[tuple[str, str]]:
        offered = [benchmarks.get(name) for name in benchmarks.list_benchmarks()]
        return [
            (f"{benchmark.title}: {self._texts['tracks'].get(f'{benchmark.name}.{track.name}', (track.title,))[0]}",
             f"{benchmark.name}.{track.name}")
            for benchmark in offered
            for track in benchmark.tracks
        ]  # fmt: skip

    def _place_source(self, kind: str, block: str) -> gr.Column:
        declared = list_fields(block, "source", self._texts)
        optional = tuple(each.path.partition(".")[2] for each in declared if not each.required)
        with gr.Column(visible=kind == "model", elem_id=f"submit-{kind}") as column:
            if kind == "model":
                repo = next(each for each in declared if each.path == "source.repo")
                self._place(kind, repo)
                self._repo = self._fields[-1]
                self._fill = gr.Button(self._texts["fill"], elem_id="submit-fill", size="md")
                declared.remove(repo)
            self._place_fields(kind, declared, optional)
        return column

    def _place_fields(self, group: str, declared: list[FormField], folded: tuple[str, ...]) -> None:
        """Fields in their order, those that most leave empty folded away below the others."""
        below = [each for each in declared if each.path.partition(".")[2].removeprefix("links.") in folded]
        for field in declared:
            if field not in below:
                self._place(group, field)
        if below:
            with gr.Accordion(self._texts["more"], open=False):
                for field in below:
                    self._place(group, field)

    def _place(self, group: str, field: FormField) -> None:
        label = field.name if field.required else f"{field.name} ({self._texts['optional']})"
        name = f"{group}-{field.path.replace('.', '-')}"
        options: dict[str, Any] = {"label": label, "info": field.help, "elem_id": name}
        if field.looks == "flag":
            component: Any = gr.Checkbox(**options)
        elif field.looks == "choice":
            component = gr.Dropdown(list(field.choices), value=field.choices[0], filterable=False, **options)
        else:
            component = gr.Textbox(lines=3 if field.looks == "area" else 1, max_length=2_000, **options)
        self._groups.append(group)
        self._declared.append(field)
        self._fields.append(component)

    def choose_kind(self, kind: Any) -> list[Any]:
        """The fields of the kind of source alone."""
        return [*(gr.Column(visible=name == kind) for name in list_kinds()), gr.Column(visible=kind != "model")]

    def document(self, kind: Any, tracks: Any, given: tuple[Any, ...], owner: str = "") -> dict[str, Any]:
        """What is filled in, as the document that `podeval submit` reads.

        Outputs for which no repo is named are those that their owner uploaded.
        """
        rows = zip(self._groups, self._declared, given, strict=True)
        used = [(field, value) for group, field, value in rows if group in (SYSTEM, kind)]
        document = build_document(str(kind), tracks if isinstance(tracks, list) else [], used)
        source = document["source"]
        if owner and kind != "model" and "repo" not in source and (token := self._recordings.token_of(owner)):
            source.pop("revision", None)
            source["folder"] = token
        return document

    def fill(self, request: gr.Request, kind: Any, tracks: Any, written: Any, *given: Any) -> list[Any]:
        """The fields of a model as the Hub knows it by its repo; what a visitor entered stays.

        Args:
            request: the request of the visitor.
            kind: the kind of source.
            tracks: the tracks that are chosen.
            written: the values that the form was filled in with before, by path, of another repo perhaps.
            given: values of the fields.
        """
        repo = self.document(kind, tracks, given)["source"].get("repo", "")
        try:
            self._site.limit(get_web_request(request), CHECK_RATE, "submit check")
            self._site.require_person(get_web_request(request))
            draft = draft_document(repo, api=self._desk.gate.api)
            chosen = self.document(kind, tracks, given)["benchmarks"]
            judged = give_verdict(self._desk, draft | ({"benchmarks": chosen} if chosen else {}), self._jobs())
        except (PodevalError, NotSignedIn) as error:
            return [self._say(request, error), gr.skip(), gr.skip(), *[gr.skip()] * len(self._fields)]
        answer = self._answer(request, verdict=judged)
        first = tracks or [
            f"{entered['name']}.{track}" for entered in draft["benchmarks"] for track in entered["tracks"]
        ]
        return [answer, first, *self._merge(draft, written if isinstance(written, dict) else {}, given)]

    def _merge(self, draft: dict[str, Any], written: dict[str, Any], given: tuple[Any, ...]) -> list[Any]:
        """What is written from a draft now, by path, and the update of each field by it."""
        now, updates = {}, []
        for group, field, value in zip(self._groups, self._declared, given, strict=True):
            drafted = get_value(draft, field) if group in (SYSTEM, "model") else None
            was = written.get(field.path) if group in (SYSTEM, "model") else None
            if drafted is None and was is None:
                updates.append(gr.skip())
                continue
            blank: Any = {"flag": False, "choice": next(iter(field.choices), "")}.get(field.looks, "")
            # The repo and its commit belong together, and are as the Hub writes them.
            follows = field.path in ("source.repo", "source.revision")
            if follows or value in ("", None, blank if was is None else was):
                updates.append(blank if drafted is None else drafted)
                now[field.path] = drafted
            else:
                updates.append(gr.skip())
        return [now, *updates]

    def _jobs(self) -> HfJobs | None:
        """The machines of the Hub on which models are run here, if they are."""
        evaluation = self._site.services.evaluation
        return evaluation.hub.jobs if evaluation is not None and evaluation.hub is not None else None

    def check(self, request: gr.Request, kind: Any, tracks: Any, *given: Any) -> str:
        """What the gate says; nothing is queued."""
        try:
            self._site.limit(get_web_request(request), CHECK_RATE, "submit check")
            who = get_submitter(self._site.require_person(get_web_request(request)))
            document = self.document(kind, tracks, given, who.name)
            return self._answer(request, **check_document(self._desk, document, who, self._folder_beside(document)))
        except (PodevalError, NotSignedIn) as error:
            return self._say(request, error)

    def submit(self, request: gr.Request, kind: Any, tracks: Any, *given: Any) -> tuple[str, Any]:
        """Hand in; the answer comes when it is on the disk, and says where it is shown."""
        try:
            self._site.limit(get_web_request(request), SUBMIT_RATE, "submit")
            who = get_submitter(self._site.require_person(get_web_request(request)))
            document = self.document(kind, tracks, given, who.name)
            beside = self._folder_beside(document)
            if beside is not None:
                # What is not taken as it stands is not removed either: it can be corrected and sent again.
                self._desk.check(read_document(document), who, document_folder=beside)
            row = self._desk.submit(read_document(document), who, document_folder=beside)
        except (BadDocument, SubmissionRefused) as error:
            return self._answer(request, refusals=list_refused_rules(error)), gr.skip()
        except (PodevalError, NotSignedIn) as error:
            return self._say(request, error), gr.skip()
        return self._answer(request, row=row), row.id

    def _folder_beside(self, document: dict[str, Any]) -> Path | None:
        """The folder beside a document whose outputs were uploaded here."""
        return self._recordings.uploads.folder if "folder" in document["source"] else None

    def _answer(self, request: gr.Request, **told: Any) -> str:
        names = {field.path: field.name for field in self._declared}
        # In the order of the form; what is about no field comes last.
        order = {path: number for number, path in enumerate(names)}
        if "refusals" in told:
            told["refusals"] = sorted(told["refusals"], key=lambda each: order.get(each["field"], len(order)))
        for each in (*told.get("refusals", ()), *(told.get("verdict") or {}).get("reasons", ())):
            each["message"] = translate(each["message"], self._refused)[0]
        empty: dict[str, Any] = {
            "sentence": "",
            "refusals": [],
            "preview": None,
            "row": None,
            "passed": True,
            "verdict": None,
        }
        return self._site.render_text(get_web_request(request), "submit_answer.html", names=names, **(empty | told))

    def _say(self, request: gr.Request, error: Exception) -> str:
        return self._answer(request, sentence=explain_refusal(error, self._refused))


def build(site: Site, language: str, app: gr.Blocks) -> None:
    """Put the tab's components where they are called for; where nothing is taken, what says so.

    Args:
        site: the site that receives the submission.
        language: the language of the fields.
        app: the app that is being built.
    """
    if site.services.desk is None:
        make_fetched_part("submit-head", "/submit")
        return
    SubmitTab(site, site.services.desk, language).build(app)
