"""Submitting and the queue: a form based on the document's schema, the gate's verdict, and the states of
submissions.
"""

from __future__ import annotations

from typing import Annotated, Any

from auth import Person, read_public_address
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from website import CurrentSite, FromPage, Site, limit

from pages.api import RowsPage
from pages.board import attach
from podeval import arena
from podeval.arena import refusal
from podeval.benchmarks.benchmark import Item
from podeval.board.build import build
from podeval.errors import BadInput
from podeval.hub.retry import HubUnavailable
from podeval.store.submission_tables import STATES, SubmissionRow
from podeval.submissions import service
from podeval.submissions.author_kit import check_document, list_spoken, write_notebook, write_scripts
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.hub_record import Proposals
from podeval.submissions.job_budget import Ledger
from podeval.submissions.public_view import (
    SubmissionLog,
    describe_hub_work,
    describe_log,
    describe_steps,
    list_public_rows,
)
from podeval.submissions.rules import SubmissionRefused, describe_refusals
from podeval.submissions.service import OPERATOR, SubmissionService, Submitter
from podeval.systems.submission import build_json_schema
from podeval.systems.submission_reading import BadDocument, parse_form
from podeval.texts import write_sentence

routes = APIRouter(tags=["submissions"])

RATE = "60/minute"
MOST_ROWS = 5_000
_STATUS = {"duplicate": 409, "quota": 429, "open": 503}
OURS = ("operator", "gate", "queue", "worker")
"""Names under which this installation itself writes to the history."""


class Sent(FromPage):
    """A submission document from a page or program; `podeval.systems.submission` defines its content."""

    document: dict[str, Any]


def get_row(site: CurrentSite, id: str) -> SubmissionRow:
    """Return the submission at an address.

    Raises:
        ArenaRefused: there is no such submission.
    """
    try:
        return site.services.desk.queue.get(id)
    except BadInput:
        sentence = "there is no such submission; the queue shows all"
        raise arena.ArenaRefused(refusal.UNKNOWN, sentence, code="no-such-submission") from None


def require_owner(request: Request, site: CurrentSite, id: str) -> Person:
    """Return the person who sent a request about one of their own submissions.

    Raises:
        NotSignedIn: the sender is unknown.
        ArenaRefused: the submission belongs to someone else, or does not exist.
    """
    person = site.require_person(request)
    if not may(person, get_row(site, id)):
        raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("submission-of-another"))
    return person


Row = Annotated[SubmissionRow, Depends(get_row)]
Owner = Annotated[Person, Depends(require_owner)]


@routes.get("/submit/schema.json", dependencies=[limit(RATE)])
def schema() -> JSONResponse:
    """The JSON Schema of a submission document."""
    return JSONResponse(build_json_schema())


@routes.get("/submit/scripts/{benchmark}/{split}.zip", dependencies=[limit("20/minute", "scripts")])
def scripts(site: CurrentSite, benchmark: str, split: str) -> Response:
    """The scripts to be read aloud, named as their recordings must be."""
    content = write_scripts(*_spoken(site.services.desk, benchmark, split))
    return Response(content, 200, attach(f"podeval-{benchmark}-{split}-scripts.zip"), "application/zip")


@routes.get("/submit/outputs/{benchmark}/{split}.ipynb", dependencies=[limit("20/minute", "scripts")])
def notebook(request: Request, site: CurrentSite, benchmark: str, split: str) -> Response:
    """A notebook that reads these scripts aloud with your own function and uploads the recordings."""
    entry, _ = _spoken(site.services.desk, benchmark, split)
    root = read_public_address() or str(request.base_url).rstrip("/")
    content = write_notebook(entry, f"{root}/submit/scripts/{entry.folder}.zip")
    return Response(content, 200, attach(f"podeval-{benchmark}-{split}.ipynb"), "application/x-ipynb+json")


@routes.post("/submit/check", dependencies=[limit("20/minute", "submit check")])
def check(request: Request, site: CurrentSite, sent: Sent) -> JSONResponse:
    """Check a submission without queueing it: list every broken rule, or the runs with their duration."""
    who = get_submitter(site.require_person(request))
    try:
        return JSONResponse(check_document(site.services.desk, sent.document, who))
    except HubUnavailable as error:
        return JSONResponse({"error": str(error), "reason": "hub", "code": error.code}, 503)


@routes.post("/submit", dependencies=[limit("20/hour")])
def submit(request: Request, site: CurrentSite, sent: Sent) -> JSONResponse:
    """Submit a system. The response is sent once the submission is on disk, and gives the address of its page."""
    who = get_submitter(site.require_person(request))
    try:
        row = site.services.desk.submit(parse_form(sent.document), who)
    except (BadDocument, SubmissionRefused) as error:
        reasons = describe_refusals(error)
        content = {"error": str(error), "reason": "refused", "code": error.code, "refusals": reasons}
        return JSONResponse(content, _STATUS.get(reasons[0]["rule"], 422))
    return JSONResponse({"id": row.id, "state": row.state, "address": f"/submissions/{row.id}"}, 201)


