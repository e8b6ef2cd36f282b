"""Conversations: many at once, in rounds, each with its own end."""

from collections.abc import Sequence
from typing import Any

from podeval.errors import CannotScore
from podeval.judges.client import JudgeRequest, Unanswered, UsableAnswer
from podeval.judges.rounds import Conversation, NoAnswer, hold
from podeval.metrics.human.mos import SUMMARISE, SystemScore


class Echo:
    """Answers the question's length, and not at all to an empty one."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def ask(self, requests: Sequence[JudgeRequest]) -> list[UsableAnswer | Unanswered]:
        self.rounds.append(len(requests))
        return [self._answer(str(request.inputs["question"])) for request in requests]

    def _answer(self, question: str) -> UsableAnswer | Unanswered:
        if not question:
            return Unanswered("nothing was asked")
        return UsableAnswer(SystemScore(system=len(question), summary="s", score=1), "record", 1)


def asking(*rounds: list[str]) -> Conversation[list[int]]:
    heard: list[int] = []
    for questions in rounds:
        answers = yield [JudgeRequest(SUMMARISE, {"question": question, "comments": ""}) for question in questions]
        heard += [answer.value.system for answer in answers]  # type: ignore[attr-defined]
    return heard


def refusing() -> Conversation[list[int]]:
    raise CannotScore("too short")
    yield []


def forgiving() -> Conversation[list[int]]:
    try:
        yield [JudgeRequest(SUMMARISE, {"question": "", "comments": ""})]
    except NoAnswer:
        return [-1]
    return []


def test_a_round_of_all_is_asked_together_and_each_gets_its_own_answers() -> None:
    echo = Echo()
    found: list[Any] = hold([asking(["a", "bb"], ["ccc"]), asking(["dddd"]), asking(), asking([], ["ee"])], echo)
    assert found == [[1, 2, 3], [4], [], [2]]
    assert echo.rounds == [4, 1]


def test_what_ends_one_conversation_leaves_the_others_alone() -> None:
    found = hold([asking(["a", ""]), refusing(), asking(["bb"]), forgiving()], Echo())
    assert isinstance(found[0], NoAnswer)
    assert str(found[0]) == "nothing was asked (1 of 2 requests without an answer)"
    assert isinstance(found[1], CannotScore)
    assert found[2:] == [[2], [-1]]
