"""Recordings become texts: poor ones are dropped, the others transcribed by speaker, proofread by people, taken in."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.construction.collecting import cut_passages
from podeval.recording import Recording
from podeval.text.dialogue_segments import Segment


def segment(speaker: str, start: float, words: int) -> Segment:
    return Segment(speaker, start, start + 1, " ".join(["word"] * words))


def test_passages_are_whole_segments_within_the_lengths() -> None:
    said = [segment("B", n, 40) for n in range(3)] + [segment("A", 3, 40), segment("B", 4, 30)]
    first, second = cut_passages(said, "en", (60, 100))
    assert [(t.speaker, len(t.text.split())) for t in first.turns] == [("Speaker1", 80)]
    assert [(t.speaker, len(t.text.split())) for t in second.turns] == [("Speaker1", 40), ("Speaker2", 40)]
    assert (first.start, first.end, second.start, second.end) == (0, 2, 2, 4)
    # The last 30 words are fewer than 60.
    assert sum(len(t.text.split()) for p in (first, second) for t in p.turns) == 160


@pytest.mark.models
def test_real_recordings_end_up_as_cases(
    tmp_path: Path, shared_data: Path, podeval: Any, monkeypatch: pytest.MonkeyPatch, rows: Any, edit: Any
) -> None:
    """A clean dialogue in two voices and a far-field meeting: DNSMOS keeps the first only."""
    shows, into = tmp_path / "shows", tmp_path / "mine"
    shows.mkdir()
    # A quarter of a minute is enough to hear both voices, and to hear that the other is far from the microphone.
    # In the meeting's first ten seconds voice activity hears nobody.
    for name, start, end in (("dialogue_kokoro.flac", 0, 16), ("ami_trn00.flac", 10, 20)):
        samples, rate = soundfile.read(shared_data / "samples" / name)
        soundfile.write(shows / name, samples[start * rate : end * rate], rate)
    soundfile.write(shows / "silence.wav", np.zeros(32000), 16000)
    (shows / "broken.wav").write_bytes(b"RIFF____WAVEfmt ")
    arguments = ("lfs_bench", "collect", shows, "--into", into, "--set", "lengths=10,500", "--set", "least=3.2")
    done = podeval(*arguments)
    assert "collected recordings: 1 kept, 3 left out" in done.output
    found = {row["id"]: row for row in rows(into / "collected.jsonl")}
    assert re.fullmatch(r"DNSMOS ovrl [12]\.\d\d is below 3\.2", found["ami_trn00"]["reason"])
    assert found["dialogue_kokoro"]["dnsmos"] > 3.2
    (passage,) = found["dialogue_kokoro"]["passages"]
    assert {turn["speaker"] for turn in passage["turns"]} == {"Speaker1", "Speaker2"}
    script = json.loads((shared_data / "samples" / "dialogue_script.json").read_text(encoding="utf-8"))
    said = set(re.findall(r"[a-z']+", json.dumps(script).lower()))
    heard = re.findall(r"[a-z']+", " ".join(turn["text"] for turn in passage["turns"]).lower())
    assert len(heard) > 25
    assert np.mean([word in said for word in heard]) > 0.9
    assert "silen" in found["silence"]["reason"]
    assert found["broken"]["reason"]

    # Nothing is heard twice.
    monkeypatch.setattr(Recording, "open", None)
    podeval(*arguments)
    done = podeval("lfs_bench", "proofread", "--into", into, code=1)
    assert "proofread: 0 kept, 1 waiting" in done.output
    corrected = "[Speaker1] What was really said.\n[Speaker2] Indeed."
    cells = {"keep": "yes", "scenario (edit)": "interview", "text (edit)": corrected}
    edit(into / "transcripts.csv", {"dialogue_kokoro-001": cells})
    podeval("lfs_bench", "proofread", "--into", into)
    (case,) = rows(into / "taken.jsonl")
    assert (case["id"], case["scene"], case["language"]) == ("dialogue_kokoro-001", "interview", "english")
    assert [turn["text"] for turn in case["content"]] == ["What was really said.", "Indeed."]
    assert {left["id"] for left in rows(into / "left_out.jsonl")} == {"ami_trn00", "silence", "broken"}
