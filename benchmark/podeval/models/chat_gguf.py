"""A chat model from a local GGUF file, in this process, through xllamacpp (llama.cpp).

Answers fit a JSON schema by construction: generation is constrained to it. Calls run one at a time and reuse nothing
that earlier calls left in the cache, so that the same request has the same answer in any order.
"""

import functools
import importlib.util
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podeval.errors import ModelMissing
from podeval.models.chat import (
    ChatAnswer,
    ChatBusy,
    ChatRefused,
    Message,
    Sampling,
    call_within,
    make_body,
    read_completion,
)
from podeval.models.device import count_threads

CONTEXT = 16_384
"""Default number of tokens of request and answer: enough for an hour's script, within 8 GB of memory."""


class GgufChat:
    """A chat model from a GGUF file; see `podeval.models.chat.ChatModel`.

    Args:
        path: path of the file.
        context: maximum tokens of request and answer together.

    Raises:
        ModelMissing: xllamacpp is not installed.
        ChatRefused: the file cannot be loaded.
    """

    at_once: int | None = 1

    def __init__(self, path: Path, context: int) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelMissing("a GGUF model needs xllamacpp; run `pip install 'podeval[gguf]'`")
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = context
        parameters.n_parallel = 1
        parameters.cache_prompt = False
        parameters.warmup = False
        parameters.verbosity = -1
        parameters.cpuparams.n_threads = count_threads()
        # The library also listens on loopback; a secret random key keeps others from using it.
        parameters.api_keys = [secrets.token_hex(32)]
        try:
            self._server = xllamacpp.Server(parameters)
        except RuntimeError as error:
            raise ModelMissing(
                f"{path} cannot be loaded ({error}); download the file again, or install a newer xllamacpp"
            ) from None
        self._path = path
        self._context = context

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer; see `podeval.models.chat.ChatModel`."""
        if any(not isinstance(message["content"], str) for message in messages):
            raise ChatRefused(f"{self._path.name} cannot hear audio here; choose another judge", for_all=False)
        form = "json_schema" if schema is not None else "text"
        question = json.dumps(make_body(messages, sampling, form, schema, cache_prompt=False))
        answer = call_within(timeout, lambda: self._ask(question), self._path.name)
        if error := json.loads(answer).get("error"):
            raise self._explain_failure(error)
        return read_completion(answer, form)

    def _ask(self, question: str) -> str:
        answers: list[str] = []
        self._server.handle_chat_completions(question, answers.append)
        return answers[0] if answers else "{}"

    def _explain_failure(self, error: Mapping[str, Any]) -> Exception:
        message = str(error.get("message", error))
        if error.get("type") == "exceed_context_size_error":
            return ChatRefused(
                f"{self._path.name} is loaded for {self._context} tokens ({message}); raise context in the judge's "
                "YAML file, as far as model and memory go",
                for_all=False,
            )
        if error.get("code", 500) < 500:
            return ChatRefused(f"{self._path.name} does not take this: {message}", for_all=False)
        return ChatBusy(f"{self._path.name} failed: {message}", crowded=False)


def load_gguf_chat(path: Path, context: int | None) -> GgufChat:
    """Load the model of a file, once per process.

    Raises:
        ModelMissing: see `GgufChat`.
    """
    stat = path.stat()
    return _load(path.resolve(), context or CONTEXT, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _load(path: Path, context: int, size: int, modified: int) -> GgufChat:
    return GgufChat(path, context)
