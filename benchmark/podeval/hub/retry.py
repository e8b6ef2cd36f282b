"""Calls to the Hub that outlast its rate limits and outages, and never make a thing twice."""

import random
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from podeval.errors import PodevalError

Found = TypeVar("Found")

TRIES = 6
LONGEST_PAUSE = 60.0
"""Seconds; a rate limit that asks for more is told to the caller instead of waited for."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_NO_ANSWER = ("TransportError", "ConnectionError", "Timeout", "FileMetadataError")
"""Errors where nobody answered, or something before the Hub did, which knows nothing of its files."""


class HubUnavailable(PodevalError):
    """The Hub did not answer, or asks for patience; nothing was changed by the call, or it is found at the next."""


def patiently(call: Callable[[], Found], *, tries: int = TRIES, also: Collection[int] = ()) -> Found:
    """What a call gives, tried again while the Hub is down or asks to wait; only for calls that may be made twice.

    Args:
        call: what is asked of the Hub.
        tries: how often at most.
        also: statuses after which this call may succeed, besides those of a Hub in trouble.

    Raises:
        HubUnavailable: it went on for too long.
    """
    for attempt in range(tries):
        try:
            return call()
        except Exception as error:
            if not passing(error) and _status(error) not in also:
                raise
            pause_asked, met = asked_to_wait(error), error
        pause = min(LONGEST_PAUSE, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers out
        if pause_asked is not None and pause_asked > LONGEST_PAUSE:
            break
        if attempt < tries - 1:
            time.sleep(max(pause, pause_asked or 0.0))
    raise HubUnavailable(f"the Hub does not answer as it should ({met}); try again later") from met


def passing(error: BaseException) -> bool:
    """Whether the same call may well succeed later."""
    if error.__cause__ is not None and type(error).__name__ == "LocalEntryNotFoundError":
        error = error.__cause__
    status = _status(error)
    if status is not None:
        return status in _PASSING
    # The HTTP library behind the client has changed before, its names have not.
    return any(kind.__name__ in _NO_ANSWER for kind in type(error).__mro__)


def asked_to_wait(error: BaseException) -> float | None:
    """Seconds by the answer's `Retry-After` header."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("Retry-After", ""))
    except ValueError:
        return None


def _status(error: BaseException) -> int | None:
    status: int | None = getattr(getattr(error, "response", None), "status_code", None)
    return status
