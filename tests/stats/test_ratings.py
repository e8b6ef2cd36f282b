"""Elo equals the paper's formula; Bradley–Terry finds the truth and does not pretend to more than the voters tell."""

import math
from dataclasses import replace

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats import davidson
from podeval.stats.battles import Battles, elo, tally
from podeval.stats.bradley_terry import rate, votes_needed

GOLDEN = [("x", "y", "a"), ("y", "z", "tie"), ("z", "x", "b"), ("x", "y", "both_bad"), ("y", "x", "a")]
"""Five battles; the paper's code skips the tie and the one where both are bad."""


def battles_of(rows: list[tuple[str, str, str]], voter: str | None = None) -> Battles:
    first, second, outcome = zip(*rows, strict=True)
    return Battles.of(first, second, outcome, None if voter is None else [voter] * len(rows))


def simulated(
    seed: int, *, voters: int = 30, each: int = 20, taste: float = 0.0, position: float = 0.0, systems: int = 6
) -> Battles:
    """Votes by Davidson's model, strengths evenly from -1 to 1; `taste` is each voter's own deviation."""
    random = np.random.default_rng(seed)
    strength = np.linspace(-1, 1, systems) + random.normal(0, taste, (voters, systems)) * (taste > 0)
    voter = np.repeat(np.arange(voters), each)
    first = random.integers(0, systems, voter.size)
    second = (first + random.integers(1, systems, voter.size)) % systems
    apart = strength[voter, first] - strength[voter, second] + position
    odds = np.stack([np.exp(apart / 2), np.exp(-apart / 2), np.full(voter.size, 0.6)], axis=1)
    ending = (random.random(voter.size)[:, None] * odds.sum(axis=1, keepdims=True) > odds.cumsum(axis=1)).sum(axis=1)
    return Battles.of(
        [f"s{i}" for i in first],
        [f"s{i}" for i in second],
        [("a", "b", "tie")[i] for i in ending],
        [f"v{i}" for i in voter],
    )


def test_elo_of_a_sequence_worked_by_hand() -> None:
    """MTalk section 5.1 and App. C.1: K = 4, scale 400, from 1000.

    1. x beats y, equal before: x 1002, y 998.
    2. y and z tie: y gets 4 (0.5 - 1 / (1 + 10^(2/400))) = 0.0115128, so y 998.0115128, z 999.9884872.
    3. x beats z: z gets -4 / (1 + 10^((1002 - 999.9884872) / 400)), and so on.
    """
    x, y, z = 1002.0, 998.0, 1000.0
    given = 4 * (0.5 - 1 / (1 + 10 ** ((z - y) / 400)))
    y, z = y + given, z - given
    assert given == pytest.approx(0.0115128, abs=1e-7)
    lost = 4 / (1 + 10 ** ((x - z) / 400))
    x, z = x + lost, z - lost
    given = 4 * (0.5 - 1 / (1 + 10 ** ((y - x) / 400)))
    x, y = x + given, y - given
    won = 4 * (1 - 1 / (1 + 10 ** ((x - y) / 400)))
    x, y = x - won, y + won
    found = elo(battles_of(GOLDEN))
    assert {name: found[name].rating for name in "xyz"} == pytest.approx({"x": x, "y": y, "z": z}, abs=1e-9)
    assert (found["y"].wins, found["y"].losses, found["y"].ties, found["y"].both_bad) == (1, 1, 1, 1)


def test_the_papers_elo_skips_what_is_not_won() -> None:
    """Golden by hand: x 1002, y 998; x beats z at 1002 to 1000; then y beats x."""
    x, y, z = 1002.0, 998.0, 1000.0
    lost = 4 * (1 - 1 / (1 + 10 ** ((z - x) / 400)))
    assert lost == pytest.approx(1.9884872, abs=1e-7)
    x, z = x + lost, z - lost
    won = 4 * (1 - 1 / (1 + 10 ** ((x - y) / 400)))
    found = elo(battles_of(GOLDEN), "mtalk")
    assert {name: found[name].rating for name in "xyz"} == pytest.approx({"x": x - won, "y": y + won, "z": z}, abs=1e-9)


