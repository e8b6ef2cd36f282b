"""The part of a recording that predictors of listeners' opinions rate, chosen by the same rule for all of them.

Such predictors are trained on utterances, and rate silence and constant offsets, which listeners do not hear, as bad
speech. Therefore, a constant offset is removed (`Recording.mono`, for all models). The following are left out: digital
silence at the ends, other sound before the first speech or after the last if it lasts more than a second, and windows
of which more than 60 % is silence or music without speech. Music under speech is rated together with the speech.
Variants that reproduce public code rate everything.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import find_ends, find_sound
from podeval.audio.windows import Span, count_seconds_inside
from podeval.models import registry
from podeval.models.interfaces import Samples, WindowScorer
from podeval.recording.recording import MODEL_RATE, Recording
from podeval.recording.speech_track import find_sounding

LONGEST_END, KEPT_END = 1.0, 0.5
"""Maximum duration without speech at an end, and the duration that is kept if an end is longer, both in seconds;
digital silence is never kept."""

FULLEST = 0.5
"""Share of the amount of speech in the window with the most speech. If no window contains enough speech, as in one
channel of a conversation, windows with at least this share are rated."""

Source = Literal["mix", "stem"]
"""The rated material: the recording as it is, or its speech stem, even if there is no music."""


@dataclass(frozen=True)
class SpokenPart:
    """The rated part of a recording: its samples, its beginning in seconds, and the options that distinguish it in the
    cache.
    """

    samples: Samples
    begin: float
    options: dict[str, Any]


@dataclass(frozen=True)
class PredictedWindows:
    """A predictor's result for a recording's windows.

    `starts` are in seconds, shape (windows,); `scores` have the shape that the model returns, windows first; `left_out`
    counts windows with hardly any speech, which were not scored.
    """

    starts: NDArray[np.float64]
    scores: NDArray[np.float64]
    seconds: float
    left_out: int


def choose_tracks(recording: Recording, source: Source) -> tuple[Recording, Recording, dict[str, Any]]:
    """Return the rated recording, the speech stem that is also rated, and notes about both.

    Without music, there is nothing to separate, and both are the recording itself.

    Raises:
        CannotScore: there is music but no speech.
        ModelMissing: the music detector is not installed or, if there is music, the separator.
    """
    if source == "stem":
        stem = recording.speech_stem()
        return stem, stem, stem.notes
    stem = recording.speech_track("auto")
    if stem is recording:
        return recording, recording, {}
    separator = registry.get_card("separator", recording.profile).identity
    return recording, stem, {"stem": {**stem.notes, "separator": separator["id"]}}


FEWEST_ZEROS = 0.02
"""Minimum duration, in seconds, of zeros at an end that count as added silence."""


def cut_to_speech(track: Recording, rate: int = MODEL_RATE) -> SpokenPart:
    """Return a recording from its first to its last speech, without a constant offset; all of it if nobody speaks.

    Raises:
        CannotScore: the recording's rate is too low, or its channels cancel each other out.
    """
    samples, speech = track.mono(rate), track.speech()
    first, last = _find_ends(track, rate) if speech else (0, len(samples))
    if speech and speech[0].start - first / rate > LONGEST_END:
        first = round((speech[0].start - KEPT_END) * rate)
    if speech and last / rate - speech[-1].end > LONGEST_END:
        last = round((speech[-1].end + KEPT_END) * rate)
    centred = track.mono(track.rate) is not track.mono(track.rate, offset=True)
    changed = centred or (first, last) != (0, len(samples))
    options = {"span": [first, last], "centred": centred} if changed else {}
    return SpokenPart(samples[first:last], first / rate, options)


def cut_to_sound(track: Recording, rate: int) -> tuple[Samples, int]:
    """Return the part to rate with predictors for any kind of sound, without a constant offset or silent ends, and the
    index of its first sample.

    A recording with a lower rate is upsampled.

    Raises:
        CannotScore: its channels cancel each other out.
    """
    samples, (begin, end) = track.mono(rate, upsample=True), _find_ends(track, rate)
    first, last = find_sound(samples[begin:end], rate)
    end = begin + last if 0 < last < end - begin - LONGEST_END * rate else end
    begin += first if first > LONGEST_END * rate else 0
    return samples[begin:end], begin


def _find_ends(track: Recording, rate: int) -> tuple[int, int]:
    """Return the beginning and end of the sound between zeros, which are exactly zero only at the recording's own rate.

    Fewer zeros than `FEWEST_ZEROS` are part of the sound, so sound without padding is rated from its first sample.
    """
    samples = track.mono(track.rate)
    first, last = find_ends(samples)
    before, after = (
        zeros if zeros >= FEWEST_ZEROS * track.rate else 0 for zeros in (first, len(samples) - (last or len(samples)))
    )
    return round(before * rate / track.rate), round((len(samples) - after) * rate / track.rate)


def choose_windows(track: Recording, starts: Sequence[float], seconds: float) -> NDArray[np.int_]:
    """Return the indices of the windows with enough speech or, if there are none, of the fullest ones (`FULLEST`)."""
    clips = [(Span(start, min(start + seconds, track.duration)),) for start in starts]
    sounding, spoken = find_sounding(clips, track.speech()), count_seconds_inside(clips, track.speech())
    return np.flatnonzero(sounding if sounding.any() else spoken >= FULLEST * spoken.max())


def start_windows(frames: int, size: int, *, most: int | None = None, stride: int | None = None) -> list[int]:
    """Return the first sample of consecutive windows; the last one ends with the recording, so it may overlap.

    If there would be more than `most` windows, `most` windows are spread evenly from beginning to end; with `stride`,
    windows begin this many samples apart.
    """
    last = max(0, frames - size)
    starts = [*range(0, last, stride or size), last]
    return starts if most is None or len(starts) <= most else [int(s) for s in np.linspace(0, last, most)]


def score_clips(model: WindowScorer, clips: Sequence[Samples]) -> NDArray[np.float32]:
    """Score windows with a model that takes them at its own rate."""
    return model.score(clips)


def predict_windows(
    track: Recording,
    job: str,
    seconds: float,
    rate: int,
    ask: Callable[[Any, list[Samples]], NDArray[Any]],
    list_starts: Callable[[int, int], list[int]] = start_windows,
    *,
    everything: bool = False,
) -> PredictedWindows:
    """Use a model to rate the windows, `seconds` seconds long, that contain speech.

    A shorter recording is one window. Windows that are more than 60 % silence are pauses, about which listeners have no
    opinion, so they are left out; if this is true of all windows, the windows with the most speech are rated.

    Args:
        track: speech.
        job: the job of the model.
        seconds: length of a window.
        rate: sample rate of the windows.
        ask: function that takes the model and the windows and returns its scores, windows first.
        list_starts: function that takes the number of samples in the recording and in a window, and returns the first
            sample of each window.
        everything: whether everything is rated, including silence and offset, as in the public code.

    Raises:
        CannotScore: the recording's rate is too low, or its channels cancel each other out.
    """
    part = SpokenPart(track.mono(rate, offset=True), 0.0, {}) if everything else cut_to_speech(track, rate)
    samples, size = part.samples, round(seconds * rate)
    starts = list_starts(len(samples), size)
    moments = part.begin + np.array(starts, dtype=np.float64) / rate
    chosen = np.arange(len(starts)) if everything else choose_windows(track, moments.tolist(), seconds)
    windows = [samples[starts[number] : starts[number] + size] for number in chosen]
    scores = track.array_from(
        job,
        lambda model: ask(model, windows),
        window=size,
        rate=rate,
        starts=hashlib.sha256(repr([starts[number] for number in chosen]).encode()).hexdigest(),
        **part.options,
    )
    return PredictedWindows(
        starts=moments[chosen],
        scores=np.asarray(scores, dtype=np.float64),
        seconds=min(size, len(samples)) / rate,
        left_out=len(starts) - len(chosen),
    )
