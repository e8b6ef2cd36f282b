"""The whole chain in the reference profile: models published on a Hub, installed, loaded, and asked by a recording."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.measuring.compute import compute
from podeval.metrics import catalogue
from podeval.metrics.score import Unscored
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache

RATE = 44_100


@pytest.fixture
def recording(
    load_reference: Callable[..., Any], tiny_models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Recording:
    """3 s of stereo, and the models that hear them."""
    load_reference("transcriber", {"openai/whisper-large-v3": tiny_models.whisper(tmp_path / "whisper")})
    load_reference("speaker_encoder", {"microsoft/wavlm-base-plus-sv": tiny_models.wavlm(tmp_path / "wavlm")})
    load_reference("separator", {"adefossez/HTDemucs": tiny_models.htdemucs(tmp_path / "demucs")})
    samples = np.stack([tiny_models.voice(3, seed, RATE) for seed in (0, 1)], axis=1)
    return Recording.from_samples(samples, RATE, profile="reference", cache=Cache(tmp_path / "cache"))


def test_a_recording_is_heard_by_the_models_of_its_profile(recording: Recording) -> None:
    heard = recording.transcript("en")
    assert heard.language == "en"
    assert heard.text
    assert all(0 <= word.start <= word.end <= 3 for word in heard.words)

    vectors = recording.embeddings([(Span(0, 1),), (Span(1, 3),), (Span(0, 0.4), Span(2, 2.6))])
    assert vectors.shape == (3, 20)
    joined = np.concatenate([recording.mono()[:6_400], recording.mono()[32_000:41_600]])
    alone = registry.load("speaker_encoder", "reference").embed([joined])
    np.testing.assert_allclose(vectors[2], alone[0], atol=1e-5)

    stems = recording.stems()
    assert stems.speech.shape == stems.accompaniment.shape == (3 * RATE, 2)
    assert not np.allclose(stems.speech, 0)


def test_a_metric_names_the_commits_it_was_computed_by(recording: Recording) -> None:
    found = compute(
        catalogue.get("wer"),
        [{"recording": recording, "reference_text": "why is the sea salty"}],
        input_names=("recording", "reference_text"),
        profile="reference",
    )
    assert found["scored"] == 1
    assert found["wer"] > 0
    assert found["protocol"]["models"]["transcriber"]["revision"] == {
        "openai/whisper-large-v3": "06f233fe06e710322aca913c1bc4249a0d71fce1"
    }


def test_what_is_not_installed_is_unscored_with_the_command(recording: Recording) -> None:
    """pyannote.audio is absent here: nothing stands in for it."""
    found = catalogue.get("sptd")({"recording": recording})
    assert isinstance(found, Unscored)
    assert found.cause == "ours"
    assert found.reason == "pyannote community-1 needs pyannote.audio; run `pip install 'podeval[pyannote]'`"
