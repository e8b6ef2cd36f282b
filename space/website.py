"""The parts that all pages of the site share: a common look, sign-in, language and rate limits.

The site's own pages are templates whose scripts are separate files; the pages load nothing from other hosts and contain
no inline code. Every change is a POST of JSON with the header `X-Podeval`, which other sites cannot send.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from auth import SIGNED_IN, NotSignedIn, Person, SignIn, read_contact, read_public_address
from babel.dates import format_skeleton, format_timedelta
from babel.numbers import format_decimal
from error_messages import translate, translate_reason
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

from podeval.arena import ArenaRefused, refusal
from podeval.board.runs_folder import RunsFolder
from podeval.board.words import write_board_name
from podeval.errors import CodedSentence, PodevalError
from podeval.reports.page import TEMPLATES, keep_together
from podeval.text.message_catalogue import read_texts
from podeval.version import __version__

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection


HERE = Path(__file__).parent
PARTS_STYLES = ("board.css", "arena.css")
LANGUAGES = ("en", "zh")
NAV = {"board": "/", "arena": "/arena", "score": "/score", "submit": "/submit", "docs": "/docs"}
"""Entries of the header, by the key of their name in the texts `site`."""
_OF_BOARD = ("", "leaderboard", "compare", "system", "report")
_SECTIONS = dict.fromkeys(_OF_BOARD, "board") | dict.fromkeys(("submissions", "queue"), "submit") | {n: n for n in NAV}
"""The header entry of a page, by the beginning of its address; all other pages belong to the documents."""

LONGEST_SENTENCE = 300
"""Maximum number of letters of invalid input from strangers that are returned or logged."""
MEASURING_RATE = "20/hour"
HOURS_FROM = 1.5
"""Number of hours up to which minutes are shown."""
UNRECORDED = CodedSentence(
    "Nothing can be recorded here at present, and nothing was; try again in a minute.", code="nothing-recorded"
)
UNREADABLE = CodedSentence(
    "This cannot be shown at present, because the database of this board cannot be used; try again in a minute.",
    code="nothing-shown",
)


class FromPage(BaseModel):
    """The content of a request, which has only declared fields with their declared types; `true` is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TooMany(PodevalError):
    """There were more requests than one person may make."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"too many requests; try again in {seconds} s", code="too-fast", parameters={"seconds": seconds}
        )
        self.seconds = seconds


class _Templates(Environment):
    """Templates in which `s.items` is the value of a dictionary `s` for the key `items`, not its method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the result of `obj.attribute` in a template."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Site:
    """The services and settings that every page can use.

    Args:
        services: the services that the pages call.
        how: the way in which people sign in.

    Attributes:
        contact: private contact of the operator as a Markdown link, or an empty string.
        files: files that visitors uploaded and may name.
        results: the folder of runs, whose tables are read once for all pages.
        reports: the reports on these results.
        requests: counts of handled requests.
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
        """Return the sender of a request, if the identity is proven."""
        return self.how.person(request)

    def require_person(self, request: Request) -> Person:
        """Return the sender of a request.

        Raises:
            NotSignedIn: the sender is unknown.
            Refused: nothing is accepted at the moment.
        """
        if self.services.closed:
            raise ArenaRefused(refusal.CLOSED, self.services.closed)
        person = self.person(request)
        if person is None:
            raise NotSignedIn
        return person

    def language(self, request: Request) -> str:
        """Return the language of the page: as requested, as chosen earlier, or as preferred by the browser."""
        wish = request.query_params.get("lang") or request.cookies.get("lang")
        if wish in LANGUAGES:
            return str(wish)
        preferred = request.headers.get("accept-language", "").lower()
        return "zh" if preferred.startswith("zh") else "en"

    def render(
        self, request: Request, template: str, frozen: dict[str, str] | None = None, **values: Any
    ) -> HTMLResponse:
        """Render a page from its template with the values of `render_text`, and the frozen activities unless given.

        Raises:
            StoreUnusable: the database does not report which activities are frozen.
        """
        frozen = self.services.frozen() if frozen is None else frozen
        answer = HTMLResponse(self.render_text(request, template, frozen=frozen, **values))
        self.keep_language(request, answer)
        return answer

    def render_text(self, request: Request, template: str, **values: Any) -> str:
        """Render a template, which can also use the names in `context`, such as `t` (texts) and `say` (translates)."""
        language, person, closed = self.language(request), self.person(request), self.services.closed
        context = {
            "t": self.texts[language],
            "say": partial(translate_reason, texts=self.texts[language]["refused"]),
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
        """Return the text of a link to the sign-in."""
        texts = self.texts[self.language(request)]["site"]
        return str(texts["sign_in_at"].format(self.how.host) if self.how.host else texts["sign_in"])

    def render_shell(self, template: str, language: str) -> str:
        """Render a component's content from its template, which is the same for all readers of the language."""
        return self._render(template, {"t": self.texts[language]})

    def _render(self, template: str, values: dict[str, Any]) -> str:
        return keep_together(self._templates.get_template(template).render(values))

    def title(self, request: Request) -> str:
        """Return the title of the page for a tab; the title changes with the tab."""
        texts = self.texts[self.language(request)]["site"]
        section = _SECTIONS.get(request.url.path.split("/")[1], "docs")
        return f"{texts[section]} · {texts['name']}"

    def frame(self, request: Request) -> tuple[str, str, str]:
        """Return the head of the tabs' page, and the content above and below the tabs.

        Raises:
            StoreUnusable: the database does not report which activities are frozen.
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
        """Remember the language that an address requests."""
        if request.query_params.get("lang") in LANGUAGES:
            answer.set_cookie("lang", self.language(request), max_age=31_536_000, samesite="lax", httponly=True)

    def refused(self, request: Request, reason: str, sentence: str) -> HTMLResponse:
        """Return the page for a refusal, translated if possible, without using the database, which may be missing."""
        text, whole = translate(sentence, self.texts[self.language(request)]["refused"], reason)
        return self.render(
            request,
            "refused.html",
            frozen={},
            sentence=complete_sentence(text),
            original="" if whole else sentence,
            reason=reason,
            section=_SECTIONS.get(request.url.path.split("/")[1], ""),
        )

    def translate(self, request: Request, sentence: str, reason: str = "") -> str:
        """Return a refusal in the reader's language, if there is a translation.

        Args:
            request: the reader's request.
            sentence: a sentence from podeval.
            reason: the reason as a single word.
        """
        return translate(sentence, self.texts[self.language(request)]["refused"], reason)[0]

    def limit(self, request: Request, rate: str, what: str = "") -> None:
        """Let through a limited number of requests from one person or address, at a rate such as `20/minute`.

        Args:
            request: the person's request.
            rate: number of requests per period.
            what: the requests that are counted together; by default those of its route.

        Raises:
            TooMany: there were more requests.
        """
        person = self.person(request)
        who = person.identity if person and person.identity != "local" else find_origin(request)
        # Limits apply to routes and not to addresses, because a client that requests a new address each time sends just
        # as many requests.
        route = what or getattr(request.scope.get("route"), "path", request.url.path)
        if wait := self._pace.wait(parse(rate), route, who):
            raise TooMany(math.ceil(wait))

    def limit_measuring(self, request: Request) -> None:
        """Limit the number of measurements from one address; the only user of a local board has no limit.

        Raises:
            TooMany: there were more measurements than the limit.
        """
        if self.how.mode != "local":
            self.limit(request, MEASURING_RATE, "measuring")


async def get_site(request: Request) -> Site:
    """Return the site that a request was sent to."""
    site: Site = request.app.state.site
    return site


CurrentSite = Annotated[Site, Depends(get_site)]


def limit(rate: str, what: str = "") -> Any:
    """Return a route condition that limits the requests from one person or address; see `Site.limit`."""

    async def check(request: Request, site: CurrentSite) -> None:
        site.limit(request, rate, what)

    return Depends(check)


async def require_operator(request: Request, site: CurrentSite) -> Person:
    """Return the operator who sent a request.

    Raises:
        NotSignedIn: the sender is unknown.
        ArenaRefused: the sender is not an operator.
        TooMany: there were more requests than one person may make.
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


