"""Submitting and the queue: a form by the document's schema, the gate's word on it, and what became of it all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from auth import Person, read_public_address
from error_messages import translate_reason
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel
from submission_form import check_document, list_refused_rules, read_document
from website import FromPage, Site

from podeval import arena
from podeval.arena import refusal
from podeval.benchmarks.benchmark import Item
from podeval.board.build import build
from podeval.errors import BadInput
from podeval.hub.retry import HubUnavailable
from podeval.store.submission_tables import STATES, SubmissionRow
from podeval.submissions import service
from podeval.submissions.author_kit import list_spoken, write_notebook, write_scripts
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.hub_record import Proposals
from podeval.submissions.job_budget import Ledger
from podeval.submissions.public_view import (
    SubmissionLog,
    describe_hub_work,
    describe_log,
    describe_publicly,
    describe_steps,
)
from podeval.submissions.queue import Queue
from podeval.submissions.rules import SubmissionRefused
from podeval.submissions.service import OPERATOR, SubmissionService, Submitter
from podeval.submissions.states import LEASED, OPEN
from podeval.systems.submission import build_json_schema
from podeval.systems.submission_reading import BadDocument
from podeval.texts import write_sentence

RATE = "60/minute"
MOST_ROWS = 5_000
_STATUS = {"duplicate": 409, "quota": 429, "open": 503}
OURS = ("operator", "gate", "queue", "worker")
"""Names under which this installation itself writes into the history."""


class Sent(FromPage):
    """A submission document as a page or program sends it; `podeval.systems.submission` says what is in it."""

    document: dict[str, Any]


class SubmissionsPage(BaseModel):
    """Some submissions, newest first; `total` counts all that fit, so that the next page can be asked for."""

    total: int
    rows: list[dict[str, Any]]


class SubmissionRoutes:
    """Submitting, the queue's entries, and what their owners may do with them."""

    def __init__(self, site: Site, desk: SubmissionService) -> None:
        self.site, self.desk, self.queue = site, desk, desk.queue
        self.ledger, self.proposals = Ledger(self.queue.database, 0.0), Proposals(self.queue, site.services.runs)
        self.log = SubmissionLog(self.queue.database)

    def _say(self, request: Request) -> Callable[[str], str]:
        """What says a kept reason in the reader's language."""
        return partial(translate_reason, texts=self.site.texts[self.site.language(request)]["refused"])

    def schema(self, request: Request) -> JSONResponse:
        """The JSON Schema of a submission document."""
        self.site.limit(request, RATE)
        return JSONResponse(build_json_schema())

    def scripts(self, request: Request, benchmark: str, split: str) -> Response:
        """The scripts to be read aloud, named as their recordings have to be named."""
        self.site.limit(request, "20/minute", "scripts")
        content = write_scripts(*_spoken(self.desk, benchmark, split))
        headers = {"Content-Disposition": f'attachment; filename="podeval-{benchmark}-{split}-scripts.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    def notebook(self, request: Request, benchmark: str, split: str) -> Response:
        """A notebook that reads these scripts aloud with your own function and uploads the recordings."""
        self.site.limit(request, "20/minute", "scripts")
        entry, _ = _spoken(self.desk, benchmark, split)
        root = read_public_address() or str(request.base_url).rstrip("/")
        headers = {"Content-Disposition": f'attachment; filename="podeval-{benchmark}-{split}.ipynb"'}
        content = write_notebook(entry, f"{root}/submit/scripts/{entry.folder}.zip")
        return Response(content, media_type="application/x-ipynb+json", headers=headers)

    def check(self, request: Request, sent: Sent) -> JSONResponse:
        """Check a submission without queueing it: lists every broken rule, or what would run and for how long."""
        self.site.limit(request, "20/minute", "submit check")
        who = get_submitter(self.site.require_person(request))
        try:
            return JSONResponse(check_document(self.desk, sent.document, who))
        except HubUnavailable as error:
            return JSONResponse({"error": str(error), "reason": "hub", "code": error.code}, 503)

    def submit(self, request: Request, sent: Sent) -> JSONResponse:
        """Submit a system. The response is sent once the submission is on disk, and gives the address of its page."""
        self.site.limit(request, "20/hour")
        who = get_submitter(self.site.require_person(request))
        try:
            row = self.desk.submit(read_document(sent.document), who)
        except (BadDocument, SubmissionRefused) as error:
            reasons = list_refused_rules(error)
            status = _STATUS.get(reasons[0]["rule"], 422)
            return JSONResponse(
                {"error": str(error), "reason": "refused", "code": error.code, "refusals": reasons}, status
            )
        return JSONResponse({"id": row.id, "state": row.state, "address": f"/submissions/{row.id}"}, 201)

    def one(self, request: Request, id: str) -> HTMLResponse:
        """Show one submission and what became of it."""
        self.site.limit(request, RATE)
        row, person = self._known(id), self.site.person(request)
        return self.site.render(
            request,
            "submission.html",
            row=self._listed([row])[0],
            history=describe_steps(self.queue.history(id)),
            hub=self._hub_of(id),
            work=describe_log(self.log.lines(id)),
            say=self._say(request),
            mine=person is not None and may(person, row),
        )

    def cancel(self, request: Request, id: str) -> JSONResponse:
        """Cancel one of your own submissions that is not yet published."""
        self.site.limit(request, "20/minute")
        person = self._owner(request, id)
        return JSONResponse({"id": id, "state": self.queue.cancel(id, get_submitter(person).name).state})

    def retry(self, request: Request, id: str) -> JSONResponse:
        """Queue one of your own failed or cancelled submissions again; it resumes after the items already finished."""
        self.site.limit(request, "20/hour")
        person = self._owner(request, id)
        row, last = self.queue.get(id), self.queue.history(id)[-1]
        if row.state == "cancelled" and last.made_by != row.owner and not person.admin:
            raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("cancelled-by-operator"))
        return JSONResponse({"id": id, "state": self.queue.retry(id, get_submitter(person).name).state})

    def withdraw(self, request: Request, id: str) -> JSONResponse:
        """Remove one of your own published submissions from the board; its history remains."""
        self.site.limit(request, "20/hour")
        person = self._owner(request, id)
        withdrawn = service.withdraw(self.queue, id, get_submitter(person).name, self.site.services.runs)
        if withdrawn:
            build(self.site.services.runs)
        return JSONResponse({"id": id, "state": self.queue.get(id).state})

    def all_submissions(
        self,
        request: Request,
        state: str = "",
        owner: str = "",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
    ) -> SubmissionsPage:
        """All submissions, newest first: who submitted what, its state, and why it stopped, if it did."""
        self.site.limit(request, RATE)
        if state and state not in STATES:
            raise BadInput(write_sentence("no-such-state", choices=", ".join(STATES)))
        rows = self.queue.all(owner=owner or None, states=(state,) if state else ())
        return SubmissionsPage(total=len(rows), rows=self._listed(rows[offset : offset + limit]))

    def submission(self, request: Request, id: str) -> dict[str, Any]:
        """One submission with its changes of state, its cost, the workers' log, and its finished items."""
        self.site.limit(request, RATE)
        row = self._known(id)
        work = describe_log(self.log.lines(id))
        return {**self._listed([row])[0], "history": describe_steps(self.queue.history(id)), **self._hub_of(id), **work}

    def _hub_of(self, id: str) -> dict[str, Any]:
        return describe_hub_work(self.ledger.of(id), self.proposals.of(id))

    def _listed(self, rows: list[SubmissionRow]) -> list[dict[str, Any]]:
        return list_public_rows(self.queue, rows)

    def _known(self, id: str) -> SubmissionRow:
        try:
            return self.queue.get(id)
        except BadInput:
            sentence = "there is no such submission; the queue shows all"
            raise arena.ArenaRefused(refusal.UNKNOWN, sentence, code="no-such-submission") from None

    def _owner(self, request: Request, id: str) -> Person:
        person = self.site.require_person(request)
        if not may(person, self._known(id)):
            raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("submission-of-another"))
        return person


