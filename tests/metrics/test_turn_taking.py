"""Turn-taking: what is scored and what is refused, with planted times."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.dialogue.turn_taking import FEWEST_EVENTS
from podeval.metrics.score import Score, Unscored
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes.planted_models import PlantedModels

SECONDS = 100


class Heard(PlantedModels):
    """All models in one: no music, speech throughout, and these turns, which may overlap."""

    def __init__(self, turns: list[tuple[str, float, float]]) -> None:
        super().__init__(spoken=(Span(0, SECONDS),), turns=turns, chunks=19)

    def diarize(self, samples: NDArray[np.float32]) -> tuple[SpeakerTurn, ...]:
        """Who begins last has the floor, as where nobody can overlap."""
        ends = [start for _, start, _ in self.turns[1:]] + [SECONDS]
        return tuple(SpeakerTurn(who, s, min(e, until)) for (who, s, e), until in zip(self.turns, ends, strict=True))


def strung(gap: float, count: int = 24) -> list[tuple[str, float, float]]:
    length = SECONDS / count
    return [("AB"[n % 2], n * length, (n + 1) * length - gap) for n in range(count)]


def measured(
    turns: list[tuple[str, float, float]], monkeypatch: pytest.MonkeyPatch, cache: Path, **choices: Any
) -> Any:
    monkeypatch.setattr(registry, "load", Heard(turns).load)
    noise = np.random.default_rng(len(turns)).normal(0, 0.1, SECONDS * 16_000).astype(np.float32)
    recording = Recording.from_samples(noise, 16_000, cache=Cache(cache))
    return catalogue.get("turn_taking")({"recording": recording}, choices)


def test_turns_strung_together_are_far_from_people_and_the_notes_say_what_happened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = measured(strung(0.3), monkeypatch, tmp_path)
    assert found.values["human_distance"] > 0.8
    assert found.values["gap_median"] == pytest.approx(0.3, abs=0.02)
    assert (found.values["overlap_share"], found.values["backchannels_per_minute"]) == (0, 0)
    low, high = found.notes["human_distance_ci95"]
    assert low < found.values["human_distance"] < high + 1e-3
    assert found.notes["turns"] == 24
    assert found.notes["events"]["up to 0.5 s"] == 23
    assert found.notes["share_of_talk"] == pytest.approx({"A": 0.5, "B": 0.5}, abs=0.01)


def test_gaps_and_overlaps_as_people_have_them_come_nearer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gaps = [-0.8, -0.3, 0.1, -0.2, 0.4, 0.15, -0.7, 0.8, -0.1, 0.1, 1.3, 0.3] * 2
    turns = [(who, start, end + 0.3 - gap) for (who, start, end), gap in zip(strung(0.3), gaps, strict=True)]
    near = measured(turns, monkeypatch, tmp_path / "1")
    assert near.values["human_distance"] < 0.62
    assert near.values["overlap_share"] > 0.02
    meeting = measured(turns, monkeypatch, tmp_path / "2", people="meeting")
    assert meeting.values["human_distance"] != near.values["human_distance"]
    assert {**meeting.values, "human_distance": 0} == {**near.values, "human_distance": 0}


def test_one_speaker_and_few_turns_are_unscored_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone = measured([("A", 0, 90)], monkeypatch, tmp_path / "1")
    assert alone == Unscored("needs at least two speakers, found one speaker", "system")
    few = measured(strung(0.3, FEWEST_EVENTS), monkeypatch, tmp_path / "2")
    assert f"the speaker changes {FEWEST_EVENTS - 1} times" in few.reason
    assert isinstance(measured(strung(0.3, FEWEST_EVENTS + 1), monkeypatch, tmp_path / "3"), Score)


def test_a_recording_in_which_nobody_is_found_is_unscored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = Heard([])
    monkeypatch.setattr(heard, "diarize", lambda samples: ())
    monkeypatch.setattr(registry, "load", heard.load)
    noise = np.random.default_rng(1).normal(0, 0.1, 160_000).astype(np.float32)
    recording = Recording.from_samples(noise, 16_000, cache=Cache(tmp_path))
    found = catalogue.get("turn_taking")({"recording": recording}, {})
    assert found == Unscored("needs at least two speakers, found no speaker", "system")
