"""Which windows hold enough speech to say something about a voice or its room."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Clip, Span, seconds_inside

MOST_SILENCE = 0.6
"""Windows of which more than this share is not speech are left out (LFS-Bench's rule for reverberation)."""


def sounding(clips: Sequence[Clip], speech: Sequence[Span], window: float) -> NDArray[np.bool_]:
    """Of every window of `window` seconds whether it holds enough speech, shape (windows,)."""
    heard: NDArray[np.bool_] = seconds_inside(clips, speech) >= (1 - MOST_SILENCE) * window - 1e-9
    return heard
