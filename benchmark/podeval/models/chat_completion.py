"""Chat completions of the OpenAI API: how a schema is requested and how an answer is parsed, for any transport."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from podeval.errors import PodevalError
from podeval.models.chat import ChatAnswer, ChatBusy

_THOUGHTS = ("reasoning", "thinking", "reasoning_text", "redacted_thinking")
"""Types of the parts of a content that are thoughts."""
_LONGEST_BODY = 20_000_000

T = TypeVar("T")


def call_within(seconds: float, call: Callable[[], T], whom: str) -> T:
    """Run a call for at most `seconds`; after that raise `ChatBusy`, and let the call finish by itself."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            failure.append(error)

    # A call that does not return in time goes on in its thread, and its result is dropped.
    thread = threading.Thread(target=run, daemon=True, name="podeval-judge-call")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise ChatBusy(describe_lateness(whom, seconds))
    if failure:
        raise failure[0]
    return outcome[0]


@contextlib.contextmanager
def convert_library_errors(whom: str) -> Iterator[None]:
    """Raise `ChatBusy` for whatever a library raises: one answer that fails is no reason to lose the others."""
    try:
        yield
    except PodevalError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise ChatBusy(f"the call of {whom} failed ({reason})", crowded=False) from error


def describe_lateness(whom: str, seconds: float) -> str:
    """Return a sentence that says that an answer did not come in time."""
    return f"{whom} did not answer within {seconds:g} s"


def make_response_format(form: str, schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the request field that asks for a schema in this form; None for `text`."""
    if form == "json_schema":
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return {"type": "json_object"} if form == "json_object" else None


def read_completion(body: str, form: str) -> ChatAnswer:
    """Parse the answer in a response's body.

    Raises:
        ChatBusy: the body does not follow the API, which another call may fix.
    """
    # Check the form of the response.
    if len(body) > _LONGEST_BODY:
        raise ChatBusy(f"the response is {len(body) / 1e6:.0f} MB long, too long for a judgement", crowded=False)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ChatBusy(f"the response is not JSON: {body[:80]!r}", crowded=False) from None
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ChatBusy(f"the response holds no choice: {body[:80]!r}", crowded=False)
    # Take from it what is there.
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {}
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    return ChatAnswer(
        text=read_text(message.get("content")),
        finish=_to_string(choices[0].get("finish_reason")),
        refusal=_to_string(message.get("refusal")),
        tools=_read_tool_names(message.get("tool_calls")),
        prompt_tokens=_to_count(usage.get("prompt_tokens")),
        answer_tokens=_to_count(usage.get("completion_tokens")),
        model=" ".join(filter(None, (_to_string(data.get("model")), _to_string(data.get("system_fingerprint")))))
        or None,
        form=form,
        raw=data,
    )


def read_text(content: Any) -> str | None:
    """Return the text of a content that is a string or a list of parts, of which thoughts are no answer."""
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


def _to_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
