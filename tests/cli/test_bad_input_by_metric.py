"""Every metric of the catalogue that asks no judge, on what cannot be scored: a sentence for each file, the right exit
code, never a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.metrics import catalogue
from podeval.metrics.description import choose_own_profile
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import recording
from podeval.recording.cache import Cache
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script
from tests.cli.conftest import RATE, write_broken_files

WORDS = "the mill stands in the shade"
Podeval = Callable[..., Any]

MEASURED = [metric for metric in catalogue.load_all_metrics() if metric.asks is None]
OF_AUDIO = [metric.name for metric in MEASURED if metric.inputs[0] == "recording"]
OF_TEXT = [metric.name for metric in MEASURED if metric.inputs[0] in ("text", "passage")]
OF_VOICES = [metric.name for metric in MEASURED if metric.reference == "reference_voices"]

WITHOUT_MODEL = {metric.name for metric in MEASURED if choose_own_profile(metric) != "embedded"}
ABSENT = "the embedded profile has no "
"""Reason for those before any property of the sound."""

REFUSED = {
    "nowhere.wav": "does not exist: check the path",
    "folder": "is a directory, not an audio file",
    "empty.wav": "is empty (0 bytes)",
    "text.wav": "is a text file, not audio",
    "truncated.flac": "of about 3.00 s could be read: export or download the file again",
}
UNSCORED = {
    "silence.wav": "digital silence from beginning to end; check how it was exported",
    "nan.wav": "samples that are not numbers (NaN or infinity); export it again",
}
"""For every metric of audio; `blip.wav` has a sentence with the metric's own shortest duration."""

