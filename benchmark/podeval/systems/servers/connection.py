"""Requests to a server that is measured: patient with its troubles, timed chunk by chunk, never with a secret shown.

tenacity repeats what may succeed later (429 and 5xx, a connection that breaks, a body that ends early); what a server
asks for by `Retry-After` is waited for up to a minute. The key comes from the environment alone.
"""

import contextlib
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from podeval.errors import BadInput, PodevalError
from podeval.models.http_errors import PASSING, HttpError, RefusedFields, find_error, leave_out, read_http_error
from podeval.systems.speech import Ask, Product, SpeechFailed

KEY = "PODEVAL_SERVER_KEY"
"""Environment variable with the server's key, sent as bearer token."""

TRIES = 5
LONGEST_PAUSE = 60.0
"""Seconds; a server that asks for a longer pause is given up for this item."""
MOST_BYTES = 512 * 2**20
"""Of one response."""

Answer = TypeVar("Answer")

_GROWING_PAUSE = wait_exponential(multiplier=0.5, max=LONGEST_PAUSE)
_CONTENT = ("model", "input", "voice", "messages")
"""Fields of a request that are not podeval's own choice."""
_REPLACED = {
    "response_format": (lambda value: {"response_format": "pcm"}, lambda value: {"response_format": "flac"}),
    "stream_format": (leave_out,),
    "stream": (leave_out,),
    "seed": (leave_out,),
}
"""What is sent in the place of refused fields: other forms without loss, and nothing for what need not be stated."""
_UNKNOWN_NAME = re.compile(
    r"(unknown|invalid|no such|unsupported) (voice|speaker|model)\b"
    r"|\b(voice|speaker|model)\b.{0,40}(not found|unknown|invalid|not supported|not available|does not exist)",
    re.IGNORECASE,
)
"""What servers say of a voice or a model that they do not have."""
_NO_FORMAT = (406, 415)
"""Statuses that refuse the form of a request or of the answer it asks for, whatever is said about it."""
_COST_HEADERS = ("x-cost", "x-request-cost", "x-litellm-response-cost")


class ServerBusy(PodevalError):
    """The server is not there, too slow or too busy: no fault of what was asked, and worth a later try.

    Args:
        reason: as a sentence.
        retry_after: seconds for which the server asks to be left alone.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ServerRefused(BadInput):
    """The server will take no request of ours: the address, the model, the voice or the key is wrong."""


class RequestRefused(PodevalError):
    """The server refuses a parameter or a format of our request: our fault, and never the system's."""


class ServerError(Exception):
    """The server answered with an error, by its status or in the body of a response.

    Args:
        error: what it says.
    """

    def __init__(self, error: HttpError) -> None:
        super().__init__(error.message)
        self.error = error


class ServerBroke(SpeechFailed):
    """The server answered with less than a whole answer; if another try does not mend it, it is the system's fault."""


@dataclass(frozen=True)
class ServerResponse:
    """A whole response.

    Attributes:
        body: its bytes.
        headers: as sent.
        arrivals: when bytes came, in seconds since the request was sent, with how many there were.
        seconds: from the request to the end.
        tries: how many requests it took; the times are of the last.
    """

    body: bytes
    headers: Mapping[str, str]
    arrivals: tuple[tuple[float, int], ...]
    seconds: float
    tries: int

    @property
    def cost(self) -> float | None:
        """What the server says that the request cost, in its own currency; None where it does not say."""
        for name in _COST_HEADERS:
            with contextlib.suppress(ValueError, KeyError):
                return float(self.headers[name])
        return None


