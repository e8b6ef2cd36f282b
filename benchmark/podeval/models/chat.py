"""The interface of chat models: messages in, one answer with its usage out, and the possible errors.

Messages are those of the OpenAI chat API: a role and a content, which is a text or a list of parts, `text` and
`input_audio` (base64). Nothing here knows what is being judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from podeval.errors import PodevalError

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Sampling:
    """How an answer is sampled; what is None is left to the backend.

    Args:
        temperature: 0 gives the most probable answer.
        top_p: the share of probability that is sampled from.
        seed: seed of the sampling; a request's own seed is added to it.
        max_tokens: maximum length of the answer in tokens.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = 0
    max_tokens: int | None = 4096

    def with_seed(self, seed: int) -> "Sampling":
        """Return the same settings with a request's seed added, if seeds are sent at all."""
        total = None if self.seed is None else self.seed + seed
        return Sampling(self.temperature, self.top_p, total, self.max_tokens)


@dataclass(frozen=True)
class ChatAnswer:
    """An answer exactly as the backend returned it.

    Args:
        text: the answer's text; None if there is none.
        finish: why it ended: `stop`, `length`, `content_filter`, `tool_calls`, or what the backend says.
        refusal: the words with which the model refused, if they are separate from the text.
        tools: names of tools that it wanted to call instead of answering.
        prompt_tokens, answer_tokens: as counted by the backend; None if it does not count.
        model: the model and build that answered, if the backend names them.
        form: how the schema was requested: `json_schema`, `json_object` or `text`.
        raw: everything the backend sent.
        unsent: parameters of the sampling that were not sent under their name, because the backend refuses them.
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


class ChatBusy(PodevalError):
    """There was no answer this time: the backend is busy, broken, silent or cut off; another try may succeed.

    Args:
        reason: as a sentence.
        retry_after: seconds that the backend asked to wait, if it did.
        crowded: whether fewer concurrent calls may help.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None, crowded: bool = True) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.crowded = crowded


class ChatRefused(PodevalError):
    """This call will never be answered; `for_all`: nor will any other (no key, no such model)."""

    def __init__(self, reason: str, *, for_all: bool) -> None:
        super().__init__(reason)
        self.for_all = for_all


class ChatModel(Protocol):
    """A chat model that several threads can call at once."""

    at_once: int | None
    """Maximum number of concurrent calls, None if unlimited."""

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer.

        Args:
            messages: the conversation so far.
            sampling: how the answer is sampled.
            schema: a JSON schema that the answer should fit; enforced if the backend can.
            timeout: seconds of wall-clock time.

        Raises:
            ChatBusy: there is no answer this time.
            ChatRefused: there will never be an answer.
            ModelMissing: the model or a library that it needs is not installed.
        """


@dataclass
class Form:
    """The form in which a schema is requested; falls back to a simpler one if a backend refuses, and stays there."""

    name: str = "json_schema"

    LADDER = ("json_schema", "json_object", "text")
