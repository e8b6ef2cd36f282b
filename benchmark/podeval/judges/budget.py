"""The cost of judging, and the cap at which it stops.

A call starts only if its maximum cost, together with that of the calls in progress, still fits under the cap. The
maximum is estimated from the length of the request, the backend's counts so far, and the longest answer so far (before
the first answer, the longest allowed answer); after the call, the backend's count replaces the estimate. The cap can
therefore be exceeded only by a call that is unlike the earlier calls.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput
from podeval.judges.judge import Judge, Price
from podeval.judges.prompt import AudioClip
from podeval.models.chat import ChatAnswer

BYTES_A_TOKEN = 3.0
"""Assumed number of UTF-8 bytes per token, a cautious estimate: English has about 4, Chinese about 3."""
TOKENS_A_SECOND = 50.0
"""Assumed number of tokens per second of audio, a cautious estimate: public models use 10 to 32."""
USED_UP = "the budget is used up"
"""Beginning of the reason why a question was not asked."""


@dataclass
class Account:
    """Usage so far: calls, tokens, money, and the answers that were taken from records instead of a call."""

    calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cost: float = 0.0
    from_records: int = 0
    busy: int = 0
    """Calls that got no answer and were repeated or abandoned."""
    audio_tokens: int = 0
    """Tokens of audio in requests."""
    thinking_tokens: int = 0
    """Tokens of reasoning in answers."""

    @property
    def tokens(self) -> int:
        """The total tokens of requests and answers."""
        return self.prompt_tokens + self.answer_tokens

    def add(self, other: "Account") -> None:
        """Add the usage of another account."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def scaled(self, factor: float) -> "Account":
        """Return the usage multiplied by a factor."""
        scaled = {name: value * factor for name, value in vars(self).items()}
        return Account(**{name: value if name == "cost" else round(value) for name, value in scaled.items()})

    def sentence(self) -> str:
        """Return the usage as a sentence."""
        priced = f", cost {self.cost:.4g}" if self.cost else ""
        audio = f" ({self.audio_tokens} of them audio)" if self.audio_tokens else ""
        thoughts = f" ({self.thinking_tokens} of them reasoning)" if self.thinking_tokens else ""
        return (
            f"{self.calls} calls, {self.prompt_tokens} tokens in requests{audio} and {self.answer_tokens} in "
            f"answers{thoughts}{priced}; {self.from_records} answers from records, {self.busy} calls without an answer"
        )


@dataclass(frozen=True)
class Reservation:
    """Tokens and money reserved for one call."""

    prompt_tokens: int
    answer_tokens: int
    cost: float
    audio_tokens: int = 0


class Budget:
    """A cap on the calls, tokens and money that judging may use; several clients may share it.

    Args:
        cost: maximum cost in the currency of the judges' prices; None for no cap.
        tokens: maximum total tokens of requests and answers; None for no cap.
        calls: maximum number of calls, including those without an answer; None for no cap.
        watch: function that is called with the account after each call, in that call's thread.

    Raises:
        BadInput: a cap is not greater than 0.
    """

    def __init__(
        self,
        cost: float | None = None,
        tokens: int | None = None,
        calls: int | None = None,
        watch: Callable[[Account], None] = lambda account: None,
    ) -> None:
        if not all(cap is None or 0 < cap < math.inf for cap in (cost, tokens, calls)):
            raise BadInput("a limit on cost, tokens or calls must be above 0; leave it out for no limit")
        self.cost = cost
        self.tokens = tokens
        self.calls = calls
        self._watch = watch
        self.account = Account()
        self._longest_answer = 0
        self._dearer = 1.0
        self._open: list[Reservation] = []
        self._changed = threading.Condition()

    def reserve(
        self, prompt_tokens: int, longest_answer: int, price: Price | None, audio_tokens: int = 0
    ) -> Reservation | None:
        """Reserve tokens and money for a call, waiting until they are available; None if they never will be.

        Args:
            prompt_tokens: estimated tokens of the request.
            longest_answer: maximum tokens of the answer.
            price: price of the judge's tokens.
            audio_tokens: tokens of the request that are audio.
        """
        with self._changed:
            while True:
                answer = min(self._longest_answer or longest_answer, longest_answer)
                question = round(prompt_tokens * self._dearer)
                audio = round(audio_tokens * self._dearer)
                # Every token of an answer may turn out to be a reasoning token.
                cost = max(compute_price(price, question, answer, audio, thoughts) for thoughts in (0, answer))
                reservation = Reservation(question, answer, cost, audio)
                if self._fits(reservation):
                    self._open.append(reservation)
                    return reservation
                if not self._open:
                    return None
                self._changed.wait()

    def settle(self, reservation: Reservation, answer: ChatAnswer | None, price: Price | None) -> Account:
        """Release a reservation, record the usage and return the usage; `answer` is None if the call got no answer."""
        with self._changed:
            self._open.remove(reservation)
            used = Account(busy=1)
            if answer is not None:
                question, answered = count_used_tokens(answer, reservation.prompt_tokens)
                cost = answer.cost
                if cost is None:
                    # If a backend does not report the number of audio tokens, use our estimate.
                    audio = answer.audio_tokens or min(question, reservation.audio_tokens)
                    cost = compute_price(price, question, answered, audio, answer.thinking_tokens)
                used = Account(1, question, answered, cost, 0, 0, answer.audio_tokens, answer.thinking_tokens)
                self._longest_answer = max(self._longest_answer, answered)
                # If the backend counts more than was estimated, raise the estimate from now on.
                self._dearer *= max(1.0, question / max(1, reservation.prompt_tokens))
            self.account.add(used)
            self._changed.notify_all()
        self._watch(self.account)
        return used

    def _fits(self, reservation: Reservation) -> bool:
        under_way = [*self._open, reservation]
        tokens = self.account.tokens + sum(r.prompt_tokens + r.answer_tokens for r in under_way)
        cost = self.account.cost + sum(r.cost for r in under_way)
        calls = self.account.calls + self.account.busy + len(under_way)
        caps = ((self.tokens, tokens), (self.cost, cost), (self.calls, calls))
        return all(cap is None or used <= cap for cap, used in caps)


