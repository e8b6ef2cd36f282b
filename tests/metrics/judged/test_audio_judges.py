"""Judges that hear: seeded runs with their spread, stretches of 10 s, the whole at once; bounded, or unscored."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.measuring.compute import compute
from podeval.measuring.inputs import MetricInputs
from podeval.metrics import catalogue, judge_use
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.judged.expressive_richness import split_into_stretches
from podeval.recording import Recording

RATE = 16_000
NOTES = {"flow": "f", "stress_and_melody": "s", "naturalness": "n"}
ARC = {"arc": "a", "dynamics": "d", "fit": "f"}


@pytest.fixture(autouse=True)
def _no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No recogniser looks for words in noise; test_gaming_of_judges.py has recordings that speak to the judge."""
    monkeypatch.setattr(judge_use, "transcribe_spoken_words", lambda inputs: {})


def recording(seconds: float) -> Recording:
    samples = np.random.default_rng(0).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)
    return Recording.from_samples(samples, RATE)


def scored(name: str, bench: JudgeConfig, seconds: float = 2.0, **others: Any) -> dict[str, Any]:
    metric = catalogue.get(name)
    item = MetricInputs({"recording": recording(seconds), "reference_text": "Rivers carry salt."}).select(metric)
    return compute(metric, [item], input_names=metric.inputs, bench=bench, parameters={"source": "mix", **others})


def heard(question: Any) -> list[np.ndarray[Any, Any]]:
    parts = [part for part in question.body["messages"][1]["content"] if part["type"] == "input_audio"]
    return [soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))[0] for part in parts]


def test_prosody_is_the_mean_of_ten_seeded_runs_with_its_spread(judge: Callable[..., Any]) -> None:
    scores = [3, 3.5, 4, 4.5, 5, 3, 3.5, 4, 4.5, 5]
    made = judge(lambda q: {"impression": "i", "notes": NOTES, "score": scores[q.body["seed"]]})
    found = scored("prosodic_coherence", made.bench)
    assert found["prosodic_coherence"] == 4.0
    # Squares of −1, −½, 0, ½, 1 twice: variance 5 / 10
    assert found["spread"] == pytest.approx(0.5**0.5)
    assert sorted(question.body["seed"] for question in made.questions) == list(range(10))
    assert {question.body["temperature"] for question in made.questions} == {1.0}
    assert {question.inputs["text"] for question in made.questions} == {"Rivers carry salt."}
    assert found["items"][0]["notes"]["runs"] == scores
    assert found["protocol"]["models"]["judge"]["sampling"]["temperature"] == 1.0
    assert scored("prosodic_coherence", made.bench, runs=3)["prosodic_coherence"] == 3.5
    assert len(made.questions) == 10


def test_one_unreadable_run_leaves_the_recording_unscored(judge: Callable[..., Any]) -> None:
    made = judge(lambda q: {"notes": NOTES, "score": 6 if q.body["seed"] == 4 else 3})
    found = scored("prosodic_coherence", made.bench)
    assert found["prosodic_coherence"] is None
    assert found["items"][0]["cause"] == "ours"
    assert len(made.questions) == 12


@pytest.mark.parametrize("score", [0.5, 5.5, 3.7, "excellent", None])
def test_scores_off_the_scale_are_no_scores(judge: Callable[..., Any], score: Any) -> None:
    found = scored("expressive_hierarchy", judge(lambda q: {"notes": ARC, "score": score}).bench)
    assert found["expressive_hierarchy"] is None
    assert found["unscored"] == 1


def test_the_paper_s_own_keys_and_its_trailing_comma_are_read(judge: Callable[..., Any]) -> None:
    answer = (
        '```json\n{"Overall_Impression": "fine", "Detailed_Analysis": {"Coherence_and_Flow": "a", '
        '"Hierarchy_and_Layering": "b", "Naturalness": "c"}, "Score": 4.5,}\n```'
    )
    assert scored("prosodic_coherence", judge(lambda q: answer).bench, runs=2)["prosodic_coherence"] == 4.5


def test_richness_is_the_mean_over_stretches_of_ten_seconds_which_are_the_whole(judge: Callable[..., Any]) -> None:
    def answer(question: Any) -> dict[str, Any]:
        (clip,) = heard(question)
        return {"impression": "i", "performance": "p", "score": 5 if len(clip) == 4 * RATE else 2}

    made = judge(answer)
    found = scored("expressive_richness", made.bench, seconds=24)
    assert found["expressive_richness"] == 3.0
    assert sorted(len(heard(question)[0]) for question in made.questions) == [4 * RATE, 10 * RATE, 10 * RATE]
    assert found["items"][0]["timeline"]["starts"] == [0.0, 10.0, 20.0]
    assert found["items"][0]["timeline"]["values"]["expressive_richness"] == [2, 2, 5]


def test_the_paper_rates_any_remainder_as_a_stretch_of_its_own(judge: Callable[..., Any]) -> None:
    """91.08 s are ten stretches of the paper, the last of 1.08 s, and nine of ours."""
    assert len(split_into_stretches(round(91.08 * RATE), RATE)) == 9
    made = judge(lambda question: {"impression": "i", "performance": "p", "score": 3})
    scored("expressive_richness", made.bench, seconds=91.08, variant="lfs")
    assert sorted(len(heard(question)[0]) for question in made.questions) == [round(1.08 * RATE), *[10 * RATE] * 9]


@pytest.mark.parametrize(
    ("seconds", "lengths"), [(2, [2]), (10, [10]), (12.9, [12.9]), (13, [10, 3]), (22, [10, 12]), (30, [10, 10, 10])]
)
def test_stretches_cover_everything_once(seconds: float, lengths: list[float]) -> None:
    found = split_into_stretches(round(seconds * RATE), RATE)
    assert [(end - start) / RATE for start, end in found] == lengths
    assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]


def test_hierarchy_hears_the_whole_recording_once(judge: Callable[..., Any]) -> None:
    made = judge(lambda q: {"impression": "i", "notes": ARC, "score": 3.5})
    found = scored("expressive_hierarchy", made.bench, seconds=31)
    assert found["expressive_hierarchy"] == 3.5
    (question,) = made.questions
    (clip,) = heard(question)
    assert len(clip) == 31 * RATE
    assert np.corrcoef(clip, recording(31).mono(RATE))[0, 1] > 0.999


def test_a_recording_longer_than_the_judge_takes_is_unscored_and_not_sent(
    judge: Callable[..., Any], tmp_path: Path
) -> None:
    made = judge(lambda q: {"notes": ARC, "score": 3}, hears=True)
    file = Path(made.bench.judge)
    file.write_text(file.read_text("utf-8") + "audio: {seconds: 5}\n", "utf-8")
    found = scored("expressive_hierarchy", made.bench, seconds=6)
    assert "6 s" in found["items"][0]["unscored"]
    assert found["items"][0]["cause"] == "ours"
    assert made.questions == []


def test_silence_and_a_missing_file_are_the_system_s_fault(judge: Callable[..., Any], tmp_path: Path) -> None:
    made = judge(lambda q: {"notes": ARC, "score": 3})
    metric = catalogue.get("expressive_hierarchy")
    items = [
        {"recording": Recording.from_samples(np.zeros(RATE, dtype=np.float32), RATE)},
        MetricInputs({"recording": tmp_path / "nothing.wav"}),
        {"recording": recording(2)},
    ]
    found = compute(metric, items, input_names=metric.inputs, bench=made.bench, parameters={"source": "mix"})
    assert [item.get("cause") for item in found["items"]] == ["system", "system", None]
    assert (found["scored"], found["unscored"]) == (1, 2)
