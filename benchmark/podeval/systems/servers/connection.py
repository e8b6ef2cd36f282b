"""Send requests to a measured server: retry them while the server reports a temporary failure, time the responses chunk
by chunk, and never reveal a secret.

tenacity repeats requests that may succeed later (429 and 5xx, a broken connection, a truncated body); a pause requested
with `Retry-After` is respected up to a minute. The key is read only from the environment.
"""

import contextlib
import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from podeval.errors import BadInput
from podeval.models.downloading import DeadlineExceeded, end_after, end_reads, read_body, read_refusal
from podeval.models.http_errors import HttpError, RefusedFields, find_error, leave_out, read_http_error
from podeval.systems.servers.server_errors import (
    KEY,
    RequestRefused,
    ServerBroke,
    ServerBusy,
    ServerError,
    ServerRefused,
    explain_error,
)
from podeval.systems.servers.streaming import MOST_AT_ONCE, RequestPace
from podeval.systems.speech import OwnMaker, Product, SpeechFailed
from podeval.text.json_text import parse_json

__all__ = [
    "KEY",
    "RequestRefused",
    "ServerBroke",
    "ServerBusy",
    "ServerConnection",
    "ServerError",
    "ServerRefused",
    "ServerResponse",
    "ServerSystem",
    "require_no_error",
]

TRIES = 5
LONGEST_PAUSE = 60.0
"""Maximum pause in seconds; if a server requests a longer pause, the request is abandoned."""
MOST_BYTES = 512 * 2**20
"""Maximum number of bytes in one response."""
JSON_VALUES_MOST = 1_000_000
"""Maximum number of JSON values in a response or an event; audio is a single value."""
MOST_PIECES = 1_000_000
"""Maximum number of pieces in one response; each is stored with its time."""
FACT_BYTES = 2**20
"""Maximum size, in bytes, of an answer in which a server describes itself."""
SECONDS = 60.0
"""Maximum seconds of audio in a response unless the caller specifies a different number."""
SLOWEST = 10.0
"""Maximum time for audio to arrive, as a multiple of its length, in addition to the timeout."""

Answer = TypeVar("Answer")
Send = Callable[[str, Mapping[str, Any], float, int], "ServerResponse"]
"""Function that sends a request once, given its path, its body, a time limit in seconds, and the attempt number."""

_GROWING_PAUSE = wait_exponential(multiplier=0.5, max=LONGEST_PAUSE)
_REPLACED = {
    "response_format": (lambda value: {"response_format": "pcm"}, lambda value: {"response_format": "flac"}),
    "stream_format": (leave_out,),
    "stream": (leave_out,),
    "seed": (leave_out,),
}
"""Replacements for refused fields: an equivalent form or, for optional fields, nothing."""
_COST_HEADERS = ("x-cost", "x-request-cost", "x-litellm-response-cost")


@dataclass(frozen=True)
class ServerResponse:
    """A complete response.

    Attributes:
        body: the bytes.
        headers: headers of the response.
        arrivals: arrival times, in seconds since the request was sent, each with the number of bytes received.
        seconds: seconds from the request to the end of the response.
        tries: number of attempts; the times are those of the last attempt.
    """

    body: bytes
    headers: Mapping[str, str]
    arrivals: tuple[tuple[float, int], ...]
    seconds: float
    tries: int

    @property
    def cost(self) -> float | None:
        """The cost of the request as stated by the server, in its own currency; None if not stated."""
        for name in _COST_HEADERS:
            with contextlib.suppress(ValueError, KeyError):
                return float(self.headers[name])
        return None


