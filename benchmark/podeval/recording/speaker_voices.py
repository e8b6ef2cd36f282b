"""The voices of a recording's speakers: their speech joined, cut into windows, and an embedding of each window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Clip, Span, place_windows
from podeval.models.interfaces import Samples, SpeakerTurn

VOICE_WINDOW, VOICE_STRIDE = 3.0, 2.0
"""Windows over a speaker's speech, seconds."""

SHORTEST_VOICE = 0.5
"""Seconds of speech below which nothing is said of a voice."""


@dataclass(frozen=True, eq=False)
class SpeakerVoice:
    """The voice of one speaker of a recording.

    Attributes:
        speaker: label, valid in this recording only.
        clips: windows over the speaker's joined speech.
        embeddings: one per window, shape (windows, dimensions), not normalised.
        seconds: seconds of speech.
        left_out: number of windows that were excluded because they are mostly silence.
    """

    speaker: str
    clips: tuple[Clip, ...]
    embeddings: NDArray[np.float32]
    seconds: float
    left_out: int = 0

    @property
    def embedding(self) -> NDArray[np.float32]:
        """The mean embedding over windows, shape (dimensions,)."""
        mean: NDArray[np.float32] = self.embeddings.mean(axis=0)
        return mean


def find_voices(
    turns: Sequence[SpeakerTurn], duration: float, embed: Callable[[Sequence[Clip]], NDArray[np.float32]]
) -> tuple[SpeakerVoice, ...]:
    """Find the speakers of some turns, in order of appearance; those with less than 0.5 s of speech are left out.

    A speaker's speech is joined and looked at in windows of 3 s every 2 s, or whole where it is shorter.

    Args:
        turns: the turns of all speakers.
        duration: length of the recording, seconds; what lies beyond is left out.
        embed: gives an embedding of each clip, shape (clips, dimensions).
    """
    spans: dict[str, list[Span]] = {}
    for turn in turns:
        if min(turn.end, duration) > turn.start:
            spans.setdefault(turn.speaker, []).append(Span(turn.start, min(turn.end, duration)))
    seconds = {speaker: sum(span.duration for span in of_speaker) for speaker, of_speaker in spans.items()}
    windows = {
        speaker: place_windows(of_speaker, VOICE_WINDOW, VOICE_STRIDE) or [tuple(of_speaker)]
        for speaker, of_speaker in spans.items()
        if seconds[speaker] >= SHORTEST_VOICE
    }
    vectors = iter(embed([clip for clips in windows.values() for clip in clips]) if windows else ())
    return tuple(
        SpeakerVoice(speaker, tuple(clips), np.stack([next(vectors) for _ in clips]), seconds[speaker])
        for speaker, clips in windows.items()
    )


class JoinedClips(Sequence[Samples]):
    """Spans of samples joined to clips, each on access: together they are longer than the recording."""

    def __init__(self, samples: Samples, bounds: list[list[tuple[int, int]]]) -> None:
        self._samples, self._bounds = samples, bounds

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, index: int) -> Samples: ...
    @overload
    def __getitem__(self, index: slice) -> "JoinedClips": ...
    def __getitem__(self, index: int | slice) -> "Samples | JoinedClips":
        if isinstance(index, slice):
            return JoinedClips(self._samples, self._bounds[index])
        return np.concatenate([self._samples[start:end] for start, end in self._bounds[index]])
