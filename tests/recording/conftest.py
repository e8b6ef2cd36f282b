"""A cache of its own for each test, and models that count how often they are asked."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.models import registry
from podeval.models.interfaces import Samples, SpeakerTurn, Transcript, Word
from podeval.recording.cache import Cache

SPOKEN = "good evening and welcome to the show thank you it is a pleasure to be here"


class Counting:
    """Every model at once; `asked` counts its calls and `loaded` the jobs it was loaded for."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.loaded: Counter[str] = Counter()
        self.language = "en"
        self.heard: list[Samples] = []

    def load(self, job: str, profile: str) -> "Counting":
        self.loaded[job] += 1
        return self

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        self.asked["speech"] += 1
        self.heard.append(samples)
        return (Span(0.0, len(samples) / 16_000),)

    def music(self, samples: Samples) -> tuple[Span, ...]:
        self.asked["music"] += 1
        return ()

    def transcribe(self, samples: Samples, language: str | None) -> Transcript:
        self.asked[f"transcribe {language}"] += 1
        words = SPOKEN.split()
        step = len(samples) / 16_000 / len(words)
        timed = tuple(Word(word, n * step, (n + 1) * step) for n, word in enumerate(words))
        return Transcript(SPOKEN, language or self.language, timed)

    def detect_language(self, samples: Samples) -> str:
        self.asked["detect language"] += 1
        return self.language

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        self.asked["diarize"] += 1
        half = len(samples) / 32_000
        return (SpeakerTurn("S1", 0.0, half), SpeakerTurn("S2", half, 2 * half))

    def embed(self, clips: Sequence[Samples]) -> np.ndarray[Any, Any]:
        self.asked["embed"] += 1
        return np.stack([np.array([len(clip), index + 1.0, 1.0], np.float32) for index, clip in enumerate(clips)])

    def score(self, samples: Samples, windows: str) -> np.ndarray[Any, Any]:
        self.asked["score"] += 1
        return np.tile(np.arange(1.0, 6.0), (2, 1))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(registry, "load", counting.load)
    return counting
