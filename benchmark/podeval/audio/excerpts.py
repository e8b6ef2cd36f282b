"""Excerpts of a recording for listeners: clips, and a summary of first, middle and last minute.

The summary is what PodEval plays to raters of whole podcasts: three minutes that stand for any length, a tone between
them. Source: the paper (Appendix, questionnaire) and its public code, `Real_Pod/data_process.py`.
Only the frames of an excerpt are read, so that a recording of hours may be an `np.memmap`.
"""

import io
import math

import numpy as np
from numpy.typing import NDArray

from podeval.audio.resample import mono, resample
from podeval.errors import BadInput, CannotScore

CLIP_RATE = 16_000
"""Of exported clips, Hz."""

MINUTE = 60.0
"""Each of the summary's three excerpts, seconds."""

FADE = 2.0
"""Linear fade-out at the end of the first and the middle excerpt, seconds."""

TONE_HERTZ, TONE_SECONDS, TONE_DECIBELS = 1_000.0, 0.3, -10.0
"""The separator: a sine whose peaks are 10 dB below full scale (its RMS 13 dB), as loud whatever the speech is."""

_CONTEXT = CLIP_RATE // 4


def minutes(frames: int, rate: int) -> tuple[int, int, int] | None:
    """Find the first frames of the first, middle and last minute; None where they would overlap (below three minutes).

    The middle minute lies in the middle, to a millisecond (the rounding of PodEval's code).
    """
    minute = round(MINUTE * rate)
    if frames < 3 * minute:
        return None
    milliseconds = (round(1000 * frames / rate) - round(1000 * MINUTE)) // 2
    return 0, milliseconds * rate // 1000, frames - minute


def summary(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Join the first, middle and last minute with a separator between them, at the recording's rate and channels.

    The first two fade out linearly over their last 2 s. A recording below three minutes, whose minutes would overlap,
    is returned whole, without fades or separators.

    Args:
        samples: `(frames, channels)` float32.
        rate: Hz.

    Returns:
        `(frames, channels)` float32: 180.6 s, or a copy of the recording.
    """
    starts = minutes(len(samples), rate)
    if starts is None:
        return np.array(samples, dtype=np.float32)
    minute = round(MINUTE * rate)
    first, middle, last = (np.array(samples[start : start + minute], dtype=np.float32) for start in starts)
    for excerpt in (first, middle):
        _fade_out(excerpt, round(FADE * rate))
    tone = np.repeat(separator(rate)[:, np.newaxis], samples.shape[1], axis=1)
    return np.concatenate([first, tone, middle, tone, last])


def separator(rate: int) -> NDArray[np.float32]:
    """Make 300 ms of a sine of 1 kHz with peaks at -10 dBFS, shape `(frames,)`; whole periods, so it does not click."""
    times = np.arange(round(TONE_SECONDS * rate)) / rate
    return np.asarray(10 ** (TONE_DECIBELS / 20) * np.sin(2 * np.pi * TONE_HERTZ * times), dtype=np.float32)


def _fade_out(excerpt: NDArray[np.float32], frames: int) -> None:
    """From full level on the first of the last `frames` frames, linearly, to 1/frames of it on the last; in place."""
    gains = 1 - np.arange(frames, dtype=np.float64) / frames
    excerpt[-frames:] *= gains[:, np.newaxis].astype(np.float32)


def cut(samples: NDArray[np.float32], rate: int, start: float, end: float) -> NDArray[np.float32]:
    """Cut one clip as mono at 16 kHz, equal to that stretch of the whole recording mixed and resampled.

    Args:
        samples: `(frames, channels)` float32.
        rate: of the samples, Hz.
        start: seconds, as is `end`; what lies beyond the recording's end is left out.
        end: seconds.

    Returns:
        `(frames,)` float32, from frame `round(16000 * start)` to before `round(16000 * end)` of the whole.

    Raises:
        BadInput: the clip is empty, or begins after the recording's end.
    """
    seconds = len(samples) / rate
    first, last = round(start * CLIP_RATE), round(min(end, seconds) * CLIP_RATE)
    if not 0 <= first < last:
        raise BadInput(
            f"a clip from {start:.2f} to {end:.2f} s cannot be cut from a recording of {seconds:.2f} s; "
            "are the times those of this recording?"
        )
    # From a frame that both rates share, with more context than the resampling filter is long.
    shared = math.gcd(rate, CLIP_RATE)
    steps = max(first - _CONTEXT, 0) * shared // CLIP_RATE
    begin, lead = steps * rate // shared, steps * CLIP_RATE // shared
    stop = math.ceil((last + _CONTEXT) * rate / CLIP_RATE)
    return resample(mono(samples[begin:stop]), rate, CLIP_RATE)[first - lead : last - lead]


def pcm16_wav(samples: NDArray[np.float32], rate: int) -> bytes:
    """Encode the samples as a WAV file of 16 bits: rounded to the nearest step, beyond full scale clipped.

    Samples decoded from 16 bits come out as they were.

    Args:
        samples: `(frames,)` or `(frames, channels)` float32.
        rate: Hz.

    Raises:
        CannotScore: there are samples that are not numbers.
    """
    import soundfile

    if not np.isfinite(samples).all():
        raise CannotScore("the recording holds samples that are not numbers (NaN or infinity); export it again")

    steps = np.clip(np.rint(samples * np.float32(2**15)), -(2**15), 2**15 - 1).astype(np.int16)
    buffer = io.BytesIO()
    soundfile.write(buffer, steps, rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
