"""Retry calls to the Hub during rate limits and outages, without carrying out any change twice.

tenacity repeats the calls; this module decides which errors are temporary and how long to wait.
"""

import random
from collections.abc import Callable, Collection
from typing import NoReturn, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from podeval.errors import PodevalError

Answer = TypeVar("Answer")

TRIES = 6
LONGEST_PAUSE = 60.0
"""Maximum wait in seconds; a rate limit that asks for more is reported to the caller."""

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_NO_ANSWER = ("TransportError", "ConnectionError", "Timeout", "FileMetadataError")
"""Errors raised when the Hub did not answer, or when a server in front of the Hub, which lacks the Hub's files,
answered instead.
"""

_GROWING_PAUSE = wait_exponential(multiplier=0.5, max=LONGEST_PAUSE)


class HubUnavailable(PodevalError):
    """The Hub did not respond or asked the client to wait; if the call changed something, repeating it finds the
    changes.
    """


def call_with_retries(call: Callable[[], Answer], *, tries: int = TRIES, also: Collection[int] = ()) -> Answer:
    """Make a call, and retry it while the Hub is down or asks the client to wait. Use this only for calls that are safe
    to repeat.

    Args:
        call: the call to the Hub.
        tries: maximum number of attempts.
        also: further HTTP statuses after which to retry this call, in addition to those of a failing Hub.

    Raises:
        HubUnavailable: the Hub failed for too long.
    """
    tried_enough = stop_after_attempt(tries)
    retrying = Retrying(
        retry=retry_if_exception(lambda error: is_transient(error) or _status(error) in also),
        stop=lambda state: tried_enough(state) or (read_retry_after(_error_of(state)) or 0.0) > LONGEST_PAUSE,
        wait=_pause_after,
        retry_error_callback=_give_up,
    )
    return retrying(call)


def _pause_after(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: as requested by the Hub, or a wait that grows with each attempt."""
    spread = random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers out
    return max(_GROWING_PAUSE(state) * spread, read_retry_after(_error_of(state)) or 0.0)


def _give_up(state: RetryCallState) -> NoReturn:
    error = _error_of(state)
    raise HubUnavailable(f"the Hub does not answer as expected ({error}); try again later") from error


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None, "called only after a failed attempt"
    return error


def is_transient(error: BaseException) -> bool:
    """Return whether the same call is likely to succeed later."""
    if error.__cause__ is not None and type(error).__name__ == "LocalEntryNotFoundError":
        error = error.__cause__
    status = _status(error)
    if status is not None:
        return status in _PASSING
    # The client has switched to another HTTP library before, but the names of the errors have not changed.
    return any(kind.__name__ in _NO_ANSWER for kind in type(error).__mro__)


def read_retry_after(error: BaseException) -> float | None:
    """Return the seconds in the response's `Retry-After` header."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("Retry-After", ""))
    except ValueError:
        return None


def _status(error: BaseException) -> int | None:
    status: int | None = getattr(getattr(error, "response", None), "status_code", None)
    return status
