"""Where Gradio's apps stand, how much may be sent to them, and which files a visitor may name to them.

Gradio's data for a file is a dictionary with a path. Gradio believes that path, copies what lies there and tells where
the copy is; so a visitor may name those that this process took in from that visitor, and nothing else, and the path is
checked here, before Gradio sees it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cachetools import TTLCache

from podeval.errors import BadInput
from podeval.texts import write_sentence

PREFIXES = {"en": "", "zh": "/zh"}
"""Where the app of a language stands."""
TABS = ("leaderboard", "arena", "score", "submit", "queue", "about")
"""Tabs in their order; each is also an address, and the first is at the root too."""
TABS_ID = "tabs"
"""The element id of the tabs in Gradio's configuration."""
LARGEST_UPLOAD = 20 * 2**20
LARGEST_ARCHIVE = 2**30
"""Bytes of a zip of recordings, which only people send whose submissions are taken."""
LARGEST_CALL = 2**20
UPLOAD_SECONDS = 180.0
"""From the head of an upload to its last byte."""
ARCHIVE_SECONDS = 3600.0
BROKEN_OFF_SECONDS = 600.0
"""After so long without another byte, what is still coming has broken off."""
UPLOAD_RATE, ARCHIVE_RATE = "20/minute", "10/hour"
LEAST_FREE = 2**30
"""Bytes of the disk that uploads leave free."""
MOST_HELD = 2 * 2**30
"""Bytes of uploads that lie here at a time; they are deleted within the hour."""
COOKIE = "podeval_files"
MOST_ISSUED = 10_000
"""Paths that are remembered at a time, of all visitors; the oldest is forgotten first."""
API = "/gradio_api"
UPLOADS = tuple(f"{prefix}{API}/upload" for prefix in PREFIXES.values())
EVENTS = tuple(f"{prefix}{API}/" for prefix in PREFIXES.values())


def may_measure(local: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether visitors may measure: as PODEVAL_TRY says, else where there is nobody but the operator."""
    setting = environment.get("PODEVAL_TRY", "")
    return local if setting == "" else setting == "1"


def is_for_events(path: str) -> bool:
    """Whether a path is one that events of Gradio are sent to."""
    return path.startswith(EVENTS)


def clear_broken_off(folder: str) -> None:
    """Delete what was left of uploads that broke off, which Gradio keeps for good: files beside its folders.

    Args:
        folder: the folder of uploads.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                is_file = entry.is_file(follow_symlinks=False)
                if is_file and time.time() - entry.stat(follow_symlinks=False).st_mtime > BROKEN_OFF_SECONDS:
                    os.unlink(entry.path)


def is_full(coming: int = 0) -> bool:
    """Whether as much was uploaded as may lie here, or the disk has no room for what is coming.

    Args:
        coming: bytes.
    """
    import gradio.utils

    held, folder_of_uploads = 0, gradio.utils.get_upload_folder()
    clear_broken_off(folder_of_uploads)
    with contextlib.suppress(FileNotFoundError):
        if shutil.disk_usage(folder_of_uploads).free < coming + LEAST_FREE:
            return True
    for folder, _, names in os.walk(folder_of_uploads):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                held += os.lstat(os.path.join(folder, name)).st_size
    return held > MOST_HELD


class ForeignFile(Exception):
    """A request names a file that was not issued to its visitor."""


class IssuedFiles:
    """The paths that were issued, and to whom.

    Args:
        seconds: how long a path stays usable, as long as the file behind it is kept.
        clock: gives seconds; time.monotonic outside of tests.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._issued: TTLCache[tuple[str, str], bool] = TTLCache(MOST_ISSUED, seconds, timer=clock)
        self._lock = threading.Lock()

    def issue(self, holder: str, path: str) -> None:
        """Remember that a visitor may name a path."""
        with self._lock:
            self._issued[holder, path] = True

    def may_name(self, holders: Iterable[str], path: str) -> bool:
        """Whether a path was issued to one of these, and not too long ago."""
        with self._lock:
            return any((holder, path) in self._issued for holder in holders)


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
