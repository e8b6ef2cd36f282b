"""The jobs a model can do for a measurement, as interfaces, and what they hand back.

Samples are always mono float32 at the rate the model's card names; times are seconds from the recording's start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Word:
    """One word as heard, with its times."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Transcript:
    """What a transcriber heard."""

    text: str
    language: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class SpeakerTurn:
    """Who speaks when; `speaker` is a label of this recording only."""

    speaker: str
    start: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


class Transcriber(Protocol):
    """Speech to words."""

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Words with times; language `None` lets the model decide."""


class VoiceActivity(Protocol):
    """Speech or not."""

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        """The stretches that hold speech, in order."""


class SpeakerEncoder(Protocol):
    """A voice to a vector."""

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """One embedding a clip, shape (clips, dimensions), not normalised."""


class Diarizer(Protocol):
    """Who speaks when, without being told who there is."""

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Turns in order of time; empty where no speaker is found."""


class Separator(Protocol):
    """A mix to its speech and everything else."""

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        """(speech, accompaniment), each of the shape of `samples`: (frames, channels)."""
