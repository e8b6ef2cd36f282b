"""Downloads a file from its publisher's address: streamed, no larger than pinned, kept only if its SHA-256 matches."""

import hashlib
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from podeval import progress
from podeval.errors import BadInput

_BLOCK = 1 << 20
_TIMEOUT = 60.0


def fetch(url: str, to: Path, size: int, sha256: str) -> None:
    """Download one file.

    Args:
        url: an `https` address from the lock file, whose entries are reviewed.
        to: path of the downloaded file.
        size: its size in bytes; more is never written.
        sha256: SHA-256 of its content.

    Raises:
        BadInput: the address cannot be reached, or holds another file.
    """
    host = urlsplit(url).hostname
    digest, done = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as source, to.open("wb") as out:  # noqa: S310 - from the lock
            while block := source.read(min(_BLOCK, size + 1 - done)):
                done += len(block)
                if done > size:
                    break
                digest.update(block)
                out.write(block)
                progress.report(f"downloading {to.name}", done, size)
    except urllib.error.HTTPError as error:
        raise BadInput(f"{host} answered {error.code} {error.reason} for {url}; try again later") from None
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise BadInput(f"{host} cannot be reached for {to.name} ({reason}); try again with network") from None
    if done != size or digest.hexdigest() != sha256:
        received = "more" if done > size else str(done)
        raise BadInput(
            f"{url} is not the pinned file ({received} bytes of {size}, or its SHA-256 differs), so it was not kept"
        )