@routes.get("/submissions/{id}", include_in_schema=False, dependencies=[limit(RATE)])
def one(request: Request, site: CurrentSite, row: Row) -> HTMLResponse:
    """Show one submission and its state."""
    person, content = site.person(request), _describe(site, row)
    return site.render(
        request,
        "submission.html",
        row=content,
        history=content["history"],
        hub=content,
        work=content,
        mine=person is not None and may(person, row),
    )


@routes.post("/submissions/{id}/cancel", dependencies=[limit("20/minute")])
def cancel(site: CurrentSite, id: str, person: Owner) -> JSONResponse:
    """Cancel one of your own submissions that is not yet published."""
    return JSONResponse({"id": id, "state": site.services.desk.queue.cancel(id, get_submitter(person).name).state})


@routes.post("/submissions/{id}/retry", dependencies=[limit("20/hour")])
def retry(site: CurrentSite, id: str, person: Owner) -> JSONResponse:
    """Queue one of your own failed or cancelled submissions again; it resumes after the items already finished."""
    queue = site.services.desk.queue
    row, last = queue.get(id), queue.history(id)[-1]
    if row.state == "cancelled" and last.made_by != row.owner and not person.admin:
        raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("cancelled-by-operator"))
    return JSONResponse({"id": id, "state": queue.retry(id, get_submitter(person).name).state})


@routes.post("/submissions/{id}/withdraw", dependencies=[limit("20/hour")])
def withdraw(site: CurrentSite, id: str, person: Owner) -> JSONResponse:
    """Remove one of your own published submissions from the board; its history remains."""
    queue, runs = site.services.desk.queue, site.services.runs
    if service.withdraw(queue, id, get_submitter(person).name, runs):
        build(runs)
    return JSONResponse({"id": id, "state": queue.get(id).state})


@routes.get("/api/v1/submissions", dependencies=[limit(RATE)])
def all_submissions(
    site: CurrentSite,
    state: str = "",
    owner: str = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100,
) -> RowsPage:
    """All submissions, newest first: who submitted what, its state, and why it stopped, if it did."""
    if state and state not in STATES:
        raise BadInput(write_sentence("no-such-state", choices=", ".join(STATES)))
    queue = site.services.desk.queue
    rows = queue.all(owner=owner or None, states=(state,) if state else ())
    return RowsPage(total=len(rows), rows=list_public_rows(queue, rows[offset : offset + limit]))


@routes.get("/api/v1/submissions/{id}", dependencies=[limit(RATE)])
def submission(site: CurrentSite, row: Row) -> dict[str, Any]:
    """One submission with its state changes, its cost, the workers' log, and its finished items."""
    return _describe(site, row)


def _describe(site: Site, row: SubmissionRow) -> dict[str, Any]:
    queue = site.services.desk.queue
    return {
        **list_public_rows(queue, [row])[0],
        "history": describe_steps(queue.history(row.id)),
        **describe_hub_work(Ledger(queue.database, 0.0).of(row.id), Proposals(queue, site.services.runs).of(row.id)),
        **describe_log(SubmissionLog(queue.database).lines(row.id)),
    }


def get_submitter(person: Person) -> Submitter:
    """Return a person's role in the queue; the only user of this machine is its operator.

    Raises:
        Refused: the person's name is reserved for this installation.
    """
    if person.identity == "local":
        return OPERATOR
    if person.name.casefold() in OURS:
        raise arena.ArenaRefused(refusal.FOREIGN, write_sentence("name-is-ours", name=person.name))
    if not person.identity.startswith("hf:"):
        # Names at another provider are not Hub names, so they cannot prove ownership of a repo.
        return Submitter(f"{person.name} ({person.identity.rpartition(':')[0].partition('://')[2]})")
    return Submitter(person.name, person.orgs)


def may(person: Person, row: SubmissionRow) -> bool:
    """Return whether a person may decide about a submission."""
    return person.admin or get_submitter(person).name == row.owner


def _spoken(desk: SubmissionService, benchmark: str, split: str) -> tuple[RunEntry, tuple[Item, ...]]:
    """Return the run whose scripts are to be read aloud.

    Raises:
        ArenaRefused: there is no such run, or its scripts are not available.
    """
    for entry, items in list_spoken(desk.gate.data):
        if (entry.benchmark, entry.split) == (benchmark, split):
            return entry, items
    raise arena.ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-scripts"))
