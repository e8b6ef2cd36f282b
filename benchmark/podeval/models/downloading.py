"""Read from servers through httpx, with limits on the size and duration of bodies.

Downloads resume, have a size limit, and are atomic; tenacity repeats failed attempts. Other code that talks to
third-party servers uses `read_body` to read bodies, `follow` to follow redirects, and `end_after` to end requests.
"""

import ssl
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from podeval.errors import BadInput
from podeval.files import explain_write_errors, hash_file

_HEADERS = {
    "User-Agent": "podeval (https://huggingface.co/podeval)",
    # Bytes are counted and hashed, and downloads are resumed, in the form in which the server stores them.
    "Accept-Encoding": "identity",
    "Connection": "close",
}
_MOST_REDIRECTS = 10
_LONGEST_PAUSE = 60.0
_PASSING = (408, 425, 429)
_GONE = (404, 410)
_INFLATED = ("gzip", "x-gzip", "deflate")

REFUSAL_BYTES = 64 * 2**10
"""Maximum number of bytes to read from the body of a refusal."""

SLOWEST = 10_000
"""Minimum speed of a download, in bytes per second."""

MOST_BYTES = 4 << 30
"""Default maximum size of a download in bytes."""

Watch = Callable[[int, int | None], None]
"""Function that receives the number of bytes so far, and the total if the server states it."""


KEY_HEADERS = ("x-api-key", "x-goog-api-key", "xi-api-key")
"""Headers that contain a key for a single server, in addition to `Authorization`."""


class Gone(BadInput):
    """The server answers, but does not have the file or no longer has it."""


class TooLarge(BadInput):
    """The file is larger than the caller's limit."""


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    most_bytes: int = MOST_BYTES,
    timeout: float = 30.0,
    tries: int = 4,
    wait: float = 1.0,
    watch: Watch | None = None,
    client: httpx.Client | None = None,
) -> Path:
    """Download a file; nothing is fetched if a file with the right content already exists.

    An interrupted download is kept next to the target as `.part`, and is resumed if the server supports ranges and the
    file is unchanged (`ETag` or `Last-Modified`, checked with `If-Range`).

    Args:
        url: an http or https address.
        to: path of the file to create.
        sha256: hash of the content, if it is known.
        most_bytes: maximum size of the file; a larger one is refused.
        timeout: maximum seconds without a byte; the whole download may take twice as long, plus the time that its bytes
            take at the speed `SLOWEST`.
        tries: number of attempts in case of transient failures: timeouts, broken connections, 429 and 5xx answers.
        wait: seconds before the second attempt, doubled before each further attempt, or `Retry-After` up to 60 s.
        watch: function that is called while bytes arrive.
        client: client for the requests; the default connects to any address.

    Raises:
        BadInput: the file is not available; the message gives the reason and the remedy. The error is `Gone` if the
            server does not have the file, and `TooLarge` if the file is larger than `most_bytes`.
    """
    if not url.startswith(("https://", "http://")):
        raise BadInput(f"{url} is not a web address; it must begin with https://")
    if to.is_file() and (sha256 is None or hash_file(to) == sha256):
        return to
    part = to.with_name(f"{to.name}.part")
    with explain_write_errors(to):
        to.parent.mkdir(parents=True, exist_ok=True)
    # Fetch the missing bytes with the caller's client or a new client.
    try:
        with nullcontext(client) if client else make_client() as session:
            _repeat(tries, wait)(_go_on, session, url, part, most_bytes, timeout, watch)
    except _Passing as trouble:
        raise BadInput(f"{url} could not be fetched after {tries} attempts ({trouble}); try again later") from None
    # Check the content before the file gets its name.
    if sha256 is not None and (digest := hash_file(part)) != sha256:
        part.unlink()
        _mark(part).unlink(missing_ok=True)
        raise BadInput(f"{url} is not the expected file: its SHA-256 is {digest[:16]}…, not {sha256[:16]}…")
    with explain_write_errors(to):
        part.replace(to)
        _mark(part).unlink(missing_ok=True)
    return to


def _repeat(tries: int, wait: float) -> Retrying:
    """Return a function that repeats attempts after temporary failures."""
    return Retrying(
        retry=retry_if_exception_type(_Passing),
        stop=stop_after_attempt(tries),
        wait=lambda state: _choose_pause(state, wait),
        reraise=True,
    )


