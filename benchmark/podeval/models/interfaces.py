"""The jobs a model can do for a measurement, as interfaces, and what they hand back.

Samples are always mono float32 at the rate the model's card names; times are seconds from the recording's start.
An implementation has its interface as its base, by which it is checked. The job `speech_quality` has none: it is DNSMOS
alone, and what that gives stands in `models/dnsmos.py`.
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


class MusicDetector(Protocol):
    """Music or not."""

    def music(self, samples: Samples) -> tuple[Span, ...]:
        """The stretches that hold music, under speech or alone, in order."""


class WindowScorer(Protocol):
    """One number for how a stretch of speech sounds: `naturalness` and `pesq_estimator` models are such."""

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """One value a window, shape (windows,)."""


class SentenceEncoder(Protocol):
    """A text to a vector."""

    languages: tuple[str, ...]

    def encode(self, texts: Sequence[str], language: str) -> NDArray[np.float32]:
        """One embedding a text, shape (texts, dimensions), not normalised."""


class AudioText(Protocol):
    """Sounds and descriptions as vectors that can be compared."""

    scale: float
    """The learned factor on cosines, already out of its logarithm."""

    def audio(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """One embedding a clip, shape (clips, dimensions), of length 1; clips are as long as the model wants them."""

    def text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding a text, shape (texts, dimensions), of length 1."""


class Harmony(Protocol):
    """How well music fits the speech over it."""

    def harmony(self, speech: Sequence[Samples], music: Sequence[Samples]) -> NDArray[np.float32]:
        """The cosine of each speech clip with its music clip, shape (clips,)."""
