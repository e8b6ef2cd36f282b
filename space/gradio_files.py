"""Which files of Gradio a visitor may name: those that this process took in from that visitor, and nothing else.

Gradio's data for a file is a dictionary with a path. Gradio believes that path, copies what lies there and tells where
the copy is; so the path is checked here, before Gradio sees it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.sentences import write_sentence

COOKIE = "podeval_files"
MOST = 10_000
"""Paths that are remembered at a time, of all visitors; the oldest is forgotten first."""


class ForeignFile(Exception):
    """A request names a file that was not issued to its visitor."""


class IssuedFiles:
    """The paths that were issued, and to whom.

    Args:
        seconds: how long a path stays usable, as long as the file behind it is kept.
        clock: gives seconds; time.monotonic outside of tests.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._expiry: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def issue(self, holder: str, path: str) -> None:
        """Remember that a visitor may name a path."""
        with self._lock:
            self._expiry.pop((holder, path), None)
            self._expiry[holder, path] = self._clock() + self._seconds
            while len(self._expiry) > MOST:
                del self._expiry[next(iter(self._expiry))]

    def may_name(self, holders: Iterable[str], path: str) -> bool:
        """Whether a path was issued to one of these, and not too long ago."""
        now = self._clock()
        with self._lock:
            return any(self._expiry.get((holder, path), 0.0) > now for holder in holders)


def make_holder() -> str:
    """A name for a visitor that nobody guesses."""
    return secrets.token_urlsafe(24)


def check_files(value: Any, may_name: Callable[[str], bool]) -> Any:
    """A request's data as Gradio may see it: each file that it names was issued, and no address goes with it.

    Whatever has a path counts as a file, also without the mark that Gradio looks for.

    Args:
        value: parsed JSON; it is changed in place.
        may_name: whether a path was issued to who sends the request.

    Raises:
        ForeignFile: a path was not issued to the sender.
    """
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if "path" in part:
                path = part["path"]
                if path is not None and not (isinstance(path, str) and may_name(path)):
                    raise ForeignFile
                # Gradio reads the file at the path. Nothing here has a use for an address, so that none is fetched.
                if "url" in part:
                    part["url"] = None
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
    return value


def get_uploaded_path(file: Any) -> Path:
    """The path of an upload as an event names it, which the gate has looked at already; Gradio does not look here.

    Args:
        file: Gradio's data of it.

    Raises:
        BadInput: it is none.
    """
    from gradio.utils import get_upload_folder

    path = Path(str(file.get("path") if isinstance(file, dict) else "")).resolve()
    if not path.is_relative_to(Path(get_upload_folder()).resolve()) or not path.is_file():
        raise BadInput(write_sentence("upload-first"))
    return path
