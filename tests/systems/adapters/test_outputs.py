import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.systems.adapters import outputs
from podeval.systems.adapters.outputs import MANIFEST, read_manifest

SPEAK = {"id": "ep1", "script": [{"speaker": "A", "text": "Hello."}]}
WRITE = {"id": "w1", "prompt": "Write."}
TALK = {"id": "d1", "user": [{"id": "t1"}, {"id": "t2"}]}


@pytest.fixture
def supplied(tmp_path: Path) -> Path:
    folder = tmp_path / "supplied"
    folder.mkdir()
    return folder


def wav(path: Path, seconds: float = 0.5, rate: int = 22_050, channels: int = 1, level: float = 0.3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(round(seconds * rate))[:, None] / rate
    tone = level * np.sin(2 * np.pi * 220 * time) * np.ones((1, channels))
    soundfile.write(path, tone.astype(np.float32), rate, subtype="FLOAT")
    return path


def manifest(folder: Path, *lines: Any) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def test_audio_is_found_by_its_item_and_kept_as_flac(run: Any, supplied: Path, tmp_path: Path) -> None:
    wav(supplied / "ep1.wav", channels=2)
    made = run("outputs", supplied, [SPEAK])["ep1"]
    info = soundfile.info(tmp_path / "out" / made.audio)
    assert (info.format, info.subtype, info.channels, info.samplerate) == ("FLAC", "PCM_24", 2, 22_050)
    assert made.rtf is None
    assert made.details["wall_seconds_unknown"]


@pytest.mark.parametrize("other", ["ep1.mp3", "ep1.MP3", "ep1.WAV"])
def test_two_files_for_one_item_are_not_chosen_from(run: Any, supplied: Path, other: str) -> None:
    wav(supplied / "ep1.wav")
    soundfile.write(supplied / other, np.zeros(22_050, np.float32), 22_050, format=other[-3:].upper())
    assert (
        f"{', '.join(sorted(['ep1.wav', other]))}; remove all but one" in run("outputs", supplied, [SPEAK])["ep1"].error
    )


def test_what_a_decoder_notes_is_kept_and_hidden_files_of_macs_are_none(run: Any, supplied: Path) -> None:
    content = wav(supplied / "A Topic.wav").read_bytes()
    (supplied / "A Topic.wav").write_bytes(content + content)
    (supplied / "._A Topic.wav").write_bytes(b"\0\5\x16\7" + bytes(99))
    made = run("outputs", supplied, [{"id": "p1", "topic": "A topic"}])["p1"]
    assert made.details["notes"] == ["supplied wav: 2 joined wav files, all of which are read"]


def test_samples_beyond_one_survive(run: Any, supplied: Path, heard: Any) -> None:
    wav(supplied / "ep1.wav", level=1.7)
    assert np.abs(heard(run("outputs", supplied, [SPEAK])["ep1"].audio)).max() > 1.6


def test_a_manifest_says_where_things_are_and_how_long_they_took(run: Any, supplied: Path) -> None:
    wav(supplied / "deep" / "first.wav", seconds=2.0)
    manifest(supplied, {"item": "ep1", "audio": "deep/first.wav", "wall_seconds": 1.0, "hardware": "1 × A100"})
    made = run("outputs", supplied, [SPEAK])["ep1"]
    assert made.rtf == pytest.approx(0.5)
    assert made.details["hardware"] == "1 × A100"


def test_scripts_are_read_in_the_forms_of_the_field(run: Any, supplied: Path, tmp_path: Path) -> None:
    (supplied / "w1.txt").write_text("<think>Well.</think>Host 1: Hello.\nHost 2: Hi.")
    made = run("outputs", supplied, [WRITE])["w1"]
    kept = json.loads((tmp_path / "out" / made.script).read_text())
    assert kept["turns"] == [{"speaker": "1", "text": "Hello."}, {"speaker": "2", "text": "Hi."}]


def test_answers_lie_in_a_folder_of_their_conversation(run: Any, supplied: Path) -> None:
    for turn in ("t1", "t2"):
        wav(supplied / "d1" / f"{turn}.wav")
    made = run("outputs", supplied, [TALK])["d1"]
    assert [(answer.turn, answer.seconds) for answer in made.answers] == [("t1", 0.5), ("t2", 0.5)]


def test_an_answer_that_is_missing_fails_its_conversation(run: Any, supplied: Path) -> None:
    wav(supplied / "d1" / "t1.wav")
    assert "no answer to turn t2 of d1" in run("outputs", supplied, [TALK])["d1"].error


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../ep1.wav", "points outside"),
        ("/etc/hostname", "points outside"),
        ("deep/../../ep1.wav", "points outside"),
        ("link.wav", "is a link"),
        ("linked/ep1.wav", "is a link"),
        ("nothing.wav", "no file"),
        ("", "points outside"),
        ("ep1\x00.wav", "points outside"),
        ("x" * 300, "no file"),
    ],
)
def test_no_name_leads_out_of_the_folder(run: Any, supplied: Path, tmp_path: Path, name: str, says: str) -> None:
    outside = wav(tmp_path / "outside" / "ep1.wav")
    wav(tmp_path / "ep1.wav")
    (supplied / "link.wav").symlink_to(outside)
    (supplied / "linked").symlink_to(outside.parent)
    manifest(supplied, {"item": "ep1", "audio": name})
    made = run("outputs", supplied, [SPEAK])["ep1"]
    assert says in made.error
    assert made.cause == "system"


@pytest.mark.parametrize("what", ["nan", "empty", "text", "too long"])
def test_what_is_no_usable_audio_fails_its_item_alone(
    run: Any, supplied: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(outputs, "LIMITS", replace(outputs.LIMITS, seconds=60.0))
    wav(supplied / "ep2.wav")
    match what:
        case "nan":
            soundfile.write(supplied / "ep1.wav", np.full(8_000, np.nan, np.float32), 16_000, subtype="FLOAT")
        case "empty":
            soundfile.write(supplied / "ep1.wav", np.zeros(0, np.float32), 16_000)
        case "text":
            (supplied / "ep1.wav").write_text("not audio")
        case "too long":  # a few kilobytes that decode to megabytes
            soundfile.write(supplied / "ep1.flac", np.zeros(61 * 8_000, np.int16), 8_000)
    made = run("outputs", supplied, [SPEAK, {**SPEAK, "id": "ep2"}])
    assert made["ep1"].error
    assert made["ep1"].cause == "system"
    assert made["ep2"].audio


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{broken", "line 1: Invalid JSON"),
        ({"item": "a", "code": "x"}, "line 1: code"),
        ({"item": "a", "audio": "a.wav", "wall_seconds": -1}, "wall_seconds"),
        ("[" * 100_000, "line 1: Invalid JSON"),
    ],
)
def test_a_broken_manifest_is_a_sentence(supplied: Path, line: Any, says: str) -> None:
    manifest(supplied, line)
    with pytest.raises(BadInput, match=says):
        read_manifest(supplied)


def test_an_item_stands_in_the_manifest_once(supplied: Path) -> None:
    manifest(supplied, {"item": "a", "audio": "a.wav"}, {"item": "a", "audio": "b.wav"})
    with pytest.raises(BadInput, match="line 2: a appears twice"):
        read_manifest(supplied)
