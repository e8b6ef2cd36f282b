"""The interface of chat models: they receive messages and return one answer with its usage, or raise an error.

Messages have the form of the OpenAI chat API: each has a role and content, which is either a text or a list of parts,
`text` and `input_audio` (base64). The module is independent of the judged material. It also builds requests for answers
that fit a schema and parses that API's completions, for any transport.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import ConfigDict, Field

from podeval.errors import PodevalError

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling an answer; None leaves a setting to the backend.

    Args:
        temperature: the randomness of the answer; 0 gives the most probable answer.
        top_p: the probability mass to sample from.
        seed: seed for the sampling; a request's own seed is added to it.
        max_tokens: maximum length of the answer in tokens.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = 0
    max_tokens: Annotated[int, Field(ge=16)] | None = 4096

    def with_seed(self, seed: int) -> "Sampling":
        """Return the same settings with a request's seed added, if seeds are sent at all."""
        total = None if self.seed is None else self.seed + seed
        return Sampling(self.temperature, self.top_p, total, self.max_tokens)


@dataclass(frozen=True)
class ChatAnswer:
    """An answer exactly as the backend returned it.

    Args:
        text: the answer's text; None if the answer has no text.
        finish: the reason why it ended: `stop`, `length`, `content_filter`, `tool_calls`, or one of the backend's own
            reasons.
        refusal: the model's refusal, if it is separate from the text.
        tools: names of tools that the model wanted to call instead of answering.
        prompt_tokens, answer_tokens: number of tokens, as counted by the backend; None if it does not count them.
        audio_tokens: number of `prompt_tokens` that are audio.
        thinking_tokens: number of `answer_tokens` that are reasoning.
        cost: cost, as stated by the backend.
        model: the model and build that answered, if the backend names them.
        form: form in which the request states the schema: `json_schema`, `json_object` or `text`.
        raw: the complete response.
        unsent: sampling parameters that were not sent under their names, because the backend refuses them.
    """

    text: str | None
    finish: str | None = None
    refusal: str | None = None
    tools: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    model: str | None = None
    form: str = "text"
    raw: Any = None
    unsent: tuple[str, ...] = ()
    audio_tokens: int = 0
    thinking_tokens: int = 0
    cost: float | None = None


class ChatBusy(PodevalError):
    """This call got no complete answer: the backend is busy, broken or silent, or the answer was cut off; another call
    may succeed.

    Args:
        reason: why there was no answer, as a sentence.
        retry_after: pause in seconds that the backend requested, if any.
        crowded: whether fewer concurrent calls may help.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None, crowded: bool = True) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.crowded = crowded


class ChatRefused(PodevalError):
    """This call will never get an answer; if `for_all` is true (no key or no such model), no other call will either."""

    def __init__(self, reason: str, *, for_all: bool) -> None:
        super().__init__(reason)
        self.for_all = for_all


class ChatModel(Protocol):
    """A chat model that several threads can call at once."""

    at_once: int | None
    """Maximum number of concurrent calls; None if unlimited."""

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer.

        Args:
            messages: the conversation so far.
            sampling: settings for sampling the answer.
            schema: a JSON schema that the answer should fit; it is enforced if the backend supports that.
            timeout: maximum seconds of wall-clock time.

        Raises:
            ChatBusy: this call got no answer.
            ChatRefused: this call will never get an answer.
            ModelMissing: the model or a necessary library is not installed.
        """


@dataclass
class Form:
    """The form in which a schema is requested; if a backend refuses it, a simpler form is used from then on."""

    name: str = "json_schema"

    LADDER = ("json_schema", "json_object", "text")


_THOUGHTS = ("reasoning", "thinking", "reasoning_text", "redacted_thinking")
"""Types of content parts that are reasoning."""
LONGEST_BODY, VALUES_MOST = 20_000_000, 2_000_000
"""Maximum number of bytes in a response, and of values in its JSON; a stream of 100,000 pieces has about that many."""

T = TypeVar("T")


def call_within(seconds: float, call: Callable[[], T], whom: str) -> T:
    """Run a call for at most `seconds`; after that, raise `ChatBusy` and let the call finish by itself."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # A call that does not return in time continues in its thread, and its result is discarded.
    threading.Thread(target=run, daemon=True, name="podeval-judge-call").start()
    if not wait([future], seconds).done:
        raise ChatBusy(describe_lateness(whom, seconds))
    return future.result()


@contextlib.contextmanager
def convert_library_errors(whom: str) -> Iterator[None]:
    """Raise `ChatBusy` for any error raised by a library, so that one failed answer does not affect other answers."""
    try:
        yield
    except PodevalError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise ChatBusy(f"the call to {whom} failed ({reason})", crowded=False) from error


def describe_lateness(whom: str, seconds: float) -> str:
    """Return a sentence about an answer that did not arrive in time."""
    return f"{whom} did not answer within {seconds:g} s"


def make_response_format(form: str, schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the request field that asks for a schema in this form; None for `text`."""
    if form == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return {"type": "json_object"} if form == "json_object" else None


