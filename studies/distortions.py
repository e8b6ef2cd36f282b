"""Controlled distortions of clean speech for the study of metrics.

The functions are pure and take float32 samples, shape (frames,) or (frames, channels); the result has the same type and
axes. `gaussian_noise` and `mix_music` do not change the speech but add to it; `tanh_distortion` and `clip` restore the
original level (RMS); `reverberate` and `change_room` preserve the loudness (BS.1770); the others do not adjust the
level. Results are not limited to ±1, except by `mu_law`, whose code ends there. The same seed gives the same samples.
Noise, tanh, mu-law and reverberation are those of PAM, section 4.1.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from podeval.audio import loudness
from podeval.audio.samples import resample
from podeval.errors import BadInput, CannotScore

Samples = NDArray[np.float32]

FADE = 0.02
"""Duration, in seconds, of the transition from one recording or room to another."""

PRE_DELAY = 0.005
"""Seconds from the direct sound to the first reflection."""

_LOW_PASS_ORDER = 10


def gaussian_noise(samples: Samples, snr_db: float, *, seed: int) -> Samples:
    """Add independent white noise to each channel, `snr_db` below the mean power of the whole signal, including
    pauses.
    """
    _require_sound(samples)
    level = _rms(samples) * 10 ** (-snr_db / 20)
    return _single(samples + np.random.default_rng(seed).normal(0.0, level, samples.shape))


def tanh_distortion(samples: Samples, amount: float) -> Samples:
    """Saturate softly by tanh(samples / q), where a share `amount` of all samples is beyond ±q, and restore the RMS.

    Raises:
        BadInput: the amount is not between 0 and 1, or the signal is silent.
    """
    knee = _exceeded(samples, amount)
    return _same_rms(np.tanh(samples / knee), samples)


def clip(samples: Samples, share: float) -> Samples:
    """Clip at the level that a share `share` of all samples exceeds, and restore the RMS.

    Raises:
        BadInput: the share is not between 0 and 1, or the signal is silent.
    """
    edge = _exceeded(samples, share)
    return _same_rms(np.clip(samples, -edge, edge), samples)


def mu_law(samples: Samples, bits: int) -> Samples:
    """Encode samples with a mu-law code of `bits` bits (mu = 2^bits − 1), and decode them; samples beyond ±1 are
    clipped.

    Raises:
        BadInput: the number of bits is not between 2 and 16.
    """
    if not 2 <= bits <= 16:
        raise BadInput(f"a mu-law code has 2 to 16 bits, not {bits}")
    mu = 2**bits - 1
    held = np.clip(samples.astype(np.float64), -1.0, 1.0)
    squeezed = np.sign(held) * np.log1p(mu * np.abs(held)) / math.log1p(mu)
    code = np.floor((squeezed + 1) / 2 * mu + 0.5)
    level = 2 * code / mu - 1
    return _single(np.sign(level) * np.expm1(np.abs(level) * math.log1p(mu)) / mu)


def low_pass(samples: Samples, rate: int, hz: float) -> Samples:
    """Apply a Butterworth low-pass filter of order 10 that attenuates by 3 dB at `hz`.

    Raises:
        BadInput: `hz` is not between 0 and half the rate.
    """
    if not 0 < hz < rate / 2:
        raise BadInput(f"the cut-off must lie between 0 and half the rate of {rate} Hz, not at {hz:g} Hz")
    sections = signal.butter(_LOW_PASS_ORDER, hz, fs=rate, output="sos")
    return _single(signal.sosfilt(sections, samples.astype(np.float64), axis=0))


def gain(samples: Samples, db: float) -> Samples:
    """Change the level by `db`; nothing is clipped."""
    return _single(samples * np.float64(10 ** (db / 20)))


def speed(samples: Samples, rate: int, factor: float) -> Samples:
    """Change the speed by resampling: the pitch rises with the speed.

    Raises:
        BadInput: the factor is not between 0.25 and 4.
    """
    if not 0.25 <= factor <= 4:
        raise BadInput(f"the speed must be from 0.25 to 4, not {factor:g}")
    return resample(samples, round(rate * factor), rate)


def room_response(
    rate: int, rt60_s: float, *, seed: int, direct_to_reverberant_db: float = 0.0, pre_delay_s: float = PRE_DELAY
) -> NDArray[np.float64]:
    """Simulate a room's impulse response, shape (frames,): the direct sound, followed by decaying noise.

    The direct sound is 1 at time 0. After the pre-delay, white Gaussian noise follows, whose level falls by 60 dB in
    `rt60_s` at all frequencies alike and which ends there. Its energy is `direct_to_reverberant_db` below that of the
    direct sound. With 0 dB, the sound is that at the room's critical distance: half a metre to a metre away in a living
    room.

    Raises:
        BadInput: a time is not positive.
    """
    if rt60_s <= 0 or pre_delay_s <= 0:
        raise BadInput(f"reverberation time and pre-delay must be positive, not {rt60_s:g} and {pre_delay_s:g} s")
    first = max(1, round(pre_delay_s * rate))
    time = np.arange(max(2, round(rt60_s * rate))) / rate
    tail = np.random.default_rng(seed).normal(size=time.size) * 10 ** (-3 * time / rt60_s)
    tail *= 10 ** (-direct_to_reverberant_db / 20) / np.sqrt(np.sum(tail**2))
    return np.concatenate([[1.0], np.zeros(first - 1), tail])


def reverberate(
    samples: Samples, rate: int, rt60_s: float, *, seed: int, direct_to_reverberant_db: float = 0.0
) -> Samples:
    """Put all channels of the signal into the same room (`room_response`), and preserve its loudness and length.

    Raises:
        BadInput: the time is not positive.
        CannotScore: the signal has no loudness, because it is silent or shorter than 0.4 s.
    """
    return match_loudness(_in_room(samples, rate, rt60_s, seed, direct_to_reverberant_db), samples, rate)


def change_room(
    samples: Samples, rate: int, at_s: float, rt60_s: float, *, seed: int, direct_to_reverberant_db: float = 0.0
) -> Samples:
    """Put the signal into a room from `at_s` on, as loud as the same stretch was before; the transition takes 20 ms.

    The room responds from the beginning, so its tail is present at the moment of the change.

    Raises:
        BadInput: the moment is not inside the signal, or the time is not positive.
        CannotScore: the part after the change has no loudness, because it is silent or shorter than 0.4 s.
    """
    change = round(at_s * rate)
    if not 0 < change < len(samples):
        raise BadInput(f"the room can change between 0 and {len(samples) / rate:.2f} s, not at {at_s:g} s")
    wet = _in_room(samples, rate, rt60_s, seed, direct_to_reverberant_db)
    wet *= _loudness_factor(wet[change:], samples[change:], rate)
    entered = np.clip((np.arange(len(samples)) - change) / max(1, round(FADE * rate)), 0.0, 1.0)
    weight = entered.reshape(-1, *[1] * (samples.ndim - 1))
    return _single(samples * (1 - weight) + wet * weight)


def join(first: Samples, second: Samples, rate: int, crossfade_s: float = FADE) -> Samples:
    """Join two signals with a crossfade of equal power; neither level is changed.

    Raises:
        BadInput: the signals have different channels, or one is shorter than the crossfade.
    """
    overlap = round(crossfade_s * rate)
    if first.shape[1:] != second.shape[1:]:
        raise BadInput(f"signals of shapes {first.shape} and {second.shape} cannot be joined")
    if overlap > min(len(first), len(second)):
        raise BadInput(f"a crossfade of {crossfade_s:g} s is longer than one of the signals")
    angle = ((np.arange(overlap) + 0.5) / max(overlap, 1) * np.pi / 2).reshape(-1, *[1] * (first.ndim - 1))
    kept = len(first) - overlap
    middle = first[kept:] * np.cos(angle) + second[:overlap] * np.sin(angle)
    return np.concatenate([_single(first[:kept]), _single(middle), _single(second[overlap:])])


def mix_music(speech: Samples, music: Samples, rate: int, smr_db: float) -> Samples:
    """Mix speech with music whose integrated loudness is `smr_db` LU lower; music that is too short is repeated.

    The speech keeps its level. The music's loudness is that of the part that is used.

    Raises:
        BadInput: the signals have different channels, or the music is empty.
        CannotScore: a signal has no loudness, because it is silent or shorter than 0.4 s.
    """
    if speech.shape[1:] != music.shape[1:] or not len(music):
        raise BadInput(f"music of shape {music.shape} cannot be laid under speech of shape {speech.shape}")
    under = np.take(music, np.arange(len(speech)) % len(music), axis=0)
    return _single(speech + under * (_loudness_factor(under, speech, rate) * 10 ** (-smr_db / 20)))


def match_loudness(samples: Samples, like: Samples | float, rate: int) -> Samples:
    """Scale samples to the integrated loudness of another signal, or to a loudness in LUFS.

    Raises:
        CannotScore: a signal has no loudness, because it is silent or shorter than 0.4 s.
    """
    return _single(samples * np.float64(_loudness_factor(samples, like, rate)))


def _in_room(samples: Samples, rate: int, rt60_s: float, seed: int, direct_to_reverberant_db: float) -> Samples:
    response = room_response(rate, rt60_s, seed=seed, direct_to_reverberant_db=direct_to_reverberant_db)
    response = response.reshape(-1, *[1] * (samples.ndim - 1))
    return _single(signal.oaconvolve(samples.astype(np.float64), response, axes=0)[: len(samples)])


def _loudness_factor(samples: Samples, like: Samples | float, rate: int) -> float:
    """Return the factor that brings `samples` to the requested integrated loudness."""
    target = like if isinstance(like, float | int) else _loudness(like, rate)
    return float(10 ** ((target - _loudness(samples, rate)) / 20))


def _loudness(samples: Samples, rate: int) -> float:
    return loudness.measure(samples.reshape(len(samples), -1), rate).integrated


def _exceeded(samples: Samples, share: float) -> float:
    """Return the level that a share of the samples exceeds."""
    if not 0 < share < 1:
        raise BadInput(f"the share of samples must lie between 0 and 1, not be {share:g}")
    _require_sound(samples)
    level = float(np.quantile(np.abs(samples), 1 - share))
    if not level:
        raise BadInput(f"less than {share:g} of the samples is not silent; take a smaller share")
    return level


def _require_sound(samples: Samples) -> None:
    if not samples.size or not np.any(samples):
        raise CannotScore("silence cannot be distorted")


def _same_rms(changed: NDArray[np.floating], samples: Samples) -> Samples:
    return _single(changed * (_rms(samples) / _rms(changed)))


def _rms(samples: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def _single(samples: NDArray[np.floating]) -> Samples:
    return np.asarray(samples, dtype=np.float32)
