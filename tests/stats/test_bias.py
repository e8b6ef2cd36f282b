"""Biases: the papers' bounds come back, and the tests reject as often as they should.

`mtalk_table03_bias.csv` holds the shares and bounds of Table 3 of MTalk-Bench (arXiv 2508.18240).
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats.bias import length_bias, position_bias, wilson

TABLES = Path(__file__).parents[1] / "data" / "papers"


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


def test_length_bias_found_where_the_longer_wins() -> None:
    random = np.random.default_rng(4)
    seconds = random.gamma(4, 5, size=(300, 2))
    longer_wins = random.random(300) < 0.65
    winner = np.where(longer_wins, seconds.max(axis=1), seconds.min(axis=1))
    loser = np.where(longer_wins, seconds.min(axis=1), seconds.max(axis=1))
    found = length_bias(winner.tolist(), loser.tolist())
    assert found.longer.p < 0.001
    assert found.p_excess < 0.001
    assert found.excess.low > 0


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


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(BadInput, match="no share"):
        wilson(11, 10)
