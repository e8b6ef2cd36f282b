"""A chat model behind an OpenAI-compatible endpoint.

A response is judged by its status, whatever its body is. A parameter of ours that the endpoint refuses, such as `seed`
or `max_tokens`, is left out or renamed once; that is remembered, and stands in the record of every answer as `unsent`.
An answer that arrives in drips is not waited for longer than the timeout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from podeval.models.chat import (
    ChatAnswer,
    ChatBusy,
    ChatRefused,
    Form,
    Message,
    Sampling,
    call_within,
    describe_lateness,
    make_response_format,
    read_completion,
)
from podeval.models.http_errors import PASSING, HttpError, RefusedFields, find_error, leave_out, read_http_error

_REPLACED = {
    "seed": (leave_out,),
    "top_p": (leave_out,),
    "max_tokens": (lambda value: {"max_completion_tokens": value}, leave_out),
    "temperature": (leave_out,),
}
"""What is sent in the place of refused parameters: none of them changes the question, only how an answer is drawn."""


class EndpointChat:
    """A chat model at an endpoint.

    Args:
        model: its name there.
        endpoint: base URL, to which `/chat/completions` is added.
        key: sent as a bearer token; never shown.
        extra: more fields of the request body.
    """

    at_once: int | None = None

    def __init__(self, model: str, endpoint: str, *, key: str | None = None, extra: Mapping[str, Any] | None = None):
        self._model = model
        self._endpoint = endpoint
        # The address of a server alone is taken for that of its API, as clients of Hugging Face do.
        self._url = f"{endpoint.rstrip('/')}{'' if urlsplit(endpoint).path.strip('/') else '/v1'}/chat/completions"
        self._key = key
        self._extra = dict(extra or {})
        self.form = Form()
        self._refused = RefusedFields({name: ways for name, ways in _REPLACED.items() if name not in self._extra})

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer; see `podeval.models.chat.ChatModel`."""
        ladder = Form.LADDER[Form.LADDER.index(self.form.name) :] if schema is not None else ("text",)
        refusal: ChatRefused | None = None
        for form in ladder:
            try:
                answer = self._ask(messages, sampling, schema, form, timeout)
            except _BadRequest as refused:
                # The endpoint may reject the schema: ask in a simpler form, and report the first refusal.
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
        body = {
            "model": self._model,
            "messages": [dict(message) for message in messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "max_tokens": sampling.max_tokens,
            "response_format": make_response_format(form, schema),
            **self._extra,
        }
        body = {name: value for name, value in body.items() if value is not None}
        while True:
            sent = self._refused.fit(body)
            response = call_within(timeout, partial(self._post, sent, timeout), self._endpoint)
            error = self._find_error(response)
            if error is None:
                answer = read_completion(self._hide_key(response.content.decode("utf-8", "replace")), form)
                return replace(answer, unsent=tuple(name for name in body if name not in sent))
            if not self._refused.learn(error, body, sent):
                raise self._explain(error)

    def _post(self, body: Mapping[str, Any], timeout: float) -> httpx.Response:
        """Send a request and return the complete response, whatever its status is."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            return self._client.post(self._url, json=dict(body), headers=headers, timeout=timeout)
        except httpx.TimeoutException:
            raise ChatBusy(describe_lateness(self._endpoint, timeout)) from None
        except httpx.HTTPError as error:
            reason = self._hide_key(str(error)) or type(error).__name__
            raise ChatBusy(f"the connection to {self._endpoint} failed ({reason})") from None

    @cached_property
    def _client(self) -> httpx.Client:
        """One client for all calls, which several threads may use."""
        return httpx.Client(follow_redirects=True, limits=httpx.Limits(max_connections=None))

    def _find_error(self, response: httpx.Response) -> HttpError | None:
        """Return the error of a response, by its status, or with a good status by what it says; None for an answer."""
        if not response.is_success:
            return read_http_error(response.status_code, response.content, response.headers)
        try:
            data = response.json()
        except (ValueError, RecursionError):
            return None
        return None if isinstance(data, dict) and data.get("choices") else find_error(data)

    def _explain(self, error: HttpError) -> Exception:
        """Return the exception that an error means for the caller."""
        reason = self._hide_key(error.describe(self._endpoint))
        if error.status in PASSING or error.is_theirs:
            return ChatBusy(reason, retry_after=error.retry_after)
        if error.status in (401, 403):
            return ChatRefused(f"{reason}; set PODEVAL_JUDGE_KEY to a key that may use {self._model}", for_all=True)
        if error.status in (402, 404, 405) or error.status < 400:
            return ChatRefused(
                f"{reason}; check the endpoint's address, the model's name {self._model!r}", for_all=True
            )
        return _BadRequest(reason, for_all=False)

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


class _BadRequest(ChatRefused):
    """The endpoint rejects this request, but may accept a simpler one."""