def test_elo_depends_on_the_order_and_bradley_terry_does_not() -> None:
    rows = [("x", "y", "a"), ("y", "z", "a"), ("z", "x", "a")]
    ahead, behind = battles_of(rows), battles_of(rows[::-1])
    assert elo(ahead)["x"].rating < 1000 < elo(behind)["x"].rating
    assert [r.rating for r in rate(ahead).systems] == pytest.approx([r.rating for r in rate(behind).systems])
    assert rate(ahead).get("x").rating == pytest.approx(1000, abs=1e-6)


def test_two_systems_are_as_far_apart_as_their_odds() -> None:
    """300 wins to 100 without a tie: odds of 3, so 400 log10(3) points, were nothing added."""
    found = rate(battles_of([("x", "y", "a")] * 300 + [("x", "y", "b")] * 100), prior=1e-9)
    assert found.get("x").rating - found.get("y").rating == pytest.approx(400 * math.log10(3), abs=0.01)
    assert found.tie_odds == 0


def test_the_fit_is_that_of_evalica() -> None:
    """evalica's strengths and v (half of ours), with the average opponent of the prior as one more system."""
    import evalica

    battles, prior = simulated(3), 0.5
    fitted = davidson.fit(davidson.group_into_rows(battles, position=False), prior)
    names, average = [battles.systems[number] for number in np.unique(battles.first)], "average"
    size = len(names)
    winners = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)
    result = evalica.newman(
        [*(battles.systems[number] for number in battles.first), *names, *names],
        [*(battles.systems[number] for number in battles.second), *[average] * (2 * size)],
        [*(winners[outcome] for outcome in battles.outcome), *[winners[0]] * size, *[winners[1]] * size],
        weights=[1.0] * len(battles) + [prior] * (2 * size),
        tolerance=1e-9,
        limit=1000,
    )
    strengths = np.log(result.scores[names] / result.scores[average])
    assert fitted == pytest.approx([*strengths, math.log(2 * result.v)], abs=1e-6)


def test_information_is_the_derivative_of_the_score() -> None:
    battles = simulated(4, position=0.3)
    rows = davidson.group_into_rows(battles, position=True)
    at = davidson.fit(rows)
    step = 1e-5
    moved = [
        (davidson.gradient(rows, at + shift, 0.5) - davidson.gradient(rows, at - shift, 0.5)) / (2 * step)
        for shift in np.eye(at.size) * step
    ]
    assert -np.stack(moved) == pytest.approx(davidson.information_matrix(rows, at, 0.5), abs=1e-5)


@pytest.mark.parametrize("position", [False, True])
def test_a_voters_leverage_is_that_of_the_whole_information(position: bool) -> None:
    """Most voters have one vote and much leverage; H^-1 (I - H_g H^-1)^-1 u_g, with the matrices as they are."""
    few, many = simulated(3, voters=40, each=1, systems=12), simulated(4, voters=5, each=60, systems=12)
    columns = [
        [of.systems[code] for of in (few, many) for code in getattr(of, side).tolist()] for side in ("first", "second")
    ]
    outcomes = [("a", "b", "tie")[code] for of in (few, many) for code in of.outcome.tolist()]
    voters = [f"{name}{code}" for name, of in (("few", few), ("many", many)) for code in of.voter.tolist()]
    rows = davidson.group_into_rows(Battles.of(*columns, outcomes, voters), position)
    fitted = davidson.fit(rows)
    inverse = davidson.naive_covariance(rows, fitted)
    half, pulls = np.linalg.cholesky(inverse), []
    for voter in range(rows.voters):
        kept = rows.voter == voter
        fields = {name: getattr(rows, name)[kept] for name in ("a", "b", "x")}
        own = replace(rows, **fields, counts=rows.counts[:, kept], voter=np.zeros(kept.sum(), dtype=np.intp), voters=1)
        values, vectors = np.linalg.eigh(half.T @ davidson.information_matrix(own, fitted, 0.0) @ half)
        stretch = 1 / (1 - np.minimum(values, 0.95)) if values.sum() > 0.1 else 1.0
        pulls.append(vectors @ (stretch * (vectors.T @ (half.T @ davidson.gradient(own, fitted, 0.0)))))
    expected = half @ np.transpose(pulls) @ np.array(pulls) @ half.T
    assert davidson.covariance(rows, fitted) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("taste", [0.0, 0.7])
