"""Errors of OpenAI-compatible endpoints, in any form, and the request fields that the endpoints refuse.

An error is classified by its HTTP status. Its body may be an object, a list of objects (Google), FastAPI's `detail`, an
HTML page, plain text or not text at all, and it may be empty or cut off. The endpoint's own words are extracted if
there are any; no body causes an exception.
"""

import contextlib
import email.utils
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PASSING = (408, 409, 425, 429, 502, 503, 504, 529)
"""Statuses that a busy endpoint returns: the same request may succeed later."""

_WORDS = ("error", "errors", "detail", "message", "msg", "error_description", "title", "reason", "metadata", "raw")
_NAMES = ("param", "parameter", "field", "loc", "instancePath", "pointer", "invalid-params")
_ERRORS = ("error", "errors", "detail", "fault")
_FAILED = (("object", "error"), ("status", "error"), ("type", "error"), ("success", False))
"""Fields that report an error in a response with a success status, each with the value that reports it."""
_CODES = ("code", "status", "statusCode", "status_code")
_CODE = re.compile(r"[45]\d\d")
_FORMATS = ("response_format", "format")
"""Fields that an error may name by their value, or only by the word `format`."""
_REFUSING = (400, 406, 415, 422, 501)
_UNEXPECTED = "unexpected keyword argument"
_TOO_MUCH = re.compile(r"too (large|long|many|high|big)|exceed|at most|maximum|context (length|window)", re.IGNORECASE)
"""Pattern that matches an endpoint's message about a request that is too large; such a message does not refuse any
field.
"""
_LONGEST = 300

Fields = Mapping[str, Any]
Replacement = Callable[[Any], Fields]
"""Function that takes the value of a refused field and returns the fields that are sent instead."""


@dataclass(frozen=True)
class HttpError:
    """An error as an endpoint describes it.

    Attributes:
        status: the HTTP status; for an error in a response with a success status, the status that the error states, or
            0.
        message: the endpoint's words on one line; empty if it sent no words.
        fields: names that the error states separately from its words, such as the name of the refused parameter.
        retry_after: pause in seconds that the endpoint requests; None if it requests none.
    """

    status: int
    message: str = ""
    fields: frozenset[str] = frozenset()
    retry_after: float | None = None

    @property
    def is_theirs(self) -> bool:
        """Whether the error is the endpoint's own, or its cause is not stated."""
        return self.status >= 500 or not self.status

    def describe(self, endpoint: str) -> str:
        """Return the error as the beginning of a sentence."""
        verb = f"answered {self.status}" if self.status else "answered with an error"
        return f"{endpoint} {verb}" + (f": {self.message}" if self.message else "")

    def names(self, fields: Fields) -> bool:
        """Return whether the error is about one of these request fields, or about the format that they request."""
        words = self.fields or frozenset(_split_words(re.sub("(?i)streaming", "stream", self.message)))
        formats = {str(value) for name, value in fields.items() if name in _FORMATS}
        return not words.isdisjoint({*fields, *formats, *(("format",) if formats else ())})


def read_http_error(status: int, body: bytes, headers: Mapping[str, str]) -> HttpError:
    """Read the body of a response with an error status."""
    text = body.decode("utf-8-sig", "replace")
    fields: set[str] = set()
    delay = ""
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(text)
        fields = {word for value in _find(data, _NAMES) if value for word in _split_words(str(value))}
        delay = next((str(value) for value in _find(data, ["retryDelay"])), "")
        text = "; ".join(dict.fromkeys(_list_words(data))) or text
    if text.lstrip().startswith("<"):
        text = re.sub(r"(?is)<(script|style).*?</\1>|<[^>]*>", " ", text)
    retry_after = _read_seconds(headers.get("retry-after") or delay)
    return HttpError(status, " ".join(text.split())[:_LONGEST], frozenset(fields - {"body"}), retry_after)


def find_error(data: Any) -> HttpError | None:
    """Find the error in a response or an event with a success status; None if there is no error."""
    for one in data if isinstance(data, list) else [data]:
        if isinstance(one, dict) and (
            any(map(one.get, _ERRORS))
            or any(one.get(name) == value for name, value in _FAILED)
            or (isinstance(one.get("message"), str) and any(_CODE.fullmatch(str(one.get(name))) for name in _CODES))
        ):
            status = next((int(code) for code in map(str, _find(one, _CODES)) if _CODE.fullmatch(code)), 0)
            return read_http_error(status, json.dumps(one).encode(), {})
    return None


class RefusedFields:
    """The fields of our requests that an endpoint refuses: each is replaced once, and the replacement is remembered.

    Args:
        instead: replacements by field, in the order in which they are tried. A refusal that names several fields counts
            as a refusal of the first.
    """

    def __init__(self, instead: Mapping[str, Sequence[Replacement]]) -> None:
        self._instead = instead
        self._steps: dict[str, int] = {}
        self.words: dict[str, str] = {}
        """The endpoint's messages, by refused field."""

    def replace_once(self, names: Collection[str]) -> None:
        """Replace these fields as if the endpoint had refused them once."""
        self._steps |= {name: 1 for name in names if name in self._instead and not self._steps.get(name)}

    def fit(self, body: Fields) -> dict[str, Any]:
        """Return a body with replacements for refused fields."""
        fitted: dict[str, Any] = {}
        for name, value in body.items():
            fitted |= self._replace(name, value)
        return fitted

    def learn(self, error: HttpError, body: Fields, sent: Fields) -> bool:
        """Remember which field an error refuses; return whether there is a different request to try.

        Args:
            error: the answer to a request.
            body: the original request.
            sent: the request as sent.
        """
        if error.status not in _REFUSING and _UNEXPECTED not in error.message:
            return False
        if self.fit(body) != sent:
            return True  # Another thread has replaced the field in the meantime.
        if _TOO_MUCH.search(error.message):
            return False
        for name, ways in self._instead.items():
            step = self._steps.get(name, 0)
            if name in body and step < len(ways) and error.names(self._replace(name, body[name])):
                self._steps[name] = step + 1
                self.words[name] = error.message
                return True
        return False

    def _replace(self, name: str, value: Any) -> Fields:
        step = self._steps.get(name, 0)
        return self._instead[name][step - 1](value) if step else {name: value}


def leave_out(value: Any) -> Fields:
    """Leave out a refused field."""
    return {}


def _split_words(text: str) -> list[str]:
    """Split a text into words of ASCII letters, with `responseFormat` written as `response_format`."""
    return re.findall(r"\w+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower(), re.ASCII)


def _list_words(data: Any) -> Iterator[str]:
    """Yield the words of an error, wherever they are in its data."""
    if isinstance(data, str) and data.strip():
        yield data.strip()
    elif isinstance(data, list):
        for one in data[:20]:
            yield from _list_words(one)
    elif isinstance(data, dict):
        place = ".".join(map(str, data["loc"])) if isinstance(data.get("loc"), list) else ""
        words = [word for name in _WORDS for word in _list_words(data.get(name))]
        yield from (f"{place}: {word}" if place else word for word in words)


def _find(data: Any, names: Collection[str]) -> Iterator[Any]:
    """Yield the values with these names, wherever they are in the data."""
    if isinstance(data, list):
        for one in data:
            yield from _find(one, names)
    elif isinstance(data, dict):
        yield from (value for name, value in data.items() if name in names)
        for value in data.values():
            yield from _find(value, names)


def _read_seconds(value: str) -> float | None:
    """Read the time to wait: a number, optionally followed by `s` (Google), or a date."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(value.removesuffix("s")))
    with contextlib.suppress(ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None