class RequestPace:
    """Keeps requests apart, so that there are no more than so many a minute.

    Args:
        per_minute: 0 for no limit.
        clock: seconds.
        sleep: waits.
    """

    def __init__(
        self,
        per_minute: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next, self._clock, self._sleep = 0.0, clock, sleep

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
            now = self._next
        self._next = now + self._gap


@dataclass(frozen=True)
class ServerConnection:
    """A server, by its base URL.

    Attributes:
        url: to which `/audio/speech` and the like are added.
        timeout: seconds without a byte after which a request has failed.
        pace: keeps requests apart.
        tries: how often a request is made at most.
        sleep: waits between tries.
        refused: the fields that the server has refused so far.
    """

    url: str
    timeout: float = 120.0
    pace: RequestPace = field(default_factory=lambda: RequestPace(0))
    tries: int = TRIES
    sleep: Callable[[float], None] = time.sleep
    refused: RefusedFields = field(default_factory=lambda: RefusedFields(_REPLACED))

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise BadInput(f"--server takes the base URL of a server, such as http://localhost:8000/v1, not {self.url}")
        if url.userinfo or url.query:
            raise BadInput(f"the server's address holds a secret or a query; give {KEY} in the environment instead")

    def require(self) -> None:
        """Refuse to start where nobody listens.

        Raises:
            BadInput: nothing answers at the address, whatever it would answer.
        """
        try:
            self._client.get(self.url, headers=self._headers(), timeout=10.0)
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
    ) -> tuple[Answer, ServerResponse]:
        """Send a request as JSON and read what comes, again while the server is in trouble.

        Args:
            path: below the base URL.
            body: the body of the request; a field that the server refuses is replaced or left out.
            read: makes something of a whole response; raises `ServerBroke` where it is none.

        Raises:
            ServerBusy: the server is down or overloaded, and stayed so.
            SpeechFailed: this request is refused, or nothing whole came back however often it was made.
            RequestRefused: the server refuses a field of ours.
            ServerRefused: no request of ours will be answered: the key, the path, the model or the voice is wrong.
        """
        tried_enough = stop_after_attempt(self.tries)
        retrying = Retrying(
            retry=retry_if_exception_type((ServerBusy, ServerBroke)),
            stop=lambda state: tried_enough(state) or (_asked_pause(state) or 0.0) > LONGEST_PAUSE,
            wait=lambda state: max(_GROWING_PAUSE(state), _asked_pause(state) or 0.0),
            sleep=self.sleep,
            reraise=True,
        )
        tries = 0
        for attempt in retrying:
            with attempt:
                tries += 1
                return self._ask(path, body, read, tries)
        raise AssertionError("tenacity returns or raises")

    def get(self, path: str) -> Any:
        """Return what a path answers as JSON; None where it does not."""
        try:
            response = self._client.get(f"{self.url.rstrip('/')}/{path}", headers=self._headers(), timeout=10.0)
            return response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError, RecursionError):
            return None

    def list_refused(self) -> dict[str, Any]:
        """Return what details of an output say of refused fields, with the words of the server; nothing without any."""
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
        tries: int,
    ) -> tuple[Answer, ServerResponse]:
        """Ask once, and again without a field that is refused."""
        while True:
            fitted = self.refused.fit(body)
            self.pace.wait()
            try:
                response = self._post_once(path, fitted, tries)
                return read(response), response
            except ServerError as raised:
                if not self.refused.learn(raised.error, body, fitted):
                    raise self._explain(raised.error, path, fitted) from None

    def _post_once(self, path: str, body: Mapping[str, Any], tries: int) -> ServerResponse:
        address = f"{self.url.rstrip('/')}/{path}"
        arrivals: list[tuple[float, int]] = []
        parts: list[bytes] = []
        client, headers = self._client, self._headers()  # before the clock: loading certificates is no work of theirs
        begin = time.perf_counter()
        try:
            with client.stream("POST", address, json=dict(body), headers=headers) as response:
                if not response.is_success:
                    # Its status counts even if its body breaks off or is not in the encoding that it states.
                    content = response.headers.get("location", "").encode()
                    with contextlib.suppress(httpx.HTTPError):
                        content = response.read() or content
                    raise ServerError(read_http_error(response.status_code, content, response.headers))
                size = 0
                for part in response.iter_bytes():
                    arrivals.append((time.perf_counter() - begin, len(part)))
                    parts.append(part)
                    size += len(part)
                    if size > MOST_BYTES:
                        raise SpeechFailed(f"{address} sent more than {MOST_BYTES // 2**20} MiB; ask for less at once")
                seconds = time.perf_counter() - begin
        except httpx.ConnectError as error:
            raise ServerBusy(
                f"no server answers at {self.url} ({error}); start the server, or check the address"
            ) from None
        except httpx.TimeoutException:
            raise ServerBusy(f"{address} sent nothing for {self.timeout:g} s") from None
        except httpx.HTTPError as error:
            reason = self.hide_key(str(error)) or type(error).__name__
            raise ServerBroke(f"the connection to {address} broke ({reason})") from None
        return ServerResponse(b"".join(parts), dict(response.headers), tuple(arrivals), seconds, tries)

    @cached_property
    def _client(self) -> httpx.Client:
        """One client, whose connection is kept open: who listens to a server greets it once."""
        return httpx.Client(timeout=httpx.Timeout(self.timeout, connect=min(self.timeout, 10.0)))

    def _headers(self) -> dict[str, str]:
        # Without compression, so that what arrives is audio and can be timed.
        key = os.environ.get(KEY, "").strip()
        if not key.isascii():
            raise ServerRefused(f"{KEY} contains characters that no key has; set it again")
        return {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}

    def _explain(self, error: HttpError, path: str, sent: Mapping[str, Any]) -> Exception:
        """Return what an error means for the run."""
        status, reason = error.status, self.hide_key(error.describe(f"{self.url}/{path}"))
        if status in PASSING:
            return ServerBusy(reason, error.retry_after)
        if error.is_theirs:
            return ServerBroke(reason)
        if status in (401, 403):
            return ServerRefused(f"{reason}; set {KEY} in the environment to a key that may use the model")
        if status in (402, 404, 405, 410) or status < 400:
            return ServerRefused(f"{reason}; check the server's address (it ends in /v1 for most) and --model")
        if error.fields & {"model", "voice", "speaker"} or _UNKNOWN_NAME.search(error.message):
            return ServerRefused(f"{reason}; check --model and --voice")
        # Its words may say "audio" of the person's recording and "stream" of its own.
        theirs = (*_CONTENT, *(() if error.fields else ("audio", "stream")))
        asked = {"input_audio": None, **sent, **(sent["audio"] if isinstance(sent.get("audio"), Mapping) else {})}
        ours = {name: value for name, value in asked.items() if name not in theirs}
        return RequestRefused(reason) if status in _NO_FORMAT or error.names(ours) else SpeechFailed(reason)


