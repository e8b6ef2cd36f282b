"""Listening tests for listeners: invitation, consent, pages on the disk before they are acknowledged, completion code.

A listener is who the invitation names (`PROLIFIC_PID`, or `pid` for other panels), else who signed in.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import audio_routes
from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field
from website import Site, as_script_data

from podeval.analysis.cache import default_cache
from podeval.analysis.playback import Playback
from podeval.arena import ArenaRefused, refusal
from podeval.listening import SessionProgress, session_results
from podeval.listening.stimuli import StimulusAudio, level_noise

FAST, SOUND = "600/minute", "3000/minute"
"""By address: listeners that an invitation names have no account, and a whole laboratory has one address."""

Participant = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}$")]


class Invitation(BaseModel):
    """Who comes, as the link says; nobody named means who signed in."""

    model_config = ConfigDict(extra="forbid")
    prolific: Participant | None = None
    pid: Participant | None = None
    consent: bool = False


class PageSent(BaseModel):
    """A page as a listener answered it; `podeval.listening.listener_pages.validate_answer` says what is in it."""

    model_config = ConfigDict(extra="forbid")
    answer: dict[str, Any]
    heard: dict[str, float] = {}
    seconds: float | None = None


def router(site: Site) -> APIRouter:
    """The routes of a listener."""
    routes = APIRouter(include_in_schema=False)
    listening = site.services.listening
    sounds = StimulusAudio(listening, Playback.default(), site.services.runs)

    def identity(request: Request, invitation: Invitation) -> str:
        if reason := site.services.closed or site.services.only_votes:
            raise ArenaRefused(refusal.CLOSED, reason)
        if invitation.prolific:
            return f"prolific:{invitation.prolific}"
        return f"invited:{invitation.pid}" if invitation.pid else site.require_person(request).identity

    @routes.get("/listen/{test}")
    def page(request: Request, test: str) -> HTMLResponse:
        site.limit(request, FAST)
        overview = _overview(site, test)
        design = overview.design
        invited = bool(request.query_params.get("PROLIFIC_PID") or request.query_params.get("pid"))
        script = {
            "test": design.id,
            "kind": design.kind,
            "closed": overview.closed,
            "texts": site.texts[site.language(request)]["listening"]["script"],
        }
        return site.render(
            request, "listening.html", design=design, minutes=max(1, round(design.estimate(design.each))),
            welcome=invited or site.person(request) is not None, script_data=Markup(as_script_data(script)),
            address=f"{request.url.path}?{request.url.query}",
        )  # fmt: skip

    @routes.post("/listen/{test}/sessions")
    def begin(request: Request, test: str, invitation: Invitation) -> JSONResponse:
        """Come back, or begin where the listener consents; null for who has not begun and does not consent."""
        site.limit(request, "600/hour")
        who = identity(request, invitation)
        overview = _overview(site, test)
        stands = listening.resume(test, who)
        if stands is None and invitation.consent:
            if overview.closed:
                raise ArenaRefused(
                    refusal.CLOSED,
                    f"the test {test} is closed; thank you for coming",
                    code="listening-test-closed",
                    parameters={"test": test},
                )
            person = site.person(request)
            # Who comes by an invitation is not asked for a name, whether signed in or not.
            name = person.name if person is not None and person.identity == who else ""
            stands = listening.start(test, who, origin=site.origin(request), name=name)
        return JSONResponse(stands and _progress(stands))

    @routes.get("/listen/sessions/{session}/pages/{number}")
    def show(request: Request, session: str, number: int) -> JSONResponse:
        site.limit(request, FAST)
        """A page as data, and as the cards and questions that its listener sees."""
        saved, test_page = listening.answered(session, number), listening.show(session, number)
        form = site.render_text(request, "listening_page.html", shown=test_page, session=session)
        page_content = {**asdict(test_page), "saved": saved and asdict(saved), "form": form}
        if test_page.check:
            page_content["title"] = site.texts[site.language(request)]["listening"]["asked"]["headphones"]["title"]
        return JSONResponse(page_content)

    @routes.post("/listen/sessions/{session}/pages/{number}")
    def save(request: Request, session: str, number: int, sent: PageSent) -> JSONResponse:
        site.limit(request, FAST)
        done = listening.save(session, number, sent.answer, heard_shares=sent.heard, seconds=sent.seconds)
        return JSONResponse(_progress(done))

    @routes.post("/listen/sessions/{session}/finish")
    def finish(request: Request, session: str) -> JSONResponse:
        site.limit(request, FAST)
        listening.finish(session)
        return JSONResponse(_progress(listening.progress(session)))

    @routes.api_route("/listen/sessions/{session}/pages/{number}/audio/{letter}", methods=["GET", "HEAD"])
    def play(request: Request, session: str, number: int, letter: str) -> Response:
        site.limit(request, SOUND)
        sound = sounds.file(session, number, letter)
        if isinstance(sound, bytes):
            return audio_routes.sound_of_bytes(sound, request.headers.get("Range", ""))
        return audio_routes.sound(sound)

    @routes.get("/listen/sessions/{session}/pages/{number}/peaks/{letter}")
    def peaks(request: Request, session: str, number: int, letter: str) -> Response:
        site.limit(request, FAST)
        return audio_routes.picture(sounds.peaks(session, number, letter))

    @routes.get("/listen/sessions/level")
    def level(request: Request) -> Response:
        """A noise to set the volume by."""
        site.limit(request, FAST)
        return FileResponse(level_noise(default_cache().folder.parent), media_type="audio/wav")

    return routes


def _overview(site: Site, test: str) -> session_results.Overview:
    if test not in site.services.listening.tests():
        raise ArenaRefused(
            refusal.UNKNOWN,
            "there is no such listening test; please check the link you were given",
            code="no-such-listening-link",
        )
    return session_results.overview(site.services.database, test)


def _progress(stands: SessionProgress) -> dict[str, Any]:
    return {
        "session": stands.session,
        "pages": stands.pages,
        "saved": stands.saved,
        "next": stands.next_page,
        "code": stands.completion_code,
        "back": stands.return_to and {"address": stands.return_to, "seconds": stands.return_seconds},
    }
