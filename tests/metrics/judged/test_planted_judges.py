"""Judges with planted faults are found out by planted cases and records, and a sound judge is not accused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.leaderboard.judge_probe import CASES, plant_cases, probe
from podeval.leaderboard.judge_versions import link_versions
from podeval.metrics import catalogue
from podeval.metrics.compute import compute
from podeval.metrics.dialogue_judge import COMPARE
from podeval.metrics.judge_answers import read_answers
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.stats.judge_scales import link_scales, weigh_panel
from podeval.text.script import Script

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
    client = judge(comparing(rate)).bench.judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
    findings = probe(client, plant_cases(SCRIPTS))
    assert {finding.weakness for finding in findings if finding.accused} == faults
    for finding in findings:
        assert finding.share.count == CASES
        assert finding.share.value == (1.0 if finding.weakness in faults else 0.0)
        assert finding.share.high - finding.share.low < 0.2


def test_a_sound_judge_that_errs_now_and_then_is_not_accused(judge: Callable[..., Any]) -> None:
    def errs(first: str, second: str) -> float:
        return 1.0 if "river number 7 " in second and first != second else sound(first, second)

    client = judge(comparing(errs)).bench.judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
    assert not any(finding.accused for finding in probe(client, plant_cases(SCRIPTS)))


def test_two_versions_are_linked_by_the_questions_that_both_answered(judge: Callable[..., Any]) -> None:
    """The new version gives one point less than the old one."""
    folders = []
    for shift in (0.0, -1.0):

        def rate(first: str, second: str, shift: float = shift) -> float:
            number = int(first.split("river number ")[1].split()[0])
            return float((number * 7) % 4 - 1) + shift

        made = judge(comparing(rate))
        client = made.bench.judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
        probe(client, plant_cases(SCRIPTS[:10], 10))
        folders.append(made.bench.records)
    old, new = (read_answers([folder])[0] for folder in folders)
    link = next(link for link in link_versions(old, new) if link.measure == "overall")
    assert link.link.drifted
    assert link.link.drift.mean == pytest.approx(-1.0)
    assert "drifted, -1.00" in link.says
    assert not next(link for link in link_versions(old, old) if link.measure == "overall").link.drifted


def test_the_rubric_of_a_version_that_grew_lenient_is_carried_with_an_interval(judge: Callable[..., Any]) -> None:
    """Of six criteria the old version finds two to four met, by the dialogue; the new one finds one more."""
    rubric = catalogue.get("rubric")
    items = [
        {
            "dialogue": SpokenDialogue.parse(
                {
                    "id": f"d{n}",
                    "turns": [{"user": f"Tell me about river {n} please.", "answer": f"It has {n} bridges."}],
                    "criteria": {"sample": ["It is right.", "It is short."]},
                }
            )
        }
        for n in range(8)
    ]
    folders = []
    for more in (0, 1):

        def answer(question: Any, more: int = more) -> Any:
            number = int(question.inputs["dialogue"].split("river ")[1].split()[0])
            names = [line.partition(":")[0] for line in question.inputs["criteria"].splitlines()]
            met = min(len(names), number % 3 + more)
            return {"verdicts": [{"criterion": c, "reason": "r", "met": int(n < met)} for n, c in enumerate(names)]}

        made = judge(answer)
        compute(rubric, items, input_names=rubric.inputs, bench=made.bench)
        folders.append(made.bench.records)
    old, new = (read_answers([folder])[0] for folder in folders)
    (link,) = [link for link in link_versions(old, new) if link.measure.endswith("met")]
    assert link.prompt.startswith("rubric")
    assert link.link.drifted
    value, low, high = link.link.carry(0.5)
    assert low is not None
    assert high is not None
    assert low <= value <= high
    assert value > 0.5


def versions(random: np.random.Generator, shift: float, anchors: int = 20) -> tuple[dict[str, float], dict[str, float]]:
    """Scores of 1 to 5 on anchor items by two versions that see the same quality with noise of their own."""
    quality = random.normal(3, 0.8, anchors)
    old, new = (quality + random.normal(0, 0.3, anchors) for _ in range(2))
    return ({str(n): v for n, v in enumerate(old)}, {str(n): v + shift for n, v in enumerate(new)})


def test_twenty_anchors_find_a_drift_of_half_a_point_and_accuse_no_version_that_stayed() -> None:
    """Each in 200 draws: the drift is found in 95 % and more, and none is seen in 93 % and more."""
    random = np.random.default_rng(2)
    found = sum(link_scales(*versions(random, 0.5)).drifted for _ in range(200))
    accused = sum(link_scales(*versions(random, 0.0)).drifted for _ in range(200))
    assert found >= 190
    assert accused <= 14


def test_an_old_score_is_carried_to_the_new_scale_with_an_interval_that_holds_it() -> None:
    """The new version uses half of the scale: new = 1.5 + 0.5 quality."""
    random, held = np.random.default_rng(3), 0
    for _ in range(200):
        quality = random.normal(3, 0.8, 20)
        old = {str(n): v for n, v in enumerate(quality + random.normal(0, 0.1, 20))}
        new = {str(n): 1.5 + 0.5 * v for n, v in enumerate(quality + random.normal(0, 0.1, 20))}
        value, low, high = link_scales(old, new).carry(4.0)
        assert value == pytest.approx(3.5, abs=0.25)
        held += low is not None and high is not None and low <= 3.5 <= high
    assert 0.90 <= held / 200 <= 0.99
    with pytest.raises(BadInput, match="anchor items in common"):
        link_scales({"a": 1.0}, {"a": 1.0})


def test_a_panel_counts_each_judge_by_what_it_is_worth() -> None:
    """One judge sees people's scores with a little noise, one with much, one does not look."""
    random = np.random.default_rng(4)
    people = {str(n): float(v) for n, v in enumerate(random.normal(3, 1, 40))}
    panel = {
        name: {item: 2 * value + random.normal(0, noise) for item, value in people.items()}
        for name, noise in (("good", 0.4), ("fair", 2.0))
    }
    panel["blind"] = {item: float(random.normal()) for item in people}
    weights = weigh_panel(panel, people)
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["good"] > 5 * weights["fair"] > 0
    assert weights["blind"] < 0.01
    with pytest.raises(BadInput, match="better than their mean"):
        weigh_panel({"blind": dict.fromkeys(people, 3.0)}, people)


def test_findings_are_plain_data(judge: Callable[..., Any]) -> None:
    client = judge(comparing(sound)).bench.judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
    (finding, *_) = probe(client, plant_cases(SCRIPTS[:2], 2))
    assert json.dumps(finding.says)
    with pytest.raises(BadInput, match="give at least one script"):
        plant_cases([])
