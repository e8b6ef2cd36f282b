"""Decides whether a recording holds speech, and which windows hold enough of it to describe a voice or its room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Clip, Span, count_seconds_inside
from podeval.errors import CannotScore
from podeval.models.interfaces import SpeakerTurn

if TYPE_CHECKING:
    from podeval.recording.recording import Recording
    from podeval.recording.speaker_voices import SpeakerVoice

MOST_SILENCE = 0.6
"""Windows with a larger share of silence than this are left out (LFS-Bench's rule for reverberation)."""


def require_speech(recording: Recording, shortest: float = 0.0) -> None:
    """Refuse a recording with less than `shortest` seconds of speech; speech in noise is accepted.

    Raises:
        CannotScore: there is no speech, or less.
    """
    seconds = sum(span.duration for span in recording.speech())
    if seconds >= 1 and seconds < shortest:
        raise CannotScore(f"{seconds:.1f} s of speech are heard; at least {shortest:g} s are needed")
    if seconds == 0 or seconds < shortest:
        raise CannotScore("no speech is heard in the recording")


def find_sounding(clips: Sequence[Clip], speech: Sequence[Span]) -> NDArray[np.bool_]:
    """Return which windows hold enough speech, shape (windows,)."""
    lengths = np.array([sum(span.duration for span in clip) for clip in clips])
    enough: NDArray[np.bool_] = count_seconds_inside(clips, speech) >= (1 - MOST_SILENCE) * lengths - 1e-9
    return enough


def select_spoken_voices(recording: Recording, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
    """Return each speaker's voice with only the windows that hold enough speech; speakers without any are left out.

    `seconds` counts the speech within the turns, `left_out` the excluded windows.
    """
    speech = recording.speech()
    voices = []
    for voice in recording.voices(turns):
        enough = find_sounding(voice.clips, speech)
        if enough.any():
            spans = tuple(Span(turn.start, turn.end) for turn in turns if turn.speaker == voice.speaker)
            voices.append(
                replace(
                    voice,
                    clips=tuple(clip for clip, sounds in zip(voice.clips, enough, strict=True) if sounds),
                    embeddings=voice.embeddings[enough],
                    seconds=float(count_seconds_inside([spans], speech)[0]),
                    left_out=int((~enough).sum()),
                )
            )
    return tuple(voices)
