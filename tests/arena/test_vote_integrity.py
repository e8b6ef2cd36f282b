"""The rules one by one, and the ranking under attack; the whole study is studies/arena_integrity.py."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from podeval.arena.vote_integrity import COLUMNS, IntegrityLimits, describe_alarms, judge
from studies import arena_integrity as study


def votes(count: int = 24, **columns: Any) -> pd.DataFrame:
    """Votes of honest people over a day, with what is changed."""
    number = np.arange(count)
    table = pd.DataFrame({
        "vote": [f"v{n}" for n in number],
        "voter": [f"p{n % 6}" for n in number],
        "origin": [f"o{n % 6}" for n in number],
        "at": 86_400.0 * 11_574 + 3600.0 * number,
        "elapsed": 70.0,
        "needed": 30.0,
        "heard": 1.0,
        "outcome": np.array(["a", "b"])[(number // 3) % 2],
        "a": [f"s{n % 4}" for n in number],
        "b": [f"s{(n + 1) % 4}" for n in number],
        "dimension": "semantic",
        "comment": [f"a reason of its own, number {n}" for n in number],
        "gold": np.nan,
        "counts": True,
    })  # fmt: skip
    return table.assign(**columns)[list(COLUMNS)]


def seen(table: pd.DataFrame) -> dict[str, set[str]]:
    return judge(table).signals.groupby("rule")["vote"].agg(set).to_dict()


def test_honest_votes_are_left_alone() -> None:
    found = judge(votes())
    assert found.signals.empty
    assert found.excluded == {}


def test_no_votes_are_no_finding() -> None:
    assert judge(votes().iloc[:0]).excluded == {}


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"elapsed": 12.0}, "speed"),
        ({"heard": 0.2}, "coverage"),
        ({"comment": "the same reason every time", "voter": "p9"}, "repeated comment"),
    ],
)
def test_what_one_vote_shows(columns: dict[str, Any], rule: str) -> None:
    table = votes()
    table.loc[5:8, list(columns)] = list(columns.values())
    result = judge(table)
    assert result.signals.groupby("rule")["vote"].agg(set).to_dict() == {rule: {"v5", "v6", "v7", "v8"}}
    assert set(result.excluded) == {"v5", "v6", "v7", "v8"}
    assert all(reason.startswith(rule) for reason in result.excluded.values())


@pytest.mark.parametrize(
    ("texts", "copied"),
    [
        (["A was more natural.", "a was more NATURAL", "A was more natural!!", "a  was more natural"], [0, 1, 2, 3]),
        (["A was more natural."] * 3, []),
        (["the second is better"] * 9, []),
        (["the second speaker explains the context of the question far better"] * 4, [0, 1, 2, 3]),
    ],
    ids=["by one", "too few", "short, by many", "long, by many"],
)
def test_a_copied_reason_is_seen_whatever_its_case_and_punctuation(
    texts: list[str], copied: list[int], request: pytest.FixtureRequest
) -> None:
    table = votes()
    of_many = request.node.callspec.id.endswith("by many")
    for row, text in enumerate(texts):
        table.loc[row, ["voter", "comment"]] = [f"w{row}" if of_many else "w", text]
    assert seen(table).get("repeated comment", set()) == {f"v{row}" for row in copied}


def test_an_unknown_time_is_not_too_fast() -> None:
    assert judge(votes(elapsed=np.nan)).excluded == {}


def test_skipped_battles_are_not_looked_at() -> None:
    assert judge(votes(outcome="skip", elapsed=0.5, heard=0.0, counts=False)).signals.empty


def test_always_the_same_side_is_seen_and_a_leaning_is_not() -> None:
    rows = votes(60, voter="p0", origin="o0")
    assert seen(rows.assign(outcome="a")).get("repeated choice") == set(rows["vote"])
    leaning = np.where(np.arange(60) % 10 < 7, "a", "b")
    assert "repeated choice" not in seen(rows.assign(outcome=leaning))
    assert "repeated choice" in seen(rows.assign(outcome="tie"))


def test_many_names_from_one_place_are_a_signal_and_no_verdict() -> None:
    table = votes(24, origin="one room")
    assert seen(table)["same origin"] == set(table["vote"])
    assert judge(table).excluded == {}
    assert "same origin" not in seen(votes(24, origin=""))


def test_contradictions_of_known_answers_add_up() -> None:
    """Six of eight wrong has a chance of 1 in 800 with an error of one in five; four of eight, 1 in 18."""
    table = votes(24)
    wrong = table.assign(
        voter=np.where(table.index < 8, "p9", table["voter"]), gold=[0.0] * 6 + [1.0] * 2 + [np.nan] * 16
    )
    assert set(judge(wrong).excluded) == {f"v{n}" for n in range(8)}
    unsure = wrong.assign(gold=[0.0] * 4 + [1.0] * 4 + [np.nan] * 16)
    assert judge(unsure).excluded == {}


def test_fresh_voters_who_lift_one_system_in_an_hour_are_a_burst() -> None:
    """40 new names, one vote each, within half an hour, for the weakest system, over an honest crowd."""
    honest = study.simulate("bot", 3, votes=2000, bad=0.0)
    weakest = f"s{int(np.argmin(study.ranking(honest)))}"
    others = [f"s{n}" for n in range(10) if f"s{n}" != weakest]
    burst = votes(
        40, voter=[f"new{n}" for n in range(40)], origin=[f"home{n}" for n in range(40)], outcome="a", a=weakest,
        b=[others[n % 9] for n in range(40)], at=honest["at"].mean() + 45.0 * np.arange(40),
        vote=[f"burst{n}" for n in range(40)], comment=[f"words of the {n}th" for n in range(40)],
    )  # fmt: skip
    found = judge(pd.concat([honest, burst], ignore_index=True))
    assert sum(vote.startswith("burst") for vote in found.excluded) >= 36
    assert np.mean([vote not in found.excluded for vote in honest["vote"]]) > 0.98


def test_an_honest_rush_is_no_burst() -> None:
    """A conference demo: as many fresh voters in an hour, who vote as everyone does."""
    honest = study.simulate("bot", 4, votes=2000, bad=0.0)
    rush = study.simulate("bot", 4, votes=2060, bad=0.0).tail(60)
    rush = rush.assign(
        vote=[f"r{n}" for n in range(60)], voter=[f"r{n}" for n in range(60)],
        at=honest["at"].mean() + 30.0 * np.arange(60), comment=[f"my view {n} on the content" for n in range(60)],
    )  # fmt: skip
    found = judge(pd.concat([honest, rush], ignore_index=True))
    assert not [vote for vote in found.excluded if vote.startswith("r")]


@pytest.mark.parametrize(("kind", "seed"), [("lazy", 0), ("ring", 1), ("bot", 2), ("mixed", 3)])
def test_the_public_ranking_stands_with_one_bad_vote_in_ten(kind: str, seed: int) -> None:
    done = study.outcome_of(study.simulate(kind, seed, votes=4000))
    assert done.tau_public >= 0.9
    assert done.tau_public >= done.tau_all
    assert done.honest_excluded < 0.05
    if kind == "ring":
        assert done.tau_all < 0.9, "without the rules, the ring has its way"
        assert done.bad_excluded > 0.8
    if kind == "bot":
        assert done.bad_excluded == 1.0


def test_an_excluded_share_above_the_limit_is_an_alarm() -> None:
    limits = IntegrityLimits()
    assert describe_alarms((20, 100), (4, 24), limits) == []
    (said,) = describe_alarms((21, 100), (4, 24), limits)
    assert "21 of 100 votes (21 %) are excluded" in said
    assert "votes (50 %) of the last day are excluded" in describe_alarms((12, 100), (12, 24), limits)[0]
    assert describe_alarms((10, 10), (10, 10), limits) == [], "ten votes are too few to tell"
    assert describe_alarms((12, 100), (12, 24), IntegrityLimits(alarm_share=0.9)) == []
