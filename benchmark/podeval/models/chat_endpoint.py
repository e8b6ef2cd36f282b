"""A chat model at a provider in `podeval.models.chat_providers`, at any OpenAI-compatible endpoint, or in a GGUF file.

A response is classified by its status, regardless of its body. If the endpoint refuses one of our parameters, such as
`seed` or `max_tokens`, the parameter is left out or renamed; this is remembered, and recorded with every answer as
`unsent`. Likewise, streaming is used and audio is sent as a data URI if the endpoint requires it. The timeout also
applies to an answer that arrives bit by bit.
"""

import importlib.util
import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from podeval.errors import ModelMissing
from podeval.models.chat import (
    LONGEST_BODY,
    VALUES_MOST,
    ChatAnswer,
    ChatBusy,
    ChatRefused,
    Form,
    Message,
    Sampling,
    call_within,
    describe_lateness,
    has_audio,
    make_body,
    parse_body,
    read_choice,
    read_completion,
)
from podeval.models.chat_providers import OPENAI_API, Provider, find_provider, join_stream, wrap_audio
from podeval.models.device import count_threads
from podeval.models.downloading import end_after, end_reads, follow, read_body, read_refusal
from podeval.models.http_errors import PASSING, HttpError, RefusedFields, find_error, leave_out, read_http_error
from podeval.text.json_text import count_values

_REPLACED = {
    "seed": (leave_out,),
    "top_p": (leave_out,),
    "max_tokens": (lambda value: {"max_completion_tokens": value}, leave_out),
    "temperature": (leave_out,),
    "stream": (lambda value: {"stream": True, "stream_options": {"include_usage": True}}, leave_out),
}
"""Replacements for refused parameters; they never change the question, only how an answer is sampled and sent."""
_WANTS_URI = re.compile(r"\bURL\b.*valid|valid.*\bURL\b", re.IGNORECASE)
"""Pattern that matches an endpoint's message about audio that is not a data URI."""
_FILTERED = re.compile(r"inappropriate|inspection|content.(filter|policy|management)|safety", re.IGNORECASE)
"""Pattern that matches an endpoint's message about content that it refuses."""


