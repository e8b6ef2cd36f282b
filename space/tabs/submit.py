"""The Submit tab: the fields of a document as Gradio components, which are filled in from a repo on the Hub, checked
and submitted.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from error_messages import translate, translate_reason
from pages.submit import OURS, get_submitter
from submission_form import (
    KINDS,
    FormField,
    build_document,
    get_value,
    list_fields,
)
from tab_parts import TabPart, answer_part
from website import Site

from podeval import benchmarks
from podeval.errors import BadInput, PodevalError
from podeval.runs.hf_jobs import HfJobs
from podeval.submissions.author_kit import check_document, draft_document, give_verdict, read_repo_name
from podeval.submissions.job_budget import Ledger
from podeval.submissions.public_view import (
    SubmissionLog,
    describe_last,
    list_public_rows,
    list_queue_parts,
    sum_cost,
)
from podeval.submissions.rules import RULES, SubmissionRefused, describe_refusals
from podeval.systems.submission_reading import BadDocument, parse_form
from tabs.recordings_upload import RecordingsUpload

EVENT: dict[str, Any] = {"api_visibility": "private", "queue": False, "preprocess": False, "show_progress": "minimal"}
CHECK_RATE, SUBMIT_RATE, SHOW_RATE = "20/minute", "20/hour", "60/minute"
MOST_OWN = 50
"""Maximum number of a person's submissions that the tab lists; the queue lists all."""
SYSTEM, DRAFT = "system", "podeval-submission"
RECOMMENDED = "real_pod.voice"
"""The track that is selected at the beginning: scripts read aloud."""
_FIELD_OF_RULE = {
    "duplicate": "system.id",
    "licence": "system.licence",
    "pinned": "source.revision",
    "task": "source.task",
    "base": "source.base.repo",
    **dict.fromkeys(("exists", "readable", "card", "size", "safetensors", "remote_code", "code"), "source.repo"),
}
"""Rules of the gate that concern the content of one field."""
WRONG = "wrong"
"""The CSS class of a field whose help describes its mistake."""
_MARK = f"""() => {{
  for (const each of document.querySelectorAll("#tab-submit :is(input, textarea)"))
    each.setAttribute("aria-invalid", String(each.closest(".{WRONG}") !== null));
  document.querySelector("#tab-submit .{WRONG} :is(input, textarea)")?.focus();
}}"""
_KEEP = f"(...values) => {{ sessionStorage.setItem('{DRAFT}', JSON.stringify(values)); }}"
_RESTORE = (
    f"(...values) => {{ const kept = JSON.parse(sessionStorage.getItem('{DRAFT}') ?? '[]');"
    " return kept.length === values.length ? kept : values; }"
)
_FORGET = f"""(answer) => {{ if (answer?.includes('href="/submissions/')) sessionStorage.removeItem('{DRAFT}'); }}"""
"""Clears the draft once a submission is accepted; only the response to the submission contains its address."""
_IN_BROWSER: dict[str, Any] = {"fn": None, "queue": False, "show_progress": "hidden", "api_visibility": "private"}
"""Settings of events without a function on the server, so typed text does not leave the browser."""


