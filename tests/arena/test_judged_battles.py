"""Battles before a judge: who meets whom by the paper's rule, how often, and what a missing answer does."""

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from podeval.arena.judged_battles import ROUND, hold_battles
from podeval.arena.settings import PAIRING, REASON, ArenaSettings
from podeval.errors import BadInput, CannotScore
from podeval.metrics.pairwise_judge import JudgeBallot, JudgedBattle
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.stats.battles import Battles, elo

SYSTEMS = [f"s{number}" for number in range(8)]


def dialogue(system: str, number: int, dimension: str = "semantic") -> SpokenDialogue:
    turn = {"user": "Hello?", "answer": "Hello."}
    return SpokenDialogue.parse(
        {"id": f"{dimension}-{number}", "dimension": dimension, "turns": [turn], "system": system}
    )


def ask(one: SpokenDialogue, other: SpokenDialogue) -> Generator[Any, Any, JudgedBattle]:
    """The better number wins; an item called 13 has no answer."""
    if one.id.endswith("-13"):
        raise CannotScore("no answer")
    first, second = str(one.system), str(other.system)
    ballot = JudgeBallot(first, second, max(first, second), "r", "id")
    return JudgedBattle(one.id, one.dimension, None, None, first, second, (ballot,))
    yield


def hold(conversations: Sequence[Generator[Any, Any, JudgedBattle]]) -> list[Any]:
    def end(conversation: Generator[Any, Any, JudgedBattle]) -> Any:
        try:
            next(conversation)
        except StopIteration as stop:
            return stop.value
        except CannotScore as error:
            return error

    return [end(conversation) for conversation in conversations]


def fought(dialogues: list[SpokenDialogue], **options: Any) -> list[tuple[str, str, str, Any]]:
    return [
        (str(one.system), str(other.system), one.id, outcome)
        for one, other, outcome in hold_battles(dialogues, ask, hold, **options)
    ]


FIELD = [dialogue(system, number) for system in SYSTEMS for number in range(12)]


def test_each_two_systems_meet_on_each_dialogue_that_both_answered() -> None:
    rows = fought([*FIELD[:24], dialogue("s9", 3), dialogue("s9", 99)])
    assert len(rows) == 12 + 2
    assert {name for first, second, name, _ in rows if "s9" in (first, second)} == {"semantic-3"}


def test_the_papers_rule_lets_the_closest_meet_as_often_as_is_asked() -> None:
    other = [dialogue(system, number, "ambient") for system in SYSTEMS for number in range(3)]
    rows = fought([*FIELD, *other], pairing="mtalk", most=120, variant="mtalk")
    by_dimension = Counter(name.partition("-")[0] for _, _, name, _ in rows)
    assert by_dimension == {"semantic": 120, "ambient": 28 * 3}, "each pair of eight systems on each of three items"
    met = Counter((frozenset((first, second)), name) for first, second, name, _ in rows)
    assert max(met.values()) == 1
    # After the first rounds, what meets is closer than pairs are on average.
    semantic = [row for row in rows if row[2].startswith("semantic")]
    gaps = []
    for start in range(40, 120, ROUND):
        before = semantic[:start]
        outcomes = [outcome.outcome for *_, outcome in before]
        rated = elo(Battles.of([row[0] for row in before], [row[1] for row in before], outcomes), "mtalk")
        of_all = [abs(rated[a].rating - rated[b].rating) for a in SYSTEMS for b in SYSTEMS if a < b]
        of_round = [abs(rated[a].rating - rated[b].rating) for a, b, *_ in semantic[start : start + ROUND]]
        gaps.append(sum(of_round) / len(of_round) < sum(of_all) / len(of_all) / 2)
    assert sum(gaps) >= 0.9 * len(gaps)


def test_the_seed_decides_and_a_missing_answer_rates_nobody_and_stops_nothing() -> None:
    names = [(first, second, name) for first, second, name, _ in fought(FIELD, pairing="mtalk", most=50)]
    again = [(first, second, name) for first, second, name, _ in fought(FIELD, pairing="mtalk", most=50)]
    other = [(first, second, name) for first, second, name, _ in fought(FIELD, pairing="mtalk", most=50, seed=1)]
    assert names == again != other
    rows = fought([*FIELD, *(dialogue(system, 13) for system in SYSTEMS)], pairing="mtalk")
    assert len(rows) == 28 * 13
    assert sum(isinstance(outcome, CannotScore) for *_, outcome in rows) == 28


def test_a_budget_that_is_used_up_ends_the_battles_of_the_papers_rule() -> None:
    def refuse(conversations: Sequence[Any]) -> list[Any]:
        return [CannotScore("the budget is used up: 0 calls") for _ in conversations]

    assert len(list(hold_battles(FIELD, ask, refuse, pairing="mtalk"))) == ROUND


def test_what_cannot_meet_is_refused() -> None:
    with pytest.raises(BadInput, match="no two systems answered the same dialogue"):
        fought([dialogue("s0", 1), dialogue("s1", 2)])
    with pytest.raises(BadInput, match="s0 answered semantic-1 twice"):
        fought([dialogue("s0", 1), dialogue("s0", 1), dialogue("s1", 1)])


def test_a_site_sets_the_pairing_rule_and_whether_a_vote_needs_a_reason() -> None:
    plain, papers = ArenaSettings.read({}), ArenaSettings.read({PAIRING: "mtalk", REASON: "required"})
    assert (plain.pairing, plain.comment_required) == ("closest", False)
    assert (papers.pairing, papers.comment_required) == ("mtalk", True)
    for name, sentence in (
        (PAIRING, "must be closest or mtalk, not 'x'"),
        (REASON, "must be required or optional, not 'x'"),
    ):
        with pytest.raises(BadInput, match=sentence):
            ArenaSettings.read({name: "x"})
