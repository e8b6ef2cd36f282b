"""The site: every page in `pages/`, one look, one sign-in, the same rules for every request.

Own pages are templates with scripts of their own files; nothing on them comes from another host and no code stands in
the page. Whatever changes something is a POST of JSON with the header `X-Podeval`, which no other site can send.
"""

from __future__ import annotations

import json
import logging
import math
import os
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from auth import (
    SIGNED_IN,
    CannotSignIn,
    NotSignedIn,
    Person,
    SessionMiddleware,
    SignIn,
    SignInRefused,
    cookie_secret,
    public_address,
)
from auth import router as sign_in_routes
from error_messages import translate
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from gradio_routes import TABS, measures
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from limits import parse
from local_formats import FORMATS
from not_found import Lost
from part_routes import parts_style
from rate_limit import RateLimit
from request_guard import Guard, origin_of, own_hosts
from services import Services
from web_request import find_recordings_sender

from podeval import __version__
from podeval.arena import ArenaRefused, refusal
from podeval.errors import BadInput, CodedSentence, PodevalError, StoreUnusable
from podeval.leaderboard.report import Reports
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.store.files import DiskFull
from podeval.text.message_catalogue import read_texts

_LOG = logging.getLogger("podeval.site")

HERE = Path(__file__).parent
LANGUAGES = ("en", "zh")
TABS_NAV = tuple((f"/{name}", name if name != "leaderboard" else "board") for name in TABS)
"""The tabs, by the key of their names in the texts `site`."""
NAV = (
    *(("/arena/ratings", "ratings"), ("/compare", "compare"), ("/cards", "cards")),
    *(("/method", "method"), ("/judges", "judges")),
)
"""Documents in the header, likewise."""
OPERATORS_NAV = (("/listening", "listening"), ("/admin", "admin"))
"""Further ones for operators."""

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


UNRECORDED = CodedSentence(
    "Nothing can be recorded here at present, and nothing was; try again in a minute.", code="nothing-recorded"
)
UNREADABLE = CodedSentence(
    "This cannot be shown at present, as the database of this board cannot be used; try again in a minute.",
    code="nothing-shown",
)