def require_price(judge: Judge, budget: Budget | None) -> None:
    """Refuse a cap on the cost of a judge without a price.

    Raises:
        BadInput: the cost is capped but the judge has no price.
    """
    if budget and budget.cost is not None and judge.price is None and not judge.replays:
        raise BadInput(
            f"the cost of {judge.model} cannot be limited without its price: add price: {{prompt: …, answer: …}}, per "
            "million tokens, to the judge's YAML file, or limit the tokens instead"
        )


def compute_price(
    price: Price | None, prompt_tokens: int, answer_tokens: int, audio_tokens: int = 0, thinking_tokens: int = 0
) -> float:
    """Return the cost of tokens; 0 if no price is known.

    Args:
        price: price per million tokens of each kind.
        prompt_tokens: tokens of the request.
        answer_tokens: tokens of the answer.
        audio_tokens: tokens of the request that are audio.
        thinking_tokens: tokens of the answer that are reasoning.
    """
    if price is None:
        return 0.0
    audio = price.prompt if price.audio is None else price.audio
    thinking = price.answer if price.thinking is None else price.thinking
    prompt_cost = (prompt_tokens - audio_tokens) * price.prompt + audio_tokens * audio
    return (prompt_cost + (answer_tokens - thinking_tokens) * price.answer + thinking_tokens * thinking) / 1e6


def count_used_tokens(answer: ChatAnswer, reckoned_prompt: int) -> tuple[int, int]:
    """Return the tokens of the request and of the answer: the backend's count, or our estimate if there is none."""
    question_tokens = reckoned_prompt if answer.prompt_tokens is None else answer.prompt_tokens
    length = round(len((answer.text or "").encode("utf-8", "replace")) / BYTES_A_TOKEN)
    return question_tokens, length if answer.answer_tokens is None else answer.answer_tokens


def estimate_tokens(messages: Sequence[Mapping[str, Any]], inputs: Iterable[str | AudioClip]) -> tuple[int, int]:
    """Estimate the number of tokens in a request, erring on the high side, and the number of tokens that are audio."""
    size = 0
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        size += sum(len(text.encode("utf-8", "replace")) for text in texts)
    audio = round(sum(value.seconds for value in inputs if isinstance(value, AudioClip)) * TOKENS_A_SECOND)
    return round(size / BYTES_A_TOKEN) + audio, audio


# The number of concurrent calls is limited to what the backend can handle; this limit is found by trial and error.
#
# The limit increases additively and decreases multiplicatively, as in network congestion control: after every round of
# answers, one more concurrent call is allowed. A sign of overload (too many requests, a server error, a timeout) halves
# the limit, but at most once for the calls that were in progress at the same time. If the backend asks for a wait, all
# calls wait.


@dataclass(frozen=True)
class Patience:
    """The limits on retrying failed calls.

    Args:
        tries: maximum number of calls for one answer.
        first_wait: seconds before the second call; the wait doubles each time, and half of each wait is random.
        longest_wait: maximum wait in seconds; if the backend asks for a longer wait, the retries end.
    """

    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def wait(self, failed: int, chance: float) -> float:
        """Return the seconds to wait after `failed` calls; `chance` is a random number from 0 to 1."""
        full = min(self.longest_wait, self.first_wait * 2.0 ** (failed - 1))
        return full * (0.5 + 0.5 * chance)


class AdaptiveConcurrency:
    """A limit on concurrent calls, from 1 to `most`; the limit starts at `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self._under_way = 0
        self._round = 0
        self._open_from = 0.0
        self._changed = threading.Condition()

    @contextmanager
    def call(self, stop: threading.Event) -> Iterator[int]:
        """Wait until another call may start, and yield its round."""
        with self._changed:
            while not stop.is_set():
                wait = self._open_from - time.monotonic()
                if wait <= 0 and self._under_way < int(self.limit):
                    break
                self._changed.wait(min(wait, 0.5) if wait > 0 else 0.5)
            self._under_way += 1
            begun = self._round
        try:
            yield begun
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def answered(self) -> None:
        """Record that a call succeeded."""
        with self._changed:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
            self._changed.notify_all()

    def crowded(self, begun: int, retry_after: float | None) -> None:
        """Record that the backend rejected a call of this round; all calls then wait `retry_after` seconds."""
        with self._changed:
            if begun == self._round:
                self._round += 1
                self.limit = max(1.0, self.limit / 2)
            if retry_after:
                self._open_from = max(self._open_from, time.monotonic() + retry_after)
