"""The addresses of Gradio's apps, the limits on requests to them, and the files that a visitor may name in requests.

Gradio represents a file as a dictionary with a path. Gradio trusts the path, copies the file and returns the path of
the copy. A visitor may therefore name only files that this process received from that visitor, and the path is checked
here before Gradio sees it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from podeval.errors import BadInput
from podeval.texts import write_sentence

PREFIXES = {"en": "", "zh": "/zh"}
"""The address prefix of the app in each language."""
TABS = ("leaderboard", "arena", "score", "submit")
"""Tabs in order; each is also an address, and the first is also at the root."""
TABS_ID = "tabs"
"""The element id of the tabs in Gradio's configuration."""
LARGEST_UPLOAD = 20 * 2**20
LARGEST_ARCHIVE = 2**30
"""Maximum bytes of a zip of recordings, which may be sent only by people whose submissions are accepted."""
LARGEST_CALL = 2**20
UPLOAD_SECONDS = 180.0
"""Maximum number of seconds from the head of an upload to its last byte."""
ARCHIVE_SECONDS = 3600.0
BROKEN_OFF_SECONDS = 600.0
"""An upload counts as interrupted if no byte arrives for this number of seconds."""
UPLOAD_RATE, ARCHIVE_RATE = "20/minute", "10/hour"
LEAST_FREE = 2**30
"""Number of bytes on the disk that uploads must leave free."""
MOST_HELD = 2 * 2**30
"""Maximum bytes of stored uploads, which are deleted within the hour."""
OF_VISITORS = 0.75
"""The share of this maximum that visitors may use; the rest is reserved for people who submit systems."""
MOST_EACH, MOST_FILES = 100 * 2**20, 20
"""Maximum total size in bytes of one visitor's uploads, and their maximum number."""
KEEP_SECONDS, UNUSED_SECONDS = 3600, 600
"""Number of seconds for which a file is kept: a file that waits to be measured or an archive, and a file that is not
used.
"""
COOKIE = "podeval_files"
MOST_ISSUED = 10_000
"""Maximum number of paths that are remembered for all visitors together; the oldest path is forgotten first."""
API = "/gradio_api"
UPLOADS = tuple(f"{prefix}{API}/upload" for prefix in PREFIXES.values())
EVENTS = tuple(f"{prefix}{API}/" for prefix in PREFIXES.values())


