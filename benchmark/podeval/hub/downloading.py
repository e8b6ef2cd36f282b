"""Downloads that go on where they stopped, are bounded, and are whole or not there."""

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any

from podeval.errors import BadInput
from podeval.store.files import writing

_BLOCK = 1 << 18
_AGENT = "podeval (https://huggingface.co/podeval)"

MOST_BYTES = 4 << 30
"""More than this is not fetched, unless the caller says so."""

Watch = Callable[[int, int | None], None]
"""Told how many bytes are there, and how many there will be where the server says."""


class Gone(BadInput):
    """The server answers, and has no such file (any more)."""


class TooLarge(BadInput):
    """More than is fetched."""


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
    opener: urllib.request.OpenerDirector | None = None,
) -> Path:
    """Fetch a file; nothing is fetched that is already there with the right content.

    What was fetched before an interruption stays beside the goal as `.part` and is gone on from where the server
    supports ranges and the file is unchanged (`ETag` or `Last-Modified`, by `If-Range`).

    Args:
        url: http or https.
        to: the file to make.
        sha256: of the content, where it is known.
        most_bytes: refuse more.
        timeout: seconds without a byte.
        tries: attempts at what may pass by itself: timeouts, broken connections, 429 and 5xx answers.
        wait: seconds before the second attempt, doubled before each further one; `Retry-After` goes before, up to 60 s.
        watch: told how far it is.
        opener: how requests are made; as `urllib.request.urlopen` does by default.

    Raises:
        BadInput: it cannot be had; says why and what to do. `Gone` where it is not there, `TooLarge` where it is that.
    """
    if not url.startswith(("https://", "http://")):
        raise BadInput(f"{url} is not a web address; it must begin with https://")
    if to.is_file() and (sha256 is None or _digest(to) == sha256):
        return to
    part = to.with_name(f"{to.name}.part")
    with writing(to):
        to.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, tries + 1):
        try:
            _go_on(url, part, most_bytes, timeout, watch, opener.open if opener else urllib.request.urlopen)
            break
        except _Passing as trouble:
            if attempt == tries:
                raise BadInput(
                    f"{url} could not be fetched after {tries} attempts ({trouble}); try again later"
                ) from None
            time.sleep(min(60.0, trouble.retry_after or wait * 2 ** (attempt - 1)))
    if sha256 is not None and (digest := _digest(part)) != sha256:
        part.unlink()
        _mark(part).unlink(missing_ok=True)
        raise BadInput(f"{url} is not the expected file: its SHA-256 is {digest[:16]}…, not {sha256[:16]}…")
    with writing(to):
        part.replace(to)
        _mark(part).unlink(missing_ok=True)
    return to


class _Passing(Exception):
    """Trouble that may pass by itself."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def _go_on(url: str, part: Path, most_bytes: int, timeout: float, watch: Watch | None, ask: Callable[..., Any]) -> None:
    """Fetch what is missing of a file."""
    present = part.stat().st_size if part.is_file() else 0
    mark = _mark(part).read_text(encoding="utf-8") if present and _mark(part).is_file() else ""
    headers = {"User-Agent": _AGENT}
    if present and mark:
        headers |= {"Range": f"bytes={present}-", "If-Range": mark}
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked to be http or https
        with ask(request, timeout=timeout) as answer:
            goes_on = answer.status == 206
            begin = present if goes_on else 0
            length = answer.headers.get("Content-Length")
            total = begin + int(length) if length and length.isdecimal() else None
            if total is not None and total > most_bytes:
                raise TooLarge(
                    f"{url} has {total / 1e6:.0f} MB, more than the {most_bytes / 1e6:.0f} MB that are fetched"
                )
            with writing(part):
                file = part.open("ab" if goes_on else "wb")
                _mark(part).write_text(_identity(answer.headers), encoding="utf-8")
            with file:
                _copy(answer, file, begin, total, most_bytes, watch, url)
    except urllib.error.HTTPError as error:
        if error.code == 416 and present:
            part.unlink()
            raise _Passing("the part that was there did not fit") from None
        if error.code in (408, 425, 429) or error.code >= 500:
            raise _Passing(f"HTTP {error.code}", _seconds(error.headers.get("Retry-After"))) from None
        kind = Gone if error.code in (404, 410) else BadInput
        raise kind(f"{url} answers HTTP {error.code} ({error.reason}); check the address") from None
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise _Passing(str(getattr(error, "reason", error) or type(error).__name__)) from None
    except ValueError as error:
        # Names that are none, such as of digits in circles, which no header can hold.
        raise BadInput(f"{url} is no web address that can be gone to ({error}); check it") from None


def _copy(
    answer: IO[bytes], file: IO[bytes], begin: int, total: int | None, most_bytes: int, watch: Watch | None, url: str
) -> None:
    done = begin
    while block := answer.read(_BLOCK):
        done += len(block)
        if done > most_bytes:
            raise TooLarge(f"{url} has more than the {most_bytes / 1e6:.0f} MB that are fetched")
        with writing(Path(file.name)):
            file.write(block)
        if watch:
            watch(done, total)
    if total is not None and done < total:
        raise _Passing(f"the connection ended after {done} of {total} bytes")


def _identity(headers: HTTPMessage) -> str:
    """What tells this version of the file from another; a weak ETag does not."""
    tag = headers.get("ETag") or ""
    return (tag if tag.startswith('"') else "") or headers.get("Last-Modified") or ""


def _mark(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdecimal() else None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