class EndpointChat:
    """A chat model at an endpoint.

    Args:
        model: the name of the model at the endpoint.
        endpoint: base URL, to which `/chat/completions` is added.
        key: the bearer token, which is never shown.
        extra: additional fields of the request body.
        provider: the provider; by default, the one at this address.
    """

    at_once: int | None = None

    def __init__(
        self,
        model: str,
        endpoint: str,
        *,
        key: str | None = None,
        extra: Mapping[str, Any] | None = None,
        provider: Provider | None = None,
    ):
        self._model = model
        self._endpoint = endpoint
        self.provider = provider or find_provider(endpoint, model)
        # A bare server address is treated as the address of its API, as in Hugging Face's clients.
        base = "" if urlsplit(endpoint).path.strip("/") else urlsplit(self.provider.address).path
        self._url = f"{endpoint.rstrip('/')}{base}{self.provider.api.path.format(model=model)}"
        self._key = key
        self._extra = {**self.provider.fields, **(extra or {})}
        self.form = Form(self.provider.form)
        self._data_uri = self.provider.data_uri
        self._refused = RefusedFields({name: ways for name, ways in _REPLACED.items() if name not in self._extra})
        self.remember(self.provider.unsent)

    def remember(self, unsent: Collection[str]) -> None:
        """Leave out or rename these sampling parameters, which this endpoint is known to refuse."""
        self._refused.replace_once(unsent)

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer; see `podeval.models.chat.ChatModel`."""
        if not self.provider.hears and has_audio(messages):
            raise ChatRefused(f"{self.provider.title} does not accept audio; choose another judge", for_all=False)
        ladder = Form.LADDER[Form.LADDER.index(self.form.name) :] if schema is not None else ("text",)
        refusal: ChatRefused | None = None
        for form in ladder:
            try:
                answer = self._ask(messages, sampling, schema, form, timeout)
            except _BadRequest as refused:
                # The endpoint may reject the schema, so ask in a simpler form; if that fails, report the first refusal.
                refusal = refusal or refused
                continue
            if schema is not None:
                self.form = Form(form)
            return answer
        raise ChatRefused(str(refusal), for_all=False)

    def _ask(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        schema: Mapping[str, Any] | None,
        form: str,
        timeout: float,
    ) -> ChatAnswer:
        """Ask in one form, without the parameters that the endpoint refuses."""
        api = self.provider.api
        fields = {"model": self._model, **({"stream": False} if api is OPENAI_API else {}), **self._extra}
        body = make_body(messages, sampling, form, schema, **fields)
        while True:
            fitted, as_uri = self._refused.fit(body), self._data_uri
            data = self._encode(fitted, as_uri)
            response, content = call_within(timeout, partial(self._post, data, timeout), self._endpoint)
            error, answer = self._read(response, content)
            if error is None:
                restored = api.restore(answer) if isinstance(answer, dict) else answer
                unsent = tuple(name for name in body if name not in fitted)
                return replace(read_choice(restored, form), unsent=unsent, raw=answer)
            if not as_uri and has_audio(messages) and _WANTS_URI.search(error.message):
                self._data_uri = True
            elif not self._refused.learn(error, body, fitted):
                raise self._explain(error)

    def _encode(self, fitted: Mapping[str, Any], as_uri: bool) -> bytes:
        """Return the bytes of a request in the provider's form.

        Raises:
            ChatRefused: there are more clips than the provider accepts.
        """
        wire = {name: value for name, value in fitted.items() if (name, value) != ("stream", False)}
        if as_uri:
            wire["messages"] = wrap_audio(wire["messages"])
        data = json.dumps(self.provider.api.translate(wire), ensure_ascii=False).encode("utf-8", "replace")
        most = self.provider.bytes
        if most and len(data) > most:
            raise ChatRefused(
                f"the request is {len(data) / 1e6:.1f} MB, but {self.provider.title} accepts at most "
                f"{most / 1e6:.0f} MB; judge an excerpt, or write audio: {{format: mp3}} into the judge's YAML file",
                for_all=False,
            )
        return data

    def _post(self, data: bytes, timeout: float) -> tuple[httpx.Response, bytes]:
        """Send a request; return the response, regardless of its status, and the part of its body that was read."""
        # The request asks only for encodings that `read_body` can decompress without keeping the whole body in memory.
        headers = {"Accept-Encoding": "gzip, deflate", "Content-Type": "application/json"}
        headers |= self.provider.api.make_headers(self._key) if self._key else {}
        request = self._client.build_request("POST", self._url, content=data, headers=headers, timeout=timeout)
        try:
            with end_after(timeout), follow(self._client, request) as response:
                if response.is_success:
                    return response, b"".join(read_body(response, LONGEST_BODY))
                return response, read_refusal(response)
        except httpx.TimeoutException:
            raise ChatBusy(describe_lateness(self._endpoint, timeout)) from None
        except httpx.HTTPError as error:
            reason = self._hide_key(str(error)) or type(error).__name__
            raise ChatBusy(f"the connection to {self._endpoint} failed ({reason})") from None

    @cached_property
    def _client(self) -> httpx.Client:
        """A single client for all calls; several threads may use it."""
        return end_reads(httpx.Client(limits=httpx.Limits(max_connections=None)))

    def _read(self, response: httpx.Response, content: bytes) -> tuple[HttpError | None, Any]:
        """Return the answer in a response, or the error that its status or its content reports."""
        if not response.is_success:
            return read_http_error(response.status_code, content, response.headers), None
        if count_values(content) > VALUES_MOST:
            raise ChatBusy(f"the response has more than {VALUES_MOST:,} values, too many for an answer", crowded=False)
        text = self._hide_key(content.decode("utf-8", "replace"))
        data = join_stream(text) if text.lstrip().startswith(("data:", "event:", ":")) else parse_body(text)
        return find_error(data), data

    def _explain(self, error: HttpError) -> Exception:
        """Return the exception for an error, as the caller should see it."""
        reason = self._hide_key(error.describe(self._endpoint))
        if error.status in PASSING or error.is_theirs:
            return ChatBusy(reason, retry_after=error.retry_after)
        if error.status in (401, 403):
            return ChatRefused(f"{reason}; set PODEVAL_JUDGE_KEY to a key that may use {self._model}", for_all=True)
        if error.status in (402, 404, 405) or error.status < 400:
            return ChatRefused(
                f"{reason}; check the endpoint's address, the model's name {self._model!r} and the provider "
                f"({self.provider.name})",
                for_all=True,
            )
        # A simpler form of the schema does not change the decision of a content filter.
        kind = ChatRefused if _FILTERED.search(error.message) else _BadRequest
        return kind(reason, for_all=False)

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


class _BadRequest(ChatRefused):
    """The endpoint rejects this request, but may accept a simpler request."""


# A chat model from a local GGUF file, in this process, through xllamacpp (llama.cpp).
#
# Answers fit a JSON schema because generation is constrained to it. Calls run one at a time and reuse nothing that
# earlier calls left in the cache, so a request has the same answer regardless of the order of the calls.

CONTEXT = 16_384
"""Default maximum number of tokens in a request and its answer: enough for an hour's script, within 8 GB of memory."""


class GgufChat:
    """A chat model from a GGUF file; see `podeval.models.chat.ChatModel`.

    Args:
        path: path of the file.
        context: maximum number of tokens in the request and the answer together.

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
        # The library also listens on loopback; a secret random key keeps other programs from using it.
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
            raise ChatRefused(
                f"podeval does not accept audio for {self._path.name}; choose another judge", for_all=False
            )
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
                f"the request does not fit into the {self._context} tokens for which {self._path.name} is loaded "
                f"({message}); increase context in the judge's YAML file as far as the model and the memory allow",
                for_all=False,
            )
        if error.get("code", 500) < 500:
            return ChatRefused(f"{self._path.name} refuses the request: {message}", for_all=False)
        return ChatBusy(f"{self._path.name} failed: {message}", crowded=False)


def load_gguf_chat(path: Path, context: int | None) -> GgufChat:
    """Load the model from a file, once per process.

    Raises:
        ModelMissing: see `GgufChat`.
    """
    stat = path.stat()
    return _load(path.resolve(), context or CONTEXT, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1)
def _load(path: Path, context: int, size: int, modified: int) -> GgufChat:
    return GgufChat(path, context)
