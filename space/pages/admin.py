"""What operators decide: votes, listeners, submissions, what is frozen, what the arena compares; and who decided what.

Only for who is named in PODEVAL_ADMINS and signed in, or for the one person of this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field
from website import FromPage, Site

from podeval.arena.moderation import ArenaModeration
from podeval.board.build import build
from podeval.operations.moderation import BoardModeration
from podeval.store.operator_settings import FREEZABLE, LONGEST_REASON
from podeval.submissions.moderation import SubmissionModeration
from podeval.submissions.public_view import describe_publicly
from podeval.submissions.queue import Queue
from podeval.submissions.states import OPEN

NEWEST = 100
"""Number of flags, submissions and decisions that are shown."""

_MAY = {
    **dict.fromkeys(OPEN, ("cancel", "takedown")),
    "published": ("withdraw", "takedown"),
    "failed": ("requeue", "takedown"),
    "cancelled": ("requeue", "takedown"),
    "withdrawn": ("takedown",),
    "refused": (),
}
"""Possible decisions about a submission, by its state."""

Reason = Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]


class _Sent(FromPage):
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


class AdminRoutes:
    """The decisions of operators, each with its reason."""

    def __init__(self, site: Site, queue: Queue) -> None:
        arena = site.services.arena
        self.site, self.queue, self.listening = site, queue, site.services.listening
        self.board, self.arena = BoardModeration(arena.database, arena.changed), ArenaModeration(arena)
        self.submissions = SubmissionModeration(queue, site.services.runs, build, arena.changed)

    def _by(self, request: Request) -> str:
        person = self.site.require_operator(request)
        return "operator" if person.identity == "local" else person.name

    def page(self, request: Request) -> HTMLResponse:
        """Show what is flagged, waits or was decided."""
        self.site.require_operator(request)
        rows = self.queue.all()[:NEWEST]
        return self.site.render(
            request,
            "admin.html",
            freezable=FREEZABLE,
            votes=self.board.flagged_votes(NEWEST),
            sessions=self.board.flagged_sessions(NEWEST),
            submissions=[(describe_publicly(row), _MAY[row.state]) for row in rows],
            pool=self.arena.pool(),
            trail=self.board.trail(NEWEST),
            longest=LONGEST_REASON,
        )

    def vote(self, request: Request, sent: AboutVote) -> JSONResponse:
        """Count a vote, or leave it out."""
        self.arena.count_vote(sent.vote, sent.counted, sent.reason, self._by(request))
        return JSONResponse({"vote": sent.vote, "counted": sent.counted})

    def voter(self, request: Request, sent: AboutVoter) -> JSONResponse:
        """Count all votes of a voter, or leave them out."""
        changed = self.arena.count_voter(sent.voter, sent.counted, sent.reason, self._by(request))
        return JSONResponse({"voter": sent.voter, "counted": sent.counted, "votes": changed})

    def session(self, request: Request, sent: AboutSession) -> JSONResponse:
        """Count a listener of a listening test, or leave them out."""
        self.listening.count_session(sent.test, sent.listener, sent.counted, sent.reason, self._by(request))
        return JSONResponse({"listener": sent.listener, "counted": sent.counted})

    def submission(self, request: Request, sent: AboutSubmission) -> JSONResponse:
        """Queue a submission again, or cancel, withdraw or take it down."""
        decide = {
            "requeue": self.submissions.requeue,
            "cancel": self.submissions.cancel,
            "withdraw": self.submissions.withdraw,
            "takedown": self.submissions.take_down,
        }[sent.action]
        return JSONResponse({"id": sent.id, "state": decide(sent.id, sent.reason, self._by(request)).state})

    def frozen(self, request: Request, sent: Freeze) -> JSONResponse:
        """Freeze votes or submissions, or take them again."""
        (self.board.freeze if sent.frozen else self.board.thaw)(sent.what, sent.reason, self._by(request))
        return JSONResponse({"what": sent.what, "frozen": sent.frozen})

    def dimension(self, request: Request, sent: AboutDimension) -> JSONResponse:
        """Open or close a dimension for new battles."""
        self.arena.open_dimension(sent.dimension, sent.open, sent.reason, self._by(request))
        return JSONResponse({"dimension": sent.dimension, "open": sent.open})

    def system(self, request: Request, sent: AboutSystem) -> JSONResponse:
        """Put a system into the pool of new battles, or take it out."""
        self.arena.pool_system(sent.system, sent.shown, sent.reason, self._by(request))
        return JSONResponse({"system": sent.system, "shown": sent.shown})

    def goal(self, request: Request, sent: Goal) -> JSONResponse:
        """Set the goal of votes for each dimension, or none."""
        self.arena.set_goal(sent.votes, sent.reason, self._by(request))
        return JSONResponse({"votes": sent.votes})


def build_router(site: Site) -> APIRouter:
    """The routes of operators."""
    routes = APIRouter(include_in_schema=False)
    if site.services.desk is None:
        return routes
    pages = AdminRoutes(site, site.services.desk.queue)
    routes.get("/admin")(pages.page)
    decisions: dict[str, Callable[..., JSONResponse]] = {
        "votes": pages.vote,
        "voters": pages.voter,
        "sessions": pages.session,
        "submissions": pages.submission,
        "frozen": pages.frozen,
        "dimensions": pages.dimension,
        "systems": pages.system,
        "goal": pages.goal,
    }
    for name, decide in decisions.items():
        routes.post(f"/admin/{name}")(decide)
    return routes
