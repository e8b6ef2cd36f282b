import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.systems.adapters import presets, speech_to_speech


def asks(voice: Any, *seeds: int, name: str = "d1") -> dict[str, Any]:
    return {
        "id": name,
        "user": [{"id": f"t{n}", "audio": voice(f"user{seed}.wav", 1.5, seed)} for n, seed in enumerate(seeds, 1)],
    }


def test_every_turn_is_heard_and_answered_in_speech(run: Any, fetched: Any, voice: Any, heard: Any) -> None:
    made = run("speech-to-speech", fetched("cascade"), [asks(voice, 1, 2)], preset="mtalk")["d1"]
    assert [answer.turn for answer in made.answers] == ["t1", "t2"]
    for answer in made.answers:
        assert len(heard(answer.audio)) == pytest.approx(answer.seconds * 16_000)
        assert answer.text
        assert made.details["by_turn"][answer.turn]["heard"]
    assert made.audio_seconds == pytest.approx(sum(answer.seconds for answer in made.answers))
    assert made.details["preset"] == {"name": "mtalk", "temperature": 0.5, "top_p": 0.95}


@pytest.mark.long
def test_what_was_said_before_is_remembered(run: Any, fetched: Any, voice: Any) -> None:
    """The same second turn, with the same seed, after another first turn."""
    first = run("speech-to-speech", fetched("cascade"), [asks(voice, 1, 3)], out_folder="one")["d1"]
    second = run("speech-to-speech", fetched("cascade"), [asks(voice, 2, 3)], out_folder="other")["d1"]
    assert first.details["by_turn"]["t2"]["heard"] == second.details["by_turn"]["t2"]["heard"]
    assert first.answers[1].text != second.answers[1].text


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of speech at most: an untrained talker does not come to an end."""
    monkeypatch.setattr(speech_to_speech, "LONGEST", 12)
    short = presets.Preset("brief", "", "", temperature=1.0, max_new_tokens=6)
    monkeypatch.setitem(presets.PRESETS, "brief", short)


@pytest.mark.long
@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("omni", ["omni", "omni25"])
def test_an_omni_model_hears_remembers_and_answers(
    run: Any, fetched: Any, voice: Any, heard: Any, tmp_path: Path, omni: str
) -> None:
    first = run("speech-to-speech", fetched(omni), [asks(voice, 1, 3)], preset="brief", out_folder="one")["d1"]
    again = run("speech-to-speech", fetched(omni), [asks(voice, 1, 3)], preset="brief", out_folder="two")["d1"]
    tone = asks(voice, 2, 3)
    soundfile.write(tmp_path / "user2.wav", 0.3 * np.sin(np.arange(24_000) / 5), 16_000)
    other = run("speech-to-speech", fetched(omni), [tone], preset="brief", out_folder="three")["d1"]
    assert [answer.turn for answer in first.answers] == ["t1", "t2"]
    assert [answer.text for answer in first.answers] == [answer.text for answer in again.answers]
    assert first.answers[0].text != other.answers[0].text
    samples = heard(f"../one/{first.answers[1].audio}")
    assert len(samples) == pytest.approx(first.answers[1].seconds * 24_000)
    turns = first.details["by_turn"]
    # The second turn is asked with the first recording, 20 tokens for 1.5 s, and each letter of the first answer.
    told = len(speech_to_speech.Qwen25Omni.system) + 20 if omni == "omni25" else 0  # once, before the first turn
    least = 2 * (turns["t1"]["prompt_tokens"] - told) + len(first.answers[0].text)
    assert turns["t2"]["prompt_tokens"] >= least
    assert turns["t2"]["prompt_tokens"] > turns["t1"]["prompt_tokens"]


def test_an_omni_model_that_does_not_speak_is_refused(tmp_path: Path, fetched: Any) -> None:
    folder = tmp_path / "mute"
    shutil.copytree(fetched("omni"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"enable_audio_output": False}))
    with pytest.raises(BadInput, match="cannot speak"):
        speech_to_speech.check(folder)


def test_a_turn_without_recording_is_refused(run: Any, fetched: Any) -> None:
    made = run("speech-to-speech", fetched("cascade"), [{"id": "d", "user": [{"id": "t1", "words": "Hello"}]}])["d"]
    assert "systems need recordings" in made.error


def test_the_settings_of_a_cascade_hold_a_prompt_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cascade.json").write_text(json.dumps({"system_prompt": "Be brief."}))
    assert speech_to_speech.read_system_prompt(tmp_path) == "Be brief."
    (tmp_path / "cascade.json").write_text(json.dumps({"system_prompt": "Be brief.", "code": "x"}))
    with pytest.raises(BadInput, match="nothing else"):
        speech_to_speech.read_system_prompt(tmp_path)
