"""How a predictor of listeners' opinions, trained on utterances of some seconds, rates a long recording."""

from typing import Any

from numpy.typing import NDArray

from podeval.analysis import Recording
from podeval.analysis.predicted_windows import predict_windows
from podeval.analysis.speech_track import NEEDS
from podeval.analysis.speech_windows import require_speech
from podeval.metrics.cancelled_channels import note_cancelled
from podeval.metrics.score import Score, Timeline
from podeval.models import registry
from podeval.models.interfaces import Samples

SPEECH_NEEDS = NEEDS
"""The jobs that decide what is rated."""

SHORTEST = 0.5
"""Fewest seconds of speech."""


def rate_speech(
    recording: Recording,
    key: str,
    job: str,
    *,
    source: str,
    seconds: float,
    highest_rate: int | None = None,
    most: int | None = None,
) -> Score:
    """Return the mean of a predictor over windows of speech, with the course.

    Args:
        recording: speech.
        key: the score's key.
        job: the job of the predictor.
        source: `auto` rates the speech stem where there is music; `mix` the recording as it is.
        seconds: length of a window.
        highest_rate: for a model whose values depend on the sample rate, which is given the recording's own up to this
            one; other models have the rate of their card.
        most: how many windows are rated at most, spread evenly; all where it is None.
    """
    recording.require_sound(SHORTEST)
    # Nothing is separated where there is no model for what follows.
    card = registry.get_card(job, recording.profile)
    track = recording.speech_track("mix" if source == "mix" else "auto")
    require_speech(track, SHORTEST)
    rate = card.rate if highest_rate is None else max(card.rate, min(track.rate, highest_rate))

    def ask(model: Any, windows: list[Samples]) -> NDArray[Any]:
        scores: NDArray[Any] = model.score(windows) if highest_rate is None else model.score(windows, rate)
        return scores

    predicted = predict_windows(track, job, seconds, rate, ask, most)
    return Score(
        values={key: float(predicted.scores.mean())},
        notes={
            "windows": len(predicted.scores),
            "windows_left_out": predicted.left_out,
            **track.notes,
            **note_cancelled(recording, (key,)),
        },
        timeline=Timeline(
            starts=[round(float(start), 3) for start in predicted.starts],
            window=round(predicted.seconds, 3),
            values={key: [round(float(score), 4) for score in predicted.scores]},
        ),
    )
