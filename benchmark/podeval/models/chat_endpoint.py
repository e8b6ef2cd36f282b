"""A chat model behind an OpenAI-compatible endpoint, through huggingface_hub's InferenceClient.

Three habits of the client are prevented here: sending this machine's Hugging Face token to any host when no key is
given; turning a JSON schema into the dialect of one server; waiting for ever for an answer that arrives in drips.
"""

import contextlib
import email.utils
import importlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from podeval.models.chat import ChatAnswer, ChatBusy, ChatRefused, Form, Message, Sampling
from podeval.models.chat_completion import call_within, describe_lateness, make_response_format, read_completion

_NO_KEY = "no-key"
"""Sent if there is no key: with an empty one the client would send the machine's Hugging Face token."""


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
        self._key = key
        self._extra = dict(extra or {})
        self.form = Form()

    def __repr__(self) -> str:
        return f"EndpointChat({self._model!r}, {self._endpoint!r})"

    def chat(
        self, messages: Sequence[Message], sampling: Sampling, schema: Mapping[str, Any] | None, timeout: float
    ) -> ChatAnswer:
        """Return one answer; see `podeval.models.chat.ChatModel`."""
        form = Form(self.form.name) if schema is not None else Form("text")
        refusal: ChatRefused | None = None
        while True:
            form_name = form.name
            try:
                answer = self._ask(messages, sampling, schema, form_name, timeout)
            except _BadRequest as refused:
                # The endpoint may reject the schema: ask in a simpler form, and report the first refusal.
                refusal = refusal or refused
                below = form.below()
                if below is None:
                    raise ChatRefused(str(refusal), for_all=False) from None
                form = Form(below)
                continue
            if schema is not None:
                self.form = Form(form_name)
            return answer

    def _ask(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        schema: Mapping[str, Any] | None,
        form: str,
        timeout: float,
    ) -> ChatAnswer:
        body = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "max_tokens": sampling.max_tokens,
            **self._extra,
        }
        asked_format = make_response_format(form, schema)
        raw = call_within(timeout, lambda: self._post(messages, body, asked_format, timeout), self._endpoint)
        return read_completion(self._hide_key(raw.decode("utf-8", "replace")), form)

    def _post(
        self,
        messages: Sequence[Message],
        body: Mapping[str, Any],
        response_format: Mapping[str, Any] | None,
        timeout: float,
    ) -> bytes:
        """Send a request and return the complete body of the response."""
        from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError, OfflineModeIsEnabled

        client = _make_client(self._endpoint, self._key or _NO_KEY, timeout, response_format)
        try:
            client.chat_completion([dict(message) for message in messages], model=self._model, extra_body=dict(body))
        except InferenceTimeoutError:
            raise ChatBusy(describe_lateness(self._endpoint, timeout)) from None
        except HfHubHTTPError as error:
            raise self._explain_failure(error.response) from None
        except OfflineModeIsEnabled:
            raise ChatRefused(
                f"{self._endpoint} is not asked while HF_HUB_OFFLINE is set; unset it", for_all=True
            ) from None
        except _list_transport_errors() as error:
            reason = self._hide_key(str(error)) or type(error).__name__
            raise ChatBusy(f"the connection to {self._endpoint} failed ({reason})") from None
        body_received: bytes = client.body
        return body_received

    def _explain_failure(self, response: Any) -> Exception:
        """Return the error that an HTTP status means for the caller."""
        status = int(response.status_code)
        message = self._hide_key(_read_error_message(response))
        reason = f"{self._endpoint} answered {status}" + (f": {message}" if message else "")
        if status == 429 or status in (408, 409, 425) or status >= 500:
            return ChatBusy(reason, retry_after=_read_retry_after(response.headers))
        if status in (401, 403):
            return ChatRefused(f"{reason}; set PODEVAL_JUDGE_KEY to a key that may use {self._model}", for_all=True)
        if status in (402, 404, 405):
            return ChatRefused(
                f"{reason}; check the endpoint's address, the model's name {self._model!r}", for_all=True
            )
        return _BadRequest(reason, for_all=False)

    def _hide_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


class _BadRequest(ChatRefused):
    """The endpoint rejects this request, but may accept a simpler one."""


def _make_client(endpoint: str, key: str, timeout: float, response_format: Mapping[str, Any] | None) -> Any:
    from huggingface_hub import InferenceClient

    class Client(InferenceClient):
        """Requests a schema as OpenAI's API does, and keeps the response body unchanged."""

        body = b""

        def _inner_post(self, request_parameters: Any, *, stream: bool = False) -> Any:
            if response_format is not None:
                request_parameters.json["response_format"] = dict(response_format)
            self.body = super()._inner_post(request_parameters, stream=False)
            # The client would convert the body to objects; here it is kept as it came.
            return b"{}"

    return Client(base_url=endpoint, api_key=key, timeout=timeout)


def _list_transport_errors() -> tuple[type[Exception], ...]:
    """Return the connection errors of the client's HTTP library: httpx2, or httpx before huggingface_hub 2."""
    errors: list[type[Exception]] = []
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            errors.append(importlib.import_module(name).TransportError)
    return tuple(errors)


def _read_error_message(response: Any) -> str:
    """Return the message of an error response in one line."""
    try:
        text = str(response.text)
    except Exception:
        return ""
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:300]


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from a number or a date."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
