"""Hugging Face through its own client, `InferenceClient.text_to_speech`, which supports its providers' formats.

The router's address (https://router.huggingface.co) selects the provider in the field `provider`, or the first one that
has the model; any other address is that of an Inference Endpoint. The client returns the audio in one piece.
"""

import inspect
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from podeval.models.http_errors import read_http_error
from podeval.systems.servers.connection import Send, ServerBusy, ServerError, ServerRefused, ServerResponse
from podeval.systems.servers.kinds.kind import ServerKind, SpeechRequest, Voice
from podeval.systems.servers.server_errors import KEY


@dataclass(frozen=True)
class HuggingFace(ServerKind):
    """Inference Providers and Inference Endpoints; see `ServerKind`."""

    name: ClassVar[str] = "huggingface"
    streams: ClassVar[bool] = False
    hosts: ClassVar[tuple[str, ...]] = ("router.huggingface.co",)

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`; there is no seed and no stream."""
        return SpeechRequest("", {"text": text, "model": self.model, **({"voice": voice} if voice else {})})

    @property
    def sender(self) -> Send | None:
        """See `ServerKind`; Hugging Face's client makes the request."""
        return self._send

    def _send(self, path: str, body: Mapping[str, Any], longest: float, tries: int) -> ServerResponse:
        from huggingface_hub import InferenceClient
        from huggingface_hub.errors import (  # type: ignore[attr-defined] # the first is httpx's, or its successor's
            HfHubHTTPError,
            HTTPError,
            InferenceTimeoutError,
        )

        key = os.environ.get(KEY, "").strip()
        if not key:
            raise ServerRefused(
                f"set {KEY} to a Hugging Face token; without it, the client would send the token saved on this machine"
            )
        parameters = inspect.signature(InferenceClient.text_to_speech).parameters
        arguments = {name: value for name, value in body.items() if name in parameters and name != "model"}
        more = {name: value for name, value in body.items() if name not in (*parameters, "provider")}
        is_router = httpx.URL(self.connection.url).host in self.hosts
        client = InferenceClient(
            self.model if is_router else self.connection.url,
            provider=body.get("provider"),
            token=key,
            timeout=min(longest, self.connection.timeout),
        )
        begin = time.perf_counter()
        try:
            sound = client.text_to_speech(**arguments, extra_body=more or None)
        except InferenceTimeoutError:
            raise ServerBusy(f"{self.connection.url} sent nothing for {self.connection.timeout:g} s") from None
        except HfHubHTTPError as error:
            response = error.response
            raise ServerError(read_http_error(response.status_code, response.content, response.headers)) from None
        except ValueError as error:
            raise ServerRefused(f"huggingface_hub cannot request {self.model}: {error}; check --model") from None
        except HTTPError as error:
            raise ServerBusy(f"the connection to {self.connection.url} was lost ({error})") from None
        seconds = time.perf_counter() - begin
        return ServerResponse(sound, {}, ((seconds, len(sound)),), seconds, tries)
