"""Pitch and level of a voice over time: the fundamental frequency by pYIN, and the sound level of each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.windows import Span
from podeval.errors import ModelMissing

RATE = 16_000
FRAME = 0.02
"""Distance between frames in seconds."""

LOWEST_HZ, HIGHEST_HZ = 60.0, 500.0
"""Range in which a voice's fundamental frequency is searched for, in Hz."""

_HOP, _LENGTH = 320, 1024
_STEPS = 5
"""Frequency steps per semitone: half of pYIN's ten, but finer than a listener can notice."""
_PIECE = 30 * RATE


@dataclass(frozen=True)
class VoiceContour:
    """Pitch and level of each frame.

    Attributes:
        pitch: semitones above 100 Hz, NaN if there is no voice, shape (frames,).
        level: root mean square, dB relative to full scale, shape (frames,).
    """

    pitch: NDArray[np.float64]
    level: NDArray[np.float64]

    def inside(self, spans: Sequence[Span]) -> VoiceContour:
        """Return the frames whose centre is inside one of the spans."""
        middles = np.arange(len(self.pitch)) * FRAME
        kept = np.zeros(len(middles), dtype=bool)
        for span in spans:
            kept[np.searchsorted(middles, span.start) : np.searchsorted(middles, span.end)] = True
        return VoiceContour(self.pitch[kept], self.level[kept])

    @property
    def voiced_seconds(self) -> float:
        """Number of seconds with a measurable pitch."""
        return float(np.isfinite(self.pitch).sum() * FRAME)


def measure_prosody(samples: NDArray[np.float32]) -> VoiceContour:
    """Measure pitch and level of mono samples at 16 kHz.

    Raises:
        ModelMissing: librosa is not installed.
    """
    try:
        import librosa

        from podeval.audio.pitch_tracking import find_pitch
    except ImportError as error:
        raise ModelMissing("measuring the pitch needs librosa; run `pip install 'podeval[embedded]'`") from error
    pitches, levels = [], []
    for start in range(0, len(samples), _PIECE):
        piece = np.asarray(samples[start : start + _PIECE + _HOP], dtype=np.float32)
        frames = min(_PIECE, len(samples) - start) // _HOP + (start + _PIECE >= len(samples))
        frequency = find_pitch(
            piece, rate=RATE, lowest=LOWEST_HZ, highest=HIGHEST_HZ, frame=_LENGTH, hop=_HOP, steps=_STEPS
        )
        power = librosa.feature.rms(y=piece, frame_length=_LENGTH, hop_length=_HOP)[0]
        pitches.append(12 * np.log2(frequency / 100)[:frames])
        levels.append(20 * np.log10(np.maximum(power, 1e-6))[:frames])
        progress.report("following pitch", min(start + _PIECE, len(samples)) / RATE, len(samples) / RATE)
    return VoiceContour(np.concatenate(pitches).astype(np.float64), np.concatenate(levels).astype(np.float64))


def compute_spread(values: NDArray[np.float64]) -> float:
    """Return the distance from the 10th to the 90th percentile of the finite values."""
    low, high = np.percentile(values[np.isfinite(values)], [10, 90])
    return float(high - low)
