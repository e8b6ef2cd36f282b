"""`podeval score --defects`: a table, JSON and labels of what is wrong; sentences for what cannot be listened to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.models import registry

Podeval = Callable[..., Any]
RATE = 16_000


class Quiet:
    """All models in one: a voice from beginning to end, no music, no words."""

    def load(self, job: str, profile: str) -> "Quiet":
        return self

    def speech(self, samples: Any) -> tuple[Any, ...]:
        from podeval.audio.windows import Span

        return (Span(0.0, len(samples) / RATE),)

    def music(self, samples: Any) -> tuple[Any, ...]:
        return ()

    def score(self, windows: Any) -> Any:
        return np.full(len(windows), 3.0, np.float32)

    def detect_language(self, samples: Any) -> str:
        return "en"

    def transcribe(self, samples: Any, language: str | None) -> Any:
        from podeval.models.interfaces import Transcript

        return Transcript("", language or "en", ())


@pytest.fixture
def broken(tmp_path: Path, speech_like: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording with a hole at 0.85 s."""
    monkeypatch.setattr(registry, "load", Quiet().load)
    samples = speech_like.copy()
    samples[round(0.85 * RATE) : round(0.95 * RATE)] = 0
    soundfile.write(tmp_path / "broken.wav", samples, RATE, subtype="FLOAT")
    return tmp_path / "broken.wav"


def test_the_table_has_every_defect_with_its_time(podeval: Podeval, broken: Path) -> None:
    said = podeval("score", "--defects", broken, code=0)
    head, row = said.out.splitlines()
    assert head.split() == ["start", "end", "kind", "severity", "what"]
    assert row.split() == ["00:00:00.850", "00:00:00.950", *["hole", "medium", "0.10", "s", "of", "digital", "silence"]]


def test_json_has_what_the_script_has_and_what_is_heard(podeval: Podeval, broken: Path) -> None:
    line = json.loads(podeval("score", "--defects", broken, "--json").out)
    assert (line["file"], line["unscored"]) == (str(broken), {})
    (defect,) = line["defects"]
    assert (defect["kind"], defect["start"], defect["end"], defect["script"]) == ("hole", 0.85, 0.95, "")


def test_labels_are_audacitys_or_webvtt_by_the_name_of_the_file(podeval: Podeval, broken: Path) -> None:
    for name, first in (
        ("a.txt", "0.850000\t0.950000\thole: "),
        ("a.vtt", "WEBVTT\n\n00:00:00.850 --> 00:00:00.950\n"),
    ):
        assert podeval("score", "--defects", broken, "--labels", broken.parent / name).code == 0
        assert (broken.parent / name).read_text(encoding="utf-8").startswith(first)
    refused = podeval("score", "--defects", broken, "--labels", "a.csv", code=2)
    assert "the name must end in .txt (Audacity) or .vtt (WebVTT)" in refused.err


def test_what_could_not_be_listened_to_is_said_and_the_rest_is_listed(podeval: Podeval, broken: Path) -> None:
    script = broken.parent / "script.json"
    script.write_text(json.dumps([{"speaker": who, "text": "good morning to you"} for who in "AB"]))
    said = podeval("score", "--defects", broken, "--text", script, code=1)
    assert (
        "the metric speaker_attribution could not be computed: less than half of the script's words were recognised"
        in said.err
    )
    assert "omitted" in said.out
    assert podeval("score", "--defects", broken.parent / "nowhere.wav").code == 2


def test_what_is_noted_of_the_file_and_the_text_is_said(podeval: Podeval, broken: Path) -> None:
    broken.write_bytes(broken.read_bytes() * 2)
    script = broken.with_suffix(".txt")
    script.write_text("A cold open.\nSpeaker 1: Hello there.\nSpeaker 2: Yes.\n")
    said = podeval("score", "--defects", broken, "--text", script, "--json")
    notes = json.loads(said.out)["notes"]
    assert notes["file"] == ["2 joined wav files, all of which are read"]
    assert "words before the first label" in notes["text"][0]
    table = podeval("score", "--defects", broken, "--text", script).out
    assert all(f"Note ({name}): {sentence}" in table for name, of in notes.items() for sentence in of)
