"""Where Gradio's apps stand, and how much may be sent to them: what the gate, the guard and the tabs all go by."""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping

PREFIXES = {"en": "", "zh": "/zh"}
"""Where the app of a language stands."""
TABS = ("leaderboard", "arena", "score", "submit", "queue", "about")
"""Tabs in their order; each is also an address, and the first is at the root too."""
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


def limit_bytes(path: str) -> int:
    """Bytes that a request may send."""
    return LARGEST_UPLOAD if path.startswith(UPLOADS) else LARGEST_CALL


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
