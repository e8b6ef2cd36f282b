"""Judges with planted faults are found out by planted cases, and a sound judge is not accused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from podeval.errors import BadInput
from podeval.metrics.judge_use import JudgeConfig
from podeval.text.script import Script
from podeval.validation.judge_audit import probe
from podeval.validation.planted_cases import CASES, OTHER_AUTHOR, WEAKNESSES, plant_weaknesses

RATINGS = ("coherence", "engagingness", "diversity", "informativeness", "speaker_difference", "overall")
SCRIPTS = [
    Script.parse(
        [
            {"speaker": "Host", "text": f"Why does river number {n} run to the sea?"},
            {"speaker": "Guest", "text": f"Because the land falls by {n} metres on the way."},
            {"speaker": "Host", "text": "And who found that out?"},
            {"speaker": "Guest", "text": f"A surveyor with {n + 2} poles and a lot of time."},
        ]
    )
    for n in range(CASES)
]
ORDERED = ("highest rating", "far better")
MODEL = "scripted"
"""The judge's model."""


def comparing(rate: Callable[[str, str], float]) -> Callable[[Any], Any]:
    """A judge that rates the second script against the first."""
    return lambda question: {
        "analysis": "as planted",
        **dict.fromkeys(RATINGS, rate(question.inputs["first"], question.inputs["second"])),
    }


def ordered(script: str) -> bool:
    return any(words in script for words in ORDERED)


def sound(first: str, second: str) -> float:
    """Ties where nothing differs, and dislikes what was added."""
    return 0.0 if first == second else 1.0 if len(second) < len(first) else -1.0


def position(first: str, second: str) -> float:
    return 1.0


def length(first: str, second: str) -> float:
    return float(np.sign(len(second) - len(first)))


def believer(first: str, second: str) -> float:
    return 3.0 * (ordered(second) - ordered(first)) or sound(first, second)


def vain(first: str, second: str) -> float:
    """Likes the script whose author is named first, if that is its own model."""
    own = 0 <= second.find(MODEL) < second.find(OTHER_AUTHOR)
    return 1.0 if own else min(0.0, sound(first, second))


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("rate", "faults"),
    [
        (sound, set()),
        (position, {"position"}),
        (length, {"padding", "injection"}),
        (believer, {"injection"}),
        (vain, {"self"}),
    ],
)
def test_what_was_planted_is_found_and_nothing_else(
    judge: Callable[..., Any], rate: Callable[[str, str], float], faults: set[str]
) -> None:
    """A judge that likes length falls for any turn more, an order among them."""
    findings = probe(judge(comparing(rate)).bench, plant_weaknesses(SCRIPTS, author=MODEL))
    assert [finding.kind for finding in findings] == list(WEAKNESSES)
    assert {finding.kind for finding in findings if finding.failed} == faults
    for finding in findings:
        assert finding.errors.count == CASES
        assert finding.errors.value == (1.0 if finding.kind in faults else 0.0)
        assert finding.errors.high - finding.errors.low < 0.2


def test_a_sound_judge_that_errs_now_and_then_is_not_accused(judge: Callable[..., Any]) -> None:
    def errs(first: str, second: str) -> float:
        return 1.0 if "river number 7 " in second and first != second else sound(first, second)

    assert not any(one.failed for one in probe(judge(comparing(errs)).bench, plant_weaknesses(SCRIPTS, author=MODEL)))


@pytest.mark.parametrize("scripts", [SCRIPTS, [Script.parse([{"speaker": "主持人", "text": "河流为什么入海？"}])]])
def test_the_two_that_name_an_author_have_the_same_length_and_words(scripts: list[Script]) -> None:
    """Nothing tells them apart but who is said to have written."""
    (group,) = plant_weaknesses(scripts, 8, MODEL)
    for conversation in group.conversations[3::4]:
        (asked, _) = next(conversation)
        ours, other = (asked.inputs[name] for name in ("second", "first"))
        assert ours != other
        assert sorted(ours) == sorted(other)
        assert ours.index(MODEL) < ours.index(OTHER_AUTHOR)


def test_without_a_script_or_a_judge_it_says_what_is_needed() -> None:
    with pytest.raises(BadInput, match="give at least one script"):
        probe(JudgeConfig(), plant_weaknesses([]))
    with pytest.raises(BadInput, match="choose a judge"):
        probe(JudgeConfig(), plant_weaknesses(SCRIPTS))


def test_the_command_asks_prints_and_exits_by_what_it_found(judge: Callable[..., Any], tmp_path: Path) -> None:
    from podeval.cli import app

    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"speaker": turn.speaker, "text": turn.text} for turn in SCRIPTS[0].turns]))
    for rate, code in ((sound, 0), (position, 1)):
        bench = judge(comparing(rate)).bench
        asked = [
            "report",
            "judge",
            "--probe",
            str(bench.judge),
            str(script),
            "--records",
            str(bench.records),
            "--cases",
            "5",
        ]
        said = CliRunner().invoke(app, asked)
        assert said.exit_code == code, said.output
        expected = "prefers a position even if both scripts are the same; errs in 100%" if code else "position: passed"
        assert expected in said.output
        assert "self: passed; errs in 0%" in said.output
