"""What judging costs, and when it stops.

A call is only begun when what it may cost still fits under the cap, together with the calls that are under way. What it
may cost is reckoned from the length of the question, as the backend has counted so far, and the longest answer so far
(before the first, the longest that is allowed); it is settled by what the backend counts. So the cap is passed, if at
all, by a call that is unlike those before it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput
from podeval.judges.judge import Price
from podeval.judges.materials import AudioClip
from podeval.models.chat import ChatAnswer

BYTES_A_TOKEN = 3.0
"""UTF-8 bytes a token, on the careful side: English has about 4, Chinese about 3."""
TOKENS_A_SECOND = 50.0
"""Of audio, on the careful side: public models take 10 to 32."""


@dataclass
class Account:
    """What was used: calls, tokens, money, and what the records saved."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cost: float = 0.0
    reckoned: int = 0
    """Calls whose tokens the backend did not count, and that were reckoned from their length."""
    from_records: int = 0
    busy: int = 0
    """Calls that brought no answer and were repeated or given up."""

    @property
    def tokens(self) -> int:
        """The tokens of questions and answers together."""
        return self.prompt_tokens + self.answer_tokens

    def sentence(self) -> str:
        """Describe the usage in a sentence."""
        priced = f", cost {self.cost:.4g}" if self.cost else ""
        return (
            f"{self.calls} calls, {self.prompt_tokens} tokens asked and {self.answer_tokens} answered{priced}; "
            f"{self.from_records} answers from records, {self.busy} calls without an answer"
        )


@dataclass(frozen=True)
class Reservation:
    """Tokens and money that are reserved for one call."""

    prompt_tokens: int
    answer_tokens: int
    cost: float


class Budget:
    """A cap on what judging may use; may be shared by several.

    Args:
        cost: in the currency of the judges' prices; None for no cap.
        tokens: of questions and answers; None for no cap.

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
        """Reserve tokens and money for a call, waiting until they are free; None when there will be none.

        Args:
            prompt_tokens: as reckoned.
            longest_answer: tokens that the answer may have.
            price: of the judge's tokens.
        """
        with self._changed:
            while True:
                answer = min(self._longest_answer or longest_answer, longest_answer)
                question = round(prompt_tokens * self._dearer)
                reservation = Reservation(question, answer, price_of(price, question, answer))
                if self._fits(reservation):
                    self._open.append(reservation)
                    return reservation
                if not self._open:
                    return None
                self._changed.wait()

    def settle(self, reservation: Reservation, answer: ChatAnswer | None, price: Price | None) -> None:
        """Release a reservation and book what was used; `answer` is None where there was no answer."""
        with self._changed:
            self._open.remove(reservation)
            account = self.account
            if answer is None:
                account.busy += 1
            else:
                question_tokens, answered = used_tokens(answer, reservation.prompt_tokens)
                account.calls += 1
                account.reckoned += answer.prompt_tokens is None or answer.answer_tokens is None
                account.prompt_tokens += question_tokens
                account.answer_tokens += answered
                account.cost += price_of(price, question_tokens, answered)
                self._longest_answer = max(self._longest_answer, answered)
                # Where the backend counts more than was reckoned, reckon so from now on.
                self._dearer *= max(1.0, question_tokens / max(1, reservation.prompt_tokens))
            self._changed.notify_all()

    def _fits(self, reservation: Reservation) -> bool:
        under_way = [*self._open, reservation]
        tokens = self.account.tokens + sum(r.prompt_tokens + r.answer_tokens for r in under_way)
        cost = self.account.cost + sum(r.cost for r in under_way)
        return (self.tokens is None or tokens <= self.tokens) and (self.cost is None or cost <= self.cost)


def price_of(price: Price | None, prompt_tokens: int, answer_tokens: int) -> float:
    """Return the cost of tokens; 0 without a price."""
    if price is None:
        return 0.0
    return (prompt_tokens * price.prompt + answer_tokens * price.answer) / 1e6


def used_tokens(answer: ChatAnswer, reckoned_prompt: int) -> tuple[int, int]:
    """Return the tokens of question and answer: the backend's count, or else our estimate."""
    question_tokens = reckoned_prompt if answer.prompt_tokens is None else answer.prompt_tokens
    length = round(len((answer.text or "").encode("utf-8", "replace")) / BYTES_A_TOKEN)
    return question_tokens, length if answer.answer_tokens is None else answer.answer_tokens


def estimate_tokens(messages: Sequence[Mapping[str, Any]], inputs: Iterable[str | AudioClip]) -> int:
    """Estimate the tokens of a question, rather too many than too few."""
    size = 0
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        size += sum(len(text.encode("utf-8", "replace")) for text in texts)
    seconds = sum(value.seconds for value in inputs if isinstance(value, AudioClip))
    return round(size / BYTES_A_TOKEN + seconds * TOKENS_A_SECOND)
