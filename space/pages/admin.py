"""Operators' decisions about votes, listeners, submissions, freezes and the arena, with the authors of the decisions.

Only people who are named in PODEVAL_ADMINS and signed in, or who are the only user of this machine, have access.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field
from website import CurrentSite, FromPage, Operator, require_operator

from podeval.arena.moderation import ArenaModeration, BoardModeration
from podeval.board.build import build
from podeval.store.operator_settings import FREEZABLE, LONGEST_REASON
from podeval.submissions.moderation import SubmissionModeration
from podeval.submissions.public_view import describe_publicly
from podeval.submissions.states import OPEN

routes = APIRouter(include_in_schema=False)

NEWEST = 100
"""Maximum number of flags, submissions and decisions that are shown."""

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
    """The decision on whether a vote counts."""

    vote: str
    counted: bool


class AboutVoter(_Sent):
    """The decision on whether all of a voter's votes count."""

    voter: str
    counted: bool


class AboutSession(_Sent):
    """The decision on whether a listener counts in a test."""

    test: str
    listener: str
    counted: bool


class AboutSubmission(_Sent):
    """The new state of a submission."""

    id: str
    action: Literal["requeue", "cancel", "withdraw", "takedown"]


class Freeze(_Sent):
    """The decision on whether votes or submissions are accepted; the reason is shown to everyone."""

    what: str
    frozen: bool


class AboutDimension(_Sent):
    """The decision on whether new battles are created on a dimension."""

    dimension: str
    open: bool


class AboutSystem(_Sent):
    """The decision on whether new battles include a system."""

    system: str
    shown: bool


class Goal(_Sent):
    """Target number of counted votes on each dimension; no value removes the goal."""

    votes: int | None = None


async def name_operator(person: Operator) -> str:
    """Return the name that is recorded with a decision."""
    return "operator" if person.identity == "local" else person.name


OperatorName = Annotated[str, Depends(name_operator)]


async def get_arena(site: CurrentSite) -> ArenaModeration:
    """Return the object for decisions about the arena."""
    return ArenaModeration(site.services.arena)


async def get_board(site: CurrentSite) -> BoardModeration:
    """Return the object for decisions about freezing, and for all decisions."""
    return BoardModeration(site.services.database, site.services.arena.changed)


OnArena = Annotated[ArenaModeration, Depends(get_arena)]
OnBoard = Annotated[BoardModeration, Depends(get_board)]


@routes.get("/admin", dependencies=[Depends(require_operator)])
def page(request: Request, site: CurrentSite, arena: OnArena, board: OnBoard) -> HTMLResponse:
    """Show all flagged and waiting entries, and all decisions."""
    rows = site.services.desk.queue.all()[:NEWEST]
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
def vote(by: OperatorName, arena: OnArena, sent: AboutVote) -> JSONResponse:
    """Count a vote, or exclude it."""
    arena.count_vote(sent.vote, sent.counted, sent.reason, by)
    return JSONResponse({"vote": sent.vote, "counted": sent.counted})


@routes.post("/admin/voters")
def voter(by: OperatorName, arena: OnArena, sent: AboutVoter) -> JSONResponse:
    """Count all of a voter's votes, or exclude them."""
    changed = arena.count_voter(sent.voter, sent.counted, sent.reason, by)
    return JSONResponse({"voter": sent.voter, "counted": sent.counted, "votes": changed})


@routes.post("/admin/sessions")
def session(by: OperatorName, site: CurrentSite, sent: AboutSession) -> JSONResponse:
    """Count a listener of a listening test, or exclude them."""
    site.services.listening.count_session(sent.test, sent.listener, sent.counted, sent.reason, by)
    return JSONResponse({"listener": sent.listener, "counted": sent.counted})


@routes.post("/admin/submissions")
def submission(by: OperatorName, site: CurrentSite, sent: AboutSubmission) -> JSONResponse:
    """Queue a submission again, or cancel, withdraw or take it down."""
    services = site.services
    decisions = SubmissionModeration(services.desk.queue, services.runs, build, services.arena.changed)
    decide = {
        "requeue": decisions.requeue,
        "cancel": decisions.cancel,
        "withdraw": decisions.withdraw,
        "takedown": decisions.take_down,
    }[sent.action]
    return JSONResponse({"id": sent.id, "state": decide(sent.id, sent.reason, by).state})


@routes.post("/admin/frozen")
def frozen(by: OperatorName, board: OnBoard, sent: Freeze) -> JSONResponse:
    """Freeze votes or submissions, or accept them again."""
    (board.freeze if sent.frozen else board.thaw)(sent.what, sent.reason, by)
    return JSONResponse({"what": sent.what, "frozen": sent.frozen})


@routes.post("/admin/dimensions")
def dimension(by: OperatorName, arena: OnArena, sent: AboutDimension) -> JSONResponse:
    """Open or close a dimension for new battles."""
    arena.open_dimension(sent.dimension, sent.open, sent.reason, by)
    return JSONResponse({"dimension": sent.dimension, "open": sent.open})


@routes.post("/admin/systems")
def system(by: OperatorName, arena: OnArena, sent: AboutSystem) -> JSONResponse:
    """Add a system to the pool for new battles, or remove it."""
    arena.pool_system(sent.system, sent.shown, sent.reason, by)
    return JSONResponse({"system": sent.system, "shown": sent.shown})


@routes.post("/admin/goal")
def goal(by: OperatorName, arena: OnArena, sent: Goal) -> JSONResponse:
    """Set the target number of votes for each dimension, or remove it."""
    arena.set_goal(sent.votes, sent.reason, by)
    return JSONResponse({"votes": sent.votes})
