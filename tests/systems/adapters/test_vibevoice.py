"""VibeVoice with tiny random weights, fetched from the loopback Hub by the real client and loaded as any."""

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from podeval.errors import ModelMissing
from podeval.systems.adapters import adapter, text_to_speech
from podeval.systems.adapters.adapter import Job

pytestmark = pytest.mark.skipif(not find_spec("diffusers"), reason="diffusers is not installed")

TWO = {
    "id": "two",
    "script": [
        {"speaker": "Ann", "text": "Why is the sea salty?"},
        {"speaker": "Ben", "text": "Rivers carry salt."},
        {"speaker": "Ann", "text": "And keep it?"},
    ],
}


@pytest.mark.long
def test_a_dialogue_is_performed_in_the_voices_that_are_given(run: Any, fetched: Any, heard: Any, voice: Any) -> None:
    words = {"text": "I am Ann."}
    given = {"Ben": {"audio": voice("ben.wav", seed=2)}, "Ann": {"audio": voice("ann.wav", seed=1), **words}}
    asks = [TWO, {**TWO, "id": "given", "voices": given}, {**TWO, "id": "half", "voices": {"Ben": given["Ben"]}}]
    made = run("podcast", fetched("vibevoice"), asks)
    assert {name: line.error for name, line in made.items()} == dict.fromkeys(made)
    assert made["two"].details["voices"] == {"Ann": "own", "Ben": "own"}
    assert made["given"].details["voices"] == {"Ann": "reference", "Ben": "reference"}
    assert made["half"].details["voices"] == {"Ann": "own", "Ben": "reference"}
    assert made["two"].details["strategy"] == "whole"
    assert made["two"].audio_seconds == pytest.approx(0.8), "six frames at 7.5 a second"
    sounds = [heard(line.audio) for line in made.values()]
    assert not any(np.array_equal(a, b) for a, b in pairwise(sounds))
    again = run("podcast", fetched("vibevoice"), [TWO], out_folder="again")["two"]
    assert np.array_equal(sounds[0], heard(f"../again/{again.audio}")), "the same alone as beside others"


def test_what_it_cannot_do_is_told_item_by_item(run: Any, fetched: Any) -> None:
    five = [{"speaker": name, "text": "Salt."} for name in ("Ann", "Ben", "Cem", "Dan", "Eve")]
    long = [{"speaker": "Ann", "text": "Salt and water. " * 60}]
    items = [{"id": "five", "script": five}, {"id": "long", "script": long}]
    made = run("podcast", fetched("vibevoice"), items)
    assert "the model can perform 4 speakers, but the script has 5" in made["five"].error
    assert "tokens, but the model's window is 512" in made["long"].error


def test_without_diffusers_it_says_what_to_install(fetched: Any, job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.systems.adapters.presets import get_preset

    known = adapter.util.find_spec
    monkeypatch.setattr(adapter.util, "find_spec", lambda name: None if name == "diffusers" else known(name))
    file = job("podcast", fetched("vibevoice"), [TWO])
    with pytest.raises(
        ModelMissing, match=r"VibeVoice needs diffusers; install with `pip install 'podeval\[reference\]'`"
    ):
        text_to_speech.open_performer(Job.read(file), get_preset("default"))
