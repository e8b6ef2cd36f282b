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
from podeval.validation.judge_check import CASES, check_weaknesses

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


@pytest.mark.parametrize(
    ("rate", "faults"),
    [(sound, set()), (position, {"position"}), (length, {"padding", "injection"}), (believer, {"injection"})],
)
def test_what_was_planted_is_found_and_nothing_else(
    judge: Callable[..., Any], rate: Callable[[str, str], float], faults: set[str]
) -> None:
    """A judge that likes length falls for any turn more, an order among them."""
    findings = check_weaknesses(judge(comparing(rate)).bench, SCRIPTS)
    assert {finding.kind for finding in findings if finding.failed} == faults
    for finding in findings:
        assert finding.errors.count == CASES
        assert finding.errors.value == (1.0 if finding.kind in faults else 0.0)
        assert finding.errors.high - finding.errors.low < 0.2


def test_a_sound_judge_that_errs_now_and_then_is_not_accused(judge: Callable[..., Any]) -> None:
    def errs(first: str, second: str) -> float:
        return 1.0 if "river number 7 " in second and first != second else sound(first, second)

    assert not any(finding.failed for finding in check_weaknesses(judge(comparing(errs)).bench, SCRIPTS))


def test_without_a_script_or_a_judge_it_says_what_is_needed() -> None:
    with pytest.raises(BadInput, match="give at least one script"):
        check_weaknesses(JudgeConfig(), [])
    with pytest.raises(BadInput, match="choose a judge"):
        check_weaknesses(JudgeConfig(), SCRIPTS)


def test_the_command_asks_prints_and_exits_by_what_it_found(judge: Callable[..., Any], tmp_path: Path) -> None:
    from podeval.cli import app

    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"speaker": turn.speaker, "text": turn.text} for turn in SCRIPTS[0].turns]))
    for rate, code in ((sound, 0), (position, 1)):
        bench = judge(comparing(rate)).bench
        asked = ["judge", "check", str(bench.judge), str(script), "--records", str(bench.records), "--cases", "5"]
        said = CliRunner().invoke(app, asked)
        assert said.exit_code == code, said.output
        expected = "prefers a place where both scripts are the same; errs in 100%" if code else "position: passed"
        assert expected in said.output
