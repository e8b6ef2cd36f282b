"""A judge's client: it uses recorded answers if there are any, and otherwise makes several calls at a time.

If an answer cannot be parsed, the judge is told about the fault and asked again, up to its maximum number of tries;
then the request counts as unanswered, with the reason. Every answer is recorded before it is used, so a stopped run
resumes where it stopped.
"""

import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pydantic

from podeval import progress
from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.judges.budget import (
    USED_UP,
    Account,
    AdaptiveConcurrency,
    Budget,
    Patience,
    estimate_tokens,
    require_price,
)
from podeval.judges.exchange_records import JudgeExchange, Records, build_key
from podeval.judges.judge import Judge
from podeval.judges.parsing import UnreadableAnswer, read_answer
from podeval.judges.prompt import AudioClip, Prompt, break_control_words, describe_input, hash_inputs, strip_audio
from podeval.judges.wording import reword
from podeval.models.chat import ChatAnswer, ChatBusy, ChatModel, ChatRefused, convert_library_errors

_SHOWN_AGAIN = 6000
"""Maximum number of characters of an unusable answer that are shown to the judge again."""

_TWICE = "(an answer that was given twice and is not shown again)"

Refresh = bool | Literal["failed"]


@dataclass(frozen=True)
class JudgeRequest:
    """A request to a judge: a prompt with its inputs.

    Args:
        prompt: the prompt.
        inputs: a text or a clip for every placeholder of the prompt.
        seed: number that distinguishes repetitions; this number is added to the judge's own seed.
        check: function that raises `ValueError` with a sentence if an answer is well-formed but wrong.
    """

    prompt: Prompt
    inputs: Mapping[str, str | AudioClip]
    seed: int = 0
    check: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class UsableAnswer:
    """A usable answer: its value, its record, and the number of attempts that it took."""

    value: pydantic.BaseModel
    record_id: str
    tries: int


@dataclass(frozen=True)
class Unanswered:
    """The reason why there is no usable answer; the cause is always `ours`, never the judged system."""

    reason: str
    cause: Literal["ours"] = "ours"
    record_id: str | None = None


Outcome = UsableAnswer | Unanswered


class _Halt(threading.Event):
    """A flag that stops further requests, with the reason."""

    reason = ""

    def because(self, reason: str) -> None:
        """Stop all further requests, and record this reason."""
        if not self.is_set():
            self.reason = reason
            self.set()