def test_intervals_hold_the_truth_though_voters_have_tastes(taste: float) -> None:
    """As often as they say, to within the noise of 60 repetitions; the truth is that of 20,000 voters."""
    truth = {rating.system: rating.rating for rating in rate(simulated(99, voters=20_000, taste=taste)).systems}
    held = [
        rating.low <= truth[rating.system] <= rating.high
        for seed in range(60)
        for rating in rate(simulated(seed, voters=12, taste=taste)).systems
    ]
    assert 0.92 <= np.mean(held) <= 0.985


def test_voters_with_habits_widen_the_interval_that_independent_votes_would_have() -> None:
    found = rate(simulated(5, voters=10, each=100, taste=1.0))
    alone = np.triu_indices(6, 1)
    assert np.median(found.errors[alone] / found.naive[alone]) > 2


def test_ranks_are_ranges_and_separate_what_is_far_apart() -> None:
    found = rate(simulated(7, voters=200, taste=0.3))
    assert found.systems[0].system == "s5"
    assert (found.systems[0].best, found.systems[0].worst) == (1, 1)
    few = rate(simulated(7, voters=6, each=12))
    assert any(rating.worst > rating.best for rating in few.systems)


def test_systems_that_never_met_have_no_place_against_each_other() -> None:
    """a and e win 9 of 10 battles in groups of their own; nothing says how one stands to the other but the prior."""
    groups = [[(first, second, outcome) for first, *rest in (group, group[1:], group[2:]) for second in rest
               for outcome in "aaaaaaaaab"] * 4 for group in ("abcd", "efgh")]  # fmt: skip
    found = rate(battles_of([*groups[0], *groups[1]]))
    places = {rating.system: (rating.best, rating.worst) for rating in found.systems}
    assert places == {
        "a": (1, 5), "b": (2, 6), "c": (3, 7), "d": (4, 8), "e": (1, 5), "f": (2, 6), "g": (3, 7), "h": (4, 8)
    }  # fmt: skip
    assert found.islands == (tuple("abcd"), tuple("efgh"))
    assert votes_needed(found, "a", "e") is None
    assert votes_needed(found, "a", "b") == 0
    # A newcomer that met both is no chain between them.
    bridge = [("a", "n", "a"), ("e", "n", "a"), ("b", "n", "b"), ("f", "n", "b")]
    bridged = rate(battles_of([*groups[0], *groups[1], *bridge]))
    assert {rating.system: (rating.best, rating.worst) for rating in bridged.systems} == places | {"n": (None, None)}
    together = rate(battles_of([*groups[0], *groups[1], *[("b", "e", "b")] * 60]))
    assert together.islands == (tuple("abcdefgh"),)


@pytest.mark.parametrize(
    ("battles", "opponents", "voters", "lacks"),
    [
        (9, 3, 9, {"battles": {"missing": 1, "needed": 10}}),
        (12, 2, 12, {"opponents": {"missing": 1, "needed": 3}}),
        (12, 3, 4, {"voters": {"missing": 1, "needed": 5}}),
        (
            4, 1, 2,
            {
                "battles": {"missing": 6, "needed": 10},
                "opponents": {"missing": 2, "needed": 3},
                "voters": {"missing": 3, "needed": 5},
            },
        ),
        (10, 3, 5, None),
    ],
)  # fmt: skip
def test_a_newcomer_is_ranked_from_ten_battles_three_opponents_and_five_voters_on(
    battles: int, opponents: int, voters: int, lacks: dict[str, dict[str, int]] | None
) -> None:
    """It wins them all; the others keep the ranks that they have without it, and the mean of the ranked is 1000."""
    old = simulated(7, voters=30)
    names = [[old.systems[code] for code in side] for side in (old.first, old.second)]
    number = range(battles)
    together = Battles.of(
        [*names[0], *["new"] * battles],
        [*names[1], *(f"s{n % opponents}" for n in number)],
        [*(("a", "b", "tie")[code] for code in old.outcome), *["a"] * battles],
        [*(old.voters[code] for code in old.voter), *(f"friend{n % voters}" for n in number)],
    )
    found = rate(together)
    new = found.get("new")
    assert new.provisional == lacks
    assert (new.battles, new.opponents, new.voters) == (battles, opponents, voters)
    ranked = [row for row in found.systems if row.provisional is None]
    assert np.mean([row.rating for row in ranked]) == pytest.approx(1000)
    if lacks is None:
        assert None not in (new.low, new.high, new.best, new.worst)
        return
    assert (new.low, new.high, new.best, new.worst) == (None, None, None, None)
    assert found.systems[-1] == new, "listed last, whatever its rating"
    assert {row.system: (row.best, row.worst) for row in ranked} == {
        row.system: (row.best, row.worst) for row in rate(old).systems
    }
    assert votes_needed(found, "new", "s0") is None


