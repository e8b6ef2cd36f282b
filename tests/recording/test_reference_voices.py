"""Which part of a reference recording stands for its voice, and what is no reference."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.reference_voices import ReferenceVoices

RATE = 16_000


@pytest.fixture
def voice(cache: Cache, models: Any) -> Any:
    """Twelve seconds of which speech is in the spans, as the reference voice of Ann."""

    def make(*spoken: tuple[float, float], seconds: float = 12.0) -> ReferenceVoices:
        models.speech = lambda samples: tuple(Span(*span) for span in spoken)
        # Noise of its own for each answer, as answers are kept by content.
        seed = round(10 * sum(end for _, end in spoken))
        noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)
        return ReferenceVoices({"Ann": Recording.from_samples(noise, RATE, cache=cache)})

    return make


def test_windows_of_a_reference_that_are_mostly_silence_are_left_out(voice: Any, models: Any) -> None:
    def embed(clips: Sequence[Any]) -> np.ndarray[Any, Any]:
        return np.arange(1, len(clips) + 1, dtype=np.float32)[:, np.newaxis]

    models.embed = embed
    # Windows begin at 0, 2, 4, 6 and 8 s; those at 0 and 2 s hold the 1.2 s of speech that are 40 %.
    assert voice((0.5, 3.2)).embeddings["Ann"].tolist() == [1.5]
    assert voice((0, 12)).embeddings["Ann"].tolist() == [3.0]


def test_a_reference_shorter_than_a_window_is_looked_at_whole(voice: Any) -> None:
    assert voice((0.2, 0.7), seconds=1.0).embeddings["Ann"].tolist() == [RATE, 1, 1]


def test_a_reference_without_enough_speech_says_whose_it_is(voice: Any) -> None:
    with pytest.raises(CannotScore, match=r"^the reference voice of Ann cannot be used: it contains no speech$"):
        _ = voice().embeddings
    with pytest.raises(CannotScore, match=r"^the reference voice of Ann .* no window of 3 s of it has enough speech"):
        _ = voice((0, 1.1), (5, 5.5)).embeddings


@pytest.mark.models
def test_silence_after_a_voice_does_not_move_what_it_sounds_like(shared_data: Path, tmp_path: Path) -> None:
    for job in ("voice_activity", "speaker_encoder"):
        if reason := registry.get_card(job, "embedded").missing():
            pytest.skip(reason)
    speech = Recording.open(shared_data / "samples/sense_and_sensibility_01_austen_64kb-0870.wav").mono()
    silence = np.random.default_rng(0).normal(0, 1e-5, 12 * RATE).astype(np.float32)
    cache = Cache(tmp_path)
    found = ReferenceVoices(
        {
            "alone": Recording.from_samples(speech, RATE, cache=cache),
            "followed": Recording.from_samples(np.concatenate([speech, silence]), RATE, cache=cache),
        }
    ).embeddings
    one, other = (vector / np.linalg.norm(vector) for vector in found.values())
    assert float(one @ other) > 0.97
