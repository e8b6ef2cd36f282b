"""What a recording needs in memory beyond its samples must not grow with its length; models are stubs that listen."""

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span, place_windows
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.models.interfaces import Samples
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.speech_track import JoinedClips

RATE = 16_000
ROOM = 4_000_000
"""Bytes that 10 minutes may need more than 1: a hundred values a second, where their samples are 35 million."""


def needed(minutes: int, folder: Path, work: Any) -> int:
    """Highest number of bytes in use while `work` is done on a recording that lies on disk."""
    path = folder / f"{minutes}.f32"
    minute = np.random.default_rng(0).normal(0, 0.1, (60 * RATE, 1)).astype(np.float32)
    with path.open("wb") as file:
        for _ in range(minutes):
            file.write(minute.tobytes())
    samples = np.memmap(path, dtype=np.float32, mode="r").reshape(-1, 1)
    recording = Recording(samples, RATE, str(minutes), cache=Cache(folder / "cache"))
    # What is imported on the way is not what is measured.
    work(Recording(samples[: 10 * RATE], RATE, f"beginning of {minutes}", cache=recording.cache))
    tracemalloc.start()
    work(recording)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


class Encoder:
    """Takes clips as CAM++ does, a batch at a time."""

    def embed(self, clips: Sequence[Samples]) -> np.ndarray[Any, Any]:
        lengths = [len(clip) for clip in clips]
        return np.array([[length, np.stack([clips[n]] * 32).mean()] for n, length in enumerate(lengths)], np.float32)


def test_clips_of_voices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", lambda job, profile: Encoder())

    def embed(recording: Recording) -> None:
        clips = place_windows([Span(0.0, recording.duration)], 3.0, 2.0)
        assert recording.embeddings(clips).shape == (len(clips), 2)

    assert needed(10, tmp_path, embed) - needed(1, tmp_path, embed) < ROOM


def test_loudness_and_what_is_checked_before_it(tmp_path: Path) -> None:
    def measure(recording: Recording) -> None:
        catalogue.get("loudness")({"recording": recording}, {})

    assert needed(10, tmp_path, measure) - needed(1, tmp_path, measure) < ROOM


class Listener:
    """Hears speech everywhere and no music, and predicts one opinion."""

    def speech(self, samples: Samples) -> tuple[Span, ...]:
        return (Span(0.0, len(samples) / RATE),)

    def music(self, samples: Samples) -> tuple[Span, ...]:
        return ()

    def score(self, windows: Sequence[Samples]) -> np.ndarray[Any, Any]:
        return np.full(len(windows), 3.0, np.float32)


def test_integrity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", lambda job, profile: Listener())

    def measure(recording: Recording) -> None:
        result = catalogue.get("integrity")({"recording": recording}, {})
        assert isinstance(result, Score)
        assert result.values["plcmos"] == 3.0

    # 5 kB a second are spectra, in which loops are looked for; the samples of 10 minutes are 38 million bytes.
    assert needed(15, tmp_path, measure) - needed(5, tmp_path, measure) < 10 * 60 * 15_000


def test_clips_are_the_stretches_joined() -> None:
    samples = np.arange(100, dtype=np.float32)
    clips = JoinedClips(samples, [[(0, 3)], [(10, 12), (50, 51)], [(99, 120)]])
    assert [clip.tolist() for clip in clips] == [[0, 1, 2], [10, 11, 50], [99]]
    assert [clip.tolist() for clip in clips[1:]] == [[10, 11, 50], [99]]
    assert len(clips) == 3
