"""What `podeval models install` makes beside weights: what the first recording would wait for otherwise."""

import pytest

from podeval.errors import ModelMissing
from podeval.models import registry, weights


def test_an_installed_profile_is_prepared_and_what_cannot_be_is_said_and_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def load(job: str, profile: str) -> None:
        loaded.append(job)
        if job == "naturalness":
            raise ModelMissing("its library is broken")

    monkeypatch.setattr(weights, "install", lambda names, progress: {})
    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr("podeval.models.card.ModelCard.missing", lambda card: None)
    said: list[str] = []
    assert registry.install("embedded", (), said.append) == {}
    exported = {card.job for card in registry.CARDS if card.exported and "embedded" in card.profiles}
    assert set(loaded) == exported
    assert exported >= {"transcriber", "speaker_encoder", "diarizer", "speech_quality", "music_detector", "naturalness"}
    assert "DistillMOS could not be prepared: its library is broken" in said
    assert "pitch: prepared" in said
    said.clear()
    registry.install("embedded", ["segmentation"], said.append)
    assert said == [], "nothing is made for one job that needs nothing made"
