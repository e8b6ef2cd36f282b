"""The promises of docs/decisions/ranks.md and intervals.md, on fewer rounds than their study studies/ranks.py."""

import pytest
from scipy import stats

from studies import ranks as study

ROUNDS = 300


def most(share: float, rounds: int, chance: float = 0.999) -> int:
    """The count that a share of this many rounds stays below with this chance."""
    return int(stats.binom.ppf(chance, rounds, share))


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("kind", "systems"),
    [
        *(("normal", 7), ("share", 7), ("like WER", 15)),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("like WER", 7), ("normal", 15), ("share", 15))),
    ],
)
def test_at_most_six_percent_of_boards_of_equal_systems_have_a_false_place(
    kind: str, systems: int, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {items: study.false_places(kind, systems, items, ROUNDS) for items in study.ITEMS}
    powers = {gap: study.power(kind, systems, 51, gap, 20) for gap in (0.5, 1.0)}
    with capsys.disabled():
        print(f"\n{kind}, {systems} systems: false {counts} of {ROUNDS}; power at 51 items {powers}", end="")
    assert max(counts.values()) <= most(0.06, ROUNDS)
    assert sum(counts.values()) <= most(0.06, ROUNDS * len(counts), 0.99)
    assert powers[0.5] < powers[1.0]
    assert powers[1.0] > 0.6


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", ["normal", "share", "like WER"])
@pytest.mark.parametrize("which", ["random", "where it trails most"])
def test_at_most_six_percent_of_columns_with_gaps_have_a_false_place(kind: str, which: str) -> None:
    """All seven lack two of 51 items; counted as ties, gaps where a system trails make 7 to 9 % of columns false."""
    false, _ = study.false_places_with_gaps(kind, 7, which, 2, 7, ROUNDS)
    assert false <= most(0.04, ROUNDS)


@pytest.mark.parametrize(("systems", "voters"), [(8, 10), pytest.param(12, 30, marks=pytest.mark.long)])
def test_at_most_six_percent_of_arenas_of_equal_systems_have_a_false_place(systems: int, voters: int) -> None:
    assert study.false_places_of_arena(systems, voters, 30, 100) <= most(0.06, 100)


@pytest.mark.parametrize("listeners", [2, pytest.param(3, marks=pytest.mark.long), 5])
def test_at_most_six_percent_of_listening_tests_have_a_false_place(listeners: int) -> None:
    assert study.false_places_of_marks(listeners, 150) <= most(0.06, 150)


@pytest.mark.parametrize("items", [2, 3, 4])
def test_a_paired_difference_of_few_items_holds_the_truth(items: int) -> None:
    assert study.held_difference(items, 400) >= stats.binom.ppf(0.001, 400, 0.94) / 400


@pytest.mark.parametrize(
    "name",
    [
        "normal, no bound",
        "normal, a bound 2 sd away",
        "beta(8, 1) in 0..1",
        "exponential from 0",
        "the same, 3 of 10 zero",
        "gamma of shape 2 from 0",
        "lognormal, sigma 0.5",
        "lognormal, sigma 1",
    ],
)
@pytest.mark.parametrize("items", [6, pytest.param(20, marks=pytest.mark.long), 51])
def test_an_interval_covers_93_to_97_percent(name: str, items: int) -> None:
    """Of 1,000 rounds; the standard error of a share of 0.95 is 0.7 points."""
    assert 0.93 - 0.012 <= study.held(name, items, 1000) <= 0.97 + 0.012


@pytest.mark.parametrize("items", [6, 20, 51])
def test_an_interval_of_a_share_covers_at_least_93_percent(items: int) -> None:
    assert study.held("share of 0.9", items, 600) >= 0.93


def test_three_items_are_covered_as_the_page_on_ratings_says() -> None:
    assert study.held("the same, 3 of 10 zero", 3, 800) >= stats.binom.ppf(0.001, 800, 0.88) / 800
    for name in ("normal, no bound", "uniform in 0..1", "lognormal, sigma 1", "share of 0.9"):
        assert study.held(name, 3, 400) >= stats.binom.ppf(0.001, 400, 0.92) / 400


def test_unequal_clusters_and_clustered_shares_are_covered() -> None:
    assert study.held_clustered((1, 2, 3, 4, 6, 8, 10, 12), False, 800) >= 0.905
    assert study.held_clustered((3,) * 17, True, 400) >= 0.93
