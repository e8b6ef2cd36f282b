"""The figure for naturalness of dialogue: each share by its formula, as its decision fixed it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.dialogue.dialogue_naturalness import GAP, MELODY, OVERLAPS, UNEVENNESS
from podeval.metrics.score import Unscored
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes.planted_models import PlantedModels

RATE, SECONDS = 16_000, 25
Turns = list[tuple[str, float, float]]

DECISION = Path(__file__).parents[2] / "docs" / "decisions" / "dialogue-naturalness.md"


def measured(turns: Turns, monkeypatch: pytest.MonkeyPatch, cache: Path, semitones: float = 4.0) -> Any:
    spoken = tuple(Span(start, end) for _, start, end in turns)
    monkeypatch.setattr(registry, "load", PlantedModels(spoken=spoken, turns=turns, chunks=4).load)
    time = np.arange(SECONDS * RATE) / RATE
    phase = 2 * np.pi * np.cumsum(150 * 2 ** (semitones / 24 * np.sin(2 * np.pi * time))) / RATE
    samples = np.asarray(0.1 * sum(np.sin(h * phase) / h for h in range(1, 9)), dtype=np.float32)
    return catalogue.get("dialogue_naturalness")(
        {"recording": Recording.from_samples(samples, RATE, cache=Cache(cache))}
    )


@pytest.mark.long
def test_each_share_follows_its_formula_and_the_figure_is_their_mean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    turns = [("A", 0, 4), ("B", 4.4, 8), ("A", 8.4, 12), ("B", 12.8, 16), ("A", 16.4, 20), ("B", 20.8, 24)]
    found = measured(turns, monkeypatch, tmp_path)
    values = dict(found.values)
    silences = np.array([0.4, 0.4, 0.8, 0.4, 0.8])
    assert values["gaps"] == pytest.approx(1 - (0.4 - GAP), abs=0.02)
    assert values["overlaps"] == 0
    assert values["pauses"] == pytest.approx(silences.std() / silences.mean() / UNEVENNESS, abs=0.06)
    assert values["melody"] == pytest.approx(4 * 0.95 / MELODY, abs=0.06)
    whole = values.pop("dialogue_naturalness")
    assert whole == pytest.approx(np.mean(list(values.values())))


def test_overlaps_count_up_to_what_people_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    turns = [("A", 0, 8), ("B", 7.6, 14), ("A", 14.4, 20), ("B", 20.4, 24)]
    found = measured(turns, monkeypatch, tmp_path)
    assert found.values["overlaps"] == pytest.approx(1 / 3 / OVERLAPS, abs=0.01)
    assert found.values["pauses"] is None, "two silences are too few to say how uneven they are"


def test_one_voice_is_answered_by_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone = measured([("A", 0, 12), ("A", 13, 24)], monkeypatch, tmp_path)
    assert (alone.values["gaps"], alone.values["overlaps"]) == (0, 0)


def test_little_speech_and_voices_that_never_change_are_unscored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert measured([("A", 0, 3), ("B", 3, 6)], monkeypatch, tmp_path / "1") == Unscored(
        "6.0 s of speech were found; at least 8 s are needed", "system"
    )
    under = measured([("A", 0, 20), ("B", 5, 5.5)], monkeypatch, tmp_path / "2")
    assert under == Unscored("two voices are heard, but no turn change between them", "system")


def test_the_constants_are_those_that_were_fixed_in_writing() -> None:
    text = DECISION.read_text(encoding="utf-8")
    for constant in (
        f"{GAP:g} s|",
        f"/ {OVERLAPS:g}, at most 1",
        f"/ {UNEVENNESS:g}, at most 1",
        f"/ {MELODY:g} semitones",
    ):
        assert constant.replace("|", r"\|") in text, constant
