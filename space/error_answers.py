"""Answer every refusal with a sentence: as JSON for a program or script, as a page for a person."""

from __future__ import annotations

import logging
from typing import Any

from auth import CannotSignIn, NotSignedIn, SignInRefused
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from services import NOWHERE
from starlette.exceptions import HTTPException
from website import UNREADABLE, UNRECORDED, Site, TooMany, complete_sentence

from podeval.arena import ArenaRefused, refusal
from podeval.errors import BadInput, CodedSentence, PodevalError, StoreUnusable
from podeval.files import DiskFull

_LOG = logging.getLogger("podeval.site")

NOTHING_HERE = CodedSentence("there is nothing at this address; please check the link", code="nothing-here")

_STATUS = {
    refusal.FORGED: 403,
    refusal.FOREIGN: 403,
    refusal.UNKNOWN: 404,
    refusal.EXPIRED: 410,
    refusal.INVALID: 422,
    refusal.TOO_MANY: 429,
    refusal.CLOSED: 503,
}


def _is_of_person(request: Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _answer(request: Request, status: int, reason: str, sentence: str, **headers: str) -> Response:
    site: Site = request.app.state.site
    if _is_of_person(request):
        page = site.refused(request, reason, sentence)
        page.status_code = status
        page.headers.update(headers)
        return page
    code = sentence.code if isinstance(sentence, CodedSentence) else ""
    content = {"error": sentence, "reason": reason, "code": code}
    # Send the same message in the language of the page whose script sent the request.
    content["sentence"] = complete_sentence(site.translate(request, sentence, reason))
    return JSONResponse(content, status, headers)


async def answer_not_signed_in(request: Request, error: NotSignedIn) -> Response:
    """Ask a person to sign in, if that is possible."""
    if request.app.state.site.how.mode == "none":
        sentence = CodedSentence(f"Nothing is accepted here: {NOWHERE}", code="nothing-taken", why=NOWHERE)
        return _answer(request, 403, "closed", sentence)
    return _answer(request, 401, "not signed in", error.sentence)


async def answer_no_provider(request: Request, error: CannotSignIn) -> Response:
    """Report that nobody can sign in at the moment."""
    _LOG.error("the sign-in provider cannot be reached: %s", error.__cause__)
    sentence = "Nobody can sign in at present: the sign-in provider does not respond. Try again in a minute."
    return _answer(request, 503, "sign-in", sentence, **{"Retry-After": "60"})


async def answer_refused_sign_in(request: Request, error: SignInRefused) -> Response:
    """Report that a sign-in failed to prove an identity."""
    _LOG.error("a sign-in was refused: %r", error.__cause__)
    sentence = CodedSentence(
        "You are not signed in: the sign-in provider's response does not prove who you are. Try again; if it keeps "
        "happening, tell the operator of this board.",
        code="sign-in-unproven",
    )
    return _answer(request, 400, "unproven", sentence)


async def answer_too_many(request: Request, error: TooMany) -> Response:
    """Report when to try again."""
    return _answer(request, 429, "too many", error.sentence, **{"Retry-After": str(error.seconds)})


async def answer_refused(request: Request, error: ArenaRefused) -> Response:
    """Report a refusal by the arena or by a listening test."""
    return _answer(request, _STATUS.get(error.reason, 409), error.reason, error.sentence)


async def answer_bad_input(request: Request, error: BadInput) -> Response:
    """Report the error in a request."""
    # Only the operator may see where the results are.
    text = str(error).replace(str(request.app.state.site.services.runs.resolve()), "the folder of runs")
    return _answer(request, 422, "invalid", CodedSentence(text, code=error.code, **error.parameters))


async def answer_unusable_store(request: Request, error: PodevalError) -> Response:
    """Report that nothing can be shown or recorded at the moment."""
    # The error names paths on this machine, so only the operator may see it.
    _LOG.error("the database cannot be used: %s", error)
    sentence = UNREADABLE if request.method in ("GET", "HEAD") else UNRECORDED
    return _answer(request, 503, refusal.CLOSED, sentence, **{"Retry-After": "60"})


async def answer_invalid_request(request: Request, error: RequestValidationError) -> Response:
    """Report the invalid field."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return _answer(request, 422, "invalid", f"{field}: {first['msg']}")


async def answer_not_found(request: Request, error: HTTPException) -> Response:
    """Show a page to a person; a program gets the framework's own message."""
    if _is_of_person(request):
        return _answer(request, 404, "unknown", NOTHING_HERE)
    return JSONResponse({"detail": error.detail}, 404)


HANDLERS: dict[type[Exception] | int, Any] = {
    NotSignedIn: answer_not_signed_in,
    CannotSignIn: answer_no_provider,
    SignInRefused: answer_refused_sign_in,
    TooMany: answer_too_many,
    ArenaRefused: answer_refused,
    BadInput: answer_bad_input,
    StoreUnusable: answer_unusable_store,
    DiskFull: answer_unusable_store,
    RequestValidationError: answer_invalid_request,
    404: answer_not_found,
}
"""Error handlers for an application whose state has a site."""
