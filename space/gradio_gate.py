"""What of Gradio is answered, at `/try`: its page, its events, uploads of recordings, nothing else that it offers.

Gradio would also proxy, keep histories of runs, take recordings from microphones and sign people in; a site that has no
use for these keeps them shut.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

TRY = "/try"
LARGEST_UPLOAD = 20 * 2**20
LARGEST_CALL = 2**20
UPLOAD_SECONDS = 180.0
"""From the head of an upload to its last byte."""
UPLOAD_RATE = "20/minute"
MOST_HELD = 2 * 2**30
"""Bytes of uploads that lie here at a time; they are deleted within the hour."""

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self' blob: data:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)
"""Gradio's page has code and style in it and cannot do without."""

_API = f"{TRY}/gradio_api"
UPLOAD = f"{_API}/upload"
_TAKES = (UPLOAD, f"{_API}/queue/join", f"{_API}/cancel", f"{_API}/reset", f"{_API}/run/", f"{_API}/call/")
_SHUT = (
    *("/component_server", "/deep_link", "/dev/", "/login", "/monitoring", "/process_recording", "/profiling"),
    *("/proxy=", "/run-history", "/runs", "/stream/", "/vibe-"),
)
_FILES = ("/file=", "/file/")


def measures(local: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether visitors may measure: as PODEVAL_TRY says, else where there is nobody but the operator."""
    said = environment.get("PODEVAL_TRY", "")
    return local if said == "" else said == "1"


def concerns(path: str) -> bool:
    """Whether a request is for the Gradio app."""
    return path == TRY or path.startswith(f"{TRY}/")


def largest(path: str) -> int:
    """Bytes that a request may send."""
    return LARGEST_UPLOAD if path == UPLOAD else LARGEST_CALL


def why_shut(method: str, path: str) -> str:
    """Why Gradio is not asked; empty where it is."""
    if method == "POST" and not path.startswith(_TAKES):
        return "the site takes nothing in here"
    part = path.removeprefix(TRY).removeprefix("/gradio_api")
    if part.startswith(_FILES):
        return "" if _is_its_own(part[len(_FILES[0]) :]) else "this file is not for readers"
    return "this is shut here" if part.startswith(_SHUT) else ""


def is_full() -> bool:
    """Whether as much was uploaded as may lie here."""
    import gradio.utils

    held = 0
    for folder, _, names in os.walk(gradio.utils.get_upload_folder()):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                held += os.lstat(os.path.join(folder, name)).st_size
    return held > MOST_HELD


def _is_its_own(name: str) -> bool:
    """Whether a file is one that Gradio has taken in or made for readers."""
    import gradio.utils

    try:
        return Path(name).resolve().is_relative_to(Path(gradio.utils.get_upload_folder()).resolve())
    except (OSError, ValueError, RuntimeError):
        return False
