"""Defects of the file itself, and those that metrics note."""

from typing import Any

import numpy as np
import pytest

from podeval.measuring import engine
from podeval.measuring.engine import find_defects, list_noted_defects
from podeval.metrics.score import Defect, Score, Unscored
from podeval.recording import Recording
from podeval.recording.defects import TimedDefect

RATE = 16_000


def tone(seconds: float = 3.0) -> Any:
    return 0.3 * np.sin(2 * np.pi * 220 * np.arange(round(seconds * RATE)) / RATE)


def kinds(samples: Any) -> list[str]:
    return [one.kind for one in find_defects(Recording.from_samples(samples, RATE))]


def test_a_channel_without_sound_is_one_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BLOCK", RATE)
    assert kinds(np.stack([tone(), np.zeros_like(tone())], axis=1)) == ["silent channel"]
    assert kinds(np.stack([tone(), np.append(np.zeros(2 * RATE), tone(1))], axis=1)) == []
    assert kinds(tone()) == []


def test_silence_is_unusable() -> None:
    assert kinds(np.zeros(RATE)) == ["unusable"]


def test_a_metric_adds_the_defects_it_notes() -> None:
    noted = TimedDefect("hole", 2.5, 2.6, heard="0.1 s of silence").to_json()
    results = [Score({"faults_per_hour": 1.0}, notes={"defects": [noted]}), Unscored("too short", "system")]
    assert list_noted_defects(results) == [Defect("hole", 2.5, 2.6, "0.1 s of silence")]