def make_body(
    messages: Sequence[Message], sampling: Sampling, form: str, schema: Mapping[str, Any] | None, /, **extra: Any
) -> dict[str, Any]:
    """Return the body of a request, without the fields that are left to the backend.

    Args:
        messages: the conversation so far.
        sampling: settings for sampling the answer.
        form: the form for requesting the schema.
        schema: a JSON schema that the answer should fit.
        extra: additional or replaced fields.
    """
    fields = {
        "messages": [dict(message) for message in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "max_tokens": sampling.max_tokens,
        "response_format": make_response_format(form, schema),
        **extra,
    }
    return {name: value for name, value in fields.items() if value is not None}


def read_completion(body: str, form: str) -> ChatAnswer:
    """Parse the answer in a response's body.

    Raises:
        ChatBusy: the body does not follow the API; another call may succeed.
    """
    return read_choice(parse_body(body), form)


def parse_body(body: str) -> Any:
    """Parse the body of a response as JSON.

    Raises:
        ChatBusy: it is not JSON, or too long for an answer.
    """
    if len(body) > LONGEST_BODY:
        raise ChatBusy(f"the response is {len(body) / 1e6:.0f} MB, which is too large for an answer", crowded=False)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ChatBusy(f"the response is not JSON: {body[:80]!r}", crowded=False) from None


def read_choice(data: Any, form: str) -> ChatAnswer:
    """Read the answer from a response's data.

    Raises:
        ChatBusy: the response does not follow the API; another call may succeed.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ChatBusy(f"the response contains no choice: {json.dumps(data)[:80]!r}", crowded=False)
    # Only valid parts are read.
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {}
    prompt_tokens, answer_tokens, audio_tokens, thinking_tokens = _count_tokens(_to_mapping(data.get("usage")))
    cost = _to_mapping(data.get("usage")).get("cost")
    return ChatAnswer(
        text=read_text(message.get("content")),
        finish=_to_string(choices[0].get("finish_reason")),
        refusal=_to_string(message.get("refusal")),
        tools=_read_tool_names(message.get("tool_calls")),
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        audio_tokens=audio_tokens,
        thinking_tokens=thinking_tokens,
        cost=float(cost) if isinstance(cost, int | float) and cost >= 0 else None,
        model=" ".join(filter(None, (_to_string(data.get("model")), _to_string(data.get("system_fingerprint")))))
        or None,
        form=form,
        raw=data,
    )


def _count_tokens(usage: Mapping[str, Any]) -> tuple[int | None, int | None, int, int]:
    """Return the number of tokens in the request and in the answer, and of audio and reasoning tokens among them."""
    request, answer = _to_count(usage.get("prompt_tokens")), _to_count(usage.get("completion_tokens"))
    audio = _to_count(_to_mapping(usage.get("prompt_tokens_details")).get("audio_tokens")) or 0
    thoughts = _to_count(_to_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")) or 0
    # Google's endpoint in OpenAI's form counts thinking only in the total.
    hidden = (_to_count(usage.get("total_tokens")) or 0) - (request or 0) - (answer or 0)
    if request is not None and answer is not None and hidden > 0:
        answer, thoughts = answer + hidden, thoughts + hidden
    return request, answer, min(audio, request or 0), min(thoughts, answer or 0)


def has_audio(messages: Sequence[Message]) -> bool:
    """Return whether the messages contain a clip."""
    contents = (message["content"] for message in messages)
    parts = (part for content in contents if not isinstance(content, str) for part in content)
    return any(part.get("type") == "input_audio" for part in parts)


def read_text(content: Any) -> str | None:
    """Return the text of content that is a string or a list of parts, without reasoning."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else {"text": part} for part in content]
        texts = [part.get("text") for part in parts if not (part.get("thought") or part.get("type") in _THOUGHTS)]
        return "".join(text for text in texts if isinstance(text, str)) or None
    return _to_string(content)


def _read_tool_names(calls: Any) -> tuple[str, ...]:
    if not isinstance(calls, list):
        return ()
    functions = (call.get("function") if isinstance(call, dict) else None for call in calls)
    return tuple(str(f.get("name")) if isinstance(f, dict) else "?" for f in functions)


def _to_string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _to_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