def build_router(site: Site) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["submissions"])
    if site.services.desk is None:
        return routes
    pages = SubmissionRoutes(site, site.services.desk)
    routes.get("/submit/schema.json")(pages.schema)
    routes.get("/submit/scripts/{benchmark}/{split}.zip")(pages.scripts)
    routes.get("/submit/outputs/{benchmark}/{split}.ipynb")(pages.notebook)
    routes.post("/submit/check")(pages.check)
    routes.post("/submit")(pages.submit)
    routes.get("/submissions/{id}", include_in_schema=False)(pages.one)
    routes.post("/submissions/{id}/cancel")(pages.cancel)
    routes.post("/submissions/{id}/retry")(pages.retry)
    routes.post("/submissions/{id}/withdraw")(pages.withdraw)
    routes.get("/api/v1/submissions")(pages.all_submissions)
    routes.get("/api/v1/submissions/{id}")(pages.submission)
    return routes


def get_submitter(person: Person) -> Submitter:
    """Who a person is to the queue; the one person of this machine is its operator.

    Raises:
        Refused: their name is one under which this installation writes.
    """
    if person.identity == "local":
        return OPERATOR
    if person.name.casefold() in OURS:
        raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("name-is-ours", name=person.name))
    if not person.identity.startswith("hf:"):
        # Names of another provider are not names on the Hub: nobody proves with them that a repo is theirs.
        return Submitter(f"{person.name} ({person.identity.rpartition(':')[0].partition('://')[2]})")
    return Submitter(person.name, person.orgs)


def may(person: Person, row: SubmissionRow) -> bool:
    """Whether a person decides about a submission."""
    return person.admin or get_submitter(person).name == row.owner


def list_public_rows(queue: Queue, rows: list[SubmissionRow]) -> list[dict[str, Any]]:
    """Submissions as everybody may see them, with their places in the queue."""
    standings = queue.standings()
    return [describe_publicly(row, standings.get(row.id)) for row in rows]


def list_queue_parts(queue: Queue) -> dict[str, list[dict[str, Any]]]:
    """Submissions as the queue shows them: at work, waiting in their order, and the last that ended."""
    order = {id: number for number, id in enumerate(queue.standings())}
    rows = queue.all()
    waiting = [row for row in rows if row.state in ("queued", "received", "checked")]
    return {
        "working": list_public_rows(queue, [row for row in rows if row.state in LEASED]),
        "waiting": list_public_rows(
            queue, sorted(waiting, key=lambda row: (order.get(row.id, len(order)), row.number))
        ),
        "ended": list_public_rows(queue, [row for row in rows if row.state not in OPEN][:100]),
    }


def _spoken(desk: SubmissionService, benchmark: str, split: str) -> tuple[RunEntry, tuple[Item, ...]]:
    """The run of scripts that are read aloud.

    Raises:
        ArenaRefused: there are none of this name here.
    """
    for entry, items in list_spoken(desk.gate.data):
        if (entry.benchmark, entry.split) == (benchmark, split):
            return entry, items
    raise arena.ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-scripts"))
