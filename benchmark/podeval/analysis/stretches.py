"""Stretches of a recording heard one after the other, with pauses between them, so that many short ones cost little."""

from collections.abc import Sequence

import numpy as np

from podeval.models.interfaces import Samples, Transcriber, Word

_PAUSE = 0.8
"""Seconds between stretches that are listened to again."""


def transcribe_stretches(
    model: Transcriber, samples: Samples, rate: int, bounds: Sequence[tuple[int, int]], language: str | None
) -> tuple[Word, ...]:
    """Transcribe stretches without what lies around them; words in the recording's time, in order.

    Args:
        model: the transcriber.
        samples: samples of the recording, shape (frames,).
        rate: sample rate, Hz.
        bounds: first frame of each stretch, and the one after its last.
        language: language of the speech; None if the model detects it.
    """
    pause = np.zeros(round(_PAUSE * rate), np.float32)
    parts = [part for start, end in bounds for part in (samples[start:end], pause)]
    begins = np.cumsum([0, *(end - start + len(pause) for start, end in bounds)])[:-1]
    placed = []
    for word in model.transcribe(np.concatenate(parts), language).words:
        at = max(0, int(np.searchsorted(begins / rate, (word.start + word.end) / 2, "right")) - 1)
        shift = (bounds[at][0] - begins[at]) / rate
        placed.append(Word(word.text, float(word.start + shift), float(word.end + shift)))
    return tuple(placed)
