"""Recordings that spell their words: every word is a level, which the recogniser in here reads back.

So a stretch that is listened to again is read again, whatever is cut out of the recording, and nothing is misheard but
what a test names.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from podeval.audio.windows import Span
from podeval.models.interfaces import Transcript, Word
from podeval.recording.recording import MODEL_RATE

STEPS = 60_000
"""Levels, and so words, that there are."""


class SpeltSpeech:
    """Every model in one.

    Args:
        misheard: words that the recogniser takes for others, every time.
        doubted: the same on a second hearing and by the second recogniser alone.
        seconds: seconds of a word with the silence after it.
    """

    def __init__(
        self, misheard: Mapping[str, str] | None = None, doubted: Mapping[str, str] | None = None, seconds: float = 0.3
    ) -> None:
        self.misheard, self.doubted, self.frames = misheard or {}, doubted or {}, round(seconds * MODEL_RATE)
        self.words: list[str] = []
        self.levels: dict[str, int] = {}
        self.transcribed: list[int] = []

    def write(self, path: Path, words: Iterable[str]) -> Path:
        """Write a recording of words."""
        blocks = [np.zeros(self.frames, np.float32)]
        for word in words:
            if word not in self.levels:
                self.words.append(word)
                self.levels[word] = len(self.words)
            block = np.zeros(self.frames, np.float32)
            block[: self.frames * 3 // 4 // 2 * 2] = self.levels[word] / STEPS + 0.01
            block[1::2] *= -1
            blocks.append(block)
        soundfile.write(path, np.concatenate(blocks), MODEL_RATE, subtype="PCM_24")
        return path

    def load(self, job: str, profile: str) -> "SpeltSpeech":
        """Return itself for any job."""
        return self

    def transcribe(self, samples: Any, language: str | None) -> Transcript:
        """Read the words; those of a whole recording, or of stretches that are listened to again."""
        levels = np.abs(samples) - 0.01
        edges = np.flatnonzero(np.diff(np.concatenate([[False], levels > 0, [False]])))
        # What is cut out to be heard again is no whole number of words.
        again = len(samples) % self.frames != 0
        if not again:
            self.transcribed.append(len(samples))
        words = []
        for start, end in edges.reshape(-1, 2).tolist():
            word = self.words[round(float(np.median(levels[start:end])) * STEPS) - 1]
            if end - start > self.frames // 3:
                heard = self.doubted.get(word, word) if again else self.misheard.get(word, word)
                words.append(Word(heard, start / MODEL_RATE, end / MODEL_RATE))
        return Transcript(" ".join(word.text for word in words), language or "en", tuple(words))

    def detect_language(self, samples: Any) -> str:
        """Return the one language."""
        return "en"

    def speech(self, samples: Any) -> tuple[Span, ...]:
        """Return the words as one span each."""
        voiced = np.concatenate([[False], np.abs(samples) > 0.005, [False]])
        edges = np.flatnonzero(np.diff(voiced)).reshape(-1, 2) / MODEL_RATE
        return tuple(Span(float(start), float(end)) for start, end in edges)

    def music(self, samples: Any) -> tuple[Span, ...]:
        """Return no music."""
        return ()
