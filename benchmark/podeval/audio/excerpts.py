"""Excerpts of a recording for listeners: clips, and a summary of its first, middle and last minutes.

PodEval plays this summary to raters of whole podcasts: three minutes that represent a recording of any length,
separated by a tone. Source: the paper (Appendix, questionnaire) and its public code, `Real_Pod/data_process.py`. Only
the frames of an excerpt are read, so a recording of several hours may be an `np.memmap`.
"""

import io
import math

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import mix_to_mono, resample
from podeval.errors import BadInput, CannotScore

CLIP_RATE = 16_000
"""Sample rate of exported clips in Hz."""

MINUTE = 60.0
"""Length of each of the summary's three excerpts, in seconds."""

FADE = 2.0
"""Length of the linear fade-out at the end of the first and middle excerpts, in seconds."""

TONE_HERTZ, TONE_SECONDS, TONE_DECIBELS = 1_000.0, 0.3, -10.0
"""The separator: a sine that peaks 10 dB below full scale (RMS 13 dB below), independent of the speech."""

_CONTEXT = CLIP_RATE // 4


def locate_minutes(frames: int, rate: int) -> tuple[int, int, int] | None:
    """Return the index of the first frame of the first, the middle and the last minute, or None if these minutes would
    overlap.

    These minutes overlap in recordings shorter than three minutes. The middle minute is centred to within a
    millisecond, because PodEval's code rounds to milliseconds.
    """
    minute = round(MINUTE * rate)
    if frames < 3 * minute:
        return None
    milliseconds = (round(1000 * frames / rate) - round(1000 * MINUTE)) // 2
    return 0, milliseconds * rate // 1000, frames - minute


def join_minutes(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Join the first, middle and last minutes with a separator between them, keeping the rate and the channels.

    The first two minutes fade out linearly over their last 2 s. A recording shorter than three minutes is returned
    whole, without fades or separators.

    Args:
        samples: `(frames, channels)` float32.
        rate: sample rate in Hz.

    Returns:
        `(frames, channels)` float32: 180.6 s of audio, or a copy of a recording shorter than three minutes.
    """
    starts = locate_minutes(len(samples), rate)
    if starts is None:
        return np.array(samples, dtype=np.float32)
    minute = round(MINUTE * rate)
    first, middle, last = (np.array(samples[start : start + minute], dtype=np.float32) for start in starts)
    for excerpt in (first, middle):
        _fade_out(excerpt, round(FADE * rate))
    tone = np.repeat(make_separator(rate)[:, np.newaxis], samples.shape[1], axis=1)
    return np.concatenate([first, tone, middle, tone, last])


def make_separator(rate: int) -> NDArray[np.float32]:
    """Return 300 ms of a 1 kHz sine with peaks at -10 dBFS, shape `(frames,)`; whole periods prevent clicks."""
    times = np.arange(round(TONE_SECONDS * rate)) / rate
    return np.asarray(10 ** (TONE_DECIBELS / 20) * np.sin(2 * np.pi * TONE_HERTZ * times), dtype=np.float32)


def _fade_out(excerpt: NDArray[np.float32], frames: int) -> None:
    """Fade out the last `frames` frames in place, linearly from full level at the first to 1/frames at the last."""
    gains = 1 - np.arange(frames, dtype=np.float64) / frames
    excerpt[-frames:] *= gains[:, np.newaxis].astype(np.float32)


def cut(samples: NDArray[np.float32], rate: int, start: float, end: float) -> NDArray[np.float32]:
    """Return one clip as mono at 16 kHz, identical to the same part of the whole recording after mixing down and
    resampling.

    Args:
        samples: `(frames, channels)` float32.
        rate: sample rate of `samples` in Hz.
        start: start of the clip in seconds.
        end: end of the clip in seconds; any part beyond the recording's end is left out.

    Returns:
        `(frames,)` float32, from frame `round(16000 * start)` up to, but not including, frame `round(16000 * end)`.

    Raises:
        BadInput: the clip is empty, or starts after the recording's end.
    """
    seconds = len(samples) / rate
    first, last = round(start * CLIP_RATE), round(min(end, seconds) * CLIP_RATE)
    if not 0 <= first < last:
        raise BadInput(
            f"a clip from {start:.2f} to {end:.2f} s cannot be cut from a recording of {seconds:.2f} s; "
            "check that these times belong to this recording"
        )
    # Start at a frame that both rates share, with more context than the length of the resampling filter.
    shared = math.gcd(rate, CLIP_RATE)
    steps = max(first - _CONTEXT, 0) * shared // CLIP_RATE
    begin, lead = steps * rate // shared, steps * CLIP_RATE // shared
    stop = math.ceil((last + _CONTEXT) * rate / CLIP_RATE)
    return resample(mix_to_mono(samples[begin:stop]), rate, CLIP_RATE)[first - lead : last - lead]


def encode_pcm16_wav(samples: NDArray[np.float32], rate: int) -> bytes:
    """Encode samples as a 16-bit WAV file; values are rounded to the nearest step and clipped at full scale.

    Samples that were decoded from 16 bits are reproduced exactly.

    Args:
        samples: `(frames,)` or `(frames, channels)` float32.
        rate: sample rate in Hz.

    Raises:
        CannotScore: some samples are not finite numbers.
    """
    import soundfile

    if not np.isfinite(samples).all():
        raise CannotScore("the recording contains samples that are not numbers (NaN or infinity); export it again")

    steps = np.clip(np.rint(samples * np.float32(2**15)), -(2**15), 2**15 - 1).astype(np.int16)
    buffer = io.BytesIO()
    soundfile.write(buffer, steps, rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
