"""The job of a chat model: messages in, one answer out, with what it cost; and how it can fail.

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
    """How an answer is drawn; what is None is left to the backend.

    Args:
        temperature: 0 is the most probable answer.
        top_p: the share of probability that is drawn from.
        seed: of the draw; a request's own seed is added to it.
        max_tokens: the longest answer.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = 0
    max_tokens: int | None = 4096

    def with_seed(self, seed: int) -> "Sampling":
        """The same with a request's seed added, where seeds are sent at all."""
        total = None if self.seed is None else self.seed + seed
        return Sampling(self.temperature, self.top_p, total, self.max_tokens)


@dataclass(frozen=True)
class ChatAnswer:
    """What came back, as it came back.

    Args:
        text: the answer's text; None where there is none.
        finish: why it ended: `stop`, `length`, `content_filter`, `tool_calls`, or what the backend says.
        refusal: the words by which the model refused, where it says so apart from the text.
        tools: names of tools that it wanted to call instead of answering.
        prompt_tokens, answer_tokens: as counted by the backend; None where it does not count.
        model: which model says it answered, and its build, where the backend tells.
        form: how the schema was asked for: `json_schema`, `json_object` or `text`.
        raw: everything the backend sent.
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


class ChatBusy(PodevalError):
    """No answer this time: the backend is busy, broken, silent or cut off; worth trying again.

    Args:
        reason: as a sentence.
        retry_after: seconds that the backend asked to be left alone, where it did.
        crowded: whether fewer calls at a time may help.
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
    """A language model to talk to, from several threads at once."""

    at_once: int | None
    """Calls at a time it can bear, None where any number."""

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """One answer.

        Args:
            messages: the conversation so far.
            sampling: how it is drawn.
            schema: a JSON schema that the answer should fit; kept to where the backend can.
            timeout: seconds by the wall clock.

        Raises:
            ChatBusy: no answer this time.
            ChatRefused: never an answer.
            ModelMissing: the model or what it runs with is not here.
        """


@dataclass
class Form:
    """How a schema is asked for; steps down where a backend refuses, and stays there."""

    name: str = "json_schema"

    LADDER = ("json_schema", "json_object", "text")

    def below(self) -> str | None:
        """The next simpler form, None below the last."""
        rank = self.LADDER.index(self.name) + 1
        return self.LADDER[rank] if rank < len(self.LADDER) else None
