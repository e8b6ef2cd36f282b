"""How a predictor of listeners' opinions, trained on utterances of some seconds, rates a long recording."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from podeval.metrics.score import UNRANKED, Score, Timeline
from podeval.models import registry
from podeval.models.interfaces import Samples
from podeval.recording import Recording
from podeval.recording.predicted_windows import (
    PredictedWindows,
    Source,
    choose_tracks,
    predict_windows,
)
from podeval.recording.speech_track import NEEDS
from podeval.recording.speech_windows import require_speech

MOST = 0.05
"""Largest share of a recording in which channels may cancel each other."""
CANCELLED = "channels cancel each other during more than a twentieth of the recording, and what cancels is not scored"


def note_cancelled(recording: Recording, keys: Sequence[str]) -> dict[str, Any]:
    """Return the notes of a recording whose channels cancel: for which share, and keys that are then in no rank."""
    share = recording.cancelled
    return {"channels_cancel": round(share, 3), UNRANKED: dict.fromkeys(keys, CANCELLED)} if share > MOST else {}


SPEECH_NEEDS = NEEDS
"""The jobs that decide what is rated."""

STEM = "_stem"
"""What the name of the informative key ends with that has the same of the speech stem."""

SHORTEST = 0.5
"""Fewest seconds of speech."""


def rate_speech(
    recording: Recording,
    key: str,
    job: str,
    *,
    source: Source,
    seconds: float,
    highest_rate: int | None = None,
) -> Score:
    """Return the mean of a predictor over windows of speech, with the course, and that of the stem beside it.

    Args:
        recording: speech.
        key: the score's key; the one of the stem is called after it.
        job: the job of the predictor.
        source: `mix` rates the recording as it is; `stem` its speech stem.
        seconds: length of a window.
        highest_rate: for a model whose values depend on the sample rate, which is given the recording's own up to this
            one; other models have the rate of their card.
    """

    def predict(audio: Recording) -> PredictedWindows:
        card = registry.get_card(job, recording.profile)
        rates = (recording.rate, audio.rate, highest_rate or card.rate)
        rate = max(card.rate, min(rates))

        def ask(model: Any, windows: list[Samples]) -> NDArray[Any]:
            scores: NDArray[Any] = model.score(windows) if highest_rate is None else model.score(windows, rate)
            return scores

        return predict_windows(audio, job, seconds, rate, ask)

    return rate_tracks(recording, key, job, predict, source=source)


def rate_tracks(
    recording: Recording,
    key: str,
    job: str,
    predict: Callable[[Recording], PredictedWindows],
    *,
    source: Source,
    shortest: float = SHORTEST,
    speech: float = SHORTEST,
) -> Score:
    """Return the mean of the windows of what is rated, that of its speech stem beside it, and the course.

    Args:
        recording: the recording.
        key: the score's key; the one of the stem is called after it.
        job: the job of the predictor.
        predict: rates the windows of a recording or of its stem.
        source: `mix` rates the recording as it is; `stem` its speech stem.
        shortest: fewest seconds of the recording.
        speech: fewest seconds of speech in it.
    """
    recording.require_sound(shortest)
    # Nothing is separated where there is no model for what follows.
    registry.get_card(job, recording.profile)
    track, stem, notes = choose_tracks(recording, source)
    require_speech(track, speech)
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