@pytest.mark.every(3)
@pytest.mark.parametrize("judged_by", ["a new voter each", "five voters", "mostly one of five"])
def test_every_interval_of_a_newcomer_that_is_shown_holds_the_truth(judged_by: str) -> None:
    """The study's arenas: with four battles no interval is shown; with ten to forty it holds the truth as it says."""
    from studies.newcomers import coverage

    assert np.isnan(coverage(False, 4, judged_by, 20)[0])
    shares = np.array([coverage(False, late, judged_by, 40)[:2] for late in (10, 40)])
    assert (shares.mean(axis=0) >= 0.93).all()


def test_one_voter_gives_ratings_without_intervals() -> None:
    found = rate(battles_of(GOLDEN, voter="only"))
    assert all(rating.low is None and rating.high is None for rating in found.systems)
    assert {(rating.best, rating.worst) for rating in found.systems} == {(None, None)}


def test_a_system_that_never_lost_has_a_finite_rating() -> None:
    found = rate(battles_of([("x", "y", "a")] * 5 + [("y", "z", "tie")] * 2))
    assert found.systems[0].system == "x"
    assert all(math.isfinite(rating.rating) for rating in found.systems)


def test_the_effect_of_the_position_is_found() -> None:
    effect = rate(simulated(8, voters=300, position=0.4), position=True).effects[0]
    assert effect.name == "position"
    assert effect.low < 0.4 * 400 / math.log(10) < effect.high
    assert effect.low > 0


def test_the_effect_of_length_is_found_and_taken_out() -> None:
    """Two equal systems, one of them longer: what length does explains all of the difference."""
    random = np.random.default_rng(1)
    n = 4000
    seconds = random.normal(5, 10, n)
    wins = random.random(n) < 1 / (1 + np.exp(-0.05 * seconds))
    outcome = np.where(wins, "a", "b").tolist()
    voter = [str(i % 100) for i in range(n)]
    plain = Battles.of(["long"] * n, ["short"] * n, outcome, voter)
    with_length = Battles.of(["long"] * n, ["short"] * n, outcome, voter, {"seconds": seconds.tolist()})
    assert rate(plain).get("long").rating > 1010
    found = rate(with_length)
    assert found.get("long").rating == pytest.approx(1000, abs=10)
    assert found.effects[0].points == pytest.approx(0.05 * 400 / math.log(10), abs=2)


def test_votes_needed_are_about_those_that_separate() -> None:
    """Gathering as many as said separates the two in about the four of five cases that the power promises."""
    few = battles_of([("x", "y", "a")] * 33 + [("x", "y", "b")] * 27)
    needed = votes_needed(rate(few), "x", "y")
    share = 33 / 60
    total = 60 + needed
    random = np.random.default_rng(0)
    separated = 0
    for wins in random.binomial(total, share, size=100):
        found = rate(battles_of([("x", "y", "a")] * int(wins) + [("x", "y", "b")] * int(total - wins)))
        separated += votes_needed(found, "x", "y") == 0
    assert 65 <= separated <= 95
    assert votes_needed(rate(battles_of([("x", "y", "a")] * 99 + [("y", "x", "a")])), "x", "y") == 0


def test_the_tally_counts_every_pair_and_names_those_that_never_met() -> None:
    found = tally(battles_of([*GOLDEN, ("w", "x", "a")]))
    x, y = found.systems.index("x"), found.systems.index("y")
    assert found.battles[x, y] == 3
    assert found.shares[x, y] == pytest.approx((1 + 0.5) / 3)
    w, z = found.systems.index("w"), found.systems.index("z")
    assert not found.battles[w, y]
    assert not found.battles[w, z]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ((["x"], ["x"], ["a"]), "both sides"),
        ((["x"], ["y"], ["maybe"]), "an outcome must be"),
        ((["x", "y"], ["y"], ["a"]), "give one per battle"),
    ],
)
def test_what_is_no_battle_is_refused(columns: tuple[list[str], list[str], list[str]], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        Battles.of(*columns)
    with pytest.raises(BadInput, match="no votes"):
        rate(Battles.of(["x"], ["y"], ["skip"]))
