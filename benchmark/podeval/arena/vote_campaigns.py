"""Find voters who push a system: their votes for it are not explained by what everyone's votes imply.

The expectation of each battle comes from a Bradley-Terry model of the trusted votes (a tie, or both bad, is half a
win). A voter's surplus for a system is the sum over their battles of result minus expectation, in standard deviations
of it; taste moves it by one or two, a ring by many.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from podeval.arena.quick_ratings import rate_quickly
from podeval.arena.rule_sentences import format_details

_SURE = 0.05
"""No result is expected with more than 95 %: a person's taste is not that predictable."""

_RESULT = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}


def find_partisans(votes: pd.DataFrame, battles: int, z: float) -> "pd.Series[str]":
    """Find the votes about a system by voters who favour it beyond belief.

    Args:
        votes: with the columns of `integrity.COLUMNS` and `trusted`.
        battles: fewest battles of a voter with that system.
        z: smallest surplus, standard deviations.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    sides = _split_sides(votes)
    table = _measure_surplus(sides, battles)
    table = table[table["z"] >= z]
    return _spread_to_votes(sides, format_details("favours {}", _describe_favourite(table)))


def find_rings(votes: pd.DataFrame, battles: int, z: float, chance: float) -> "pd.Series[str]":
    """Find the votes about a system by voters who all favour it, and are more than chance explains.

    Args:
        votes: with the columns of `integrity.COLUMNS` and `trusted`.
        battles: fewest battles of a voter with that system.
        z: smallest surplus of each, standard deviations.
        chance: largest probability of so many voters with that surplus; of a Poisson count with the share of a normal
            distribution, twice it for tastes that differ.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    from scipy.stats import norm, poisson

    sides = _split_sides(votes)
    table = _measure_surplus(sides, battles)
    voters = table.groupby("system")["z"].transform("size")
    table = table[table["z"] >= z].assign(asked=voters)
    table["allies"] = table.groupby("system")["z"].transform("size")
    table = table[poisson.sf(table["allies"] - 1, 2 * norm.sf(z) * table["asked"]) < chance]
    ring = format_details("one of {} of {} voters who favour ", table["allies"], table["asked"])
    return _spread_to_votes(sides, ring + _describe_favourite(table))


def _measure_surplus(sides: pd.DataFrame, battles: int) -> pd.DataFrame:
    """Return each voter's surplus for each system with at least this many battles; indexed by voter and system."""
    table = sides.groupby(["voter", "system"]).agg(
        count=("surplus", "size"), surplus=("surplus", "sum"), spread=("variance", "sum"), wins=("result", "sum")
    )
    table = table[table["count"] >= battles]
    return table.assign(z=table["surplus"] / np.sqrt(table["spread"]))


def _describe_favourite(table: pd.DataFrame) -> "pd.Series[str]":
    system = pd.Series(table.index.get_level_values("system"), index=table.index)
    text = "{} (won {:g} of {} battles, {:.1f} standard deviations above what all votes imply)"
    return format_details(text, system, table["wins"], table["count"], table["z"])


def _spread_to_votes(sides: pd.DataFrame, text: "pd.Series[str]") -> "pd.Series[str]":
    """Spread sentences about a voter and a system to each of their votes."""
    seen = sides.join(text.rename("said"), on=["voter", "system"], how="inner")
    return pd.Series(seen["said"].to_numpy(), index=seen["row"].to_numpy(), dtype=str).groupby(level=0).first()


def find_bursts(votes: pd.DataFrame, seconds: float, least: int, z: float, newcomer: int) -> "pd.Series[str]":
    """Find the votes about a system by voters without a record, in a period in which they all favour it.

    Args:
        votes: with the columns of `integrity.COLUMNS` and `trusted`.
        seconds: length of the period; periods overlap by half.
        least: fewest such votes in one period.
        z: smallest surplus, standard deviations.
        newcomer: a voter with no more votes than this has no record.

    Returns:
        A sentence on each such vote, by the index of the vote.
    """
    sides = _split_sides(votes)
    counts = votes["voter"].map(votes["voter"].value_counts())
    sides = sides[counts.loc[sides["row"]].to_numpy() <= newcomer]
    details = []
    for offset in (0.0, seconds / 2):
        stretch = ((sides["at"] + offset) // seconds).astype("int64")
        groups = sides.groupby([sides["system"], stretch])
        table = groups[["surplus", "variance", "result"]].transform("sum").assign(count=groups["row"].transform("size"))
        bad = (table["count"] >= least) & (table["surplus"] / np.sqrt(table["variance"]) >= z)
        text = format_details(
            f"{{}} won {{:g}} of {{}} battles with new voters within {seconds / 60:.0f} minutes",
            sides.loc[bad, "system"],
            table.loc[bad, "result"],
            table.loc[bad, "count"],
        )
        details.append(pd.Series(text.to_numpy(), index=sides.loc[bad, "row"], dtype=str))
    return pd.concat(details).groupby(level=0).first()


def _split_sides(votes: pd.DataFrame) -> pd.DataFrame:
    """Return each counted vote once for each of its systems: result, surplus over the expectation, and its variance."""
    counted = votes[votes["counts"]]
    expected = _expected(votes[votes["trusted"]], counted)
    result = counted["outcome"].map(_RESULT).to_numpy(dtype=float)
    variance = expected * (1 - expected)
    columns: dict[str, Any] = {
        "row": counted.index,
        "voter": counted["voter"].to_numpy(),
        "at": counted["at"].to_numpy(),
    }
    left = pd.DataFrame({**columns, "system": counted["a"].to_numpy(), "result": result, "surplus": result - expected})
    right = pd.DataFrame(
        {**columns, "system": counted["b"].to_numpy(), "result": 1 - result, "surplus": expected - result}
    )
    return pd.concat([left.assign(variance=variance), right.assign(variance=variance)], ignore_index=True)


def _expected(trusted: pd.DataFrame, counted: pd.DataFrame) -> NDArray[np.float64]:
    """Return the probability that A wins each battle, by everyone's votes."""
    table = trusted.groupby(["a", "b", "outcome"]).size().reset_index(name="count")
    rating = pd.Series(
        rate_quickly(pd.concat([counted["a"], counted["b"]]).unique(), table.itertuples(index=False, name=None)),
        dtype=float,
    )
    gap = rating[counted["a"]].to_numpy() - rating[counted["b"]].to_numpy()
    return np.asarray(np.clip(1 / (1 + 10 ** (-gap / 400)), _SURE, 1 - _SURE), dtype=np.float64)
