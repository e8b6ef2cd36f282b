"""Pace: what moves which key, with planted speech and words over a synthetic voice; what is refused."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.score import Score, Unscored
from podeval.models import registry
from podeval.models.interfaces import SpeakerTurn, Transcript, Word
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.text.script import Script
from tests.fakes.planted_models import PlantedModels

RATE = 16_000
SENTENCE, PAUSE, SENTENCES = 4.0, 0.5, 16
"""Seconds of a sentence and of the pause after it, and how many sentences there are."""


class Heard(PlantedModels):
    """All models in one: sentences of words of two syllables, with pauses, by two people in turn, four at a time."""

    def __init__(self, *, faster: float = 1.0, pauses: list[float] | None = None, language: str = "en") -> None:
        lengths = pauses or [PAUSE] * SENTENCES
        starts = np.cumsum([0.0, *(SENTENCE / faster + pause for pause in lengths)])
        spoken = tuple(Span(float(start), float(start) + SENTENCE / faster) for start in starts[:SENTENCES])
        super().__init__(spoken=spoken)
        self.language, self.seconds = language, self.spoken[-1].end + 0.5

    def diarize(self, samples: NDArray[np.float32]) -> tuple[SpeakerTurn, ...]:
        return tuple(SpeakerTurn("AB"[n // 4 % 2], span.start, span.end) for n, span in enumerate(self.spoken))

    def transcribe(self, samples: NDArray[np.float32], language: str | None) -> Transcript:
        words = []
        for span in self.spoken:
            edges = np.linspace(span.start, span.end, 9)
            words += [Word("table", float(start), float(end)) for start, end in pairwise(edges)]
        return Transcript(" ".join(word.text for word in words), self.language, tuple(words))


def voice(seconds: float, semitones: float) -> NDArray[np.float32]:
    """A voice that swings so many semitones about 150 Hz, and in level by 12 dB."""
    time = np.arange(int(seconds * RATE)) / RATE
    swing = np.sin(2 * np.pi * 0.9 * time)
    phase = 2 * np.pi * np.cumsum(150 * 2 ** (semitones / 24 * swing)) / RATE
    tones = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 9))
    return np.asarray(0.1 * tones * 10 ** (0.3 * np.sin(2 * np.pi * 0.4 * time)), dtype=np.float32)


def measured(heard: Heard, monkeypatch: pytest.MonkeyPatch, cache: Path, semitones: float = 6.0) -> Any:
    monkeypatch.setattr(registry, "load", heard.load)
    recording = Recording.from_samples(voice(heard.seconds, semitones), RATE, cache=Cache(cache))
    return catalogue.get("pace")({"recording": recording})


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Score:
    with pytest.MonkeyPatch.context() as monkeypatch:
        score = measured(Heard(), monkeypatch, tmp_path_factory.mktemp("steady"))
    assert isinstance(score, Score)
    return score


def moved(before: Score, after: Score) -> set[str]:
    """The keys that changed by more than 3 % or 0.03, whichever is more."""
    return {
        key
        for key, value in before.values.items()
        if abs((after.values[key] or 0.0) - (value or 0.0)) > max(0.03, 0.03 * abs(value or 0.0))
    }


def test_rates_and_pauses_are_those_that_were_planted(steady: Score) -> None:
    spoken, whole = SENTENCE * SENTENCES, SENTENCE * SENTENCES + PAUSE * (SENTENCES - 1)
    assert steady.values["articulation_rate"] == pytest.approx(16 * SENTENCES / spoken)
    assert steady.values["speaking_rate"] == pytest.approx(16 * SENTENCES / whole)
    assert steady.values["pause_share"] == pytest.approx(1 - spoken / whole)
    assert steady.values["rate_cv"] == pytest.approx(0, abs=0.03)
    assert steady.values["rate_drift"] == pytest.approx(0, abs=0.5)
    assert steady.values["f0_range"] == pytest.approx(6 * 0.95, abs=0.6)
    assert steady.notes["within_turns"] == {"pauses": 12, "median": PAUSE}
    assert steady.notes["between_turns"] == {"pauses": 3, "median": PAUSE}
    assert steady.notes["speakers"]["A"]["f0_median"] == pytest.approx(150, rel=0.03)
    assert set(steady.timeline.values) == {"articulation_rate", "pause_share", "f0_range", "energy_range"}
    assert steady.timeline.drift["f0_range"]["slope"] == pytest.approx(0, abs=1)


@pytest.mark.long
def test_a_faster_rate_moves_the_rates_alone(steady: Score, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    faster = measured(Heard(faster=1.25, pauses=[PAUSE / 1.25] * SENTENCES), monkeypatch, tmp_path)
    assert moved(steady, faster) - {"rate_drift"} == {"speaking_rate", "articulation_rate"}
    assert faster.values["articulation_rate"] == pytest.approx(1.25 * 4.0)


@pytest.mark.long
def test_a_flat_voice_moves_the_melody_alone(steady: Score, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flat = measured(Heard(), monkeypatch, tmp_path, semitones=0.0)
    assert moved(steady, flat) - {"energy_range"} == {"f0_range"}
    assert flat.values["f0_range"] < 0.5
    assert flat.values["energy_range"] == pytest.approx(steady.values["energy_range"], rel=0.1)


@pytest.mark.long
def test_longer_pauses_move_the_share_and_the_speaking_rate_alone(
    steady: Score, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = measured(Heard(pauses=[2 * PAUSE] * SENTENCES), monkeypatch, tmp_path)
    assert isinstance(slow, Score)
    assert moved(steady, slow) - {"rate_drift"} == {"speaking_rate", "pause_share"}


@pytest.mark.long
def test_a_pause_much_longer_than_the_others_may_be_a_seam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pauses = [PAUSE] * SENTENCES
    pauses[5] = 1.4
    found = measured(Heard(pauses=pauses), monkeypatch, tmp_path)
    assert found.notes["long_pauses"] == [[26.5, 27.9]]


def test_a_language_without_a_rule_and_a_short_recording_are_unscored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    german = measured(Heard(language="de"), monkeypatch, tmp_path)
    assert german == Unscored("syllables are counted only in English and Chinese, but 'de' is heard", "system")
    short = Recording.from_samples(voice(30, 3), RATE, cache=Cache(tmp_path / "short"))
    found = catalogue.get("pace")({"recording": short})
    assert found == Unscored("the recording lasts 30.00 s; at least 40 s are needed", "system")


def test_little_speech_in_a_long_recording_is_unscored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = Heard()
    heard.spoken = heard.spoken[:5]
    found = measured(heard, monkeypatch, tmp_path)
    assert found == Unscored("20.0 s of speech were found; at least 40 s are needed", "system")


def test_a_script_says_whose_melody_it_is_and_nobody_diarises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = Heard()
    diarised: list[int] = []
    monkeypatch.setattr(heard, "diarize", lambda samples: diarised.append(1) or ())
    monkeypatch.setattr(registry, "load", heard.load)
    recording = Recording.from_samples(voice(heard.seconds, 6.0), RATE, cache=Cache(tmp_path))
    said = [{"speaker": "Ann" if n // 4 % 2 == 0 else "Ben", "text": "table " * 8} for n in range(SENTENCES)]
    score = catalogue.get("pace")({"recording": recording, "script": Script.parse(said)})
    assert list(score.notes["speakers"]) == ["Ann", "Ben"]
    assert score.notes["between_turns"]["pauses"] == 3
    assert score.values["f0_range"] == pytest.approx(6 * 0.95, abs=0.6)
    # Another text: nobody knows who speaks, and what needs no speakers is there all the same.
    other = Script.parse([{"speaker": "Ann", "text": "chairs " * 40}, {"speaker": "Ben", "text": "lamps " * 40}])
    unknown = catalogue.get("pace")({"recording": recording, "script": other})
    assert unknown.values["f0_range"] is unknown.values["energy_range"] is None
    assert "less than half of the script's words were recognised" in unknown.notes["speakers_unknown"]
    assert unknown.values["rate_cv"] == score.values["rate_cv"]
    assert not diarised
