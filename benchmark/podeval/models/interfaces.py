"""The interfaces for the jobs that a model can do in a measurement, and the values that they return.

Samples are always mono float32 at the rate that the model's card states; times are seconds from the recording's start.
An implementation inherits from its interface, so types are checked. The job `speech_quality` has no interface: DNSMOS
is its only model, and `models/dnsmos.py` defines its values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span

Samples = NDArray[np.float32]

RATE = 16_000
"""Sample rate of the audio that speech models take, in Hz."""


SEGMENTATION_CHUNK, SEGMENTATION_STEP = 10.0, 5.0
"""Length and spacing of the chunks in a segmentation, in seconds."""

SEGMENTATION_START, SEGMENTATION_FRAME = 495 / RATE, 270 / RATE
"""Midpoint of the first frame in a chunk, and spacing of the frames, in seconds."""


@dataclass(frozen=True)
class Word:
    """One transcribed word with its times."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Transcript:
    """The output of a transcriber."""

    text: str
    language: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class SpeakerTurn:
    """A stretch of time in which one speaker speaks; `speaker` is a label valid in this recording only."""

    speaker: str
    start: float
    end: float

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return self.end - self.start


class Transcriber(Protocol):
    """Turns speech into words; the interface for the jobs `transcriber` and `second_transcriber`."""

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        """Return words with times; if `language` is None, the model detects it."""

    def detect_language(self, samples: Samples) -> str:
        """Return the code of the language that `transcribe` detects; empty if there is no speech."""


class Aligner(Protocol):
    """Finds the times of words that are known to have been spoken."""

    def align(self, samples: Samples, words: Sequence[Word], language: str) -> tuple[Word, ...]:
        """Return the words, in order, with new times; `language` is that of their transcript."""


class VoiceActivity(Protocol):
    """Detects speech."""

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        """Return the spans that contain speech, in order."""


class SpeakerEncoder(Protocol):
    """Maps a voice to a vector."""

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, dimensions), not normalised."""


class Diarizer(Protocol):
    """Determines who speaks when, without prior knowledge of the speakers."""

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Return turns in chronological order; empty if no speaker is found."""


class Segmentation(Protocol):
    """Finds who speaks within short chunks, including two speakers at once, without linking speakers between chunks."""

    def segment(self, samples: Samples) -> NDArray[np.uint8]:
        """Return the active speakers, shape (chunks, frames, speakers in a chunk): 1 while a speaker speaks.

        Chunks last 10 s and begin every 5 s, and the last one is padded with silence; frames are `SEGMENTATION_FRAME`
        apart, and the first is centred at `SEGMENTATION_START`.
        """


class Separator(Protocol):
    """Separates the speech in a mix from everything else."""

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        """Return (speech, accompaniment), each of the same shape as `samples`: (frames, 1 or 2 channels)."""


class MusicDetector(Protocol):
    """Detects music."""

    def music(self, samples: Samples) -> tuple[Span, ...]:
        """Return the spans that contain music, under speech or on its own, in order."""


class WindowScorer(Protocol):
    """Rates a window of speech with one number; the interface for the jobs `naturalness`, `pesq_estimator` and
    `utmos22`.
    """

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one value per window, shape (windows,)."""


class RateAwareScorer(Protocol):
    """Rates a window of speech, at its own sample rate, with one number; the interface for the job `nisqa_tts`."""

    def score(self, windows: Sequence[Samples], rate: int) -> NDArray[np.float32]:
        """Return one value per window of samples at `rate`, shape (windows,)."""


class SentenceEncoder(Protocol):
    """Maps a text to a vector."""

    languages: tuple[str, ...]

    def encode(self, texts: Sequence[str], language: str) -> NDArray[np.float32]:
        """Return one embedding per text, shape (texts, dimensions), not normalised."""


class AudioText(Protocol):
    """Maps sounds and descriptions to vectors that can be compared."""

    scale: float
    """The learned factor by which cosine similarities are multiplied (not its logarithm)."""

    def audio(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, dimensions), of length 1.

        Clips have the length that the model requires.
        """

    def text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding per text, shape (texts, dimensions), of length 1."""


class Harmony(Protocol):
    """Rates how well music suits the speech over it."""

    def harmony(self, speech: Sequence[Samples], music: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the cosine similarity of each speech clip with its music clip, shape (clips,)."""
