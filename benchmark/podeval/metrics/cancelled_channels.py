"""Sound that listeners hear and that the mean of the channels has not: who scores the mean does not hear it."""

from collections.abc import Sequence
from typing import Any

from podeval.analysis import Recording
from podeval.metrics.score import UNRANKED

MOST = 0.05
"""Largest share of a recording in which channels may cancel each other."""
CANCELLED = "channels cancel each other during more than a twentieth of the recording, and what cancels is not scored"


def note_cancelled(recording: Recording, keys: Sequence[str]) -> dict[str, Any]:
    """Return the notes of a recording whose channels cancel: for which share, and keys that are then in no rank."""
    share = recording.cancelled
    return {"channels_cancel": round(share, 3), UNRANKED: dict.fromkeys(keys, CANCELLED)} if share > MOST else {}
