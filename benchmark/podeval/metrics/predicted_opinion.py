"""Ratings of long recordings by predictors of listeners' opinions that were trained on utterances of a few seconds."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.metrics.score import UNRANKED, Score, Timeline
from podeval.models import registry
from podeval.models.interfaces import RateAwareScorer, Samples
from podeval.recording import Recording, speech_track
from podeval.recording.predicted_windows import (
    PredictedWindows,
    Source,
    choose_tracks,
    predict_windows,
    score_clips,
    start_windows,
)

MOST = 0.05
"""Maximum share of a recording in which channels may cancel each other."""
CANCELLED = "channels cancel each other in more than 5 % of the recording, and what is cancelled is not scored"


def note_cancelled(recording: Recording, keys: Sequence[str]) -> dict[str, Any]:
    """Return notes about channels that cancel each other: the affected share, and the keys that are not ranked."""
    share = recording.cancelled
    return {"channels_cancel": round(share, 3), UNRANKED: dict.fromkeys(keys, CANCELLED)} if share > MOST else {}


STEM = "_stem"
"""Suffix in the name of the informative key for the value of the speech stem."""

SHORTEST = 0.5
"""Minimum seconds of speech."""


def rate_speech(
    recording: Recording,
    key: str,
    job: str,
    *,
    source: Source,
    seconds: float,
    list_starts: Callable[[int, int], list[int]] = start_windows,
    everything: bool = False,
    highest_rate: int | None = None,
    through: int | None = None,
    shortest: float = SHORTEST,
    speech: float = SHORTEST,
) -> Score:
    """Return a predictor's mean over windows of speech, with its timeline, and the mean of the stem for comparison.

    Args:
        recording: speech.
        key: the score's key; the key of the stem is named after it.
        job: the predictor's job.
        source: `mix` rates the recording as it is; `stem` rates its speech stem.
        seconds: length of a window.
        list_starts: function that takes the lengths of the recording and of a window in samples, and returns the first
            sample of each window.
        everything: whether silence is rated too and a constant offset is kept, as in the public code.
        highest_rate: maximum rate of a model whose values depend on the sample rate; up to it, the recording's
            own rate is used. Other models use the rate on their card.
        through: a sample rate to which the rated samples are resampled first.
        shortest: minimum length of the recording, seconds.
        speech: minimum seconds of speech in it.
    """
    recording.require_sound(shortest)
    # If there is no predictor, do not separate anything.
    card = registry.get_card(job, recording.profile)
    track, stem, notes = choose_tracks(recording, source)
    speech_track.require_speech(track, speech)

    def predict(audio: Recording) -> PredictedWindows:
        audio = audio.through(through) if through else audio
        rate = max(card.rate, min(recording.rate, audio.rate, highest_rate or card.rate))
        ask = partial(score_clips_at, rate=rate) if highest_rate else score_clips
        return predict_windows(audio, job, seconds, rate, ask, list_starts, everything=everything)

    predicted = predict(track)
    beside = predicted if stem is track else predict(stem)
    return Score(
        values={key: float(predicted.scores.mean()), f"{key}{STEM}": float(beside.scores.mean())},
        notes={
            "windows": len(predicted.scores),
            "windows_left_out": predicted.left_out,
            **notes,
            **note_cancelled(recording, (key,)),
        },
        timeline=Timeline(
            starts=[round(float(start), 3) for start in predicted.starts],
            window=round(predicted.seconds, 3),
            values={key: [round(float(score), 4) for score in predicted.scores]},
        ),
    )


def score_clips_at(model: RateAwareScorer, clips: Sequence[Samples], rate: int) -> NDArray[np.float32]:
    """Return the scores of clips from a model whose values depend on the sample rate."""
    return model.score(clips, rate)