@dataclass(frozen=True)
class ServerConnection:
    """A server, identified by its base URL.

    Attributes:
        url: base URL, to which `/audio/speech` and similar paths are added.
        timeout: seconds without a byte after which a request counts as failed; a response that keeps arriving is
            abandoned after this time plus ten times the length of the audio.
        pace: the limits on the rate of requests and on the number in flight.
        tries: maximum number of attempts for a request.
        sleep: function that waits between attempts.
        refused: the fields that the server has refused so far.
        key_header: the header that contains the key.
        key_prefix: the text before the key in this header.
    """

    url: str
    timeout: float = 120.0
    pace: RequestPace = field(default_factory=lambda: RequestPace(0))
    tries: int = TRIES
    sleep: Callable[[float], None] = time.sleep
    refused: RefusedFields = field(default_factory=lambda: RefusedFields(_REPLACED))
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise BadInput(f"--server takes the base URL of a server, such as http://localhost:8000/v1, not {self.url}")
        if url.userinfo or url.query:
            raise BadInput(f"the server's address contains a secret or a query; give {KEY} in the environment instead")

    def require(self) -> None:
        """Refuse to start if no server is listening, and open the connections before any requests are timed.

        Raises:
            BadInput: nothing answers at the address.
        """
        try:
            self.pace.ask_each(lambda number: self._read_fact(self.url), range(self.pace.at_once))
        except httpx.HTTPError as error:
            reason = self.hide_key(str(error)) or type(error).__name__
            raise BadInput(
                f"no server answers at {self.url} ({reason}); start the server, or check the address"
            ) from None

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[ServerResponse], Answer],
        seconds: float = SECONDS,
        send: "Send | None" = None,
    ) -> tuple[Answer, ServerResponse]:
        """Send a request as JSON and read the response, retrying while the server reports a temporary failure.

        Args:
            path: path below the base URL.
            body: the body of the request; a field that the server refuses is replaced or omitted.
            read: function that reads a complete response, or raises `ServerBroke` if it is invalid.
            seconds: maximum seconds of audio in the response.
            send: function that sends the request once in place of this connection, for a server with its own client.

        Raises:
            ServerBusy: the server was down or overloaded and remained so.
            SpeechFailed: this request is refused, or no attempt returned a complete response.
            RequestRefused: the server refuses one of our fields.
            ServerRefused: the server will not answer any of our requests because the key, the path, the model or the
                voice is wrong.
        """
        return self.repeat(lambda tries: self._ask(path, body, read, seconds, tries, send))

    def repeat(self, ask: Callable[[int], Answer]) -> Answer:
        """Return the result of a request, retrying it while the server reports a temporary failure; `ask` receives the
        attempt number.
        """
        tried_enough = stop_after_attempt(self.tries)
        retrying = Retrying(
            retry=retry_if_exception_type((ServerBusy, ServerBroke)),
            stop=lambda state: tried_enough(state) or (_asked_pause(state) or 0.0) > LONGEST_PAUSE,
            wait=lambda state: max(_GROWING_PAUSE(state), _asked_pause(state) or 0.0),
            before_sleep=lambda state: self.pace.hold(_asked_pause(state) or 0.0),
            sleep=self.sleep,
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                return ask(attempt.retry_state.attempt_number)
        raise AssertionError("tenacity either returns or raises")

    def post_form(self, path: str, data: Mapping[str, str], files: Mapping[str, tuple[str, bytes, str]]) -> Any:
        """Send a form with files once, and return the answer as JSON.

        Args:
            path: path below the base URL.
            data: the fields of the form.
            files: names, contents and types of files, by field.

        Raises:
            PodevalError: the request is refused, or the server fails; see `post`.
        """
        address = f"{self.url.rstrip('/')}/{path}"
        self.pace.wait()
        try:
            response = self._client.post(address, data=dict(data), files=dict(files), headers=self.headers)
        except httpx.HTTPError as error:
            reason = self.hide_key(str(error)) or type(error).__name__
            raise ServerBusy(f"the connection to {address} was lost ({reason})") from None
        if not response.is_success:
            raise self.explain(read_http_error(response.status_code, response.content, response.headers), path, data)
        return require_no_error(ServerResponse(response.content, dict(response.headers), (), 0.0, 1))

    def get(self, path: str, *, at_root: bool = False) -> Any:
        """Return the answer at a path as JSON; None if there is no JSON.

        Args:
            path: path below the base URL.
            at_root: whether the path is relative to the server's root, next to `/v1`.
        """
        base = self.url.rstrip("/")
        try:
            return json.loads(self._read_fact(f"{base.removesuffix('/v1') if at_root else base}/{path}"))
        except (httpx.HTTPError, ValueError, RecursionError):
            return None

    def _read_fact(self, address: str) -> bytes:
        """Read the answer at an address; empty if the request is refused."""
        with end_after(10.0), self._client.stream("GET", address, headers=self.headers, timeout=10.0) as response:
            if response.status_code != 200:
                read_refusal(response)  # The body is read to its end, so that the connection can be reused.
                return b""
            return b"".join(read_body(response, FACT_BYTES))

    def list_refused(self) -> dict[str, Any]:
        """Return an output's details about refused fields, in the server's words; empty if none was refused."""
        return {"refused_fields": dict(self.refused.words)} if self.refused.words else {}

    def hide_key(self, text: str) -> str:
        """Return a text without the key."""
        key = os.environ.get(KEY, "").strip()
        return text.replace(key, "[key]") if key else text

    def _ask(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[ServerResponse], Answer],
        seconds: float,
        tries: int,
        send: "Send | None",
    ) -> tuple[Answer, ServerResponse]:
        """Send a request, and repeat it without each field that is refused."""
        while True:
            fitted = self.refused.fit(body)
            self.pace.wait()
            try:
                response = (send or self._post_once)(path, fitted, self.timeout + SLOWEST * seconds, tries)
                return read(response), response
            except ServerError as raised:
                if not self.refused.learn(raised.error, body, fitted):
                    raise self.explain(raised.error, path, fitted) from None

    def explain(self, error: HttpError, path: str, sent: Mapping[str, Any]) -> Exception:
        """Explain what an error means for the run, given the path below the base URL and the fields that were sent."""
        return explain_error(error, self.hide_key(error.describe(f"{self.url.rstrip('/')}/{path}")), sent)

    def _post_once(self, path: str, body: Mapping[str, Any], longest: float, tries: int) -> ServerResponse:
        address = f"{self.url.rstrip('/')}/{path}"
        arrivals: list[tuple[float, int]] = []
        content = bytearray()
        client, headers = self._client, self.headers  # not timed, because loading certificates is not the server's work
        begin = time.perf_counter()
        try:
            with end_after(longest), client.stream("POST", address, json=dict(body), headers=headers) as response:
                if not response.is_success:
                    # The status is valid even if the body is truncated or is not in the stated encoding.
                    reason = read_refusal(response) or response.headers.get("location", "").encode()
                    raise ServerError(read_http_error(response.status_code, reason, response.headers))
                for part in read_body(response, MOST_BYTES):
                    arrivals.append((time.perf_counter() - begin, len(part)))
                    content += part
                    if len(content) > MOST_BYTES:
                        raise SpeechFailed(
                            f"{address} sent more than {MOST_BYTES // 2**20} MiB; request less audio at a time"
                        )
                    if len(arrivals) > MOST_PIECES:
                        raise SpeechFailed(f"{address} sent its answer in more than {MOST_PIECES:,} pieces")
                seconds = time.perf_counter() - begin
        except httpx.ConnectError as error:
            raise ServerBusy(
                f"no server answers at {self.url} ({error}); start the server, or check the address"
            ) from None
        except DeadlineExceeded:
            raise ServerBusy(f"{address} did not finish its answer within {longest:g} s") from None
        except httpx.TimeoutException:
            raise ServerBusy(f"{address} sent nothing for {self.timeout:g} s") from None
        except httpx.HTTPError as error:
            reason = self.hide_key(str(error)) or type(error).__name__
            raise ServerBroke(f"the connection to {address} was lost ({reason})") from None
        return ServerResponse(bytes(content), dict(response.headers), tuple(arrivals), seconds, tries)

    @cached_property
    def _client(self) -> httpx.Client:
        """The client; it keeps its connections open, so it connects to a server only once."""
        timeout = httpx.Timeout(self.timeout, connect=min(self.timeout, 10.0))
        return end_reads(httpx.Client(timeout=timeout, limits=httpx.Limits(max_keepalive_connections=MOST_AT_ONCE)))

    @property
    def headers(self) -> dict[str, str]:
        """Headers sent with every request, including the key."""
        # No compression is accepted, so that the arriving bytes are audio and can be timed.
        key = os.environ.get(KEY, "").strip()
        if not key.isascii():
            raise ServerRefused(f"{KEY} contains characters that are not allowed in a key; set it again")
        return {"Accept-Encoding": "identity", **({self.key_header: f"{self.key_prefix}{key}"} if key else {})}


@dataclass
class ServerSystem(OwnMaker[Product]):
    """A system behind a server, opened by `podeval run --server`.

    Attributes:
        connection: the connection to the server.
        model: the name of the model on the server.
        options: the command options that `open` takes, by name; other options are refused.
    """

    connection: ServerConnection
    model: str
    options: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def open(cls, connection: ServerConnection, model: str, *_: Any, **options: Any) -> "ServerSystem":
        """Open a model on a server.

        Args:
            connection: the connection to the server.
            model: the model's name on the server.
            options: the options by name; `voice` and `field` are sequences as written on the command line, `stream` and
                `clone` are bools, and `server_kind` and `dialogue` are words.

        Raises:
            BadInput: an option does not fit the server.
        """


def require_no_error(response: ServerResponse) -> Any:
    """Return the data in a JSON response; None if it is not JSON.

    Raises:
        ServerError: the response reports an error although its status indicates success.
    """
    data = None
    with contextlib.suppress(ValueError):
        data = parse_json(response.body, JSON_VALUES_MOST)
    if error := find_error(data):
        raise ServerError(error)
    return data


def _asked_pause(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, ServerBusy) else None
