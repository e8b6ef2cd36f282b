"""Kokoro reads with a voice for each speaker, and says what it lacks where its weights are not installed."""

from pathlib import Path

import numpy as np
import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.models import weights
from podeval.systems.kokoro import WEIGHTS, Kokoro
from podeval.text.script import Script

SCRIPT = Script.parse([{"speaker": "Ann", "text": "Why is the sea salty?"}, {"speaker": "Ben", "text": "Rivers."}])
HERE = weights.lock()[WEIGHTS].is_installed()


def test_without_its_weights_it_names_the_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path))
    missing = Kokoro().available()
    assert missing is not None
    assert missing.endswith("are not installed; run `podeval models install --profile kokoro`")
    with pytest.raises(ModelMissing, match=r"kokoro-v1\.0\.int8\.onnx"):
        Kokoro().speak(SCRIPT)


def test_it_has_five_voices_and_reads_english() -> None:
    system = Kokoro()
    assert system.voices[:2] == ("jf_alpha", "jm_kumo")
    six = Script.parse([{"speaker": str(number), "text": "Hello."} for number in range(6)])
    with pytest.raises(BadInput, match="kokoro has 5 voices, the script asks for 6"):
        system.lines(six)
    with pytest.raises(BadInput, match="kokoro reads en"):
        system.lines(Script.parse([{"speaker": "A", "text": "海水为什么是咸的？河流带来盐分。"}]))


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
