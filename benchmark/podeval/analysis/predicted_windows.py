"""Windows of a recording that a predictor of listeners' opinions rates one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.analysis.recording import Recording
from podeval.analysis.speech_windows import find_sounding
from podeval.audio.windows import Span
from podeval.models.interfaces import Samples


@dataclass(frozen=True)
class PredictedWindows:
    """What a predictor says of a recording's windows.

    `starts` are in seconds, shape (windows,); `scores` have the shape that the model gives, windows first; `left_out`
    counts windows with hardly any speech, of which nothing was asked.
    """

    starts: NDArray[np.float64]
    scores: NDArray[np.float64]
    seconds: float
    left_out: int


def start_windows(frames: int, size: int, most: int | None = None) -> list[int]:
    """Return the first sample of windows side by side; the last one ends with the recording, and so may overlap.

    Where there would be more than `most`, so many are spread evenly from beginning to end.
    """
    last = max(0, frames - size)
    starts = [*range(0, last, size), last]
    return starts if most is None or len(starts) <= most else [int(s) for s in np.linspace(0, last, most)]


def predict_windows(
    track: Recording,
    job: str,
    seconds: float,
    rate: int,
    ask: Callable[[Any, list[Samples]], NDArray[Any]],
    most: int | None = None,
) -> PredictedWindows:
    """Have a model rate windows of `seconds` side by side that hold speech.

    A recording that is shorter is one window. Windows with more than 60 % of silence are pauses, of which listeners
    have no opinion; they are left out unless all are such.

    Args:
        track: speech.
        job: the job of the model.
        seconds: length of a window.
        rate: sample rate of the windows.
        ask: takes the model and the windows and returns its scores, windows first.
        most: how many windows are taken at most; all where it is None.

    Raises:
        CannotScore: the recording's rate is too low, or its channels cancel each other.
    """
    samples = track.mono(rate)
    size = round(seconds * rate)
    starts = start_windows(len(samples), size, most)
    clips = [(Span(start / rate, min(start + size, len(samples)) / rate),) for start in starts]
    sounding = find_sounding(clips, track.speech())
    chosen = np.flatnonzero(sounding) if sounding.any() else np.arange(len(starts))
    windows = [samples[starts[number] : starts[number] + size] for number in chosen]
    begins = [starts[number] for number in chosen]
    scores = track.array_from(
        job,
        lambda model: ask(model, windows),
        window=size,
        rate=rate,
        starts=hashlib.sha256(repr(begins).encode()).hexdigest(),
    )
    return PredictedWindows(
        starts=np.array(begins, dtype=np.float64) / rate,
        scores=np.asarray(scores, dtype=np.float64),
        seconds=min(size, len(samples)) / rate,
        left_out=len(starts) - len(chosen),
    )
