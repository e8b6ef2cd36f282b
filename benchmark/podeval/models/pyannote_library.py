"""pyannote.audio, which is imported only where a model of it is loaded."""

import os
import warnings
from typing import Any


def import_pyannote_audio() -> Any:
    """Import the library without the usage reports it otherwise sends home; `PYANNOTE_METRICS_ENABLED=1` allows them.

    Raises:
        ImportError: it, or torchaudio beneath it, is absent or broken.
    """
    os.environ.setdefault("PYANNOTE_METRICS_ENABLED", "false")
    with warnings.catch_warnings():
        # It warns where it cannot decode files; it is handed samples.
        warnings.simplefilter("ignore")
        import pyannote.audio
    return pyannote.audio
