"""Distortions under control: what the study of metrics does to clean speech, and by how much.

Pure functions of float32 samples, shape (frames,) or (frames, channels); the result has the same type and axes.
Levels: `gaussian_noise` and `mix_music` leave the speech as it is and add to it; `tanh_distortion` and `clip` give
back the level (RMS) they took; `reverberate` and `change_room` keep the loudness (BS.1770); the others do what their
name says and nothing is brought back. Nothing is held to ±1 afterwards, except by `mu_law`, whose code ends there.
The same seed gives the same samples. Noise, tanh, mu-law and reverberation are those of PAM, section 4.1.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from podeval.audio import loudness
from podeval.audio.prosody import FRAME, VoiceContour
from podeval.audio.samples import resample
from podeval.errors import BadInput, CannotScore

Samples = NDArray[np.float32]

FADE = 0.02
"""Seconds in which one recording or room gives way to another."""

PRE_DELAY = 0.005
"""Seconds from the direct sound to the first reflection."""

_LOW_PASS_ORDER = 10


def gaussian_noise(samples: Samples, snr_db: float, *, seed: int) -> Samples:
    """Add white noise, each channel its own, `snr_db` below the mean power of the whole signal, pauses included."""
    _require_sound(samples)
    level = _rms(samples) * 10 ** (-snr_db / 20)
    return _single(samples + np.random.default_rng(seed).normal(0.0, level, samples.shape))


def tanh_distortion(samples: Samples, amount: float) -> Samples:
    """Saturate softly: tanh(samples / q), where a share `amount` of all samples is beyond ±q; RMS as before.

    Raises:
        BadInput: the amount is not between 0 and 1, or the signal is silent.
    """
    knee = _exceeded(samples, amount)
    return _same_rms(np.tanh(samples / knee), samples)


def clip(samples: Samples, share: float) -> Samples:
    """Cut off hard at the level that a share `share` of all samples exceeds; RMS as before.

    Raises:
        BadInput: the share is not between 0 and 1, or the signal is silent.
    """
    edge = _exceeded(samples, share)
    return _same_rms(np.clip(samples, -edge, edge), samples)


def mu_law(samples: Samples, bits: int) -> Samples:
    """Through a mu-law code of `bits` bits (mu = 2^bits − 1) and back; samples beyond ±1 are cut off there.

    Raises:
        BadInput: not 2 to 16 bits.
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
    """Butterworth of order 10, 3 dB down at `hz`.

    Raises:
        BadInput: `hz` is not between 0 and half the rate.
    """
    if not 0 < hz < rate / 2:
        raise BadInput(f"the cut-off must lie between 0 and half the rate of {rate} Hz, not at {hz:g} Hz")
    sections = signal.butter(_LOW_PASS_ORDER, hz, fs=rate, output="sos")
    return _single(signal.sosfilt(sections, samples.astype(np.float64), axis=0))


def gain(samples: Samples, db: float) -> Samples:
    """Multiply; nothing is clipped."""
    return _single(samples * np.float64(10 ** (db / 20)))


def speed(samples: Samples, rate: int, factor: float) -> Samples:
    """Play `factor` times as fast, by resampling: the pitch rises with the pace.

    Raises:
        BadInput: the factor is not from 0.25 to 4.
    """
    if not 0.25 <= factor <= 4:
        raise BadInput(f"the speed must be from 0.25 to 4, not {factor:g}")
    return resample(samples, round(rate * factor), rate)


