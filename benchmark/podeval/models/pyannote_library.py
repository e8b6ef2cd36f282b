"""Imports pyannote.audio, only when one of its models is loaded."""

import os
import warnings
from typing import Any


def import_pyannote_audio() -> Any:
    """Import the library without the usage reports it otherwise sends; `PYANNOTE_METRICS_ENABLED=1` allows them.

    Raises:
        ImportError: the library, or torchaudio beneath it, is absent or broken.
    """
    os.environ.setdefault("PYANNOTE_METRICS_ENABLED", "false")
    with warnings.catch_warnings():
        # It warns if it cannot decode files, but it only receives samples.
        warnings.simplefilter("ignore")
        import pyannote.audio
    return pyannote.audio
