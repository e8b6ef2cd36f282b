"""Defects that need no model."""

from typing import Any

import numpy as np
import pytest

from podeval.analysis import Recording
from podeval.metrics.score import Score
from podeval.scoring import defects, labels
from podeval.scoring.defects import Defect, defects_of, find_defects

RATE = 16_000


def tone(seconds: float = 3.0, level: float = 0.3) -> Any:
    return level * np.sin(2 * np.pi * 220 * np.arange(round(seconds * RATE)) / RATE)


def kinds(samples: Any) -> list[tuple[str, float]]:
    return [(one.kind, round(one.start, 1)) for one in find_defects(Recording.from_samples(samples, RATE))]


def test_silence_that_breaks_off_sound_is_a_hole() -> None:
    samples = tone()
    samples[RATE + 20 : RATE + 2000] = 0
    assert kinds(samples) == [("hole", 1.0)]


def test_a_pause_that_sound_fades_into_is_none() -> None:
    samples = tone()
    samples[RATE : 2 * RATE] = 0
    samples[RATE - 800 : RATE] *= np.linspace(1, 0, 800)
    samples[2 * RATE : 2 * RATE + 800] *= np.linspace(0, 1, 800)
    assert kinds(samples) == []


def test_silence_before_and_after_is_none() -> None:
    assert kinds(np.concatenate([np.zeros(RATE), tone(), np.zeros(RATE)])) == []


def test_samples_that_stay_at_full_scale_are_clipped() -> None:
    samples = tone()
    samples[RATE : RATE + RATE // 2] = np.clip(8 * samples[RATE : RATE + RATE // 2], -1, 1)
    assert kinds(samples) == [("clipped", 1.0)]
    assert kinds(tone(level=1.0) * 0.9) == []


def test_a_channel_without_sound_is_one_defect() -> None:
    assert kinds(np.stack([tone(), np.zeros_like(tone())], axis=1)) == [("silent channel", 0.0)]


def test_a_stretch_over_two_blocks_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defects, "BLOCK", RATE + 1000)
    samples = tone()
    samples[RATE + 20 : RATE + 4000] = 0
    assert kinds(samples) == [("hole", 1.0)]


def test_a_metric_adds_the_defects_it_notes() -> None:
    score = Score(
        {"faults": 1.0}, notes={"defects": [{"kind": "click", "start": 2.5, "end": 2.6, "detail": "a click"}]}
    )
    assert defects_of([score]) == [Defect("click", 2.5, 2.6, "a click")]


def test_labels_are_what_audacity_and_players_read() -> None:
    listed = [labels.TimeLabel(0.5, 1.25, "A: <b>Hi</b> & bye\nthere"), labels.TimeLabel(3661.0, 3661.0, "hole")]
    assert (
        labels.format_audacity(listed)
        == "0.500000\t1.250000\tA: <b>Hi</b> & bye there\n3661.000000\t3661.000000\thole\n"
    )
    text = labels.format_webvtt(listed)
    assert text.startswith("WEBVTT\n\n00:00:00.500 --> 00:00:01.250\nA: &lt;b&gt;Hi&lt;/b&gt; &amp; bye there\n")
    assert "01:01:01.000 --> 01:01:01.001" in text
