"""Piper with two voices, one of which is fetched from the Hub."""

import numpy as np
import pytest

from podeval.models import weights
from podeval.systems import hibari_piper
from podeval.systems.hibari_piper import Piper
from podeval.text.script import Script

SCRIPT = Script.parse([{"speaker": "Ann", "text": "Why is the sea salty?"}, {"speaker": "Ben", "text": "Rivers."}])


def test_its_voices_are_pinned_to_a_commit_and_their_content() -> None:
    entry = weights.lock()[hibari_piper.KRISTIN]
    model, config = entry.files
    assert model.url.startswith("https://huggingface.co/rhasspy/piper-voices/resolve/c10ece1aade47bb51c153c893d14e5bf")
    assert config.url == f"{model.url}.json"
    assert (model.size, len(model.sha256), config.size) == (63_531_379, 64, 4_968)
    assert Piper().generation["weights"]["en_US-kristin-medium.onnx"] == model.sha256


@pytest.mark.long
@pytest.mark.models
def test_it_speaks_in_the_voices_that_the_lock_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joe stands in for kristin, whose file no package brings."""
    monkeypatch.setattr(hibari_piper, "VOICES", (hibari_piper.JOE, hibari_piper.JOE))
    monkeypatch.setattr(Piper, "voices", (hibari_piper.JOE, hibari_piper.JOE))
    monkeypatch.setattr(Piper, "weight_names", (hibari_piper.JOE,))
    system = Piper()
    speech = system.speak(SCRIPT)
    assert [turn.speaker for turn in speech.turns] == ["Ann", "Ben"]
    assert (speech.rate, speech.details["voices"]) == (22_050, {"0": "piper-joe", "1": "piper-joe"})
    assert 1.5 < speech.duration < 5
    assert np.array_equal(speech.samples, system.speak(SCRIPT, seed=1).samples)