@dataclass
class ServerSystem(ABC):
    """A system behind a server, opened by `podeval run --server`: an `OutputMaker`.

    Attributes:
        connection: the connection to the server.
        model: the name of the model there.
        options: the options of the command that `open` takes, by their names; another one is refused.
    """

    connection: ServerConnection
    model: str
    options: ClassVar[tuple[str, ...]]
    at_once = 1

    @classmethod
    @abstractmethod
    def open(cls, connection: ServerConnection, model: str, *_: Any, **options: Any) -> "ServerSystem":
        """Open a model of a server.

        Args:
            connection: the connection to the server.
            model: the model's name there.
            options: the options by name; `voice` is a sequence as written on the command line, `stream` a bool.

        Raises:
            BadInput: an option does not fit the server.
        """

    @property
    @abstractmethod
    def generation(self) -> dict[str, Any]:
        """Everything that changes what it makes, as far as a client knows it."""

    @abstractmethod
    def make(self, asks: Sequence[Ask], seed: int) -> Sequence[Product]:
        """Make something of each item; see `OutputMaker.make`."""


def require_no_error(response: ServerResponse) -> Any:
    """Return the data of a response in JSON; None if it is not JSON.

    Raises:
        ServerError: it states an error, although the status of the response is a good one.
    """
    data = None
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(response.body)
    if error := find_error(data):
        raise ServerError(error)
    return data


def _asked_pause(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, ServerBusy) else None
