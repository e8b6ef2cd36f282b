"""The cost of judging, and the cap at which it stops.

A call starts only if its maximum cost still fits under the cap, together with the calls that are in progress. That
maximum is estimated from the length of the request, as the backend has counted so far, and the longest answer so far
(before the first, the longest that is allowed); afterwards it is replaced by what the backend counts. The cap can
therefore be exceeded only by a call that is unlike those before it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput
from podeval.judges.judge import Price
from podeval.judges.prompt import AudioClip
from podeval.models.chat import ChatAnswer

BYTES_A_TOKEN = 3.0
"""Assumed UTF-8 bytes per token, on the careful side: English has about 4, Chinese about 3."""
TOKENS_A_SECOND = 50.0
"""Assumed tokens per second of audio, on the careful side: public models use 10 to 32."""


@dataclass
class Account:
    """Usage so far: calls, tokens, money, and what the records saved."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cost: float = 0.0
    from_records: int = 0
    busy: int = 0
    """Calls that got no answer and were repeated or given up."""

    @property
    def tokens(self) -> int:
        """The tokens of requests and answers together."""
        return self.prompt_tokens + self.answer_tokens

    def sentence(self) -> str:
        """Return the usage as a sentence."""
        priced = f", cost {self.cost:.4g}" if self.cost else ""
        return (
            f"{self.calls} calls, {self.prompt_tokens} tokens asked and {self.answer_tokens} answered{priced}; "
            f"{self.from_records} answers from records, {self.busy} calls without an answer"
        )


@dataclass(frozen=True)
class Reservation:
    """Tokens and money reserved for one call."""

    prompt_tokens: int
    answer_tokens: int
    cost: float


class Budget:
    """A cap on the tokens and money that judging may use; several clients may share it.

    Args:
        cost: in the currency of the judges' prices; None for no cap.
        tokens: number of tokens of requests and answers together; None for no cap.

    Raises:
        BadInput: a cap is not above 0.
    """

    def __init__(self, cost: float | None = None, tokens: int | None = None) -> None:
        if not all(cap is None or cap > 0 for cap in (cost, tokens)):
            raise BadInput("a cap on cost or tokens must be above 0; leave it out for none")
        self.cost = cost
        self.tokens = tokens
        self.account = Account()
        self._longest_answer = 0
        self._dearer = 1.0
        self._open: list[Reservation] = []
        self._changed = threading.Condition()

    def reserve(self, prompt_tokens: int, longest_answer: int, price: Price | None) -> Reservation | None:
        """Reserve tokens and money for a call, waiting until they are available; None if they never will be.

        Args:
            prompt_tokens: estimated tokens of the request.
            longest_answer: maximum tokens of the answer.
            price: price of the judge's tokens.
        """
        with self._changed:
            while True:
                answer = min(self._longest_answer or longest_answer, longest_answer)
                question = round(prompt_tokens * self._dearer)
                reservation = Reservation(question, answer, compute_price(price, question, answer))
                if self._fits(reservation):
                    self._open.append(reservation)
                    return reservation
                if not self._open:
                    return None
                self._changed.wait()

    def settle(self, reservation: Reservation, answer: ChatAnswer | None, price: Price | None) -> None:
        """Release a reservation and book what was used; `answer` is None if the call got no answer."""
        with self._changed:
            self._open.remove(reservation)
            account = self.account
            if answer is None:
                account.busy += 1
            else:
                question_tokens, answered = count_used_tokens(answer, reservation.prompt_tokens)
                account.calls += 1
                account.prompt_tokens += question_tokens
                account.answer_tokens += answered
                account.cost += compute_price(price, question_tokens, answered)
                self._longest_answer = max(self._longest_answer, answered)
                # If the backend counts more than was estimated, raise the estimate from now on.
                self._dearer *= max(1.0, question_tokens / max(1, reservation.prompt_tokens))
            self._changed.notify_all()

    def _fits(self, reservation: Reservation) -> bool:
        under_way = [*self._open, reservation]
        tokens = self.account.tokens + sum(r.prompt_tokens + r.answer_tokens for r in under_way)
        cost = self.account.cost + sum(r.cost for r in under_way)
        return (self.tokens is None or tokens <= self.tokens) and (self.cost is None or cost <= self.cost)


def compute_price(price: Price | None, prompt_tokens: int, answer_tokens: int) -> float:
    """Return the cost of tokens; 0 without a price."""
    if price is None:
        return 0.0
    return (prompt_tokens * price.prompt + answer_tokens * price.answer) / 1e6


def count_used_tokens(answer: ChatAnswer, reckoned_prompt: int) -> tuple[int, int]:
    """Return the tokens of the request and of the answer: the backend's count, or otherwise our estimate."""
    question_tokens = reckoned_prompt if answer.prompt_tokens is None else answer.prompt_tokens
    length = round(len((answer.text or "").encode("utf-8", "replace")) / BYTES_A_TOKEN)
    return question_tokens, length if answer.answer_tokens is None else answer.answer_tokens


def estimate_tokens(messages: Sequence[Mapping[str, Any]], inputs: Iterable[str | AudioClip]) -> int:
    """Estimate the tokens of a request, too many rather than too few."""
    size = 0
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        size += sum(len(text.encode("utf-8", "replace")) for text in texts)
    seconds = sum(value.seconds for value in inputs if isinstance(value, AudioClip))
    return round(size / BYTES_A_TOKEN + seconds * TOKENS_A_SECOND)
