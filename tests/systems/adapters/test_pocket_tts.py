"""Pocket TTS, Gradium Phonon and voices of CSM with tiny random weights, fetched from the loopback Hub."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput

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
@pytest.mark.parametrize(
    ("model", "own", "words"), [("pocket", {"Ann": "own 0", "Ben": "own 1"}, {}), ("csm", None, {"text": "I am Ann."})]
)
def test_a_voice_is_kept_by_its_recording(
    run: Any, fetched: Any, heard: Any, voice: Any, model: str, own: dict[str, str] | None, words: dict[str, str]
) -> None:
    plain = run("text-to-speech", fetched(model), [TWO, ALONE])
    assert plain["two"].error is None
    assert [turn.speaker for turn in plain["two"].turns] == ["Ann", "Ben", "Ann"]
    assert own in (None, plain["two"].details.get("voices"))
    alone = heard(plain["one"].audio)
    given = {"Ann": {"audio": voice("ann.wav", seed=1), **words}}
    made = run("text-to-speech", fetched(model), [{**ALONE, "voices": given}], out_folder="given")["one"]
    assert made.error is None
    assert made.details["voices"] == {"Ann": "reference"}
    prompted = heard(f"../given/{made.audio}")
    assert alone.shape != prompted.shape or not np.array_equal(alone, prompted)
    again = heard(f"../again/{run('text-to-speech', fetched(model), [ALONE], out_folder='again')['one'].audio}")
    assert np.array_equal(alone, again), "the same alone as beside others"


@pytest.mark.long
def test_phonon_speaks_in_the_voices_of_its_repo(run: Any, fetched: Any, heard: Any, tmp_path: Path) -> None:
    made = run("text-to-speech", fetched("phonon"), [TWO])["two"]
    assert made.error is None
    assert made.details["voices"] == {"Ann": "own 0", "Ben": "own 1"}
    swapped = tmp_path / "swapped"
    shutil.copytree(fetched("phonon"), swapped)
    first, second = (swapped / "voices" / f"voice_{number}.safetensors" for number in (0, 1))
    first.rename(swapped / "voices" / "kept")
    second.rename(first)
    (swapped / "voices" / "kept").rename(second)
    other = run("text-to-speech", swapped, [TWO], out_folder="swapped-out")["two"]
    before, after = heard(made.audio), heard(f"../swapped-out/{other.audio}")
    assert before.shape != after.shape or not np.array_equal(before, after), "the voice decides how it sounds"


def test_phonon_without_enough_voices_fails_item_by_item(run: Any, fetched: Any, tmp_path: Path) -> None:
    three = {"id": "three", "script": [{"speaker": name, "text": "Salt."} for name in ("Ann", "Ben", "Cem")]}
    assert "has 2 voices, but the script needs 3" in run("text-to-speech", fetched("phonon"), [three])["three"].error
    bare = tmp_path / "bare"
    shutil.copytree(fetched("phonon"), bare)
    shutil.rmtree(bare / "voices")
    made = run("text-to-speech", bare, [ALONE, TWO], out_folder="bare-out")
    assert made["one"].error is None
    assert "has 1 voice, but the script needs 2" in made["two"].error


def test_a_codec_is_needed_and_has_to_be_one(run: Any, fetched: Any, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(fetched("pocket"), bare)
    shutil.rmtree(bare / "audio_tokenizer")
    with pytest.raises(BadInput, match="Pocket TTS needs its codec"):
        run("text-to-speech", bare, [ALONE])
    shutil.copytree(fetched("vits"), bare / "audio_tokenizer")
    with pytest.raises(BadInput, match="is a pocket_tts_audio_tokenizer model, not 'vits'"):
        run("text-to-speech", bare, [ALONE])


def test_a_file_that_holds_no_voice_is_refused(run: Any, fetched: Any, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    wrong = tmp_path / "wrong"
    shutil.copytree(fetched("phonon"), wrong)
    save_file({"latents": np.zeros((5, 3), np.float32)}, wrong / "voices" / "voice_0.safetensors")
    with pytest.raises(BadInput, match=r"voice_0.safetensors is not a voice: it must be one tensor of \(frames, 12"):
        run("text-to-speech", wrong, [ALONE])
