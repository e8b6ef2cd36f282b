"""The site as one ASGI application: its pages, the sign-in, the guard, and a sentence for every refusal."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Any

from auth import (
    CannotSignIn,
    NotSignedIn,
    SessionMiddleware,
    SignInRefused,
    cookie_secret,
    public_address,
)
from auth import router as sign_in_routes
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from gradio_addresses import measures
from not_found import Lost
from part_routes import parts_style
from request_guard import Guard, own_hosts
from web_request import find_recordings_sender
from website import HERE, UNREADABLE, UNRECORDED, Site, TooMany

from podeval import __version__
from podeval.arena import ArenaRefused, refusal
from podeval.errors import BadInput, CodedSentence, PodevalError, StoreUnusable
from podeval.store.files import DiskFull

_LOG = logging.getLogger("podeval.site")

_OWN = (
    *("/arena", "/listen", "/method", "/submit", "/submissions", "/queue", "/own", "/audio", "/api", "/health"),
    *("/metrics", "/sign-", "/admin", "/compare", "/report", "/system", "/judges", "/cards"),
)
_STATUS = {
    refusal.FORGED: 403,
    refusal.FOREIGN: 403,
    refusal.UNKNOWN: 404,
    refusal.EXPIRED: 410,
    refusal.INVALID: 422,
    refusal.TOO_MANY: 429,
    refusal.CLOSED: 503,
}


def build_site(site: Site) -> FastAPI:
    """The whole site as one ASGI application.

    Args:
        site: what pages are given.
    """
    app = FastAPI(
        title="podeval",
        version=__version__,
        docs_url=None,
        openapi_url="/api/openapi.json",
        redoc_url=None,
        description="What the board shows, for programs. Reading needs no account.",
    )
    answer_errors(app, site)
    add_guard(app, local=site.how.mode == "local", site=site)
    app.add_middleware(Lost, site=site)
    on_space = bool(os.environ.get("SPACE_ID"))
    app.add_middleware(
        SessionMiddleware,  # type: ignore[arg-type]  # takes any app; its annotation names one argument alone
        secret_key=cookie_secret(),
        session_cookie="podeval",
        max_age=14 * 24 * 3600,
        # A Space is shown inside a page of the Hub, where a cookie that is not `none` is not sent.
        same_site="none" if on_space else "lax",
        https_only=on_space or public_address().startswith("https://"),
    )
    app.mount("/own", StaticFiles(directory=HERE / "static"), name="own")

    # Browsers look here on pages that are not our own templates: Gradio's, files, the list of the API.
    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return FileResponse(HERE / "static" / "icon.svg")

    @app.get("/parts.css", include_in_schema=False)
    def style_parts() -> Response:
        return Response(parts_style(), media_type="text/css", headers={"Cache-Control": "max-age=600"})

    @app.get("/try", include_in_schema=False)
    def moved() -> Response:
        return RedirectResponse("/score", status_code=308)

    app.include_router(sign_in_routes(site.how))
    for routes in _pages(site):
        app.include_router(routes)
    return app


def _pages(site: Site) -> list[Any]:
    """The routers of all own pages: every module in `pages/`. The arena's come first, as it is asked most."""
    import importlib
    import pkgutil

    import pages

    names = sorted((entry.name for entry in pkgutil.iter_modules(pages.__path__)), key=lambda name: name != "arena")
    modules = [importlib.import_module(f"pages.{name}") for name in names]
    return [module.router(site) for module in modules]


def answer_errors(app: FastAPI, site: Site) -> None:
    """Every refusal is a sentence: JSON for a program or script, a page for a person."""

    def answer(request: Request, status: int, reason: str, sentence: str, **headers: str) -> Response:
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            page = site.refused(request, reason, sentence)
            page.status_code = status
            page.headers.update(headers)
            return page
        code = sentence.code if isinstance(sentence, CodedSentence) else ""
        return JSONResponse({"error": sentence, "reason": reason, "code": code}, status, headers)

    @app.exception_handler(NotSignedIn)
    async def answer_not_signed_in(request: Request, _: NotSignedIn) -> Response:
        if site.how.mode == "none":
            from services import NOWHERE

            sentence = CodedSentence(f"Nothing is taken here: {NOWHERE}", code="nothing-taken", why=NOWHERE)
            return answer(request, 403, "closed", sentence)
        sentence = CodedSentence("Please sign in first, at /sign-in.", code="sign-in-first")
        return answer(request, 401, "not signed in", sentence)

    @app.exception_handler(CannotSignIn)
    async def answer_no_provider(request: Request, error: CannotSignIn) -> Response:
        _LOG.error("the sign-in provider cannot be reached: %s", error.__cause__)
        sentence = "Nobody can sign in at present: who signs people in does not answer. Try again in a minute."
        return answer(request, 503, "sign-in", sentence, **{"Retry-After": "60"})

    @app.exception_handler(SignInRefused)
    async def answer_refused_sign_in(request: Request, error: SignInRefused) -> Response:
        _LOG.error("a sign-in is refused: %r", error.__cause__)
        sentence = CodedSentence(
            "You are not signed in: the sign-in provider's answer does not prove who you are. Try again; if it keeps "
            "happening, tell the operator of this board.",
            code="sign-in-unproven",
        )
        return answer(request, 400, "unproven", sentence)

    @app.exception_handler(TooMany)
    async def answer_too_many(request: Request, error: TooMany) -> Response:
        return answer(request, 429, "too many", error.sentence, **{"Retry-After": str(error.seconds)})

    @app.exception_handler(ArenaRefused)
    async def answer_refused(request: Request, error: ArenaRefused) -> Response:
        return answer(request, _STATUS.get(error.reason, 409), error.reason, error.sentence)

    @app.exception_handler(BadInput)
    async def answer_bad_input(request: Request, error: BadInput) -> Response:
        # Where the results lie is for the operator.
        text = str(error).replace(str(site.services.runs.resolve()), "the folder of runs")
        return answer(request, 422, "invalid", CodedSentence(text, code=error.code, **error.parameters))

    @app.exception_handler(StoreUnusable)
    @app.exception_handler(DiskFull)
    async def answer_unusable_store(request: Request, error: PodevalError) -> Response:
        # What is wrong names places on this machine: it is for the operator.
        _LOG.error("the database cannot be used: %s", error)
        sentence = UNREADABLE if request.method in ("GET", "HEAD") else UNRECORDED
        return answer(request, 503, refusal.CLOSED, sentence, **{"Retry-After": "60"})

    @app.exception_handler(RequestValidationError)
    async def answer_invalid_request(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return answer(request, 422, "invalid", f"{field}: {first['msg']}")


def add_guard(app: FastAPI, *, local: bool = False, site: Site | None = None) -> None:
    """What holds for every request; see `Guard`."""
    senders = {"senders": partial(find_recordings_sender, site)} if site is not None else {}
    app.add_middleware(Guard, accepting=_OWN, local=local, measures=measures(local), hosts=own_hosts(), **senders)