class JudgeClient:
    """Sends requests to a judge, using its records and its budget.

    Args:
        judge: the judge.
        folder: folder of the records, which also serve as the cache; None keeps them in this process only.
        workers: maximum number of concurrent calls.
        budget: cap and account, which several clients may share.
        refresh: whether to ask again despite a recorded answer; `failed` does so only if no recorded answer is usable.
        patience: limits on retrying failed calls.
        wordings: custom wordings of prompts, by name.

    Raises:
        BadInput: the cost is capped but the judge has no price, or the records are damaged.
    """

    def __init__(
        self,
        judge: Judge,
        folder: Path | None = None,
        *,
        workers: int = 4,
        budget: Budget | None = None,
        refresh: Refresh = False,
        patience: Patience | None = None,
        wordings: Mapping[str, str] | None = None,
    ) -> None:
        if workers < 1:
            raise BadInput(f"`workers` must be at least 1, not {workers}")
        require_price(judge, budget)
        self.judge = judge
        self.records = Records(Path(str(judge.endpoint)) if judge.replays and folder is None else folder)
        self.budget = budget or Budget()
        self.pace = AdaptiveConcurrency(workers)
        self._refresh: Refresh = False if judge.replays else refresh
        self._patience = patience or Patience()
        self._wordings = wordings or {}
        self._backend: ChatModel | None = None
        self._chance = random.Random(judge.id)  # noqa: S311
        self._asked_anew: set[str] = set()
        self.on_use: Callable[[Account], None] = lambda used: None
        """Function that is called with the usage of each call, in the thread of that call."""
        self.unsent = frozenset(self.records.unsent(judge.id))
        """Sampling parameters that the judge has refused so far."""

    @property
    def account(self) -> Account:
        """The calls, tokens and money used under this budget."""
        return self.budget.account

    def ask(self, requests: Sequence[JudgeRequest]) -> list[Outcome]:
        """Send requests and return the outcomes in the same order; a request that occurs twice is sent once.

        Raises:
            ValueError: a request's inputs differ from those of its prompt.
            PodevalError: the records cannot be written.
        """
        requests = [replace(r, prompt=reword(r.prompt, self._wordings.get(r.prompt.family, ""))) for r in requests]
        keys = [self.key(request) for request in requests]
        unique = dict(zip(keys, requests, strict=True))
        # Use answers that are already recorded.
        outcomes: dict[str, Outcome] = {}
        missing: list[tuple[str, list[JudgeExchange]]] = []
        for key, request in unique.items():
            before = self._before(key, request)
            recorded = self._recorded_outcome(request, before)
            if recorded is None:
                missing.append((key, before))
            else:
                outcomes[key] = recorded
                self.account.from_records += isinstance(recorded, UsableAnswer)
        # Ask the judge for the remaining answers.
        what = f"asking {self.judge.model}"
        progress.report(what, len(outcomes), len(unique))
        for key, outcome in self._answers(unique, missing):
            outcomes[key] = outcome
            progress.report(what, len(outcomes), len(unique))
        return [outcomes[key] for key in keys]

    def key(self, request: JudgeRequest) -> str:
        """Return the key of a request in the records."""
        return build_key(request.prompt.id, hash_inputs(request.inputs), self.judge.id, request.seed)

    def _before(self, key: str, request: JudgeRequest) -> list[JudgeExchange]:
        """Return the recorded exchanges that apply to a request."""
        if not self._refresh or key in self._asked_anew:
            return self.records.exchanges(key)
        if self._refresh != "failed":
            return []
        before = self.records.exchanges(key)
        usable = any(_problem(exchange.answer, request) is None for exchange in before)
        return before if usable or len(before) < self.judge.tries else []

    def _recorded_outcome(self, request: JudgeRequest, before: Sequence[JudgeExchange]) -> Outcome | None:
        """Return the outcome from the records, or None if the judge must be asked."""
        for exchange in before:
            with contextlib.suppress(UnreadableAnswer):
                return UsableAnswer(_value(exchange.answer, request), exchange.id, exchange.attempt)
        if len(before) >= self.judge.tries or (before and self.judge.replays):
            return _describe_unreadable(_problem(before[-1].answer, request), before[-1])
        if self.judge.replays:
            return Unanswered(f"{self.records.path} contains no answer by {self.judge.id} to this question")
        return None

    def _answers(
        self, requests: Mapping[str, JudgeRequest], missing: Sequence[tuple[str, list[JudgeExchange]]]
    ) -> Iterator[tuple[str, Outcome]]:
        """Yield outcomes as they arrive from worker threads, which end with the process."""
        if not missing:
            return
        halt = _Halt()
        try:
            backend = self._model()
        except ModelMissing as absent:
            yield from ((key, Unanswered(str(absent))) for key, _ in missing)
            return
        # A queue of requests and a queue of outcomes connect this thread with the workers.
        self.records.add_judge(self.judge.described())
        waiting: queue.SimpleQueue[tuple[str, list[JudgeExchange]]] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[str, Outcome | BaseException]] = queue.SimpleQueue()
        for entry in missing:
            waiting.put(entry)

        def work() -> None:
            while True:
                try:
                    key, before = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    done.put((key, self._ask_until_usable(backend, requests[key], key, before, halt)))
                except BaseException as error:
                    done.put((key, error))

        # The threads are daemons, so they do not keep the process alive.
        for _ in range(min(self.pace.most, len(missing))):
            threading.Thread(target=work, daemon=True, name="podeval-judging").start()
        try:
            for _ in missing:
                key, outcome = done.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                yield key, outcome
        finally:
            halt.because("stopped")

    def _model(self) -> ChatModel:
        if self._backend is None:
            self._backend = self.judge.model_to_ask()
            if self._backend.at_once is not None:
                self.pace.most = min(self.pace.most, self._backend.at_once)
                self.pace.limit = min(self.pace.limit, self.pace.most)
            form_name, form = self.records.form(self.judge.id), getattr(self._backend, "form", None)
            if form_name and form is not None:
                form.name = form_name
            if (remember := getattr(self._backend, "remember", None)) is not None:
                remember(self.unsent)
        return self._backend

    def _ask_until_usable(
        self, backend: ChatModel, request: JudgeRequest, key: str, before: list[JudgeExchange], halt: _Halt
    ) -> Outcome:
        """Ask until an answer is usable or no tries are left."""
        # Refuse requests that this judge cannot answer.
        if not self.judge.hears and any(isinstance(value, AudioClip) for value in request.inputs.values()):
            return Unanswered(
                f"{self.judge.model} is not declared to accept audio; choose a judge that accepts audio, or write "
                "hears: true into the judge's YAML file"
            )
        try:
            question = request.prompt.messages(request.inputs, self.judge.audio)
        except PodevalError as refusal:
            return Unanswered(str(refusal))
        # Continue the recorded series; each try tells the judge about its previous mistake.
        series = before[0].series if before else self.records.series(key) + 1
        exchanges = list(before)
        while len(exchanges) < self.judge.tries:
            messages = [*question, *_repeat_answers(exchanges, request)]
            started, began = datetime.now(UTC), time.monotonic()
            try:
                answer = self._call_backend(backend, messages, request, key, halt)
            except _NoAnswer as failure:
                return Unanswered(str(failure), record_id=exchanges[-1].id if exchanges else None)
            # Record the answer before it is used.
            problem = _problem(answer, request)
            exchange = JudgeExchange(
                key=key,
                series=series,
                attempt=len(exchanges) + 1,
                prompt=request.prompt.id,
                judge=self.judge.id,
                seed=request.seed,
                inputs={name: describe_input(value) for name, value in request.inputs.items()},
                messages=[strip_audio(message) for message in messages],
                answer=answer,
                asked=started.isoformat(timespec="milliseconds"),
                seconds=round(time.monotonic() - began, 3),
                problem=problem,
            )
            self.records.add(exchange)
            self.unsent |= set(answer.unsent)
            self._asked_anew.add(key)
            exchanges.append(exchange)
            if problem is None:
                return UsableAnswer(_value(answer, request), exchange.id, exchange.attempt)
        return _describe_unreadable(exchanges[-1].problem, exchanges[-1])

    def _call_backend(
        self, backend: ChatModel, messages: Sequence[Mapping[str, Any]], request: JudgeRequest, key: str, halt: _Halt
    ) -> ChatAnswer:
        """Return one answer, repeating failed calls as often as `patience` allows.

        Raises:
            _NoAnswer: the judge did not answer; the message gives the reason.
        """
        judge = self.judge
        sampling = judge.sampling.with_seed(request.seed)
        tokens, audio_tokens = estimate_tokens(messages, request.inputs.values())
        for failed in range(1, self._patience.tries + 1):
            with self.pace.call(halt) as begun:
                if halt.is_set():
                    raise _NoAnswer(halt.reason)
                longest = sampling.max_tokens or 4096
                reservation = self.budget.reserve(tokens, longest, judge.price, audio_tokens)
                if reservation is None:
                    halt.because(
                        f"{USED_UP}: {self.account.sentence()}; the next call may take {tokens} tokens "
                        f"for the request and {longest} for the answer; raise the budget and run again"
                    )
                    raise _NoAnswer(halt.reason)
                started, began = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
                answer: ChatAnswer | None = None
                try:
                    with convert_library_errors(judge.model):
                        answer = backend.chat(messages, sampling, request.prompt.schema, judge.timeout)
                    self.pace.answered()
                    return answer
                except ChatRefused as refusal:
                    self._record_failure(request, key, str(refusal), started, began)
                    if refusal.for_all:
                        halt.because(str(refusal))
                    raise _NoAnswer(str(refusal)) from None
                except ChatBusy as busy:
                    self._record_failure(request, key, str(busy), started, began)
                    if busy.crowded:
                        self.pace.crowded(begun, min(busy.retry_after or 0.0, self._patience.longest_wait))
                    reason, retry_after = str(busy), busy.retry_after or 0.0
                finally:
                    self.on_use(self.budget.settle(reservation, answer, judge.price))
            if retry_after > self._patience.longest_wait:
                halt.because(f"{reason}; the server asks for a pause of {retry_after:.0f} s; run again after that")
                raise _NoAnswer(halt.reason)
            if failed < self._patience.tries and not retry_after:
                halt.wait(self._patience.wait(failed, self._chance.random()))
        raise _NoAnswer(f"no answer in {self._patience.tries} calls; the last: {reason}")

    def _record_failure(self, request: JudgeRequest, key: str, reason: str, started: str, began: float) -> None:
        seconds = round(time.monotonic() - began, 3)
        self.records.add_failure(key, request.prompt.id, self.judge.id, reason, started, seconds)


