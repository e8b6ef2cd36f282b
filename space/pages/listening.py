"""Listening tests for listeners: invitation, consent, pages that are stored before they are acknowledged, and
completion code.

A listener is the person whom the invitation names (`PROLIFIC_PID`, or `pid` for other panels), otherwise the signed-in
person.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import audio_routes
from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import Field
from request_guard import find_origin
from website import CurrentSite, FromPage, Site, change_address, limit, to_script_data

from podeval.arena import ArenaRefused, refusal
from podeval.listening import SessionProgress, session_results
from podeval.listening.stimuli import StimulusAudio, write_level_noise
from podeval.recording.cache import open_default_cache
from podeval.stats.questionnaire_scores import ABOUT

routes = APIRouter(include_in_schema=False)

FAST, SOUND = "600/minute", "3000/minute"
"""Limits by address, because listeners named in an invitation have no account; a whole laboratory may share one
address.
"""

Participant = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}$")]


class Invitation(FromPage):
    """The listener whom the link names; without a name, the signed-in person."""

    prolific: Participant | None = None
    pid: Participant | None = None
    consent: bool = False


class PageSent(FromPage):
    """A listener's answer to a page; `podeval.listening.listener_pages.validate_answer` defines its content."""

    answer: dict[str, Any]
    heard: dict[str, float] = Field({})
    seconds: float | None = None


def _identify(request: Request, site: CurrentSite, invitation: Invitation) -> str:
    if reason := site.services.closed or site.services.only_votes:
        raise ArenaRefused(refusal.CLOSED, reason)
    if invitation.prolific:
        return f"prolific:{invitation.prolific}"
    return f"invited:{invitation.pid}" if invitation.pid else site.require_person(request).identity


@routes.get("/listen/{test}", dependencies=[limit(FAST)])
def page(
    request: Request,
    site: CurrentSite,
    test: str,
    prolific: Annotated[Participant | None, Query(alias="PROLIFIC_PID")] = None,
    pid: Participant | None = None,
    page: Annotated[int | None, Query(ge=0)] = None,
) -> HTMLResponse:
    """Show a listener the current step of a test: consent, instructions, a page, the end, or the completion code."""
    overview, stands, shown = _overview(site, test), None, None
    if (welcome := bool(prolific or pid or site.person(request))) and not site.services.closed:
        stands = site.services.listening.resume(test, _identify(request, site, Invitation(prolific=prolific, pid=pid)))
    if stands and not stands.completion_code:
        number = page if page is not None else stands.next_page if stands.saved else None
        shown = None if number is None else _describe_page(request, site, stands.session, min(number, stands.pages - 1))
    return site.render(
        request,
        "listening.html",
        design=overview.design,
        minutes=max(1, round(overview.design.estimate(overview.design.items_heard))),
        welcome=welcome,
        is_over=overview.closed,
        stands=stands,
        shown=shown,
        script_data=Markup(
            to_script_data(
                {
                    "test": test,
                    "session": stands and stands.session,
                    "shown": shown and shown | {"form": ""},
                    "back": stands and _progress(stands)["back"],
                    "invitation": {"prolific": prolific} if prolific else {"pid": pid},
                    # Without a number, the first page that is not answered yet is shown.
                    "onward": change_address(request.url.path, dict(request.query_params), page=""),
                    "texts": site.texts[site.language(request)]["listening"]["script"],
                }
            )
        ),
        link=lambda number: change_address(request.url.path, dict(request.query_params), page=str(number)),
        address=f"{request.url.path}?{request.url.query}",
    )


@routes.post("/listen/{test}/sessions", dependencies=[limit("600/hour")])
def begin(request: Request, site: CurrentSite, test: str, invitation: Invitation) -> JSONResponse:
    """Resume a session, or begin one if the listener consents; null if there is no session and no consent."""
    who = _identify(request, site, invitation)
    overview = _overview(site, test)
    stands = site.services.listening.resume(test, who)
    if stands is None and invitation.consent:
        if overview.closed:
            raise ArenaRefused(
                refusal.CLOSED,
                f"the test {test} is closed; thank you for coming",
                code="listening-test-closed",
                parameters={"test": test},
            )
        person = site.person(request)
        # Visitors with an invitation are not asked for a name, whether signed in or not.
        name = person.name if person is not None and person.identity == who else ""
        stands = site.services.listening.start(test, who, origin=find_origin(request), name=name)
    return JSONResponse(stands and _progress(stands))


def _describe_page(request: Request, site: Site, session: str, number: int) -> dict[str, Any]:
    """Return a page as data, and as the cards and questions that its listener sees."""
    saved, test_page = site.services.listening.answered(session, number), site.services.listening.show(session, number)
    form = site.render_text(request, "listening_page.html", shown=test_page, session=session)
    page_content = {**asdict(test_page), "saved": saved and asdict(saved), "form": form}
    texts = site.texts[site.language(request)]["listening"]["asked"]
    if test_page.check:
        page_content["title"] = texts["headphones"]["title"]
    elif test_page.page == ABOUT:
        page_content["title"] = texts["about_you"]
    return page_content


@routes.post("/listen/sessions/{session}/pages/{number}", dependencies=[limit(FAST)])
def save(site: CurrentSite, session: str, number: int, sent: PageSent) -> JSONResponse:
    """Store a listener's answers on a page."""
    done = site.services.listening.save(session, number, sent.answer, heard_shares=sent.heard, seconds=sent.seconds)
    return JSONResponse(_progress(done))


@routes.post("/listen/sessions/{session}/finish", dependencies=[limit(FAST)])
def finish(site: CurrentSite, session: str) -> JSONResponse:
    """End a listener's session."""
    site.services.listening.finish(session)
    return JSONResponse(_progress(site.services.listening.progress(session)))


@routes.api_route(
    "/listen/sessions/{session}/pages/{number}/audio/{letter}", methods=["GET", "HEAD"], dependencies=[limit(SOUND)]
)
def play(request: Request, site: CurrentSite, session: str, number: int, letter: str) -> Response:
    """Send the audio of a stimulus, or a range of it."""
    sound = _open_sounds(site).file(session, number, letter)
    if isinstance(sound, bytes):
        return audio_routes.answer_sound_bytes(sound, request.headers.get("Range", ""))
    return audio_routes.answer_sound(sound)


@routes.get("/listen/sessions/{session}/pages/{number}/peaks/{letter}", dependencies=[limit(FAST)])
def peaks(site: CurrentSite, session: str, number: int, letter: str) -> Response:
    """Send the peaks of a stimulus, for a player."""
    return audio_routes.answer_picture(_open_sounds(site).peaks(session, number, letter))


@routes.get("/listen/sessions/level", dependencies=[limit(FAST)])
def level() -> Response:
    """Send a noise signal for setting the volume."""
    return FileResponse(write_level_noise(open_default_cache().folder.parent), media_type="audio/wav")


def _open_sounds(site: Site) -> StimulusAudio:
    return StimulusAudio(site.services.listening, site.services.playback, site.services.runs)


def _overview(site: Site, test: str) -> session_results.Overview:
    if test not in site.services.listening.tests():
        raise ArenaRefused(
            refusal.UNKNOWN,
            "there is no such listening test; please check the link you were given",
            code="no-such-listening-link",
        )
    return session_results.read_overview(site.services.database, test)


def _progress(stands: SessionProgress) -> dict[str, Any]:
    return {
        "session": stands.session,
        "pages": stands.pages,
        "saved": stands.saved,
        "next": stands.next_page,
        "code": stands.completion_code,
        "back": stands.return_to and {"address": stands.return_to, "seconds": stands.return_seconds},
    }
