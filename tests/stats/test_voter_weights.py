"""Rings that vote honestly elsewhere move a rating little; honest voters of any taste count as they did."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from podeval.stats.bradley_terry import CENTRE, rate
from podeval.stats.voter_weights import FEWEST, SYSTEMS, Grouping, LoweredVotes
from studies.patient_rings import Crowd, Ring, find_truth, points, simulate


def fans_in(lowered: tuple[LoweredVotes, ...]) -> list[LoweredVotes]:
    return [group for group in lowered if group.grouped_by in ("fans", "opponents")]


def test_a_ring_that_votes_honestly_elsewhere_moves_a_rating_little() -> None:
    """60 accounts with 7 votes each push a weak system whenever they meet it; 23 points are the bound."""
    honest, together, pushed = simulate(1, 400, Ring(60, 7))
    before = points(rate(honest))
    assert points(rate(together))[pushed] - before[pushed] > 30, "without cohorts, the ring has its way"
    public = rate(together, robust=True)
    assert np.abs(points(public) - before).max() < 23
    ring = next(cohort for cohort in public.lowered if cohort.system == f"s{pushed}")
    assert (ring.grouped_by, ring.least, ring.most) == ("votes", 7, 7)
    assert ring.weight < 0.5 < 60 < ring.voters + 10
    assert ring.z > 0
    assert ring.describe().startswith(f"votes on s{pushed} by {ring.voters} voters (numbers of votes: 7 to 7) count ")


@pytest.mark.parametrize(("accounts", "each", "bound"), [(60, 7, 23.0), (120, 4, 33.1), (200, 2, 43.3), (30, 15, 17.0)])
def test_a_ring_that_spreads_like_honest_voters_moves_a_rating_less_than_its_share(
    accounts: int, each: int, bound: float
) -> None:
    """Its accounts differ in their numbers of votes and come at any time: no cohort. Mean of six arenas."""
    moves = []
    for seed in range(6):
        honest, together, pushed = simulate(seed, 400, Ring(accounts, each, numbers="honest"))
        before = points(rate(honest))
        public = rate(together, robust=True)
        moves.append([np.abs(points(each) - before).max() for each in (rate(together), public)])
        for fans in fans_in(public.lowered):
            assert (fans.system, fans.grouped_by, fans.least, fans.most) == (f"s{pushed}", "fans", None, None)
            assert fans.z > 1 > fans.weight
            assert FEWEST <= fans.voters < 1.5 * accounts
            assert f"{fans.voters} more voters than usual decide for s{pushed} whatever its opponent" in fans.describe()
    alike, public_moves = np.mean(moves, axis=0)
    assert alike > bound > public_moves


BEFORE = {
    "voters": (
        [977.1012754, 915.2659926, 843.3749539, 1114.813035, 1144.1220639, 1197.9834457, 1013.104721, 1081.6327196,
         924.9831388, 787.6186541],
        [("s1", "votes", 64, 0.079687313, 8.85615927), ("s1", "votes", 121, 0.180558591, 5.883434597),
         ("s4", "arrival", 39, 0.790794293, -2.811306815), ("s2", "votes", 21, 0.909228352, 2.621823935)],
    ),
    "honest": (
        [976.3909005, 925.9099723, 841.3726308, 1117.2607471, 1135.1605131, 1207.8194247, 1010.0161116, 1073.9743024,
         929.1178882, 782.9775091],
        [("s4", "arrival", 40, 0.746543154, -2.893427135), ("s5", "votes", 17, 0.913005037, -2.616395671),
         ("s1", "fans", 24, 0.214196452, 2.566148905)],
    ),
}  # fmt: skip
"""Ratings and lowered groups by commit a8910442, which summed votes in tables of all voters and systems."""


@pytest.mark.parametrize("numbers", BEFORE)
def test_weights_are_those_of_tables_of_all_voters_and_systems(numbers: str) -> None:
    _, together, _ = simulate(1, 400, Ring(60, 7, **({"numbers": "honest"} if numbers == "honest" else {})))
    public = rate(together, robust=True)
    ratings, lowered = BEFORE[numbers]
    assert points(public) == pytest.approx(ratings, abs=1e-6)
    for group, (system, grouped_by, voters, *numbers_of_group) in zip(public.lowered, lowered, strict=True):
        assert (group.system, group.grouped_by, group.voters) == (system, grouped_by, voters)
        assert [group.weight, group.z] == pytest.approx(numbers_of_group, abs=1e-8)


def test_opponents_are_treated_as_fans_are() -> None:
    """With every outcome the other way round, every rating is mirrored about the mean."""
    _, together, _ = simulate(0, 400, Ring(60, 7, numbers="honest"))
    turned = replace(together, outcome=np.array([1, 0, 2, 3])[together.outcome])
    for_it, against_it = (rate(battles, robust=True) for battles in (together, turned))
    assert points(against_it) == pytest.approx(2 * CENTRE - points(for_it), abs=1e-6)
    (fans,), (opponents,) = fans_in(for_it.lowered), fans_in(against_it.lowered)
    assert (opponents.grouped_by, opponents.z, opponents.voters) == ("opponents", pytest.approx(-fans.z), fans.voters)
    assert "decide against s" in opponents.describe()


@pytest.mark.parametrize("crowd", [Crowd(400), Crowd(400, kinds=False, taste=0.0), Crowd(400, taste=1.0)], ids=str)
def test_honest_votes_of_fans_and_of_contrary_taste_count_as_they_did(crowd: Crowd) -> None:
    """Whatever honest voters differ in: ratings change by less than three points, and intervals hold the truth."""
    changes, lowered, inside = [], 0, []
    for seed in range(4):
        honest, *_ = simulate(seed, crowd)
        public, truth = rate(honest, robust=True), find_truth(seed, crowd)
        changes.append(np.abs(points(public) - points(rate(honest))).mean())
        lowered += sum(cohort.voters for cohort in public.lowered if cohort.weight < 0.5)
        inside += [row.low <= truth[int(row.system[1:])] <= row.high for row in public.systems]
    assert np.mean(changes) < 2
    assert lowered <= 0.01 * 4 * crowd.voters
    assert np.mean(inside) >= 0.93


def test_too_few_systems_say_nothing_of_what_is_usual() -> None:
    """The same votes between the pushed system and three or four others."""
    _, together, pushed = simulate(0, 400, Ring(90, 20, numbers="honest"))
    others = [code for code in range(10) if code != pushed]
    for systems in (SYSTEMS - 1, SYSTEMS):
        among = [pushed, *others[: systems - 1]]
        battles = together.only(np.isin(together.first, among) & np.isin(together.second, among))
        groups = [group.system for group in fans_in(rate(battles, robust=True).lowered)]
        assert groups == [f"s{pushed}"] * (systems == SYSTEMS)


def test_every_group_has_its_sentence_on_the_page() -> None:
    from pathlib import Path

    for language in ("en", "zh"):
        words = Path(__file__).parents[2].joinpath(f"space/locale/{language}/LC_MESSAGES/arena.po").read_text("utf-8")
        for grouped_by in get_args(Grouping):
            sentence = words.partition(f'msgid "lowered_by/{grouped_by}"\nmsgstr "')[2].partition("\n")[0]
            assert "{system}" in sentence
            assert ("{least}" in sentence) is (grouped_by in ("votes", "arrival"))