class SubmitTab(TabPart):
    """The tab of one language."""

    TEXTS = "submit"

    def __init__(self, site: Site, language: str) -> None:
        super().__init__(site, language)
        self._declared: list[FormField] = []
        self._fields: list[Any] = []
        self._recordings = RecordingsUpload(site, language)

    def build(self, app: gr.Blocks) -> None:
        """Place the components, and connect their events."""
        texts = self._texts
        gr.Markdown(f"# {texts['title']}\n\n{texts['intro']}", elem_id="submit-head")
        stranger = answer_part("submit-stranger", "group")
        sources = [(texts["kinds"][name], name) for name in KINDS]
        kind = gr.Radio(sources, value="model", label=texts["source"], elem_id="submit-kind")
        gr.Markdown(self._recordings.list_kits(), elem_id="submit-kits")
        columns = [self._place_source(name, block) for name, block in KINDS.items()]
        with gr.Column(visible=False, elem_id="submit-upload") as upload:
            self._recordings.build()
        columns.append(upload)
        tracks = gr.CheckboxGroup(
            self._list_tracks(), value=[RECOMMENDED], label=texts["benchmarks"], elem_id="submit-tracks"
        )
        self._place_fields(list_fields("System", SYSTEM, texts, SYSTEM), texts["more_system"])
        answer = answer_part("submit-answer")
        with gr.Row():
            check = gr.Button(texts["check"], elem_id="submit-check")
            send = gr.Button(texts["send"], variant="primary", elem_id="submit-send")
        with gr.Accordion(texts["rules"], open=False):
            gr.Markdown("\n".join(f"- **{rule}**: {texts['asks'].get(rule, asks)}" for rule, asks in RULES.items()))
        lists = answer_part("submit-queue", "group", "submit")
        refresh = gr.Button(texts["refresh"], elem_id="queue-refresh")
        # The values filled in from a repo are stored in the browser, so they survive a reload and a change of language
        # together with the fields.
        written = gr.JSON(value={}, visible=False, elem_id="submit-written")
        # The repo of a model comes first.
        repo, marked = self._fields[0], [tracks, *self._fields]
        draft, form_inputs = [kind, tracks, written, *self._fields], [kind, *marked]
        filled: dict[str, Any] = {"inputs": draft, "outputs": [answer, tracks, written, *self._fields], **EVENT}
        quiet = {**EVENT, "show_progress": "hidden"}
        kind.change(self.choose_kind, kind, [answer, *columns, *marked], **quiet)
        for event in (
            repo.blur(self.fill_new, **filled),
            repo.submit(self.fill, trigger_mode="once", **filled),
            check.click(self.check, form_inputs, [answer, *marked], trigger_mode="once", **EVENT),
            sent := send.click(self.submit, form_inputs, [answer, lists, *marked], trigger_mode="once", **EVENT),
        ):
            event.then(js=_MARK, **_IN_BROWSER)
        gr.on([lists.select, refresh.click], self.show_queue, None, [stranger, lists], **quiet)
        self._recordings.connect(tracks)
        # Input stays in the browser tab until it is accepted, because Gradio reloads its page when the server is back
        # after an interruption, and choosing a language also reloads it.
        app.load(inputs=draft, outputs=draft, js=_RESTORE, **_IN_BROWSER)
        gr.on([each.change for each in draft], inputs=draft, js=_KEEP, **_IN_BROWSER)
        sent.then(inputs=answer, js=_FORGET, **_IN_BROWSER)

    def _list_tracks(self) -> list[tuple[str, str]]:
        offered = [benchmarks.get(name) for name in benchmarks.list_benchmarks()]
        return [
            (f"{benchmark.title}: {self._texts['tracks'].get(f'{benchmark.name}.{track.name}', (track.title,))[0]}",
             f"{benchmark.name}.{track.name}")
            for benchmark in offered
            for track in benchmark.tracks
        ]  # fmt: skip

    def _place_source(self, kind: str, block: str) -> gr.Column:
        declared = list_fields(block, "source", self._texts, kind)
        if kind == "model":
            declared.sort(key=lambda field: field.path != "source.repo")
        with gr.Column(visible=kind == "model", elem_id=f"submit-{kind}") as column:
            self._place_fields(declared, self._texts["more_source"])
        return column

    def _place_fields(self, declared: list[FormField], more: str) -> None:
        """Place the fields in order, with rarely used fields collapsed below the others."""
        for field in declared:
            if not field.folded:
                self._place(field)
        with gr.Accordion(more, open=False, visible=any(field.folded for field in declared)):
            for field in declared:
                if field.folded:
                    self._place(field)

    def _place(self, field: FormField) -> None:
        label = field.name if field.required else f"{field.name} ({self._texts['optional']})"
        name = f"{field.group}-{field.path.replace('.', '-')}"
        options: dict[str, Any] = {"label": label, "info": field.help, "elem_id": name}
        if field.looks == "flag":
            component: Any = gr.Checkbox(**options)
        elif field.looks == "choice":
            component = gr.Dropdown(list(field.choices), value=field.choices[0], filterable=False, **options)
        else:
            component = gr.Textbox(lines=3 if field.looks == "area" else 1, max_length=2_000, **options)
        self._declared.append(field)
        self._fields.append(component)

    def choose_kind(self, kind: Any) -> list[Any]:
        """Show only the fields of this kind of source, and remove messages about another kind."""
        columns = [*(gr.Column(visible=name == kind) for name in KINDS), gr.Column(visible=kind != "model")]
        return ["", *columns, *self._mark("", {})]

    def document(self, kind: Any, tracks: Any, given: tuple[Any, ...], owner: str = "") -> dict[str, Any]:
        """Return the filled-in form as a document for `podeval submit`.

        Outputs without a repo are those that their owner uploaded.
        """
        rows = zip(self._declared, given, strict=True)
        used = [(field, value) for field, value in rows if field.group in (SYSTEM, kind)]
        document = build_document(str(kind), tracks if isinstance(tracks, list) else [], used)
        source = document["source"]
        if owner and kind != "model" and "repo" not in source and (token := self._recordings.token_of(owner)):
            source.pop("revision", None)
            source["folder"] = token
        return document

    def fill_new(self, request: gr.Request, kind: Any, tracks: Any, written: Any, *given: Any) -> list[Any]:
        """Do the same as `fill` if the repo has changed when the field loses focus."""
        repo = read_repo_name(str(self.document(kind, tracks, given)["source"].get("repo", "")))
        if not repo or (isinstance(written, dict) and repo == written.get("source.repo")):
            return [gr.skip()] * (3 + len(self._fields))
        return self.fill(request, kind, tracks, written, *given)

    def fill(self, request: gr.Request, kind: Any, tracks: Any, written: Any, *given: Any) -> list[Any]:
        """Fill in the fields of a model from its repo on the Hub, keeping the visitor's own input.

        Args:
            request: the request of the visitor.
            kind: the kind of source.
            tracks: the chosen tracks.
            written: the values with which the form was filled in before, by path, possibly from another repo.
            given: values of the fields.
        """
        repo = self.document(kind, tracks, given)["source"].get("repo", "")
        try:
            self._limit(request, CHECK_RATE, "submit check")
            self._site.require_person(request.request)
            draft = draft_document(repo, api=self._desk.gate.api)
            chosen = self.document(kind, tracks, given)["benchmarks"]
            judged = give_verdict(self._desk, draft | ({"benchmarks": chosen} if chosen else {}), self._jobs())
        except BadInput as error:
            wrong = {"source.repo": self._explain(error)}
            return ["", gr.skip(), gr.skip(), *self._mark("model", wrong)[1:]]
        except PodevalError as error:
            return [self._say(request, error), gr.skip(), gr.skip(), *[gr.skip()] * len(self._fields)]
        answer = self._answer(request, verdict=judged)
        first = tracks or [
            f"{entered['name']}.{track}" for entered in draft["benchmarks"] for track in entered["tracks"]
        ]
        return [answer, first, *self._merge(draft, written if isinstance(written, dict) else {}, given)]

    def _merge(self, draft: dict[str, Any], written: dict[str, Any], given: tuple[Any, ...]) -> list[Any]:
        """Return the values to write from a draft, by path, and the update of each field."""
        now, updates = {}, []
        for field, value in zip(self._declared, given, strict=True):
            is_of_model = field.group in (SYSTEM, "model")
            drafted, was = (get_value(draft, field), written.get(field.path)) if is_of_model else (None, None)
            if drafted is None and was is None:
                updates.append(gr.skip())
                continue
            blank: Any = {"flag": False, "choice": next(iter(field.choices), "")}.get(field.looks, "")
            # The repo and its commit belong together, and are written as on the Hub.
            follows = field.path in ("source.repo", "source.revision")
            if follows or value in ("", None, blank if was is None else was):
                new = blank if drafted is None else drafted
                updates.append(gr.update(value=new, info=field.help, elem_classes=[]))
                now[field.path] = drafted
            else:
                updates.append(gr.skip())
        return [now, *updates]

    def _jobs(self) -> HfJobs | None:
        """Return the Hub machines on which this site runs models; None if it does not."""
        hub = self._site.services.evaluation.hub
        return hub.jobs if hub is not None else None

    def check(self, request: gr.Request, kind: Any, tracks: Any, *given: Any) -> list[Any]:
        """Return the gate's findings, without queueing anything."""
        try:
            self._limit(request, CHECK_RATE, "submit check")
            who = get_submitter(self._site.require_person(request.request))
            document = self.document(kind, tracks, given, who.name)
            result = check_document(self._desk, document, who, self._folder_beside(document))
        except PodevalError as error:
            return [self._say(request, error), *self._mark("", {})]
        return self._judge(request, str(kind), result["refusals"], preview=result.get("preview"))

    def submit(self, request: gr.Request, kind: Any, tracks: Any, *given: Any) -> list[Any]:
        """Submit the document; the response is sent once it is on disk, and contains the address of its page."""
        try:
            self._limit(request, SUBMIT_RATE, "submit")
            who = get_submitter(self._site.require_person(request.request))
            document = self.document(kind, tracks, given, who.name)
            beside = self._folder_beside(document)
            if beside is not None:
                # Input that is not accepted is not removed, so it can be corrected and sent again.
                self._desk.check(parse_form(document), who, document_folder=beside)
            row = self._desk.submit(parse_form(document), who, document_folder=beside)
        except (BadDocument, SubmissionRefused) as error:
            answer, *marks = self._judge(request, str(kind), describe_refusals(error))
            return [answer, gr.skip(), *marks]
        except PodevalError as error:
            return [self._say(request, error), gr.skip(), *self._mark("", {})]
        return [self._answer(request, row=row), self.show_queue(request)[1], *self._mark("", {})]

    def show_queue(self, request: gr.Request) -> list[str]:
        """Show the sign-in or the person's own submissions with their cost, and the whole queue."""
        web, queue = request.request, self._desk.queue
        self._site.limit(web, SHOW_RATE, "queue")
        person = self._site.person(web)
        # A visitor whose name is reserved for this installation cannot submit; the form explains this.
        submits = person is not None and (person.identity == "local" or person.name.casefold() not in OURS)
        rows = queue.all(owner=get_submitter(person).name)[:MOST_OWN] if person and submits else []
        ledger, log = Ledger(queue.database, 0.0), SubmissionLog(queue.database)
        more = {
            row.id: {"spent": sum_cost(ledger.of(row.id))["spent"], "last": describe_last(log.lines(row.id))}
            for row in rows
        }
        operates = person is not None and person.admin
        worker = self._site.services.evaluation.sentence(self._texts, operator=operates)
        stranger = person is None and not self._site.services.closed
        return [
            self._site.render_text(web, "submit_stranger.html") if stranger else "",
            self._site.render_text(
                web,
                "queue.html",
                parts={"own": list_public_rows(queue, rows), **list_queue_parts(queue)},
                more=more,
                worker=worker.replace("`", ""),
                say=partial(translate_reason, texts=self._refused),
            ),
        ]

    def _folder_beside(self, document: dict[str, Any]) -> Path | None:
        """Return the folder of a document's uploaded outputs, if it has any."""
        return self._recordings.uploads.folder if "folder" in document["source"] else None

    def _judge(self, request: gr.Request, kind: str, refusals: list[dict[str, str]], **told: Any) -> list[Any]:
        """Return the messages about broken rules: one next to each field concerned, and a summary of the messages that
        do not concern a field.
        """
        fields_of_kind = {field.path: field for field in self._declared if field.group in (SYSTEM, kind)}
        names = {path: field.name for path, field in fields_of_kind.items()} | {"benchmarks": self._texts["benchmarks"]}
        wrong: dict[str, str] = {}
        others = []
        for each in refusals:
            path = each["field"].partition("[")[0] or _FIELD_OF_RULE.get(each["rule"], "")
            path = "source.repo" if path == "source" else path
            message = self._word(each, names.get(path, ""))
            if path in names and not (path in fields_of_kind and fields_of_kind[path].folded):
                wrong[path] = f"{wrong[path]}\n{message}" if path in wrong else message
            else:
                others.append({**each, "name": names.get(path, ""), "message": message})
        # List the fields with a fault in the order of the form.
        fields = [name for path, name in names.items() if path in wrong]
        return [self._answer(request, refusals=others, fields=fields, **told), *self._mark(kind, wrong)]

    def _word(self, refusal: dict[str, str], name: str) -> str:
        """Describe a broken rule in terms of its field."""
        template = self._texts["in_fields"].get(refusal["code"])
        return str(template).format(name) if template else translate(refusal["message"], self._refused)[0]

    def _mark(self, kind: str, wrong: dict[str, str]) -> list[Any]:
        """Return the tracks and the fields, with the fault of each in place of its help."""

        def mark(path: str, help: str, group: str) -> Any:
            sentence = wrong.get(path) if group in (SYSTEM, kind) else None
            return gr.update(info=sentence or help, elem_classes=[WRONG] if sentence else [])

        fields = [mark(field.path, field.help, field.group) for field in self._declared]
        return [mark("benchmarks", "", SYSTEM), *fields]

    def _answer(self, request: gr.Request, **told: Any) -> str:
        for each in (told.get("verdict") or {}).get("reasons", ()):
            each["message"] = translate(each["message"], self._refused)[0]
        empty: dict[str, Any] = {
            "sentence": "",
            "refusals": [],
            "fields": [],
            "preview": None,
            "row": None,
            "verdict": None,
        }
        return self._render(request, "submit_answer.html", **empty | told)

    def _say(self, request: gr.Request, error: PodevalError) -> str:
        return self._answer(request, sentence=self._explain(error))
