"""Bark and CSM with tiny random weights, fetched from the loopback Hub by the real client and loaded as any."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import line_models

TWO = {
    "id": "two",
    "script": [
        {"speaker": "Ann", "text": "Why is the sea salty?"},
        {"speaker": "Ben", "text": "Rivers carry salt."},
        {"speaker": "Ann", "text": "And keep it?"},
    ],
}
ALONE = {"id": "one", "script": [{"speaker": "Ann", "text": "Salt. Water."}]}


@pytest.mark.long
def test_bark_speaks_in_the_voices_of_its_repo(run: Any, fetched: Any, heard: Any, tmp_path: Path) -> None:
    made = run("text-to-speech", fetched("bark"), [TWO])["two"]
    assert made.error is None
    assert made.details["voices"] == {"Ann": "own 0", "Ben": "own 1"}
    first = heard(made.audio)
    assert len(made.turns) == 3
    other = tmp_path / "other"
    shutil.copytree(fetched("bark"), other)
    paths = json.loads((other / line_models.VOICES).read_text())
    paths["v2/en_speaker_0"], paths["v2/en_speaker_1"] = paths["v2/en_speaker_1"], paths["v2/en_speaker_0"]
    (other / line_models.VOICES).write_text(json.dumps(paths))
    swapped = heard(f"../swapped/{run('text-to-speech', other, [TWO], out_folder='swapped')['two'].audio}")
    assert first.shape != swapped.shape or not np.array_equal(first, swapped), "the preset decides who speaks"


def test_bark_without_enough_voices_fails_item_by_item(run: Any, fetched: Any) -> None:
    three = {"id": "three", "script": [{"speaker": name, "text": "Salt."} for name in ("Ann", "Ben", "Cem")]}
    chinese = {"id": "zh", "language": "zh", "script": [{"speaker": "Ann", "text": "海水"}]}
    made = run("text-to-speech", fetched("bark"), [three, chinese])
    assert "has 2 voices, but the script needs 3" in made["three"].error
    assert "no voice preset for zh" in made["zh"].error


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "missing.npy"])
def test_a_voice_of_bark_lies_in_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").mkdir()
    np.save(tmp_path / "secret.npy", np.zeros(3, np.int64))
    paths = dict.fromkeys(("semantic_prompt", "coarse_prompt", "fine_prompt"), name)
    with pytest.raises(BadInput, match=r"not a file in the model's folder"):
        line_models.read_voice(tmp_path / "model", paths)


def test_a_voice_of_bark_is_no_pickle_and_of_the_right_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "flat.npy", np.zeros(3, np.int64))
    with pytest.raises(BadInput, match=r"objects.npy is not a readable array"):
        line_models.read_voice(tmp_path, {"semantic_prompt": "objects.npy"})
    with pytest.raises(BadInput, match=r"flat.npy is not a coarse_prompt, which must contain integers in 2 dimensions"):
        line_models.read_voice(tmp_path, {"coarse_prompt": "flat.npy"})
    (tmp_path / line_models.VOICES).write_text('{"en_speaker_0": {"semantic_prompt": "flat.npy"}}')
    with pytest.raises(BadInput, match="does not list the arrays"):
        line_models.list_voices(tmp_path)


def test_csm_performs_a_dialogue_and_reads_english(run: Any, fetched: Any, voice: Any) -> None:
    wordless = {**TWO, "id": "wordless", "voices": {"Ann": {"audio": voice("ann.wav")}}}
    chinese = {"id": "zh", "language": "zh", "script": [{"speaker": "Ann", "text": "海水"}]}
    made = run("podcast", fetched("csm"), [TWO, wordless, chinese])
    assert made["two"].error is None
    assert made["two"].details["strategy"] == "whole"
    assert made["two"].audio_seconds == pytest.approx(2.4, abs=0.3), "three turns of ten frames at 12.5 a second"
    assert "needs the transcript of a reference voice" in made["wordless"].error
    assert "speaks English only" in made["zh"].error