def may_measure(local: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether visitors may measure: as set by PODEVAL_TRY or, if it is not set, only if the operator is the only
    visitor.
    """
    setting = environment.get("PODEVAL_TRY", "")
    return local if setting == "" else setting == "1"


def is_for_events(path: str) -> bool:
    """Return whether a path receives Gradio events."""
    return path.startswith(EVENTS)


def clear_broken_off(folder: str) -> None:
    """Delete the remains of interrupted uploads, which Gradio keeps forever: files next to its folders.

    Args:
        folder: the folder of uploads.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                is_file = entry.is_file(follow_symlinks=False)
                if is_file and time.time() - entry.stat(follow_symlinks=False).st_mtime > BROKEN_OFF_SECONDS:
                    os.unlink(entry.path)


def is_full(coming: int, most: int) -> bool:
    """Return whether the limit on uploads is reached, or the disk has no room for the new upload.

    Args:
        coming: bytes of the new upload.
        most: the number of bytes that may already be stored before the upload.
    """
    import gradio.utils

    folder_of_uploads = gradio.utils.get_upload_folder()
    clear_broken_off(folder_of_uploads)
    with contextlib.suppress(FileNotFoundError):
        if shutil.disk_usage(folder_of_uploads).free < coming + LEAST_FREE:
            return True
    files = (os.path.join(folder, name) for folder, _, names in os.walk(folder_of_uploads) for name in names)
    return sum(map(_measure_size, files)) > most


class Refused(HTTPException):
    """An event, a file or a stream is refused, with the status of the response and the reason."""


@dataclass
class IssuedFile:
    """A file that a visitor may name.

    Attributes:
        sender: the person or address whose limits the file counts towards.
        ends: the time from which the file may no longer be named.
    """

    sender: str
    ends: float


class IssuedFiles:
    """The paths that were issued, with their owners; a file that nobody may name any longer is deleted.

    Args:
        seconds: maximum time for which a path stays usable, as long as its file is kept.
        clock: function that returns seconds; time.monotonic outside tests.
    """

    def __init__(self, seconds: float = KEEP_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._issued: dict[tuple[str, str], IssuedFile] = {}
        self._coming: Counter[str] = Counter()
        self._broken_off: list[tuple[str, int, float]] = []
        self._lock = threading.RLock()

    def issue(self, holder: str, path: str, sender: str = "", seconds: float = KEEP_SECONDS) -> None:
        """Record that a visitor may name a path.

        Args:
            holder: the visitor.
            path: the file.
            sender: the person or address whose limits the file counts towards.
            seconds: seconds for which the path is valid without being used.
        """
        with self._lock:
            self.sweep()
            if len(self._issued) >= MOST_ISSUED:
                self._forget(next(iter(self._issued)))
            self._issued[holder, path] = IssuedFile(sender, self._clock() + min(seconds, self._seconds))

    def may_name(self, holders: Iterable[str], path: str) -> bool:
        """Return whether a path was issued to one of these holders and is still valid."""
        with self._lock:
            entries = [self._issued.get((holder, path)) for holder in holders]
            return any(upload is not None and upload.ends > self._clock() for upload in entries)

    def keep(self, path: str, seconds: float = KEEP_SECONDS) -> None:
        """Extend the time for which a file may be named, by an hour while it waits to be measured."""
        with self._lock:
            for (_, each), upload in self._issued.items():
                if each == path:
                    upload.ends = self._clock() + min(seconds, self._seconds)

    def release(self, path: str) -> None:
        """Delete a measured file unless other visitors sent the same file."""
        with self._lock:
            keys = [key for key in self._issued if key[1] == path]
            if len({self._issued[key].sender for key in keys}) == 1:
                for key in keys:
                    self._forget(key)

    def sweep(self) -> None:
        """Delete the files that nobody may name any longer."""
        with self._lock:
            for key in [key for key, upload in self._issued.items() if upload.ends <= self._clock()]:
                self._forget(key)
            self._broken_off = [entry for entry in self._broken_off if entry[2] > self._clock()]

    def explain_full(self, sender: str, coming: int, submits: bool) -> str:
        """Return the reason why a sender's uploads are refused; empty if they are accepted.

        Args:
            sender: the person or address.
            coming: bytes of the new upload.
            submits: whether the sender may upload recordings for a submission; part of the space is reserved for such
                senders.
        """
        self.sweep()
        with self._lock:
            paths = {path for (_, path), upload in self._issued.items() if upload.sender == sender}
            held = sum(map(_measure_size, paths)) + self._coming[sender] + coming
            held += sum(size for who, size, _ in self._broken_off if who == sender)
            others = self._coming.total()
        if held > (LARGEST_ARCHIVE if submits else MOST_EACH) or len(paths) >= MOST_FILES:
            return "you have reached the storage limit for one sender; try again in ten minutes"
        if is_full(coming, MOST_HELD if submits else int(MOST_HELD * OF_VISITORS) - others):
            return "this board cannot store more files; try again in an hour"
        return ""

    @contextlib.contextmanager
    def expect(self, sender: str, coming: int, is_whole: Callable[[], bool]) -> Iterator[None]:
        """Count a sender's upload while it lasts and, if it is interrupted, for as long as its remains are stored.

        Args:
            sender: the person or address.
            coming: bytes of the new upload.
            is_whole: function that is called at the end and returns whether the whole upload has arrived.
        """
        self._coming[sender] += coming
        try:
            yield
        finally:
            self._coming[sender] -= coming
            if not self._coming[sender]:
                del self._coming[sender]
            if not is_whole():
                self._broken_off.append((sender, coming, self._clock() + BROKEN_OFF_SECONDS))

    def _forget(self, key: tuple[str, str]) -> None:
        del self._issued[key]
        if all(path != key[1] for _, path in self._issued):
            with contextlib.suppress(OSError):
                os.unlink(key[1])


def _measure_size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size
    return 0


def make_holder() -> str:
    """Return a name for a visitor that cannot be guessed."""
    return secrets.token_urlsafe(24)


def check_files(value: Any, may_name: Callable[[str], bool]) -> Any:
    """Return a request's data for Gradio, after checking that each file in it was issued; addresses are not passed on.

    Anything that has a path counts as a file, even without the mark that Gradio looks for.

    Args:
        value: parsed JSON, which is changed in place.
        may_name: function that returns whether a path was issued to the sender of the request.

    Raises:
        Refused: a path was not issued to the sender.
    """
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if "path" in part:
                path = part["path"]
                if path is not None and not (isinstance(path, str) and may_name(path)):
                    raise Refused(403, "the request names a file that you did not upload here")
                # Gradio reads the file at the path. Our events do not use addresses, so none are fetched.
                if "url" in part:
                    part["url"] = None
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
    return value


def get_uploaded_path(file: Any) -> Path:
    """Return the path of an upload as named in an event, which the gate has already checked; Gradio does not check it.

    Args:
        file: Gradio's data for the file.

    Raises:
        BadInput: the data does not contain the path of an upload.
    """
    from gradio.utils import get_upload_folder

    path = Path(str(file.get("path") if isinstance(file, dict) else "")).resolve()
    if not path.is_relative_to(Path(get_upload_folder()).resolve()) or not path.is_file():
        raise BadInput(write_sentence("upload-first"))
    return path
