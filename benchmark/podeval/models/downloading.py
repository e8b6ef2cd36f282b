"""Download files by httpx: downloads resume, have a size limit, and are atomic; tenacity repeats failed attempts."""

import hashlib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from podeval.errors import BadInput
from podeval.files import explain_write_errors

_HEADERS = {
    "User-Agent": "podeval (https://huggingface.co/podeval)",
    # Bytes are counted, hashed and gone on from as the server has them.
    "Accept-Encoding": "identity",
    "Connection": "close",
}
_MOST_REDIRECTS = 10
_LONGEST_PAUSE = 60.0
_PASSING = (408, 425, 429)
_GONE = (404, 410)

MOST_BYTES = 4 << 30
"""Default limit of a download in bytes."""

Watch = Callable[[int, int | None], None]
"""Called with the bytes fetched so far, and the total where the server gives it."""


class Gone(BadInput):
    """The server answers, but does not have the file, or no longer has it."""


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
    """Download a file; nothing is fetched where a file with the right content is there already.

    An interrupted download stays beside the goal as `.part`, and is resumed where the server supports ranges and the
    file is unchanged (`ETag` or `Last-Modified`, by `If-Range`).

    Args:
        url: an http or https address.
        to: path of the file to make.
        sha256: hash of the content, where one is recorded.
        most_bytes: refuse a larger file.
        timeout: seconds without a byte.
        tries: attempts at transient failures: timeouts, broken connections, 429 and 5xx answers.
        wait: seconds before the second attempt, doubled before each further one; `Retry-After` has precedence, up to 60
            s.
        watch: called while bytes arrive.
        client: sends the requests; the default goes to any address.

    Raises:
        BadInput: the file cannot be had; the message says why and what to do. `Gone` where the server does not have it,
            `TooLarge` where it is larger than `most_bytes`.
    """
    if not url.startswith(("https://", "http://")):
        raise BadInput(f"{url} is not a web address; it must begin with https://")
    if to.is_file() and (sha256 is None or hash_file(to) == sha256):
        return to
    part = to.with_name(f"{to.name}.part")
    with explain_write_errors(to):
        to.parent.mkdir(parents=True, exist_ok=True)
    # Fetch the missing bytes, with the caller's client or a new one.
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
    """Return what repeats an attempt that failed for a passing reason."""
    return Retrying(
        retry=retry_if_exception_type(_Passing),
        stop=stop_after_attempt(tries),
        wait=lambda state: _choose_pause(state, wait),
        reraise=True,
    )


def make_client(transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Make a client with podeval's headers and the certificates of this machine; `download` follows the redirects."""
    return httpx.Client(headers=_HEADERS, transport=transport, verify=ssl.create_default_context())


class _Passing(Exception):
    """A transient failure, worth another attempt."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def _choose_pause(state: RetryCallState, first: float) -> float:
    """Return the seconds until the next attempt: what the server asks for, or twice the pause before the last one."""
    error = state.outcome.exception() if state.outcome else None
    asked_for = error.retry_after if isinstance(error, _Passing) else None
    return min(_LONGEST_PAUSE, asked_for or first * 2.0 ** (state.attempt_number - 1))


def _go_on(client: httpx.Client, url: str, part: Path, most_bytes: int, timeout: float, watch: Watch | None) -> None:
    """Fetch the missing part of a file."""
    present = part.stat().st_size if part.is_file() else 0
    mark = _mark(part).read_text(encoding="utf-8") if present and _mark(part).is_file() else ""
    headers = {"Range": f"bytes={present}-", "If-Range": mark} if present and mark else {}
    try:
        with _ask(client, url, headers, timeout) as answer:
            if answer.status_code == 416 and present:
                part.unlink()
                raise _Passing("the part downloaded earlier does not match")
            _require_success(answer, url)
            goes_on = answer.status_code == 206
            begin = present if goes_on else 0
            length = answer.headers.get("Content-Length")
            total = begin + int(length) if length and length.isdecimal() else None
            if total is not None and total > most_bytes:
                raise TooLarge(
                    f"{url} has {total / 1e6:.0f} MB, more than the {most_bytes / 1e6:.0f} MB that are fetched"
                )
            with explain_write_errors(part):
                file = part.open("ab" if goes_on else "wb")
                _mark(part).write_text(_identify(answer.headers), encoding="utf-8")
            with file:
                _copy(answer, file, begin, total, most_bytes, watch, url)
    except httpx.TransportError as error:
        raise _Passing(str(error) or type(error).__name__) from None
    except (httpx.InvalidURL, ValueError) as error:
        # Names that are none, such as of digits in circles, which no header can hold.
        raise BadInput(f"{url} is not an address that can be fetched ({error}); check it") from None


@contextmanager
def _ask(client: httpx.Client, url: str, headers: dict[str, str], timeout: float) -> Iterator[httpx.Response]:
    """Follow redirects to the final answer, and yield it with its body unread; bodies of redirects are never read."""
    request = client.build_request("GET", url, headers=headers, timeout=timeout)
    for _ in range(_MOST_REDIRECTS + 1):
        answer = client.send(request, stream=True, follow_redirects=False)
        try:
            if answer.next_request is None:
                yield answer
                return
        finally:
            answer.close()
        request = answer.next_request
    raise BadInput(
        f"{url} redirects more than {_MOST_REDIRECTS} times, which suggests an infinite loop; check the address"
    )


def _require_success(answer: httpx.Response, url: str) -> None:
    """Raise an error where the answer holds no file: one that is worth another attempt, or a final one."""
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
) -> None:
    """Write the bytes as they arrive, so that a broken download can be resumed."""
    done = begin
    for block in answer.iter_raw():
        done += len(block)
        if done > most_bytes:
            raise TooLarge(f"{url} has more than the {most_bytes / 1e6:.0f} MB that are fetched")
        with explain_write_errors(Path(file.name)):
            file.write(block)
        if watch:
            watch(done, total)


def _identify(headers: httpx.Headers) -> str:
    """Return what tells this version of the file from another, as `If-Range` takes it; weak ETags are not used."""
    tag = headers.get("ETag") or ""
    return (tag if tag.startswith('"') else "") or headers.get("Last-Modified") or ""


def _mark(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
