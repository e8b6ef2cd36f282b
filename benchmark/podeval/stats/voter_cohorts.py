"""Cohorts of voters whose votes on one system differ from everyone else's count for less.

Accounts that push a system and vote honestly otherwise cannot be told from fans one by one; together they can, if they
have something else in common. Voters are grouped by how many votes they gave (finely and coarsely) and by when they
first voted. In each cohort, d is how much stronger its votes make a system than all votes do (score divided by
information), and z the difference of d between the cohort and the other voters, in standard errors that treat the
votes of one voter as dependent. Beyond `FAR`, the cohort's votes on that system get the weight (FAR / z)². No vote is
excluded, and the more a cohort differs the less it moves the rating. Nothing is lowered if the cohort has fewer than
`FEWEST` voters who judged the system, or more information about it than the others, because then nobody can say which
of the two is unusual.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podeval.stats.davidson import Array, Rows, score_rows

FAR = 2.5
FEWEST = 10
ARRIVALS = 8
"""Number of cohorts by the first vote, each with as many voters."""

_PASSES = 3
_HAIR = 1e-9


@dataclass(frozen=True)
class LoweredCohort:
    """The votes on one system, by voters of one cohort, that count with `weight` below 1.

    `grouped_by` is `votes` or `arrival`; `least` and `most` are the cohort's numbers of votes, or its first and last
    place in the order of arrival. `voters` are those of the cohort who judged the system; `z` is how many standard
    errors stronger (above 0) or weaker they find it than the other voters do.
    """

    system: str
    grouped_by: str
    least: int
    most: int
    voters: int
    weight: float
    z: float

    def describe(self) -> str:
        """Return a sentence about the cohort and what its votes count."""
        among = "numbers of votes" if self.grouped_by == "votes" else "places by first vote"
        return (
            f"votes on {self.system} by {self.voters} voters with {among} {self.least} to {self.most} count "
            f"{self.weight:.0%}, because they differ from those of other voters by {abs(self.z):.1f} standard errors"
        )


def lower_cohorts(
    rows: Rows, fitted: Array, names: list[str], arrival: NDArray[np.intp]
) -> tuple[Rows, tuple[LoweredCohort, ...]]:
    """Return the rows with the weights of their cohorts, and the cohorts whose votes on a system are lowered.

    Args:
        rows: the votes.
        fitted: the parameters that fit them.
        names: the names of the systems, in the order of `rows.systems`.
        arrival: the place of each voter in the order of their first votes, from 0.
    """
    # Each voter's score and information about each system.
    size, voters = len(rows.systems), rows.voters
    pull, information = score_rows(rows, fitted)
    at_a, at_b = rows.voter * size + rows.a, rows.voter * size + rows.b
    scores, known = (
        np.reshape(sum(np.bincount(cell, sign * values, voters * size) for cell, sign in cells), (voters, size))
        for values, cells in ((pull, ((at_a, 1), (at_b, -1))), (information, ((at_a, 1), (at_b, 1))))
    )
    # The weight of each voter's votes on each system: the least of those of their cohorts.
    votes = np.bincount(rows.voter, rows.weight, voters)
    octave = np.log2(np.maximum(1, votes)) + _HAIR
    groupings = (
        ("votes", octave.astype(np.intp), votes),
        ("votes", (4 * octave).astype(np.intp), votes),
        ("arrival", arrival * ARRIVALS // voters, arrival + 1),
    )
    weights, lowered = np.ones((voters, size)), {}
    for grouped_by, cohort, position in groupings:
        weight, z, judged = _compare(scores.astype(np.float64), known.astype(np.float64), cohort)
        weights = np.minimum(weights, weight[cohort])
        for number, system in zip(*np.nonzero(weight < 1), strict=True):
            least, most = (round(end(position[cohort == number])) for end in (np.min, np.max))
            lowered[names[system], grouped_by, least, most] = LoweredCohort(
                names[system], grouped_by, least, most, int(judged[number, system]),
                float(weight[number, system]), float(z[number, system]),
            )  # fmt: skip
    weight_of_row = np.minimum(weights[rows.voter, rows.a], weights[rows.voter, rows.b])
    return replace(rows, weight=rows.weight * weight_of_row), tuple(
        sorted(lowered.values(), key=lambda one: one.weight)
    )


def _compare(scores: Array, known: Array, cohort: NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Return, by cohort and system, the weight of the votes, z, and the number of voters."""
    member = np.eye(int(cohort.max()) + 1)[:, cohort]
    pulled, information, judged = member @ scores, member @ known, member @ (known > 0)
    apart = pulled / np.maximum(information, _HAIR)
    # The variance of the score: no less than if all votes were independent.
    by_voter = member @ (scores - apart[cohort] * known) ** 2
    spread = np.maximum(by_voter * judged / np.maximum(1, judged - 1), information)
    weight, z = np.ones_like(apart), np.zeros_like(apart)
    examined = (judged >= FEWEST) & (2 * information <= information.sum(axis=0))
    for _ in range(_PASSES):
        # The other cohorts, with the weights that they have by now.
        theirs = np.maximum(_sum_others(weight * information), _HAIR)
        variance = spread / np.maximum(information, _HAIR) ** 2 + _sum_others(weight**2 * spread) / theirs**2
        difference = apart - _sum_others(weight * pulled) / theirs
        z = np.where(examined, difference / np.sqrt(np.maximum(variance, _HAIR)), 0.0)
        weight = np.minimum(1.0, (FAR / np.maximum(np.abs(z), _HAIR)) ** 2)
    return weight, z, judged


def _sum_others(table: Array) -> Array:
    """Return for each cohort the sum over the other cohorts."""
    return np.asarray(table.sum(axis=0) - table, dtype=np.float64)
