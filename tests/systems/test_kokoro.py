"""Kokoro reads with a voice for each speaker, and the same each time."""

import numpy as np
import pytest

from podeval.models import weights
from podeval.systems.kokoro import WEIGHTS, Kokoro
from podeval.text.script import Script

SCRIPT = Script.parse([{"speaker": "Ann", "text": "Why is the sea salty?"}, {"speaker": "Ben", "text": "Rivers."}])
HERE = weights.lock()[WEIGHTS].is_installed()


@pytest.mark.long
@pytest.mark.models
@pytest.mark.skipif(not HERE, reason="run `podeval models install --profile kokoro`")
def test_it_speaks_in_two_voices_and_the_same_each_time() -> None:
    system = Kokoro()
    speech = system.speak(SCRIPT)
    assert [turn.speaker for turn in speech.turns] == ["Ann", "Ben"]
    assert 1.5 < speech.duration < 5
    assert speech.details["voices"] == {"0": "jf_alpha", "1": "jm_kumo"}
    assert np.array_equal(speech.samples, system.speak(SCRIPT, seed=1).samples)
