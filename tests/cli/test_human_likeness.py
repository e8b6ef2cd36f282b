"""A set of recordings on the command line, in Python and in a run: what is measured, and what is left out and why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import CannotScore
from podeval.measuring.engine import measure
from podeval.metrics import catalogue
from podeval.metrics.score import Unscored
from podeval.metrics.speech import human_likeness as likeness
from podeval.recording import Recording
from podeval.recording.recording import read_source
from tests.metrics.test_human_likeness import RATE, SIZES, fit, windows_of

METRIC = catalogue.get("human_likeness")


@pytest.fixture(scope="module")
def people() -> likeness.PeopleReference:
    return fit(range(30))


@pytest.fixture
def heard(people: likeness.PeopleReference, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Every recording has the windows of one person, the first that is asked for of the first."""

    def hear(*left_out: str) -> None:
        def describe(recording: Recording) -> dict[str, Any]:
            if Path(recording.name).name in left_out:
                raise CannotScore("the recording contains no speech")
            return windows_of(int.from_bytes(recording.content[:4].encode()))

        monkeypatch.setattr(likeness, "describe_windows", describe)
        monkeypatch.setattr(likeness, "load_reference", lambda path: people)
        monkeypatch.setattr(Recording, "speech_track", lambda self, source: self)

    return hear


@pytest.fixture
def folder(tmp_path: Path, speech_like: Any) -> Path:
    (tmp_path / "set").mkdir()
    for number in range(4):
        soundfile.write(tmp_path / "set" / f"{number}.wav", speech_like * (1 - 0.1 * number), RATE)
    (tmp_path / "set" / "broken.wav").write_text("no sound")
    return tmp_path / "set"


def test_the_command_measures_a_folder_and_says_what_it_left_out(
    podeval: Any, folder: Path, heard: Callable[..., None]
) -> None:
    heard("3.wav")
    (line,) = map(
        json.loads,
        podeval("measure", "human_likeness", folder, "--json", code=0).out.splitlines(),
    )
    assert line["file"] == str(folder)
    assert set(SIZES) <= line.keys()
    assert line["human_likeness_low"] <= line["human_likeness"] <= line["human_likeness_high"]
    assert line["notes"]["recordings"] == 3
    reasons = {Path(name).name: reason for name, reason in line["notes"]["left_out"].items()}
    assert reasons["3.wav"] == "the recording contains no speech"
    assert "is a text file, not audio" in reasons["broken.wav"]
    printed = podeval("measure", "human_likeness", folder, code=0).out
    assert "human_likeness 0." in printed
    assert "broken.wav is left out: " in printed


def test_python_takes_a_folder_or_a_list(folder: Path, heard: Callable[..., None]) -> None:
    heard()
    whole = measure("human_likeness", str(folder))
    listed = measure("human_likeness", sorted(folder.glob("[0-9].wav")))
    assert whole["human_likeness"] == listed["human_likeness"]


def test_too_little_is_unscored_with_the_reason(folder: Path, heard: Callable[..., None]) -> None:
    heard("0.wav", "1.wav", "2.wav", "3.wav")
    found = METRIC({"recordings": tuple(map(read_source, sorted(folder.glob("*.wav"))))})
    assert isinstance(found, Unscored)
    assert found.cause == "system"
    assert found.reason.startswith("the set has 0 windows of 3 s of speech; at least 10 are needed; ")
    assert found.reason.endswith("0.wav: the recording contains no speech")


def test_a_reference_by_other_models_measures_nothing(
    folder: Path, people: likeness.PeopleReference, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = likeness.PeopleReference(people.factors, {"about": "x", "models": {"transcriber": "another"}})
    monkeypatch.setattr(likeness, "load_reference", lambda path: other)
    found = METRIC({"recordings": (read_source(folder / "0.wav"),)})
    assert isinstance(found, Unscored)
    assert (found.cause, "made with models other" in found.reason) == ("ours", True)


def test_a_reference_needs_people_s_speech(
    podeval: Any, folder: Path, heard: Callable[..., None], tmp_path: Path
) -> None:
    heard("0.wav", "1.wav", "2.wav", "3.wav")
    said = podeval("data", "likeness-reference", folder, "--out", tmp_path / "people.npz", code=2)
    assert (
        "0 recordings with 0 windows of 3 s of speech are not enough for a reference; give at least 8 people and a "
        "minute" in said.err
    )
    assert not (tmp_path / "people.npz").exists()


def test_a_reference_is_made_of_any_recordings(
    podeval: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def plant(recording: Recording, factor: str, strength: int) -> Recording:
        return Recording.from_samples(recording.samples, RATE, name=factor)

    def describe(recording: Recording) -> dict[str, Any]:
        person = len(recording.samples) + int(1000 * np.abs(recording.samples).mean())
        return windows_of(person, damage=recording.name if recording.name in SIZES else "", count=20)

    monkeypatch.setattr(likeness, "describe_windows", describe)
    monkeypatch.setattr(likeness, "plant_damage", plant)
    for number in range(4):
        samples = soundfile.read(folder / f"{number}.wav")[0]
        soundfile.write(folder / f"{number + 4}.wav", samples[: -RATE // 2], RATE)
    out = tmp_path / "people.npz"
    said = podeval("data", "likeness-reference", folder, "--out", out, "--about", "four tones", code=0)
    assert said.out.strip() == str(out)
    assert "broken.wav was left out: " in said.err
    assert "8 recordings, 0.8 minutes, 160 windows" in said.err
    about = likeness.PeopleReference.load(out).about
    assert (about["about"], about["recordings"]) == ("four tones", 8)
