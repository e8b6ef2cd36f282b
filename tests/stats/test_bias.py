"""Biases: the papers' bounds come back, and the tests reject as often as they should.

`mtalk_table03_bias.csv` holds the shares and bounds of Table 3 of MTalk-Bench (arXiv 2508.18240).
"""

import csv

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats.bias import length_bias, position_bias, preference, wilson
from podeval.validation.agreement import TABLES


def mtalk_table_3() -> dict[str, dict[str, tuple[float, float, float]]]:
    judges: dict[str, dict[str, tuple[float, float, float]]] = {}
    with (TABLES / "mtalk_table03_bias.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            bounds = (float(row["value"]), float(row["ci95_low"]), float(row["ci95_high"]))
            judges.setdefault(row["judge"], {})[row["metric"]] = bounds
    return judges


def fits(count: int, shares: tuple[str, str], printed: dict[str, tuple[float, float, float]], digits: int) -> bool:
    """Whether some whole number of wins of `count` votes rounds to both printed shares and their four bounds."""
    first, second = shares
    for wins in range(int((printed[first][0] - 0.2) / 100 * count), int((printed[first][0] + 0.2) / 100 * count) + 2):
        found = {first: wilson(wins, count), second: wilson(count - wins, count)}
        if all(
            abs(100 * exact - shown) <= 0.5001 * 10**-digits
            for share, estimate in found.items()
            for exact, shown in zip((estimate.value, estimate.low, estimate.high), printed[share], strict=True)
        ):
            return True
    return False


@pytest.mark.parametrize("judge", ["Human", "GPT-4o Realtime", "Gemini-2.5-pro", "Qwen-Omni-Turbo"])
@pytest.mark.parametrize(("shares", "digits"), [(("TPR", "BPR"), 2), (("LPR", "SPR"), 1)])
def test_one_number_of_votes_reproduces_the_bounds_of_mtalk_table_3(
    judge: str, shares: tuple[str, str], digits: int
) -> None:
    printed = mtalk_table_3()[judge]
    assert any(fits(count, shares, printed, digits) for count in range(1000, 3000))


def test_geminis_position_bias_is_not_significant_at_one_percent() -> None:
    """Table 3 prints two stars; the counts its interval implies give p = 0.012 (spec/metrics.md 5.4)."""
    found = position_bias(round(0.5237 * 2791), 2791)
    assert found.p == pytest.approx(0.012, abs=0.002)
    assert 100 * found.difference.value == pytest.approx(4.74, abs=0.05)


def test_wilson_of_a_textbook_case() -> None:
    """8 of 10: 0.4902 to 0.9433 (Newcombe 1998 computes Wilson bounds by the same formula)."""
    found = wilson(8, 10)
    assert (found.low, found.high) == pytest.approx((0.49016, 0.94331), abs=1e-4)
    assert wilson(0, 0).value is None


def test_position_test_is_exact() -> None:
    """9 of 10: 2 * (1 + 10) / 1024."""
    assert position_bias(9, 10).p == pytest.approx(22 / 1024)


def test_length_test_rejects_one_in_twenty_where_length_does_not_matter() -> None:
    random = np.random.default_rng(8)
    rejected = 0
    for seed in range(200):
        seconds = random.gamma(4, 5, size=(40, 2))
        found = length_bias(seconds[:, 0].tolist(), seconds[:, 1].tolist(), seed=seed)
        rejected += found.p_excess < 0.05
    assert 2 <= rejected <= 20


def test_one_voters_habit_is_one_piece_of_evidence() -> None:
    """One voter of five casts most votes, always for the longer: with voters named, no significance is left."""
    won = [30.0] * 60 + [10.0, 20.0, 10.0, 20.0]
    lost = [20.0] * 60 + [20.0, 10.0, 20.0, 10.0]
    voters = ["often"] * 60 + ["b", "c", "d", "e"]
    assert length_bias(won, lost).p_excess < 0.001
    assert length_bias(won, lost, voters).p_excess > 0.5


@pytest.mark.long
def test_voters_with_habits_of_their_own_are_no_bias() -> None:
    """Ten voters of 60 votes, each with a habit (sd 0.8 logits) for a side and for length, around none.

    Counting every vote as somebody else's gives p < 0.05 in half of such populations.
    """
    random = np.random.default_rng(11)
    voters = np.repeat(np.arange(10), 60).tolist()
    rounds, false = 300, {"position": 0, "longer": 0, "excess": 0, "votes": 0}
    held = 0
    for seed in range(rounds):
        habit = np.repeat(random.normal(0, 0.8, 10), 60)
        first = random.random(600) < 1 / (1 + np.exp(-habit))
        found = preference(first.tolist(), voters, seed)
        by_length = length_bias(
            np.where(first, 30.0, 20.0).tolist(), np.where(first, 20.0, 30.0).tolist(), voters, seed
        )
        false["position"] += found.p < 0.05
        false["longer"] += by_length.longer.p < 0.05
        false["excess"] += by_length.p_excess < 0.05
        false["votes"] += (position_bias(int(first.sum()), 600).p or 1) < 0.05
        held += found.share.low <= 0.5 <= found.share.high
    # 4 to 6 % and the chance of 300 rounds: 5 to 30 lie within 0.999 of a true 5 %.
    assert all(5 <= false[name] <= 30 for name in ("position", "longer", "excess")), false
    assert held / rounds >= 0.92
    assert false["votes"] > 100


def test_a_bias_that_all_voters_share_is_seen() -> None:
    random = np.random.default_rng(12)
    first = (random.random(600) < 0.65).tolist()
    found = preference(first, np.repeat(np.arange(20), 30).tolist())
    assert found.p < 0.01
    assert found.difference.low > 0
    alone = preference(first, ["only"] * 600)
    assert (alone.p, alone.share.low, alone.share.value) == (None, None, pytest.approx(np.mean(first)))
    assert preference(first) == position_bias(sum(first), 600), "without voters every vote is somebody else's"


def test_both_orders_of_a_pair_are_one_piece_of_evidence() -> None:
    """Nine pairs, first both times: as likely as nine coins that fell alike, not eighteen."""
    found = preference([True] * 18, [number // 2 for number in range(18)])
    assert found.p == pytest.approx(2 / 512, abs=0.002)
    assert found.share.low == pytest.approx(9 / (9 + 1.959964**2))


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 10, not 11"):
        wilson(11, 10)