def complete_sentence(text: str) -> str:
    """Return a sentence from podeval with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "。", "!", "?", "？", "！")) else ".")


def to_script_data(value: Any) -> str:
    """Return JSON that is safe in a page's `<script type="application/json">`."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def build_parts_style() -> str:
    """Build the style rules of the frame, and those of documents, limited to the inside of tab parts."""
    frame, _, rules = (HERE / "static" / "podeval.css").read_text(encoding="utf-8").partition("/* Content */")
    rules += "\n".join((HERE / "static" / name).read_text(encoding="utf-8") for name in PARTS_STYLES)
    # Gradio's own rules name a class and an attribute; these rules are more specific.
    return f"{frame}.podeval-part.podeval-part.podeval-part {{\n{rules}\n}}\n"


def find_recordings_sender(site: Site, request: HTTPConnection) -> str:
    """Return the sender of a request if they may upload recordings for a submission; empty for all others.

    Args:
        site: the site that receives the submission.
        request: the person's request.
    """
    services, person = site.services, site.person(Request(request.scope))
    return person.identity if person and not (services.closed or services.only_votes) else ""


def write_system_address(system: str, where: str = "") -> str:
    """Return the address of a system's page.

    Args:
        system: id of the system.
        where: `benchmark/split/profile`; by default the place with the most results.
    """
    query = {"system": system, "where": where}
    return f"/system?{urlencode({name: value for name, value in query.items() if value}, safe='/')}"


def change_address(path: str, query: dict[str, Any], **changed: Any) -> str:
    """Return the address of a page with some of its parameters changed; parameters without a value are removed."""
    return f"{path}?{urlencode({name: value for name, value in (query | changed).items() if value})}"


def write_number(number: float, language: str) -> str:
    """Format a number with the language's separators.

    Args:
        number: the number to write.
        language: the language of the page.
    """
    return format_decimal(number, locale=language)


def write_moment(moment: datetime | str, language: str) -> str:
    """Format a day and minute in UTC, such as `3 Nov 2026` in the order of the language and `08:28 UTC`.

    Args:
        moment: a time, possibly as an ISO 8601 text; without a zone, it is in UTC.
        language: the language of the page.
    """
    time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    day, minute = (format_skeleton(parts, time, tzinfo=UTC, locale=language) for parts in ("yMMMd", "Hm"))
    return f"{day}, {minute} UTC" if language == "en" else f"{day} {minute} UTC"


def write_span(seconds: float, language: str) -> str:
    """Format an approximate duration of at least a minute in minutes, hours or days, with the right plural form.

    Args:
        seconds: length of the span.
        language: the language of the page.
    """
    return format_timedelta(
        timedelta(seconds=max(seconds, 60)), granularity="minute", threshold=HOURS_FROM, locale=language
    )
