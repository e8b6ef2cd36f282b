"""Pitch and level of a recording over time, measured once and kept in the cache: an hour of it takes a minute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from podeval.analysis.cache import Cache, dump_array, load_array
from podeval.audio.prosody import VoiceContour, measure_prosody
from podeval.models.interfaces import Samples

_METHOD = "1"
"""Changes with what `measure_prosody` gives."""


def load_or_measure_prosody(cache: Cache, content: str, upsampled: bool, read: Callable[[], Samples]) -> VoiceContour:
    """Return pitch and level from the cache, or measure and keep them.

    Args:
        cache: the place where they are kept.
        content: the content hash of the recording.
        upsampled: whether the recording itself has a lower rate than 16 kHz.
        read: returns its samples, mono at 16 kHz.

    Raises:
        ModelMissing: librosa is not installed.
    """
    librosa = None
    with contextlib.suppress(PackageNotFoundError):
        librosa = version("librosa")
    key = Cache.key(content, "prosody", method=_METHOD, librosa=librosa, upsampled=upsampled)
    if (payload := cache.get(key)) is not None:
        # An entry in another form is measured anew.
        with contextlib.suppress(ValueError, EOFError):
            pitch, level = load_array(payload)
            return VoiceContour(pitch, level)
    measured = measure_prosody(read())
    cache.put(key, dump_array(np.stack([measured.pitch, measured.level])))
    return measured
