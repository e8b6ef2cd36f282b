"""What operators decide: votes, listeners, submissions, what is frozen, what the arena compares; and who decided what.

Only for who is named in PODEVAL_ADMINS and signed in, or for the one person of this machine.
"""

from __future__ import annotations

from typing import Annotated, Literal

from auth import NotSignedIn, Person
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from website import Site

from podeval.arena import ArenaRefused, refusal
from podeval.listening.moderation import count_session
from podeval.store.operator_settings import FREEZABLE, LONGEST_REASON
from podeval.submissions.public_view import describe_publicly
from podeval.submissions.quotas import OPEN

NEWEST = 100
"""Of flags, submissions and decisions that are shown."""

_MAY = {
    **dict.fromkeys(OPEN, ("cancel", "takedown")),
    "published": ("withdraw", "takedown"),
    "failed": ("requeue", "takedown"),
    "cancelled": ("requeue", "takedown"),
    "withdrawn": ("takedown",),
    "refused": (),
}
"""What can be decided about a submission, by its state."""

Reason = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: Reason


class AboutVote(_Sent):
    """Whether a vote counts."""

    vote: str
    counted: bool


class AboutVoter(_Sent):
    """Whether all votes of a voter count."""

    voter: str
    counted: bool


class AboutSession(_Sent):
    """Whether a listener counts in a test."""

    test: str
    listener: str
    counted: bool


class AboutSubmission(_Sent):
    """What becomes of a submission."""

    id: str
    action: Literal["requeue", "cancel", "withdraw", "takedown"]


class Freeze(_Sent):
    """Whether votes or submissions are taken; the reason is shown to everybody."""

    what: str
    frozen: bool


class AboutDimension(_Sent):
    """Whether new battles are made on a dimension."""

    dimension: str
    open: bool


class AboutSystem(_Sent):
    """Whether new battles show a system."""

    system: str
    shown: bool


class Goal(_Sent):
    """Counted votes wanted on each dimension; nothing takes the goal away."""

    votes: int | None = None


def router(site: Site) -> APIRouter:
    """The routes of operators."""
    routes = APIRouter(include_in_schema=False)
    if site.services.decisions is None or site.services.desk is None:
        return routes
    listening, queue = site.services.listening, site.services.desk.queue
    decisions = site.services.decisions
    board, arena, submissions = decisions.board, decisions.arena, decisions.submissions

    def operator(request: Request) -> Person:
        site.limit(request, "60/minute")
        person = site.person(request)
        if person is None:
            raise NotSignedIn
        if not person.admin:
            raise ArenaRefused(
                refusal.FOREIGN,
                f"this page is for the operators of this board; you are signed in as {person.name}",
                code="for-operators",
                parameters={"name": person.name},
            )
        return person

    def by(request: Request) -> str:
        person = operator(request)
        return "operator" if person.identity == "local" else person.name

    @routes.get("/admin")
    def page(request: Request) -> HTMLResponse:
        operator(request)
        rows = queue.all()[:NEWEST]
        return site.render(
            request,
            "admin.html",
            freezable=FREEZABLE,
            votes=board.flagged_votes(NEWEST),
            sessions=board.flagged_sessions(NEWEST),
            submissions=[(describe_publicly(row), _MAY[row.state]) for row in rows],
            pool=arena.pool(),
            trail=board.trail(NEWEST),
            longest=LONGEST_REASON,
        )

    @routes.post("/admin/votes")
    def vote(request: Request, sent: AboutVote) -> JSONResponse:
        arena.count_vote(sent.vote, sent.counted, sent.reason, by(request))
        return JSONResponse({"vote": sent.vote, "counted": sent.counted})

    @routes.post("/admin/voters")
    def voter(request: Request, sent: AboutVoter) -> JSONResponse:
        changed = arena.count_voter(sent.voter, sent.counted, sent.reason, by(request))
        return JSONResponse({"voter": sent.voter, "counted": sent.counted, "votes": changed})

    @routes.post("/admin/sessions")
    def session(request: Request, sent: AboutSession) -> JSONResponse:
        count_session(listening, sent.test, sent.listener, sent.counted, sent.reason, by(request))
        return JSONResponse({"listener": sent.listener, "counted": sent.counted})

    @routes.post("/admin/submissions")
    def submission(request: Request, sent: AboutSubmission) -> JSONResponse:
        decide = {
            "requeue": submissions.requeue,
            "cancel": submissions.cancel,
            "withdraw": submissions.withdraw,
            "takedown": submissions.take_down,
        }[sent.action]
        return JSONResponse({"id": sent.id, "state": decide(sent.id, sent.reason, by(request)).state})

    @routes.post("/admin/frozen")
    def frozen(request: Request, sent: Freeze) -> JSONResponse:
        (board.freeze if sent.frozen else board.thaw)(sent.what, sent.reason, by(request))
        return JSONResponse({"what": sent.what, "frozen": sent.frozen})

    @routes.post("/admin/dimensions")
    def dimension(request: Request, sent: AboutDimension) -> JSONResponse:
        arena.open_dimension(sent.dimension, sent.open, sent.reason, by(request))
        return JSONResponse({"dimension": sent.dimension, "open": sent.open})

    @routes.post("/admin/systems")
    def system(request: Request, sent: AboutSystem) -> JSONResponse:
        arena.pool_system(sent.system, sent.shown, sent.reason, by(request))
        return JSONResponse({"system": sent.system, "shown": sent.shown})

    @routes.post("/admin/goal")
    def goal(request: Request, sent: Goal) -> JSONResponse:
        arena.set_goal(sent.votes, sent.reason, by(request))
        return JSONResponse({"votes": sent.votes})

    return routes
