from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import presets

TWO = [
    {"speaker": "Ann", "text": "Why is the sea salty?"},
    {"speaker": "Ben", "text": "😀…"},
    {"speaker": "Ben", "text": "Rivers carry salt."},
    {"speaker": "Ann", "text": "And keep it?"},
]
DIALOGUE = {"id": "two", "script": TWO}
ALONE = {"id": "one", "script": [{"speaker": "Ann", "text": "Salt. Water."}]}


def test_each_turn_is_where_its_line_says(run: Any, fetched: Any, heard: Any) -> None:
    made = run("text-to-speech", fetched("vits3"), [DIALOGUE])["two"]
    samples = heard(made.audio)
    assert [(turn.speaker, turn.text) for turn in made.turns] == [(t["speaker"], t["text"]) for t in TWO if t != TWO[1]]
    assert made.details["unspoken_turns"] == [1]
    end = 0.0
    for turn in made.turns:
        assert not np.any(samples[round(end * 16_000) : round(turn.start * 16_000)])
        assert np.any(samples[round(turn.start * 16_000) : round(turn.end * 16_000)])
        end = turn.end
    assert made.audio_seconds == pytest.approx(len(samples) / 16_000)
    assert made.rtf == pytest.approx(made.wall_seconds / made.audio_seconds)
    assert made.hardware


def test_speakers_have_voices_of_their_own(run: Any, fetched: Any, heard: Any) -> None:
    words = {"text": "Salt and water."}
    script = [{"speaker": name, **words} for name in ("Ann", "Ben", "Ann")]
    made = run("text-to-speech", fetched("vits3"), [{"id": "same", "script": script}])["same"]
    assert made.details["voices"] == {"Ann": "own 0", "Ben": "own 1"}
    samples = heard(made.audio)
    spectra = []
    for turn in made.turns:
        piece = samples[round(turn.start * 16_000) : round(turn.end * 16_000)]
        spectrum = np.abs(np.fft.rfft(piece, 4_096))
        spectra.append(spectrum / np.linalg.norm(spectrum))
    assert spectra[0] @ spectra[2] > spectra[0] @ spectra[1]


def test_what_is_said_depends_on_seed_and_item_and_nothing_else(run: Any, fetched: Any, heard: Any) -> None:
    both = run("text-to-speech", fetched("vits3"), [DIALOGUE, ALONE], seeds=[0, 1])
    first, other = heard(both["one/0"].audio), heard(both["one/1"].audio)
    run("text-to-speech", fetched("vits3"), [ALONE], out_folder="again")
    assert np.array_equal(first, heard("../again/one.0.flac"))
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_one_voice_does_not_speak_for_two(run: Any, fetched: Any) -> None:
    made = run("text-to-speech", fetched("vits"), [DIALOGUE, ALONE])
    assert "has 1 voice, but the script needs 2 (Ann, Ben)" in made["two"].error
    assert made["two"].cause == "system"
    assert made["one"].audio


def test_a_line_of_unknown_letters_fails_by_itself(run: Any, fetched: Any) -> None:
    made = run("text-to-speech", fetched("vits"), [{"id": "zh", "script": [{"speaker": "A", "text": "海水"}]}])
    assert "contains no character of the line" in made["zh"].error


def test_a_reference_voice_changes_how_dia_speaks(run: Any, fetched: Any, heard: Any, voice: Any) -> None:
    said = {}
    for seed in (1, 2):
        given = {"Ann": {"audio": voice(f"ann{seed}.wav", seed=seed), "text": "I am Ann."}}
        made = run("text-to-speech", fetched("dia"), [{**ALONE, "voices": given}], out_folder=f"v{seed}")["one"]
        assert made.details["voices"] == {"Ann": "reference"}
        said[seed] = heard(f"../v{seed}/{made.audio}")
    assert said[1].shape != said[2].shape or not np.array_equal(said[1], said[2])


def test_the_lfs_preset_gives_voices_of_the_language_and_24_khz(
    run: Any, fetched: Any, tmp_path: Path, voice: Any
) -> None:
    pool = tmp_path / "voices"
    pool.mkdir()
    for number in (9, 10, 12):
        voice(f"{number:02d}.wav", seed=number, folder=pool)
        (pool / f"{number:02d}.txt").write_text("Some words.")
    assert [Path(v.audio).name for v in presets.list_reference_voices("en", pool)] == ["09.wav", "10.wav"]
    assert [Path(v.audio).name for v in presets.list_reference_voices("zh", pool)] == ["12.wav"]
    made = run("text-to-speech", fetched("dia"), [ALONE], preset="lfs", voices_folder="voices")["one"]
    assert made.details["voices"] == {"Ann": "reference"}
    import soundfile

    assert soundfile.info(tmp_path / "out" / made.audio).samplerate == 24_000


def test_dia_needs_the_words_of_a_voice_and_reads_english(run: Any, fetched: Any, voice: Any) -> None:
    wordless = {**ALONE, "voices": {"Ann": {"audio": voice("ann.wav")}}}
    chinese = {**ALONE, "id": "zh", "language": "zh"}
    made = run("text-to-speech", fetched("dia"), [wordless, chinese])
    assert "needs the transcript of a reference voice" in made["one"].error
    assert "Dia speaks English only" in made["zh"].error


def test_weights_that_are_no_numbers_fail_item_by_item(run: Any, tiny: Any, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = tiny.vits(tmp_path / "nan")
    weights = load_file(folder / "model.safetensors")
    weights["decoder.conv_post.weight"] = torch.full_like(weights["decoder.conv_post.weight"], float("nan"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    made = run("text-to-speech", folder, [ALONE])["one"]
    assert made.error
    assert made.cause == "system"
    assert made.audio is None


def test_the_codec_of_dia_may_be_a_repo_of_its_own(run: Any, tiny: Any, tmp_path: Path) -> None:
    folder = tiny.dia(tmp_path / "bare", codec=None)
    with pytest.raises(BadInput, match="needs its codec"):
        run("text-to-speech", folder, [ALONE])
    made = run("text-to-speech", folder, [ALONE], base_folder=str(tmp_path / "bare-codec"))
    assert made["one"].audio
