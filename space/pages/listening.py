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
from pydantic import Field
from request_guard import find_origin
from website import FromPage, Site, to_script_data

from podeval.arena import ArenaRefused, refusal
from podeval.listening import SessionProgress, session_results
from podeval.listening.stimuli import StimulusAudio, write_level_noise
from podeval.recording.cache import open_default_cache
from podeval.recording.playback import Playback
from podeval.stats.questionnaire_scores import ABOUT

FAST, SOUND = "600/minute", "3000/minute"
"""Limits by address: listeners that an invitation names have no account, and a whole laboratory has one address."""

Participant = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}$")]


class Invitation(FromPage):
    """Who comes, as the link says; nobody named means who signed in."""

    prolific: Participant | None = None
    pid: Participant | None = None
    consent: bool = False


class PageSent(FromPage):
    """A page as a listener answered it; `podeval.listening.listener_pages.validate_answer` says what is in it."""

    answer: dict[str, Any]
    heard: dict[str, float] = Field({})
    seconds: float | None = None


class ListenerRoutes:
    """A listener's way through a test: invitation, pages, sounds, end."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.listening = site.services.listening
        self.sounds = StimulusAudio(self.listening, Playback.default(), site.services.runs)

    def _identity(self, request: Request, invitation: Invitation) -> str:
        if reason := self.site.services.closed or self.site.services.only_votes:
            raise ArenaRefused(refusal.CLOSED, reason)
        if invitation.prolific:
            return f"prolific:{invitation.prolific}"
        return f"invited:{invitation.pid}" if invitation.pid else self.site.require_person(request).identity

    def page(self, request: Request, test: str) -> HTMLResponse:
        """Show the invitation to a test."""
        self.site.limit(request, FAST)
        overview = _overview(self.site, test)
        design = overview.design
        invited = bool(request.query_params.get("PROLIFIC_PID") or request.query_params.get("pid"))
        script = {
            "test": design.id,
            "kind": design.kind,
            "closed": overview.closed,
            "texts": self.site.texts[self.site.language(request)]["listening"]["script"],
        }
        return self.site.render(
            request, "listening.html", design=design, minutes=max(1, round(design.estimate(design.items_heard))),
            welcome=invited or self.site.person(request) is not None, script_data=Markup(to_script_data(script)),
            address=f"{request.url.path}?{request.url.query}",
        )  # fmt: skip

    def begin(self, request: Request, test: str, invitation: Invitation) -> JSONResponse:
        """Come back, or begin where the listener consents; null for who has not begun and does not consent."""
        self.site.limit(request, "600/hour")
        who = self._identity(request, invitation)
        overview = _overview(self.site, test)
        stands = self.listening.resume(test, who)
        if stands is None and invitation.consent:
            if overview.closed:
                raise ArenaRefused(
                    refusal.CLOSED,
                    f"the test {test} is closed; thank you for coming",
                    code="listening-test-closed",
                    parameters={"test": test},
                )
            person = self.site.person(request)
            # Who comes by an invitation is not asked for a name, whether signed in or not.
            name = person.name if person is not None and person.identity == who else ""
            stands = self.listening.start(test, who, origin=find_origin(request), name=name)
        return JSONResponse(stands and _progress(stands))

    def show(self, request: Request, session: str, number: int) -> JSONResponse:
        """A page as data, and as the cards and questions that its listener sees."""
        self.site.limit(request, FAST)
        saved, test_page = self.listening.answered(session, number), self.listening.show(session, number)
        form = self.site.render_text(request, "listening_page.html", shown=test_page, session=session)
        page_content = {**asdict(test_page), "saved": saved and asdict(saved), "form": form}
        texts = self.site.texts[self.site.language(request)]["listening"]["asked"]
        if test_page.check:
            page_content["title"] = texts["headphones"]["title"]
        elif test_page.page == ABOUT:
            page_content["title"] = texts["about_you"]
        return JSONResponse(page_content)

    def save(self, request: Request, session: str, number: int, sent: PageSent) -> JSONResponse:
        """Keep a listener's answers on a page."""
        self.site.limit(request, FAST)
        done = self.listening.save(session, number, sent.answer, heard_shares=sent.heard, seconds=sent.seconds)
        return JSONResponse(_progress(done))

    def finish(self, request: Request, session: str) -> JSONResponse:
        """End a listener's session."""
        self.site.limit(request, FAST)
        self.listening.finish(session)
        return JSONResponse(_progress(self.listening.progress(session)))

    def play(self, request: Request, session: str, number: int, letter: str) -> Response:
        """Send the sound of a stimulus, whole or a range of it."""
        self.site.limit(request, SOUND)
        sound = self.sounds.file(session, number, letter)
        if isinstance(sound, bytes):
            return audio_routes.answer_sound_bytes(sound, request.headers.get("Range", ""))
        return audio_routes.answer_sound(sound)

    def peaks(self, request: Request, session: str, number: int, letter: str) -> Response:
        """Send the peaks of a stimulus, as a player draws them."""
        self.site.limit(request, FAST)
        return audio_routes.answer_picture(self.sounds.peaks(session, number, letter))

    def level(self, request: Request) -> Response:
        """A noise to set the volume by."""
        self.site.limit(request, FAST)
        return FileResponse(write_level_noise(open_default_cache().folder.parent), media_type="audio/wav")


def build_router(site: Site) -> APIRouter:
    """The routes of a listener."""
    routes = APIRouter(include_in_schema=False)
    pages = ListenerRoutes(site)
    routes.get("/listen/{test}")(pages.page)
    routes.post("/listen/{test}/sessions")(pages.begin)
    routes.get("/listen/sessions/{session}/pages/{number}")(pages.show)
    routes.post("/listen/sessions/{session}/pages/{number}")(pages.save)
    routes.post("/listen/sessions/{session}/finish")(pages.finish)
    routes.api_route("/listen/sessions/{session}/pages/{number}/audio/{letter}", methods=["GET", "HEAD"])(pages.play)
    routes.get("/listen/sessions/{session}/pages/{number}/peaks/{letter}")(pages.peaks)
    routes.get("/listen/sessions/level")(pages.level)
    return routes


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