class _NoAnswer(Exception):
    """Raised when a call gets no answer."""


def _value(answer: ChatAnswer, request: JudgeRequest) -> pydantic.BaseModel:
    """Parse an answer into its type, and check the answer.

    Raises:
        UnreadableAnswer: the answer cannot be used.
    """
    value = read_answer(answer, request.prompt.answer)
    if request.check is not None:
        try:
            request.check(value)
        except ValueError as error:
            raise UnreadableAnswer(str(error)) from None
    return value


def _problem(answer: ChatAnswer, request: JudgeRequest) -> str | None:
    try:
        _value(answer, request)
    except UnreadableAnswer as problem:
        return str(problem)
    return None


def _describe_unreadable(problem: str | None, last: JudgeExchange) -> Unanswered:
    tries = "1 try" if last.attempt == 1 else f"{last.attempt} tries"
    return Unanswered(f"the judge gave no usable answer in {tries}; the last problem: {problem}", record_id=last.id)


def _repeat_answers(exchanges: Sequence[JudgeExchange], request: JudgeRequest) -> Iterator[dict[str, Any]]:
    """Yield the earlier answers and their faults, without repeated answers, which the judge would copy again."""
    texts = [exchange.answer.text or exchange.answer.refusal or "(no answer)" for exchange in exchanges]
    for exchange, text in zip(exchanges, texts, strict=True):
        repeated = _TWICE if texts.count(text) > 1 else break_control_words(text[:_SHOWN_AGAIN])
        yield {"role": "assistant", "content": repeated}
        problem = break_control_words((_problem(exchange.answer, request) or "")[:1000])
        yield {
            "role": "user",
            "content": f"This answer cannot be used: {problem}\nJudge again; answer with the whole JSON object only.",
        }
