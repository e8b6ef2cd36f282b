"""Few threads for what is asked often and answered soon.

Threads of Python take turns. With forty of them, which is what a page is given otherwise, the one that hears what is
asked and sends what is answered waits its turn as often as each of the others, so that a busy second becomes a minute
of late answers. Slow pages keep the threads they had, and nothing here waits for them.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Turns:
    """So many threads; more work than that waits.

    Args:
        threads: at once.
    """

    def __init__(self, threads: int) -> None:
        self._limiter = CapacityLimiter(threads)

    def __call__(self, work: Callable[Given, Answer]) -> Callable[Given, Awaitable[Answer]]:
        """The same work, done in one of the threads."""

        @functools.wraps(work)
        async def taken(*given: Given.args, **named: Given.kwargs) -> Answer:
            return await to_thread.run_sync(functools.partial(work, *given, **named), limiter=self._limiter)

        return taken
