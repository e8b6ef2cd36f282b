"""Scores from reasons: one call a question over all systems, which the judge knows by shuffled numbers only."""

from collections.abc import Callable
from typing import Any

import pytest

from podeval.errors import CannotScore
from podeval.judges.rounds import NoAnswer, hold
from podeval.metrics import JudgeUse
from podeval.metrics.human.mos import SUMMARISE, judge_justifications

QUESTION = "How engaging is the podcast?"
COMMENTS = {
    "PodAgent": ["A bit dull.", "Too slow  for me."],
    "NotebookLM": ["Lively hosts."],
    "Real-Pod": ["I wanted to hear more.", ""],
}
LIKED = {"Lively": 4.5, "dull": 2, "wanted": 5}


def by_comments(question: Any) -> dict[str, Any]:
    systems = []
    for part in question.inputs["comments"].split("System ")[1:]:
        score = next(score for word, score in LIKED.items() if word in part)
        systems.append({"system": int(part.partition(":")[0]), "summary": "In short.", "score": score})
    return {"systems": systems}


def asked(made: Any, *conversations: Any) -> list[Any]:
    return hold(conversations, made.bench.judging(JudgeUse(prompts=lambda _: (SUMMARISE,)), {}))


def test_one_call_scores_all_systems_without_their_names(judge: Callable[..., Any]) -> None:
    made = judge(by_comments)
    (found,) = asked(made, judge_justifications(QUESTION, COMMENTS))
    assert {system: one.score for system, one in found.items()} == {"PodAgent": 2, "NotebookLM": 4.5, "Real-Pod": 5}
    assert list(found) == list(COMMENTS)
    (question,) = made.questions
    assert not any(system in str(question.body) for system in COMMENTS)


def test_the_order_is_shuffled_by_question_and_does_not_follow_the_table(judge: Callable[..., Any]) -> None:
    made = judge(by_comments)
    questions = [f"{QUESTION} ({number})" for number in range(12)]
    found = asked(made, *(judge_justifications(question, COMMENTS) for question in questions))
    turned = dict(reversed(COMMENTS.items()))
    again = asked(made, *(judge_justifications(question, turned) for question in questions))
    assert [{k: v.score for k, v in one.items()} for one in found] == [
        {k: v.score for k, v in one.items()} for one in again
    ]
    assert len(made.questions) == 12
    firsts = {question.inputs["comments"].split("\n")[1] for question in made.questions}
    assert len(firsts) == 3


def test_a_system_left_out_is_asked_again_and_then_there_is_no_score(judge: Callable[..., Any]) -> None:
    made = judge(lambda question: {"systems": by_comments(question)["systems"][:2]})
    (found,) = asked(made, judge_justifications(QUESTION, COMMENTS))
    assert isinstance(found, NoAnswer)
    assert "there are systems 1 to 3" in str(found)


def test_a_system_nobody_gave_a_reason_about_has_no_score() -> None:
    with pytest.raises(CannotScore, match="no listener gave a reason for a mark of Mute"):
        next(judge_justifications(QUESTION, {**COMMENTS, "Mute": ["  "]}))