def make_client(transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Create a client with podeval's headers and this machine's certificates; `download` follows redirects itself."""
    return end_reads(httpx.Client(headers=_HEADERS, transport=transport, verify=ssl.create_default_context()))


class _Passing(Exception):
    """A transient failure, after which another attempt may succeed."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def _choose_pause(state: RetryCallState, first: float) -> float:
    """Return the seconds until the next attempt: as requested by the server, or twice the previous pause."""
    error = state.outcome.exception() if state.outcome else None
    asked_for = error.retry_after if isinstance(error, _Passing) else None
    return min(_LONGEST_PAUSE, asked_for or first * 2.0 ** (state.attempt_number - 1))


def _go_on(client: httpx.Client, url: str, part: Path, most_bytes: int, timeout: float, watch: Watch | None) -> None:
    """Fetch the missing part of a file."""
    present = part.stat().st_size if part.is_file() else 0
    mark = _mark(part).read_text(encoding="utf-8") if present and _mark(part).is_file() else ""
    headers = {"Range": f"bytes={present}-", "If-Range": mark} if present and mark else {}
    try:
        request = client.build_request("GET", url, headers=headers, timeout=timeout)
        with end_after(2 * timeout) as deadline, follow(client, request) as answer:
            if answer.status_code == 416 and present:
                part.unlink()
                raise _Passing("the part downloaded earlier does not match the file on the server")
            _require_success(answer, url)
            goes_on = answer.status_code == 206
            begin = present if goes_on else 0
            length = answer.headers.get("Content-Length")
            total = begin + int(length) if length and length.isdecimal() else None
            if total is not None and total > most_bytes:
                raise TooLarge(
                    f"the file at {url} is {total / 1e6:.0f} MB, more than the limit of {most_bytes / 1e6:.0f} MB"
                )
            with explain_write_errors(part):
                file = part.open("ab" if goes_on else "wb")
                _mark(part).write_text(_identify(answer.headers), encoding="utf-8")
            with file:
                _copy(answer, file, begin, total, most_bytes, watch, url, deadline)
    except httpx.TooManyRedirects as error:
        raise BadInput(f"{url} {error}, which suggests an infinite loop; check the address") from None
    except httpx.TransportError as error:
        raise _Passing(str(error) or type(error).__name__) from None
    except (httpx.InvalidURL, ValueError) as error:
        # The name is invalid, for example because it contains circled digits, which cannot be in a header.
        raise BadInput(f"{url} is not an address that can be fetched ({error}); check it") from None


def _require_success(answer: httpx.Response, url: str) -> None:
    """Raise an error if the answer does not contain the file: either a transient or a final error."""
    status = answer.status_code
    if status in _PASSING or status >= 500:
        asked_for = answer.headers.get("Retry-After", "")
        raise _Passing(f"HTTP {status}", float(asked_for) if asked_for.isdecimal() else None)
    if not answer.is_success:
        kind = Gone if status in _GONE else BadInput
        raise kind(f"{url} answers HTTP {status} ({answer.reason_phrase}); check the address")


def _copy(
    answer: httpx.Response,
    file: IO[bytes],
    begin: int,
    total: int | None,
    most_bytes: int,
    watch: Watch | None,
    url: str,
    deadline: "Deadline",
) -> None:
    """Write the bytes as they arrive, so an interrupted download can be resumed."""
    done = begin
    for block in answer.iter_raw():
        done += len(block)
        deadline.left += len(block) / SLOWEST
        if done > most_bytes:
            raise TooLarge(f"the file at {url} is larger than the limit of {most_bytes / 1e6:.0f} MB")
        with explain_write_errors(Path(file.name)):
            file.write(block)
        if watch:
            watch(done, total)


def _identify(headers: httpx.Headers) -> str:
    """Return the validator of this version of the file for `If-Range`; weak ETags are not used."""
    tag = headers.get("ETag") or ""
    return (tag if tag.startswith('"') else "") or headers.get("Last-Modified") or ""


def _mark(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


class DeadlineExceeded(httpx.ReadTimeout):
    """The time limit for the server has passed, although bytes may have arrived."""


@dataclass
class Deadline:
    """The time left to wait for a server, in seconds."""

    left: float


_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def end_after(seconds: float) -> Iterator[Deadline]:
    """After this many seconds of waiting in total, end this thread's requests through clients prepared by `end_reads`.

    Raises:
        DeadlineExceeded: the server took longer than this in total, for connections, headers and bodies.
    """
    deadline = Deadline(seconds)
    token = _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.reset(token)


Client = TypeVar("Client", httpx.Client, httpx.HTTPTransport)


def end_reads(client: Client) -> Client:
    """Make the connections of a client or a transport obey `end_after`; return the client or transport."""
    # httpx limits only each single read, so headers sent at one byte per second never end; it has no option for a
    # backend.
    for transport in (client._transport, *client._mounts.values()) if isinstance(client, httpx.Client) else (client,):
        if isinstance(transport, httpx.HTTPTransport):
            pool: Any = transport._pool
            pool._network_backend = _EndingReads(pool._network_backend)
    return client


class _EndingReads:
    """A network backend or stream for httpcore whose calls obey `end_after`; the names are httpcore's."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def connect_tcp(self, *what: Any, timeout: float | None = None, **options: Any) -> "_EndingReads":
        """Connect to the server; later calls on the stream obey `end_after`."""
        return _EndingReads(_call(partial(self._inner.connect_tcp, *what, **options), timeout))

    def start_tls(self, *what: Any, timeout: float | None = None, **options: Any) -> "_EndingReads":
        """Start TLS; later calls on the stream obey `end_after`."""
        return _EndingReads(_call(partial(self._inner.start_tls, *what, **options), timeout))

    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        """Read the available bytes."""
        return _call(partial(self._inner.read, max_bytes), timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes."""
        _call(partial(self._inner.write, buffer), timeout)


def _call(call: Callable[..., Any], timeout: float | None) -> Any:
    """Make a call that waits for the network, for at most its timeout or the remaining time."""
    deadline = _deadline.get()
    if deadline is None:
        return call(timeout=timeout)
    begin = time.monotonic()
    try:
        if deadline.left > 0:
            return call(timeout=deadline.left if timeout is None else min(deadline.left, timeout))
    except Exception:
        if time.monotonic() - begin < deadline.left:
            raise
    finally:
        deadline.left -= time.monotonic() - begin
    raise DeadlineExceeded("the complete response did not arrive in time")


def _find_origin(request: httpx.Request) -> tuple[str, str, int | None]:
    return request.url.scheme, request.url.host, request.url.port


@contextmanager
def follow(client: httpx.Client, request: httpx.Request) -> Iterator[httpx.Response]:
    """Follow redirects to the final answer, and yield it with its body unread; bodies of redirects are never read.

    A key is never sent to another server: httpx drops `Authorization`, and this function drops the other headers that
    contain keys.

    Raises:
        httpx.TooManyRedirects: the redirects do not end.
    """
    for _ in range(_MOST_REDIRECTS + 1):
        answer = client.send(request, stream=True, follow_redirects=False)
        try:
            if answer.next_request is None:
                yield answer
                return
        finally:
            answer.close()
        following = answer.next_request
        if _find_origin(following) != _find_origin(request):
            for name in KEY_HEADERS:
                following.headers.pop(name, None)
        request = following
    raise httpx.TooManyRedirects(f"redirects more than {_MOST_REDIRECTS} times", request=request)


def read_body(answer: httpx.Response, most_bytes: int) -> Iterator[bytes]:
    """Yield a body as it arrives, decompressed; if it is too large, one byte more than the limit is yielded.

    Raises:
        httpx.DecodingError: the body is damaged, or its compression was not requested.
    """
    coding = answer.headers.get("Content-Encoding", "").strip().lower()
    if coding not in ("", "identity", *_INFLATED):
        raise httpx.DecodingError(f"the response is compressed by {coding[:20]}, which was not requested")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if coding in _INFLATED else None
    left = most_bytes + 1
    for part in answer.iter_raw():
        try:
            piece = inflate.decompress(part, left) if inflate else part[:left]
        except zlib.error as error:
            raise httpx.DecodingError(f"the response is not {coding} ({error})") from None
        left -= len(piece)
        yield piece
        if not left:
            return
    if inflate and not inflate.eof and left <= most_bytes:
        raise httpx.DecodingError(f"the response ends before its {coding} data is complete")


def read_refusal(answer: httpx.Response) -> bytes:
    """Read the beginning of a body that explains a refusal, as far as it arrives and is readable."""
    content = bytearray()
    with suppress(httpx.HTTPError):
        for part in read_body(answer, REFUSAL_BYTES):
            content += part
    return bytes(content)