NO_SPEECH = {
    "reverb_consistency": "no speech is heard, and reverberation is measured on speech",
    "sim": "the recording contains no speech",
    "wsim": "the recording contains no speech",
    "timbre_similarity": "the recording contains no speech",
    "distillmos": "the recording contains no speech",
    "timbre_consistency": "no speaker is found in the recording; check that it contains speech",
    "smr": "no music is heard under speech",
}
ONLY_MUSIC = (
    *("wer", "dnsmos", "smr"),
    pytest.param("reverb_consistency", marks=pytest.mark.long),
    pytest.param("sim", marks=pytest.mark.long),
)
"""A metric that reads words, one of windows, one of stems; the long ones come by the same way as dnsmos."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """All metrics are asked about the same few files, in which voices and music are looked for once."""
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    noise = 0.1 * np.random.default_rng(0).standard_normal(6 * RATE)
    write_broken_files(folder, noise)
    (folder / "empty.txt").touch()
    soundfile.write(folder / "noise.wav", noise, RATE)
    time = np.arange(6 * RATE) / RATE
    tones = [np.sin(2 * np.pi * note * part * time) / part for note in (220, 277.18, 329.63) for part in (1, 2, 3)]
    soundfile.write(folder / "music.wav", 0.05 * np.sum(tones, axis=0), RATE)
    speech = EspeakNg().speak(Script.parse([{"speaker": "A", "text": WORDS}]))
    soundfile.write(folder / "voice.wav", speech.samples, speech.rate)
    (folder / "words.txt").write_text(WORDS)
    (folder / "dots.txt").write_text("... !!! — … " * 100)
    (folder / "turns.json").write_text(json.dumps([{"speaker": "A", "text": "…"}, {"speaker": "B", "text": "?!"}]))
    (folder / "latin1.txt").write_bytes("déjà vu".encode("latin-1"))
    return folder


def given(name: str, folder: Path) -> list[object]:
    """What a metric of audio needs beside it."""
    reference = catalogue.get(name).reference
    if reference in ("reference_text", "script"):
        return ["--text", folder / "words.txt"]
    if name == "timbre_consistency":
        return ["--set", "speakers=2"]
    if reference == "request":
        return ["--request", folder / "words.txt"]
    return ["--reference", folder / "voice.wav"] if reference == "reference_voices" else []


def lines(said: Any) -> dict[str, dict[str, Any]]:
    return {Path(line["file"]).name: line for line in map(json.loads, said.out.splitlines())}


@pytest.mark.parametrize("name", OF_AUDIO)
def test_audio_that_cannot_be_read_or_holds_nothing(podeval: Podeval, files: Path, name: str) -> None:
    beside = given(name, files)
    bad = lines(refused := podeval("measure", name, *(files / file for file in REFUSED), *beside, "--json"))
    assert refused.code == 2
    for file, sentence in REFUSED.items():
        assert sentence in bad[file]["unscored"]
        assert bad[file]["cause"] == "system"
    assert refused.err == ""
    empty = lines(hollow := podeval("measure", name, *(files / file for file in UNSCORED), *beside, "--json"))
    assert hollow.code == 1
    for file, sentence in UNSCORED.items():
        assert (ABSENT if name in WITHOUT_MODEL else sentence) in empty[file]["unscored"]
        assert empty[file]["cause"] == ("ours" if name in WITHOUT_MODEL else "system")


@pytest.mark.parametrize("name", sorted({*OF_AUDIO} - {"wer", "sptd", "turn_taking", "podcast_checks"}))
def test_a_blip_is_too_short_and_told_how_long_is_enough(podeval: Podeval, files: Path, name: str) -> None:
    said = podeval("measure", name, files / "blip.wav", *given(name, files), code=1)
    assert (ABSENT if name in WITHOUT_MODEL else "the recording lasts 0.05 s; at least") in said.out


DIARIZED = pytest.param("timbre_consistency", marks=pytest.mark.long)
"""Loads a diarizer for this alone; `test_one_speaker_only` has the sentence from a stand-in."""


@pytest.mark.every(3)
@pytest.mark.parametrize("name", [DIARIZED if name in DIARIZED.values else name for name in NO_SPEECH])
def test_no_speech(podeval: Podeval, files: Path, name: str) -> None:
    said = podeval("measure", name, files / "noise.wav", *given(name, files), "--json", code=1)
    assert lines(said)["noise.wav"]["unscored"] == NO_SPEECH[name]


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ONLY_MUSIC)
def test_music_only(podeval: Podeval, files: Path, name: str) -> None:
    said = podeval("measure", name, files / "music.wav", *given(name, files), "--allow-upsampling", code=1)
    assert "unscored: the recording contains no speech, only 6.0 s of music" in said.out


@pytest.mark.parametrize("found", [0, 1])
def test_one_speaker_only(
    podeval: Podeval, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: int
) -> None:
    # What a stand-in hears is not kept for the other tests.
    monkeypatch.setattr(recording, "open_default_cache", lambda: Cache(tmp_path / "cache"))
    turns = (SpeakerTurn("SPEAKER_01", 0.0, 6.0),)[:found]
    load = registry.load
    diarizer = SimpleNamespace(diarize=lambda samples: turns)
    monkeypatch.setattr(registry, "load", lambda job, profile: diarizer if job == "diarizer" else load(job, profile))
    said = podeval("measure", "sptd", files / "voice.wav", code=1)
    assert f"needs at least two speakers, found {'one speaker' if found else 'no speaker'}" in said.out
    if not found:
        said = podeval("measure", "timbre_consistency", files / "noise.wav", *given("timbre_consistency", files))
        assert (said.code, NO_SPEECH["timbre_consistency"] in said.out) == (1, True)
    two = [argument for name in "AB" for argument in ("--reference", f"{name}={files / 'voice.wav'}")]
    for name in OF_VOICES:
        # The reference voices are looked at when there is someone to compare them with.
        said = podeval("measure", name, files / "voice.wav", *two, code=1)
        assert (
            f"there are 2 reference voices, but {'one' if found else 'no'} speaker was found in the recording"
            in said.out
        )


@pytest.mark.parametrize("name", OF_VOICES)
def test_a_reference_voice_that_is_missing_or_cannot_be_used(podeval: Podeval, files: Path, name: str) -> None:
    missing = podeval("measure", name, files / "voice.wav")
    assert (missing.code, missing.out) == (2, "")
    assert f"{name} needs a recording of the voice to compare with: add --reference FILE, or SPEAKER=" in missing.err
    for file, sentence in REFUSED.items():
        said = podeval("measure", name, files / "voice.wav", "--reference", files / file)
        assert (said.code, said.out) == (2, "")
        assert sentence in said.err
    for file, sentence in {
        **UNSCORED,
        "noise.wav": "the reference voice cannot be used: it contains no speech",
        "blip.wav": "the reference voice lasts 0.05 s; at least 0.5 s are needed",
    }.items():
        said = podeval("measure", name, files / "voice.wav", "--reference", files / file, code=1)
        assert sentence in said.out


def test_words_that_should_be_heard_and_are_none(podeval: Podeval, files: Path) -> None:
    for text in ("dots.txt", "turns.json"):
        podeval("measure", "wer", files / "silence.wav", "--text", files / text, code=1)
    for text, sentence in {
        "nowhere.txt": "does not exist; check the path",
        "folder": "is a directory; name the files in it",
        "empty.txt": "is empty; it should contain a text or a script",
        "latin1.txt": "cannot be read as UTF-8 text",
    }.items():
        assert sentence in podeval("measure", "wer", files / "voice.wav", "--text", files / text, code=2).out


@pytest.mark.parametrize("name", OF_TEXT)
def test_texts_that_cannot_be_read_and_texts_without_words(podeval: Podeval, files: Path, name: str) -> None:
    for file, sentence in {
        "nowhere.txt": "does not exist; check the path",
        "folder": "is a directory; name the files in it",
        "empty.txt": "is empty; it should contain a text or a script",
        "latin1.txt": "cannot be read as UTF-8 text",
        "noise.wav": "cannot be read as UTF-8 text",
    }.items():
        assert sentence in podeval("measure", name, files / file, code=2).out
    for file in ("dots.txt", "turns.json"):
        said = podeval("measure", name, files / file, code=1)
        assert "the text contains no words, only punctuation; give the words of the script" in said.out


def test_a_language_that_is_none_is_told_with_those_that_are(podeval: Podeval, files: Path) -> None:
    for name in (*OF_TEXT, "wer"):
        beside = given(name, files) if name in OF_AUDIO else []
        file = files / ("voice.wav" if name in OF_AUDIO else "words.txt")
        said = podeval("measure", name, file, *beside, "--set", "language=klingon")
        assert (said.code, said.out) == (2, "")
        assert "language must be one of auto, en, zh" in said.err
        assert "'klingon'" in said.err


def test_a_generation_log_that_is_none(podeval: Podeval, files: Path) -> None:
    for file, sentence in {
        "nowhere.json": "does not exist; check the path",
        "empty.txt": "is empty",
        "words.txt": "the generation log is neither JSON nor JSON Lines",
        "turns.json": "piece 1 of the generation log needs wall_seconds in seconds",
    }.items():
        assert sentence in podeval("measure", "rtf", files / file, code=2).out
