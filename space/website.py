"""The services of every page of the site: one look, one sign-in, one language, one pace.

The site's own pages are templates whose scripts are separate files; they load nothing from other hosts and contain no
code. Whatever changes something is a POST of JSON with the header `X-Podeval`, which no other site can send.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from auth import SIGNED_IN, NotSignedIn, Person, SignIn, read_contact, read_public_address
from babel.dates import format_skeleton, format_timedelta
from babel.numbers import format_decimal
from error_messages import translate
from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, Response
from gradio_addresses import IssuedFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from limits import parse
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict
from rate_limit import RateLimit
from request_guard import RequestCounts, find_origin
from services import Services

from podeval import __version__
from podeval.arena import ArenaRefused, refusal
from podeval.board.runs_folder import RunsFolder
from podeval.board.words import write_board_name
from podeval.errors import CodedSentence, PodevalError
from podeval.reports.page import TEMPLATES, keep_together
from podeval.text.message_catalogue import read_texts

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection


HERE = Path(__file__).parent
PARTS_STYLES = ("board.css", "arena.css")
LANGUAGES = ("en", "zh")
NAV = {"board": "/", "arena": "/arena", "score": "/score", "submit": "/submit", "docs": "/docs"}
"""Entries of the header by the key of their name in the texts `site`."""
_OF_BOARD = ("", "leaderboard", "compare", "system", "report")
_SECTIONS = dict.fromkeys(_OF_BOARD, "board") | dict.fromkeys(("submissions", "queue"), "submit") | {n: n for n in NAV}
"""The entry of a page, by the beginning of its address; all others belong to the documents."""

LONGEST_SENTENCE = 300
"""Number of letters of invalid input from strangers that are returned or logged."""
MEASURING_RATE = "20/hour"
HOURS_FROM = 1.5
"""Number of hours up to which minutes are shown."""
UNRECORDED = CodedSentence(
    "Nothing can be recorded here at present, and nothing was; try again in a minute.", code="nothing-recorded"
)
UNREADABLE = CodedSentence(
    "This cannot be shown at present, as the database of this board cannot be used; try again in a minute.",
    code="nothing-shown",
)


class FromPage(BaseModel):
    """The content of a request, with only declared fields of their declared types: `true` is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TooMany(PodevalError):
    """There were more requests than one person makes."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"that was too fast; try again in {seconds} s", code="too-fast", parameters={"seconds": seconds}
        )
        self.seconds = seconds


class _Templates(Environment):
    """Templates in which a name of a dictionary stands for what is under it: `s.items` is the word, not the method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The result of `obj.attribute` in a template."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Site:
    """The values that every page receives.

    Args:
        services: the services that the pages call.
        how: the way in which people sign in.

    Attributes:
        contact: private address of the operator as a link in Markdown, or an empty text.
        files: files that visitors uploaded and may name.
        results: the folder of runs, its tables read once for all pages.
        reports: the reports over it.
        requests: counts of answered requests.
    """

    def __init__(self, services: Services, how: SignIn) -> None:
        self.services = services
        self.how = how
        self.contact = read_contact()
        self.results = RunsFolder(services.runs)
        self.texts = {language: read_texts(HERE / "locale", language) for language in LANGUAGES}
        self._templates = _Templates(
            loader=FileSystemLoader([HERE / "templates", TEMPLATES]),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
        )
        self._templates.filters.update(
            number=write_number, moment=write_moment, span=write_span, place=write_board_name
        )
        self._pace = RateLimit()
        self.requests = RequestCounts()
        self.files = IssuedFiles()

    def person(self, request: Request) -> Person | None:
        """The sender of a request, if proven."""
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
        """The language of the page: the requested one, the one chosen before, or the browser's preferred one."""
        wish = request.query_params.get("lang") or request.cookies.get("lang")
        if wish in LANGUAGES:
            return str(wish)
        preferred = request.headers.get("accept-language", "").lower()
        return "zh" if preferred.startswith("zh") else "en"

    def render(
        self, request: Request, template: str, frozen: dict[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        """A page from its template, with what `render_text` gives all, and what is frozen if that is not given.

        Raises:
            StoreUnusable: the database does not say what is frozen.
        """
        frozen = self.services.frozen() if frozen is None else frozen
        answer = HTMLResponse(self.render_text(request, template, frozen=frozen, **values))
        self.keep_language(request, answer)
        return answer

    def render_text(self, request: Request, template: str, **values: Any) -> str:
        """The text of a template, which also knows `t` (texts), `person`, `nav`, `language`, `closed` and `frozen`."""
        language, person = self.language(request), self.person(request)
        closed = self.services.closed
        context = {
            "t": self.texts[language],
            "person": person,
            "language": language,
            "languages": LANGUAGES,
            "nav": NAV,
            "section": _SECTIONS.get(request.url.path.split("/")[1], "docs"),
            "here": request.url.path,
            "base": read_public_address() or str(request.base_url).rstrip("/"),
            "in_language": {code: urlencode({**request.query_params, "lang": code}) for code in LANGUAGES},
            "frozen": {},
            "closed": closed and translate(closed, self.texts[language]["refused"])[0],
            "mode": self.how.mode,
            "sign_in": self.say_sign_in(request),
            "unfinished": person is None and request.query_params.get(SIGNED_IN) == "no",
            "version": __version__,
        }
        return self._render(template, context | values)

    def say_sign_in(self, request: Request) -> str:
        """The words of a link to the sign-in."""
        texts = self.texts[self.language(request)]["site"]
        return str(texts["sign_in_at"].format(self.how.host) if self.how.host else texts["sign_in"])

    def render_shell(self, template: str, language: str) -> str:
        """A component's content from its template, the same for all readers of the language."""
        return self._render(template, {"t": self.texts[language]})

    def _render(self, template: str, values: dict[str, Any]) -> str:
        return keep_together(self._templates.get_template(template).render(values))

    def title(self, request: Request) -> str:
        """The title of a tab's page, which changes with the tab."""
        texts = self.texts[self.language(request)]["site"]
        section = _SECTIONS.get(request.url.path.split("/")[1], "docs")
        return f"{texts[section]} · {texts['name']}"

    def frame(self, request: Request) -> tuple[str, str, str]:
        """The head of the tabs' page, and the content above and below the tabs.

        Raises:
            StoreUnusable: the database does not say what is frozen.
        """
        header = self.render_text(request, "tabs_header.html", frozen=self.services.frozen())
        footer = self.render_text(request, "footer.html")
        english, translated = (self.texts[code]["site"]["gradio"] for code in ("en", self.language(request)))
        words = [[begins, translated[name]] for name, begins in english.items()]
        head = self.render_text(
            request, "tabs_head.html", title=self.title(request), gradio_words=Markup(to_script_data(words))
        )
        return head, header, footer

    def keep_language(self, request: Request, answer: Response) -> None:
        """Remember the language that an address asks for."""
        if request.query_params.get("lang") in LANGUAGES:
            answer.set_cookie("lang", self.language(request), max_age=31_536_000, samesite="lax", httponly=True)

    def refused(self, request: Request, reason: str, sentence: str) -> HTMLResponse:
        """The page of a refusal, in the reader's language as far as it is known there.

        It does not use the database, because it may have to report that the database is unavailable.
        """
        text, whole = translate(sentence, self.texts[self.language(request)]["refused"], reason)
        text = text if text.endswith((".", "。", "!", "?")) else f"{text}."
        text, original = text[:1].upper() + text[1:], "" if whole else sentence
        return self.render(request, "refused.html", frozen={}, sentence=text, original=original, reason=reason)

    def translate(self, request: Request, sentence: str, reason: str = "") -> str:
        """A refusal in the reader's language, as far as it is known there.

        Args:
            request: the request of the reader.
            sentence: sentence of the engine.
            reason: the reason in a word.
        """
        return translate(sentence, self.texts[self.language(request)]["refused"], reason)[0]

    def limit(self, request: Request, rate: str, what: str = "") -> None:
        """Let through a number of requests from one person or address, such as `20/minute`.

        Args:
            request: the request of the person.
            rate: number of requests per time.
            what: the requests that are counted together; by default those of its route.

        Raises:
            TooMany: there were more.
        """
        person = self.person(request)
        who = person.identity if person and person.identity != "local" else find_origin(request)
        # Limits are by route, not by address: a client that asks for something new each time asks just as often.
        route = what or getattr(request.scope.get("route"), "path", request.url.path)
        if wait := self._pace.wait(parse(rate), route, who):
            raise TooMany(math.ceil(wait))

    def limit_measuring(self, request: Request) -> None:
        """Let through the measurements that one address may have; the only person of a local board has no limit.

        Raises:
            TooMany: there were more.
        """
        if self.how.mode != "local":
            self.limit(request, MEASURING_RATE, "measuring")


async def get_site(request: Request) -> Site:
    """The site that a request was sent to."""
    site: Site = request.app.state.site
    return site


CurrentSite = Annotated[Site, Depends(get_site)]


def limit(rate: str, what: str = "") -> Any:
    """The condition of a route that lets through a number of requests from one person or address; see `Site.limit`."""

    async def check(request: Request, site: CurrentSite) -> None:
        site.limit(request, rate, what)

    return Depends(check)


async def require_operator(request: Request, site: CurrentSite) -> Person:
    """The operator who sent a request.

    Raises:
        NotSignedIn: its sender is unknown.
        ArenaRefused: the sender of the request is not an operator.
        TooMany: there were more requests than one person makes.
    """
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


Operator = Annotated[Person, Depends(require_operator)]


def to_script_data(value: Any) -> str:
    """JSON that is safe in a page's `<script type="application/json">`."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def build_parts_style() -> str:
    """The rules of the frame, and those of documents in the form in which they apply only inside the parts of tabs."""
    frame, _, rules = (HERE / "static" / "podeval.css").read_text(encoding="utf-8").partition("/* Content */")
    rules += "\n".join((HERE / "static" / name).read_text(encoding="utf-8") for name in PARTS_STYLES)
    # Gradio's own rules name a class and an attribute; these are more specific.
    return f"{frame}.podeval-part.podeval-part.podeval-part {{\n{rules}\n}}\n"


def find_recordings_sender(site: Site, request: HTTPConnection) -> str:
    """The sender of a request, if they may upload recordings for a submission; empty for all others.

    Args:
        site: the site that receives the submission.
        request: the request of the person.
    """
    services, person = site.services, site.person(Request(request.scope))
    return person.identity if person and not (services.closed or services.only_votes) else ""


def write_system_address(system: str, where: str = "") -> str:
    """The address of a system's page.

    Args:
        system: its id.
        where: `benchmark/split/profile`; where it has most by default.
    """
    query = {"system": system, "where": where}
    return f"/system?{urlencode({name: value for name, value in query.items() if value}, safe='/')}"


def change_address(path: str, query: dict[str, Any], **changed: Any) -> str:
    """The address of a page with some of its parameters changed; those without a value are left out."""
    return f"{path}?{urlencode({name: value for name, value in (query | changed).items() if value})}"


def write_number(number: float, language: str) -> str:
    """A number with the language's separators.

    Args:
        number: the number to write.
        language: the language of the page.
    """
    return format_decimal(number, locale=language)


def write_moment(moment: datetime | str, language: str) -> str:
    """Day and minute in UTC, such as `3 Nov 2026`'s order in that language and `08:28 UTC`.

    Args:
        moment: a time, or one in ISO 8601; without a zone it is in UTC.
        language: the language of the page.
    """
    time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    day, minute = (format_skeleton(parts, time, tzinfo=UTC, locale=language) for parts in ("yMMMd", "Hm"))
    return f"{day}, {minute} UTC" if language == "en" else f"{day} {minute} UTC"


def write_span(seconds: float, language: str) -> str:
    """An approximate duration of at least a minute, in minutes, hours or days, in the form that the number takes.

    Args:
        seconds: length of the span.
        language: the language of the page.
    """
    return format_timedelta(
        timedelta(seconds=max(seconds, 60)), granularity="minute", threshold=HOURS_FROM, locale=language
    )