class TooMany(PodevalError):
    """More requests than one person makes."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"that was too fast; try again in {seconds} s", code="too-fast", parameters={"seconds": seconds}
        )
        self.seconds = seconds


class _Templates(Environment):
    """Templates in which a name of a dictionary stands for what is under it: `s.items` is the word, not the method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What `obj.attribute` is in a template."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Site:
    """What every page is given.

    Args:
        services: what the pages call.
        how: how people sign in.

    Attributes:
        results: the folder of runs, its tables read once for all pages.
        reports: the reports over it.
    """

    def __init__(self, services: Services, how: SignIn) -> None:
        self.services = services
        self.how = how
        self.results = RunsFolder(services.runs)
        self.reports = Reports(self.results)
        self.texts = {language: read_texts(HERE / "locale", language) for language in LANGUAGES}
        self._templates = _Templates(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False
        )
        self._templates.filters.update(FORMATS)
        self._pace = RateLimit()

    def person(self, request: Request) -> Person | None:
        """Who sent a request, if that is proven."""
        return self.how.person(request)

    def require_person(self, request: Request) -> Person:
        """Who sent a request.

        Raises:
            NotSignedIn: nobody knows.
            Refused: nothing is taken here at present.
        """
        if self.services.closed:
            raise ArenaRefused(refusal.CLOSED, self.services.closed)
        person = self.person(request)
        if person is None:
            raise NotSignedIn
        return person

    def language(self, request: Request) -> str:
        """The language of the page: as asked for, as chosen before, as the browser prefers."""
        wish = request.query_params.get("lang") or request.cookies.get("lang")
        if wish in LANGUAGES:
            return str(wish)
        preferred = request.headers.get("accept-language", "").lower()
        return "zh" if preferred.startswith("zh") else "en"

    def render(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """A page from its template, which also knows `t` (texts), `person`, `nav`, `language`, `closed` and `frozen`.

        Raises:
            StoreUnusable: the database does not say what is frozen.
        """
        return self._render(request, template, frozen=self.services.frozen(), **values)

    def _render(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        answer = HTMLResponse(self._content(request, template, **values))
        self.keep_language(request, answer)
        return answer

    def _content(self, request: Request, template: str, **values: Any) -> str:
        language, person = self.language(request), self.person(request)
        closed = self.services.closed
        context = {
            "t": self.texts[language],
            "person": person,
            "language": language,
            "languages": LANGUAGES,
            "tabs": TABS_NAV,
            "nav": NAV + (OPERATORS_NAV if person and person.admin else ()),
            "here": request.url.path,
            "base": public_address() or str(request.base_url).rstrip("/"),
            "in_language": {code: _query(request, lang=code) for code in LANGUAGES},
            "closed": closed and translate(closed, self.texts[language]["refused"])[0],
            "mode": self.how.mode,
            "sign_in": self._sign_in(language),
            "unfinished": person is None and request.query_params.get(SIGNED_IN) == "no",
            "version": __version__,
        }
        return self._templates.get_template(template).render(context | values)

    def render_text(self, request: Request, template: str, **values: Any) -> str:
        """The text of a template that is a part of something, with the same values."""
        return self._content(request, template, frozen={}, **values)

    def frame(self, request: Request) -> tuple[str, str]:
        """What the page of the tabs has in its head and above them: styles, the header, what is not taken at present.

        Raises:
            StoreUnusable: the database does not say what is frozen.
        """
        header = self._content(request, "tabs_header.html", tabs=(), frozen=self.services.frozen())
        return self._content(request, "tabs_head.html"), header

    def keep_language(self, request: Request, answer: Response) -> None:
        """Remember the language that an address asks for."""
        if request.query_params.get("lang") in LANGUAGES:
            answer.set_cookie("lang", self.language(request), max_age=31_536_000, samesite="lax", httponly=True)

    def _sign_in(self, language: str) -> str:
        """What the button says that leads to the provider."""
        texts = self.texts[language]["site"]
        return str(texts["sign_in_at"].format(self.how.host) if self.how.host else texts["sign_in"])

    def refused(self, request: Request, reason: str, sentence: str) -> HTMLResponse:
        """The page of a refusal, in the reader's language as far as it is known there.

        It asks the database nothing: that the database is away may be what it has to say.
        """
        text, whole = translate(sentence, self.texts[self.language(request)]["refused"], reason)
        text = text if text.endswith((".", "。", "!", "?")) else f"{text}."
        text, original = text[:1].upper() + text[1:], "" if whole else sentence
        return self._render(request, "refused.html", frozen={}, sentence=text, original=original, reason=reason)

    def origin(self, request: Request) -> str:
        """The network address of who sent a request; what a proxy says counts where one is trusted."""
        return origin_of(request)

    def limit(self, request: Request, rate: str, what: str = "") -> None:
        """Let through so many requests of one person or address, such as `20/minute`.

        Args:
            request: of the person.
            rate: so many in so much time.
            what: that is counted together; by default what its route answers.

        Raises:
            TooMany: there were more.
        """
        person = self.person(request)
        who = person.identity if person and person.identity != "local" else self.origin(request)
        # By the route, not the address: who asks for another thing each time asks as often.
        route = what or getattr(request.scope.get("route"), "path", request.url.path)
        if wait := self._pace.wait(parse(rate), route, who):
            raise TooMany(math.ceil(wait))


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
        _LOG.error("who signs people in cannot be asked: %s", error.__cause__)
        sentence = "Nobody can sign in at present: who signs people in does not answer. Try again in a minute."
        return answer(request, 503, "sign-in", sentence, **{"Retry-After": "60"})

    @app.exception_handler(SignInRefused)
    async def answer_refused_sign_in(request: Request, error: SignInRefused) -> Response:
        _LOG.error("a sign-in is refused: %r", error.__cause__)
        sentence = CodedSentence(
            "You are not signed in: what came back from who signs people in does not prove who you are. Try again; if "
            "it stays so, tell the operator of this board.",
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


def _query(request: Request, **changed: str) -> str:
    """The query string of a request with some of it changed."""
    return urlencode({**request.query_params, **changed})


def as_script_data(value: Any) -> str:
    """JSON that stands safely in a page's `<script type="application/json">`."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")
