"""Features of windows of speech, by factor; the metric `human_likeness` compares them with those of human speech.

Windows last 3 s and begin every second; at most 60 are used, from the middle of the recording. The windows for prosody,
voice, articulation and sound are taken from the speech joined end to end, so pauses affect only timing, whose windows
are taken from the recording itself. The speech is first scaled to a fixed level.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal
from scipy.ndimage import uniform_filter1d

from podeval.audio.prosody import FRAME, RATE, VoiceContour, compute_spread
from podeval.audio.windows import Clip, Span, count_seconds_inside, place_windows
from podeval.models.interfaces import Samples
from podeval.recording.recording import MODEL_RATE, Recording
from podeval.recording.speech_track import JoinedClips, require_speech

WINDOW, STRIDE, MOST = 3.0, 1.0, 60
"""Length and spacing of windows in seconds, and the maximum number of windows; they are taken from the middle of the
recording."""

LEVEL = -26.0
"""Root mean square to which the speech in windows is scaled, in dB relative to full scale."""

METHOD = "2"
"""Version of the method; it changes whenever the results of `describe_windows` do."""

BANDS = (100, 400, 800, 1500, 2500, 4000, 5500, 7500)
"""Edges of the frequency bands in Hz."""

QUIET = (25.0, 35.0)
"""Distances below the level of speech, in dB; timing counts the frames that are quieter."""

_LENGTH = 1024
_FEWEST, _LEAP = 25, 3.0
"""Minimum number of voiced frames for the prosody of a window to be known, and the minimum step between two frames, in
semitones, that counts as an error of the pitch tracker.
"""

Features = NDArray[np.float64]


def describe_windows(recording: Recording) -> dict[str, Features]:
    """Return the features of each window by factor, each of shape (windows, features); NaN if unknown.

    Args:
        recording: speech, 16 kHz.

    Raises:
        CannotScore: the recording has less than 3 s of speech, or no measurable content.
        ModelMissing: a model or librosa is not installed.
    """
    recording.require_sound(WINDOW)
    require_speech(recording, WINDOW)
    speech = recording.speech()
    clips = _keep_middle(place_windows(speech, WINDOW, STRIDE))
    whole = _keep_middle(place_windows([Span(speech[0].start, speech[-1].end)], WINDOW, STRIDE))
    contour = recording.prosody()
    samples = set_speech_level(recording.mono(), speech)
    return {
        "prosody": describe_prosody(contour, clips),
        "voice": recording.embeddings(clips).astype(np.float64),
        "articulation": _encode(recording, samples, clips),
        "timing": describe_timing(contour, whole, speech),
        "sound": describe_sound(samples, clips, whole),
    }


def _encode(recording: Recording, samples: Samples, clips: Sequence[Clip]) -> Features:
    bounds = [[(_to_slice(span).start, _to_slice(span).stop) for span in clip] for clip in clips]
    digest = hashlib.sha256(repr([LEVEL, bounds]).encode()).hexdigest()
    parts = JoinedClips(samples, bounds)
    encoded = recording.array_from("transcriber", lambda model: model.encode(parts), encoded=digest)
    return encoded.astype(np.float64)


def _keep_middle(clips: list[Clip]) -> list[Clip]:
    start = max(0, len(clips) - MOST) // 2
    return clips[start : start + MOST]


def set_speech_level(samples: Samples, speech: Sequence[Span]) -> Samples:
    """Return the samples, scaled so that their speech is at the level `LEVEL`."""
    spoken = np.concatenate([samples[_to_slice(span)] for span in speech])
    level = float(np.sqrt(np.mean(np.square(spoken, dtype=np.float64))))
    return np.asarray(samples * (10 ** (LEVEL / 20) / max(level, 1e-9)), dtype=np.float32)


def describe_prosody(contour: VoiceContour, clips: Sequence[Clip]) -> Features:
    """Return the melody of each window: pitch relative to the recording's median, and the logarithms of its range and
    of its movement per second, in semitones.
    """
    middle = np.nanmedian(contour.pitch) if np.isfinite(contour.pitch).any() else 0.0
    rows = np.full((len(clips), 3), np.nan)
    for row, clip in zip(rows, clips, strict=True):
        pitch = contour.inside(clip).pitch - middle
        steps = np.abs(np.diff(pitch))
        steps = steps[steps < _LEAP]
        if np.isfinite(pitch).sum() >= _FEWEST and steps.size:
            spreads = np.array([compute_spread(pitch), float(np.mean(steps)) / FRAME])
            row[:] = [np.nanmean(pitch), *np.log(np.maximum(spreads, 0.1))]
    return rows


def describe_timing(contour: VoiceContour, clips: Sequence[Clip], speech: Sequence[Span]) -> Features:
    """Return the rhythm of each window: share of speech, number of pauses, number of voiced stretches, their mean
    length, the variation in the distances between their beginnings, and the shares of frames that are quieter than the
    speech by each step of `QUIET`.
    """
    spoken = count_seconds_inside(clips, speech) / WINDOW
    loud = 10 * np.log10(np.mean(10 ** (contour.inside(speech).level / 10)))
    ends = np.array([span.end for span in speech[:-1]])
    rows = []
    for (span,), share in zip(clips, spoken, strict=True):
        frames = contour.inside((span,))
        voiced = np.isfinite(frames.pitch).astype(int)
        begins = np.flatnonzero(np.diff(voiced, prepend=0) == 1)
        gaps = np.diff(begins)
        variation = gaps.std() / gaps.mean() if gaps.size > 1 else 0.0
        pauses = np.sum((ends > span.start) & (ends < span.end))
        quiet = [np.mean(frames.level < loud - step) for step in QUIET]
        rows.append([share, pauses, begins.size, np.log(max(voiced.sum(), 1) / max(begins.size, 1)), variation, *quiet])
    return np.array(rows).reshape(-1, 5 + len(QUIET))


def describe_sound(samples: Samples, clips: Sequence[Clip], whole: Sequence[Clip]) -> Features:
    """Return the sound of each window: the mean level of each band relative to the overall level, the level that each
    band exceeds in all but a tenth of the frames, and the 10th and 50th percentiles of the overall level, in dB.
    """
    bands = measure_bands(samples)
    total = 10 * np.log10(np.sum(10 ** (bands / 10), axis=1))
    rows = []
    for clip in clips:
        inside = _find_frames(clip, len(bands))
        relative = bands[inside] - total[inside, None]
        floors = np.percentile(bands[inside], 10, axis=0) - LEVEL
        rows.append([*relative.mean(axis=0), *floors, *(np.percentile(total[inside], [10, 50]) - LEVEL)])
    return np.array(rows).reshape(-1, 2 * (len(BANDS) - 1) + 2)


def measure_bands(samples: Samples) -> Features:
    """Return the level of each band in frames of 20 ms, dB relative to full scale, shape (frames, bands)."""
    hop = round(FRAME * MODEL_RATE)
    padded = np.pad(samples.astype(np.float64), (0, _LENGTH))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _LENGTH)[: len(samples) : hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(_LENGTH), axis=1)) ** 2 / _LENGTH**2
    edges = np.round(np.array(BANDS) * _LENGTH / MODEL_RATE).astype(int)
    return 10 * np.log10(np.stack([power[:, a:b].sum(axis=1) for a, b in pairwise(edges)], axis=1) + 1e-12)


def _find_frames(clip: Clip, count: int) -> NDArray[np.bool_]:
    middles = np.arange(count) * FRAME
    return np.asarray(np.any([(middles >= span.start) & (middles < span.end) for span in clip], axis=0))


def _to_slice(span: Span) -> slice:
    return slice(round(span.start * MODEL_RATE), round(span.end * MODEL_RATE))


# Types of damage that `human_likeness` plants in recordings of people, to learn what damage to each factor changes.
# Each takes mono samples at 16 kHz, shape (frames,), the pitch or the spans of speech in them, and a strength, and
# changes one property and little else.

Spectrum = NDArray[np.float64]

EVERY = 0.9
"""Seconds of speech between planted pauses."""

_SIZE, _STEP, _CEPSTRUM = 512, 128, 30


def flatten(samples: Samples, contour: VoiceContour, share: float) -> Samples:
    """Reduce each distance of the pitch from its median, in semitones, by a share, without moving the formants.

    Periods are overlapped at new distances (TD-PSOLA; Moulines and Charpentier, Speech Communication 1990).
    """
    voiced = np.isfinite(contour.pitch)
    middle = np.median(contour.pitch[voiced]) if voiced.any() else 0.0
    pitches = contour.pitch, contour.pitch + share * (middle - contour.pitch)
    periods, new_periods = (RATE / 100 * 2 ** (-pitch / 12) for pitch in pitches)
    total, weight = np.zeros(len(samples)), np.zeros(len(samples))

    def period_at(target: float, of: Features, first: int, last: int) -> float:
        return float(of[int(min(max(target / RATE / FRAME, first), last - 1))])

    for first, last in np.flatnonzero(np.diff(voiced.astype(int), prepend=0, append=0)).reshape(-1, 2):
        marks, at = [], round(first * FRAME * RATE)
        while at < min(last * FRAME * RATE, len(samples)) - 1:
            period = int(period_at(at, periods, first, last))
            start = max(0, at - period // 4)
            marks.append(start + int(np.argmax(samples[start : at + period // 4 + 1])))
            at = marks[-1] + period
        target = float(marks[0]) if len(marks) > 2 else np.inf
        while target < marks[-1]:
            mark, to = min(marks, key=lambda one: abs(one - target)), int(target)
            reach = min(
                int(period_at(mark, periods, first, last)), mark, to, *(len(samples) - 1 - x for x in (mark, to))
            )
            window = np.hanning(2 * reach + 1)
            total[to - reach : to + reach + 1] += window * samples[mark - reach : mark + reach + 1]
            weight[to - reach : to + reach + 1] += window
            target += period_at(target, new_periods, first, last)
    return np.where(weight > 0.3, total / np.maximum(weight, 0.3), samples).astype(np.float32)


def shift(samples: Samples, speech: Sequence[Span], part: float) -> Samples:
    """Shift the formants up by this share of their frequencies but keep the pitch; no human voice sounds like this."""

    def move(envelope: Spectrum) -> Spectrum:
        bins = np.arange(len(envelope))
        return np.stack([np.interp(bins / (1 + part), bins, of) for of in envelope.T], axis=1)

    return _change_envelope(samples, move)


def mumble(samples: Samples, speech: Sequence[Span], seconds: float) -> Samples:
    """Average the formants over this many seconds, so that sounds run into each other, but keep the pitch, and the
    level and the tilt of each frame.
    """
    frames = max(1, round(seconds * RATE / _STEP))

    def average(envelope: Spectrum) -> Spectrum:
        gains = uniform_filter1d(envelope, frames, axis=1) - envelope
        slope = np.linspace(-1, 1, len(gains))[:, None]
        return np.asarray(envelope + gains - slope * (np.sum(slope * gains, axis=0) / np.sum(slope**2)))

    return _change_envelope(samples, average)


def interrupt(samples: Samples, speech: Sequence[Span], seconds: float) -> Samples:
    """Insert equal pauses of this many seconds into the speech, regardless of its content."""
    cuts = [round(at * RATE) for span in speech for at in np.arange(span.start + EVERY, span.end - 0.2, EVERY)]
    edges = np.ones(len(samples), dtype=np.float32)
    for cut in cuts:
        edges[cut - 80 : cut + 80] = np.abs(np.linspace(-1, 1, 160))[: len(edges) - cut + 80]
    return np.insert(samples * edges, np.repeat(cuts, round(seconds * RATE)), np.float32(0))


def add_noise(samples: Samples, speech: Sequence[Span], ratio: float) -> Samples:
    """Add white noise this many dB below the mean power of the whole signal."""
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) * 10 ** (-ratio / 20)
    return np.asarray(samples + np.random.default_rng(0).normal(0, level, len(samples)), dtype=np.float32)


def _change_envelope(samples: Samples, change: Callable[[Spectrum], Spectrum]) -> Samples:
    """Return the samples after applying `change` to their spectral envelope (logarithmic, from the cepstrum)."""
    spectrum = signal.stft(samples, RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[2]
    cepstrum = np.fft.irfft(np.log(np.abs(spectrum) + 1e-9), axis=0)
    cepstrum[_CEPSTRUM : 1 - _CEPSTRUM] = 0
    envelope = np.fft.rfft(cepstrum, axis=0).real
    gains = change(envelope) - envelope
    weighted = spectrum * np.exp(gains - gains.mean(axis=0))
    powers = [np.sum(np.abs(one) ** 2, axis=0) + 1e-12 for one in (spectrum, weighted)]
    changed = signal.istft(weighted * np.sqrt(powers[0] / powers[1]), RATE, nperseg=_SIZE, noverlap=_SIZE - _STEP)[1]
    return np.asarray(changed[: len(samples)], dtype=np.float32)


DAMAGES: Mapping[str, tuple[Callable[[Samples, Any, float], Samples], tuple[float, float, float]]] = {
    "prosody": (flatten, (0.35, 0.65, 1.0)),
    "voice": (shift, (0.2, 0.4, 0.6)),
    "articulation": (mumble, (0.08, 0.15, 0.3)),
    "timing": (interrupt, (0.2, 0.4, 0.8)),
    "sound": (add_noise, (30.0, 20.0, 10.0)),
}
"""The damage for each factor, and its three strengths, from the mildest to the worst."""


def plant_damage(recording: Recording, factor: str, strength: int) -> Recording:
    """Return a copy of the recording in which one factor is damaged, at strength 0, 1 or 2."""
    damage, amounts = DAMAGES[factor]
    facts = recording.prosody() if factor == "prosody" else recording.speech()
    damaged = damage(recording.mono(), facts, amounts[strength])
    return Recording.from_samples(damaged, MODEL_RATE, name=recording.name)
