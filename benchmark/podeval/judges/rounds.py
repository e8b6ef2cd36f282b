"""Conversations with a judge: a metric asks its questions in rounds, independently of who answers them.

A metric that needs a judge is a generator. It yields the requests of a round, receives their answers, may yield further
requests, and returns its result. Many conversations run at the same time and their rounds are sent together, so the
total time depends on the number of requests and not on their order.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from podeval.errors import PodevalError
from podeval.judges.client import JudgeRequest, Unanswered, UsableAnswer

T = TypeVar("T")
A = TypeVar("A", bound=BaseModel)

Conversation = Generator[Sequence[JudgeRequest], Sequence[UsableAnswer], T]
"""A generator that yields requests, receives their answers, and returns its result."""


class Asked(Protocol):
    """Anything that answers requests, such as `podeval.judges.client.JudgeClient`."""

    def ask(self, requests: Sequence[JudgeRequest]) -> Sequence[UsableAnswer | Unanswered]:
        """Return, for each request in order, an answer or the reason for its absence."""


class NoAnswer(PodevalError):
    """The judge did not give a usable answer; raised in the conversation that waits for the answer."""


def select_values(kind: type[A], answers: Sequence[UsableAnswer]) -> list[A]:
    """Return the values of the answers that have this type."""
    return [answer.value for answer in answers if isinstance(answer.value, kind)]


def hold(conversations: Iterable[Conversation[T]], client: Asked) -> list[T | PodevalError]:
    """Run conversations together and return the result of each, or the error that ended it.

    Because a result depends on every requested answer, a conversation ends with `NoAnswer` if one of its requests stays
    unanswered, unless the conversation catches that exception.
    """
    held = [_Held(conversation) for conversation in conversations]
    while waiting := [one for one in held if one.requests]:
        answers = iter(client.ask([request for one in waiting for request in one.requests]))
        for one in waiting:
            one.hear([next(answers) for _ in one.requests])
    return [one.outcome for one in held]


class _Held(Generic[T]):
    """A running conversation: the requests that it waits for, or its outcome."""

    outcome: T | PodevalError

    def __init__(self, conversation: Conversation[T]) -> None:
        self._conversation = conversation
        self._step(partial(next, conversation))

    def hear(self, answers: Sequence[UsableAnswer | Unanswered]) -> None:
        """Continue the conversation with the answers to its requests."""
        missing = [answer.reason for answer in answers if isinstance(answer, Unanswered)]
        if missing:
            several = f" ({len(missing)} of {len(answers)} requests without an answer)" if len(answers) > 1 else ""
            self._step(partial(self._conversation.throw, NoAnswer(f"{missing[0]}{several}")))
        else:
            usable = [answer for answer in answers if isinstance(answer, UsableAnswer)]
            self._step(partial(self._conversation.send, usable))

    def _step(self, step: Callable[[], Sequence[JudgeRequest]]) -> None:
        """Run the conversation until it has requests or ends."""
        self.requests: Sequence[JudgeRequest] = ()
        try:
            while not self.requests:
                self.requests = step()
                step = partial(self._conversation.send, [])
        except StopIteration as end:
            self.outcome = end.value
        except PodevalError as error:
            self.outcome = error