def flatten_melody(samples: Samples, rate: int, contour: VoiceContour, share: float) -> Samples:
    """Take a share of each distance of the pitch from its median, in semitones, without moving the formants.

    Periods are overlapped at new distances (TD-PSOLA; Moulines and Charpentier, Speech Communication 1990).

    Args:
        samples: mono.
        rate: in Hz.
        contour: pitch of the samples.
        share: 1 makes the pitch constant.
    """
    voiced = np.isfinite(contour.pitch)
    middle = np.nanmedian(contour.pitch) if voiced.any() else 0.0
    pitches = (contour.pitch, middle + (1 - share) * (contour.pitch - middle))
    periods, new_periods = (rate / 100 * 2 ** (-pitch / 12) for pitch in pitches)
    total, weight = np.zeros(len(samples)), np.zeros(len(samples))

    def period_at(place: float, of: NDArray[np.float64], first: int, last: int) -> float:
        return float(of[int(min(max(place / rate / FRAME, first), last - 1))])

    for first, last in np.flatnonzero(np.diff(voiced.astype(int), prepend=0, append=0)).reshape(-1, 2):
        marks, at = [], round(first * FRAME * rate)
        while at < min(last * FRAME * rate, len(samples)) - 1:
            period = int(period_at(at, periods, first, last))
            start = max(0, at - period // 4)
            marks.append(start + int(np.argmax(samples[start : at + period // 4 + 1])))
            at = marks[-1] + period
        place = float(marks[0]) if len(marks) > 2 else math.inf
        while place < marks[-1]:
            mark, to = min(marks, key=lambda one: abs(one - place)), int(place)
            reach = min(
                int(period_at(mark, periods, first, last)), mark, to, *(len(samples) - 1 - x for x in (mark, to))
            )
            window = np.hanning(2 * reach + 1)
            total[to - reach : to + reach + 1] += window * samples[mark - reach : mark + reach + 1]
            weight[to - reach : to + reach + 1] += window
            place += period_at(place, new_periods, first, last)
    return _single(np.where(weight > 0.3, total / np.maximum(weight, 0.3), samples))


def room_response(
    rate: int, rt60_s: float, *, seed: int, direct_to_reverberant_db: float = 0.0, pre_delay_s: float = PRE_DELAY
) -> NDArray[np.float64]:
    """A made-up room's impulse response, shape (frames,): the direct sound, then decaying noise.

    The direct sound is 1 at time 0. After the pre-delay comes white Gaussian noise whose level falls by 60 dB in
    `rt60_s`, at all frequencies alike, cut off there; its energy is that of the direct sound less
    `direct_to_reverberant_db`. 0 dB is what one hears at the room's critical distance, half a metre to a metre away
    in a living room.

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
    """Put the signal into the room of `room_response`, all channels into the same; loudness and length as before.

    Raises:
        BadInput: the time is not positive.
        CannotScore: the loudness cannot be had: silent, or shorter than 0.4 s.
    """
    return match_loudness(_in_room(samples, rate, rt60_s, seed, direct_to_reverberant_db), samples, rate)


def change_room(
    samples: Samples, rate: int, at_s: float, rt60_s: float, *, seed: int, direct_to_reverberant_db: float = 0.0
) -> Samples:
    """As it is until `at_s`, from there in a room, as loud as the same stretch was; they fade within 20 ms.

    The room rings from the beginning, so that its tail is there when it is entered.

    Raises:
        BadInput: the moment is not inside the signal, or the time is not positive.
        CannotScore: the loudness after the change cannot be had: silent, or shorter than 0.4 s.
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
    """One after the other, with a crossfade of equal power; neither level is changed.

    Raises:
        BadInput: different channels, or one is shorter than the crossfade.
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
    """Lay music under speech, its integrated loudness `smr_db` LU below; it begins again where it ends too early.

    The speech keeps its level. The music's loudness is that of the stretch that is used.

    Raises:
        BadInput: different channels, or no music.
        CannotScore: a loudness cannot be had: silent, or shorter than 0.4 s.
    """
    if speech.shape[1:] != music.shape[1:] or not len(music):
        raise BadInput(f"music of shape {music.shape} cannot be laid under speech of shape {speech.shape}")
    under = np.take(music, np.arange(len(speech)) % len(music), axis=0)
    return _single(speech + under * (_loudness_factor(under, speech, rate) * 10 ** (-smr_db / 20)))


def match_loudness(samples: Samples, like: Samples | float, rate: int) -> Samples:
    """Bring to the integrated loudness of another signal, or to a number of LUFS, by one factor.

    Raises:
        CannotScore: a loudness cannot be had: silent, or shorter than 0.4 s.
    """
    return _single(samples * np.float64(_loudness_factor(samples, like, rate)))


def _in_room(samples: Samples, rate: int, rt60_s: float, seed: int, direct_to_reverberant_db: float) -> Samples:
    response = room_response(rate, rt60_s, seed=seed, direct_to_reverberant_db=direct_to_reverberant_db)
    response = response.reshape(-1, *[1] * (samples.ndim - 1))
    return _single(signal.oaconvolve(samples.astype(np.float64), response, axes=0)[: len(samples)])


def _loudness_factor(samples: Samples, like: Samples | float, rate: int) -> float:
    """What brings `samples` to the integrated loudness wanted."""
    target = like if isinstance(like, float | int) else _loudness(like, rate)
    return float(10 ** ((target - _loudness(samples, rate)) / 20))


def _loudness(samples: Samples, rate: int) -> float:
    return loudness.measure(samples.reshape(len(samples), -1), rate).integrated


def _exceeded(samples: Samples, share: float) -> float:
    """The level that a share of the samples is beyond."""
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
