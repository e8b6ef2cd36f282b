"""Standings: one ranking a dimension and one of all votes, with what they rest on."""

import pytest

from podeval.arena.ratings import POOLED, compute_standings, compute_standings_by_dimension
from podeval.errors import BadInput
from podeval.stats.battles import Battles

BATTLES = Battles.of(
    ["x", "y", "x", "x", "z", "y"] * 4,
    ["y", "x", "y", "z", "y", "x"] * 4,
    ["a", "b", "tie", "a", "a", "both_bad"] * 4,
    [f"v{i % 5}" for i in range(24)],
)


def test_each_dimension_is_rated_by_its_own_votes() -> None:
    found = compute_standings_by_dimension(BATTLES, ["sound", "sound", "sound", "sense", "sense", "sense"] * 4)
    assert set(found) == {POOLED, "sound", "sense"}
    assert {rating.system for rating in found["sound"].ratings.systems} == {"x", "y"}
    assert found["sound"].tally.systems == ("x", "y")
    assert found[POOLED].ratings.votes == 24
    assert found[POOLED].ratings.get("x").both_bad == 4


def test_neighbours_that_are_not_separated_come_with_the_votes_that_would() -> None:
    found = compute_standings(BATTLES)
    for pair in found.undecided:
        assert pair.votes is None or pair.votes > 0
    assert found.coverage == 1.0
    assert found.ratings.islands == (("x", "y", "z"),)


def test_systems_that_never_met_others_are_an_island() -> None:
    found = compute_standings(Battles.of(["x", "p"], ["y", "q"], ["a", "a"]))
    assert found.ratings.islands == (("p", "q"), ("x", "y"))
    assert found.coverage == pytest.approx(2 / 6)


def test_every_battle_needs_its_dimension() -> None:
    with pytest.raises(BadInput, match="one dimension for each"):
        compute_standings_by_dimension(BATTLES, ["sound"])
    with pytest.raises(BadInput, match="cannot be called"):
        compute_standings_by_dimension(BATTLES, [POOLED] * 24)
