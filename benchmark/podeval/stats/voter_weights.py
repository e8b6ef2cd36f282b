"""Lower the weight of votes on a system that come from its fans, or from cohorts that differ from everyone else.

Accounts that push a system and vote honestly otherwise cannot be distinguished from fans individually, but they can be
distinguished as a group.

**Cohorts.** Voters are grouped by how many votes they gave (finely and coarsely) and by when they first voted. In each
cohort, d is how much stronger a system is according to the cohort's votes than according to all votes (score divided by
information), and z is the difference in d between the cohort and the other voters, in standard errors that treat one
voter's votes as dependent. Beyond `FAR`, the cohort's votes on that system are given the weight (FAR / z)². Weights are
not lowered if the cohort has fewer than `FEWEST` voters who judged the system, or if it has more information about the
system than the other voters, because it is then unknown which of the two groups is unusual.

**Fans.** A fan of a system prefers it in a share `PREFERS` of its battles, against any opponent, and votes like
everyone else in other battles; an opponent of the system prefers the other side. The shares of fans and opponents among
a system's voters are revealed by voters who met it several times and always decided the same way, and by wins that its
rating does not explain. The shares and the system's strength for the other voters are estimated together, by `STEPS`
steps of the EM algorithm starting from `USUAL`. There are few steps, so that the shares hardly change if the data
contain little information about them, as when most voters prefer the system anyway. Voters with tastes like those in
the whole arena (normal, with one variance) are not fans, and voters who order the systems in the opposite way have
little influence on these estimates. A share is usual up to the upper quartile of the shares of all systems, and up to
the share of the opposite group among the system's voters. If it exceeds this by more than one standard error, the
weight of a vote on the system is reduced by the probability that its voter is a surplus fan: partly at first, and fully
from 1.5 standard errors on. Weights are not lowered for fewer than `FEWEST` surplus fans, or with fewer than `SYSTEMS`
systems, which are too few to define the usual share.

Votes are never excluded, but the more a cohort differs, or the more certainly a voter is a fan, the less influence the
votes have on the rating.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.stats.battles import number_present
from podeval.stats.davidson import Array, Rows, score_rows

FAR = 2.5
FEWEST = 10
ARRIVALS = 8
"""Number of cohorts by time of the first vote, each with the same number of voters."""
PREFERS = 0.8
USUAL = 0.02
STEPS = 10
CONTRARY = 0.05
"""The prior share of voters who order the systems the opposite way."""
SYSTEMS = 5
LEAST_ERROR = 0.01
"""Minimum error of a share, so that a surplus of 1 % of the voters does not lower weights, regardless of the number of
votes that show it.
"""

Grouping = Literal["votes", "arrival", "fans", "opponents"]

_SIDES: tuple[Grouping, ...] = ("fans", "opponents")
_PASSES = 3
_HAIR = 1e-9
_MOST_LOG_ODDS = 50.0


@dataclass(frozen=True)
class LoweredVotes:
    """The votes on one system by one group of voters; their `weight` is below 1.

    `grouped_by` is `votes` or `arrival`, and `least` and `most` are the cohort's numbers of votes, or its first and
    last position in the order of arrival; or `grouped_by` is `fans` or `opponents`, without such numbers. `voters` is
    the number of voters of the cohort who judged the system, or the estimated number of surplus fans; in this case
    `weight` is the weight for the most certain fan. `z` is the difference between the cohort's view and that of the
    other voters (above 0: the cohort finds the system stronger), or the excess of the number of fans or opponents, in
    standard errors.
    """

    system: str
    grouped_by: Grouping
    least: int | None
    most: int | None
    voters: int
    weight: float
    z: float

    def describe(self) -> str:
        """Return a sentence about the group and the weight of its votes."""
        if self.least is None:
            return (
                f"about {self.voters} more voters than usual decide {'for' if self.z > 0 else 'against'} {self.system} "
                f"whatever its opponent ({abs(self.z):.1f} standard errors); votes on it count for as little as "
                f"{self.weight:.0%}, depending on the probability that the voter is one of them"
            )
        return (
            f"votes on {self.system} by {self.voters} voters "
            f"({'numbers of votes' if self.grouped_by == 'votes' else 'order of arrival'}: "
            f"{self.least} to {self.most}) count for "
            f"{self.weight:.0%}, because they differ from those of other voters by {abs(self.z):.1f} standard errors"
        )


@dataclass(frozen=True)
class _JudgedSystems:
    """The systems that each voter judged: a cell for each voter and system, with the cells of a system adjacent.

    `voter` and `system` are codes, shape (cells,); `of_rows` is the cell of each row's A, then that of each row's B.
    """

    voter: NDArray[np.intp]
    system: NDArray[np.intp]
    of_rows: NDArray[np.intp]

    def sum_by_cell(self, at_a: Array, at_b: Array) -> Array:
        """Return the sum of the rows' values for their systems A and B, shape (cells,)."""
        return _sum_by(self.of_rows, np.concatenate([at_a, at_b]), len(self.voter))


def weigh_votes(
    rows: Rows, fitted: Array, names: list[str], arrival: NDArray[np.intp]
) -> tuple[Rows, tuple[LoweredVotes, ...]]:
    """Return the rows with their voters' weights and the groups whose votes are down-weighted.

    Args:
        rows: the votes.
        fitted: the parameters that fit them.
        names: the names of the systems, in the order of `rows.systems`.
        arrival: the position of each voter in the order of their first votes, from 0.
    """
    # By voter and system: the score, the information, and how much more likely the votes are from a fan or an opponent.
    cells, of_rows = number_present(np.concatenate([rows.a, rows.b]) * rows.voters + np.tile(rows.voter, 2))
    judged = _JudgedSystems(cells % rows.voters, cells // rows.voters, of_rows)
    pull, information, chances = score_rows(rows, fitted)
    (won, lost, _), weight, (of_a, of_b) = rows.counts, rows.weight, np.maximum(chances[:2], _HAIR)
    for_a, for_b = (
        preferred * np.log(1 - PREFERS + PREFERS / chance) + (weight - preferred) * math.log(1 - PREFERS)
        for preferred, chance in ((won, of_a), (lost, of_b))
    )
    pairs = ((pull, -pull), (information, information), (for_a, for_b), (for_b, for_a))
    scores, fisher, *sides = (judged.sum_by_cell(*pair) for pair in pairs)
    votes = np.bincount(rows.voter, weight)
    counted, of_cohorts = _weigh_cohorts(judged, scores, fisher, names, votes, arrival)
    # Among fans, voters are weighted by the probability that they do not order the systems the opposite way.
    turned = np.bincount(rows.voter, (won - lost) * np.log(of_b / of_a))
    straight = 1 / (1 + CONTRARY / (1 - CONTRARY) * np.exp(np.minimum(_MOST_LOG_ODDS, turned)))
    by_fans, of_fans = _weigh_fans(judged, scores, fisher, np.stack(sides), counted * straight[judged.voter], names)
    # A vote gets the lower of the weights on its two systems.
    lower = (counted * by_fans)[of_rows].reshape(2, -1).min(axis=0)
    return replace(rows, counts=rows.counts * lower), (*of_cohorts, *of_fans)


def _weigh_cohorts(
    judged: _JudgedSystems,
    scores: Array,
    fisher: Array,
    names: list[str],
    votes: NDArray[Any],
    arrival: NDArray[np.intp],
) -> tuple[Array, tuple[LoweredVotes, ...]]:
    """Return the weight of each voter's votes on each system (the lowest from any of the voter's cohorts), and the
    groups whose votes are down-weighted.

    Args:
        judged: the cells.
        scores: the score of each cell's votes about the system's strength.
        fisher: Fisher information of the same votes about it.
        names: the names of the systems.
        votes: the number of votes by each voter.
        arrival: the position of each voter in the order of their first votes, from 0.
    """
    voters, octave = len(votes), np.log2(np.maximum(1, votes)) + _HAIR
    groupings: tuple[tuple[Grouping, NDArray[np.intp], NDArray[Any]], ...] = (
        ("votes", octave.astype(np.intp), votes),
        ("votes", (4 * octave).astype(np.intp), votes),
        ("arrival", arrival * ARRIVALS // voters, arrival + 1),
    )
    weights, lowered = np.ones_like(scores), {}
    for grouped_by, cohort, position in groupings:
        of_cells = cohort[judged.voter] * len(names) + judged.system
        weight, z, people = _compare(scores, fisher, of_cells, (int(cohort.max()) + 1, len(names)))
        weights = np.minimum(weights, weight.ravel()[of_cells])
        for number, system in zip(*np.nonzero(weight < 1), strict=True):
            least, most = (round(end(position[cohort == number])) for end in (np.min, np.max))
            lowered[names[system], grouped_by, least, most] = LoweredVotes(
                names[system], grouped_by, least, most, int(people[number, system]),
                float(weight[number, system]), float(z[number, system]),
            )  # fmt: skip
    return weights, tuple(sorted(lowered.values(), key=lambda one: one.weight))


def _weigh_fans(
    judged: _JudgedSystems, scores: Array, fisher: Array, sides: Array, counted: Array, names: list[str]
) -> tuple[Array, tuple[LoweredVotes, ...]]:
    """Weight votes on a system by the probability that the voter is a surplus fan; return weights and affected groups.

    Args:
        judged: the cells.
        scores: the score of each cell's votes about the system's strength.
        fisher: Fisher information of the same votes about it.
        sides: the log likelihood ratio of votes by a fan, or by an opponent, to votes by someone who votes like
            everyone else.
        counted: the weight that each cell already has.
        names: the names of the systems.
    """
    size = len(names)
    if size < SYSTEMS:
        return np.ones_like(scores), ()
    # The variance of the voters' tastes, as in the median system.
    beyond, information = (_sum_by(judged.system, counted * values, size) for values in (scores**2 - fisher, fisher**2))
    taste = max(0.0, float(np.median(beyond / np.maximum(_HAIR, information))))
    # The shares of fans and of opponents, and their excess over the usual.
    shares, errors, chance = np.ones((2, size)), np.ones((2, size)), np.zeros((2, len(scores)))
    people = np.bincount(judged.system, minlength=size)
    for system, end in enumerate(np.cumsum(people)):
        of_system = slice(end - people[system], end)
        columns = (table[..., of_system] for table in (scores, fisher, sides, counted))
        shares[:, system], errors[:, system], chance[:, of_system] = _estimate_fans(taste, *columns)
    excess = np.maximum(0.0, shares - np.maximum(np.quantile(shares, 0.75, method="lower"), shares[::-1]))
    z, number = excess / errors, excess * people
    lowering = np.where(number >= FEWEST, np.clip(2 * (z - 1), 0, 1), 0) * excess / np.maximum(shares, _HAIR)
    lowered = (
        LoweredVotes(
            names[system],
            grouped_by,
            None,
            None,
            round(number[side, system]),
            float(1 - lowering[side, system]),
            float((1 - 2 * side) * z[side, system]),
        )
        for side, grouped_by in enumerate(_SIDES)
        for system in np.flatnonzero(lowering[side])
    )
    weights = 1 - np.einsum("ij,ij->j", lowering[:, judged.system], chance)
    return weights, tuple(sorted(lowered, key=lambda one: one.weight))


def _estimate_fans(
    taste: float, scores: Array, fisher: Array, sides: Array, counted: Array
) -> tuple[Array, Array, Array]:
    """Return the shares of fans and opponents among a system's voters, their errors, and each voter's probabilities.

    Args:
        taste: the variance of the voters' tastes.
        scores: the scores of the voters on one system; this and the other arguments are as in `_weigh_fans`.
        fisher: their Fisher information.
        sides: their likelihoods.
        counted: their weights.
    """
    shares, stronger, spread = np.full((2, 1), USUAL), 0.0, 1 + taste * fisher
    # The likelihood of all other votes, to second order: this part does not depend on the strength of the system.
    pulled, known = scores / spread, fisher / spread
    alike = sides + np.log(spread) / 2 - taste / 2 * scores * pulled
    for _ in range(STEPS):
        odds = np.exp(np.minimum(_MOST_LOG_ODDS, alike - stronger * (pulled - known * stronger / 2)))
        before, others = shares, 1 - shares.sum()
        total = others + (shares.T @ odds)[0]
        weight = counted / total
        shares = before * (odds @ weight)[:, None] / max(_HAIR, counted.sum())
        stronger = float(others * (weight @ pulled) / max(_HAIR, others * (weight @ known)))
    # The evidence that the votes provide about the shares, minus what a difference in strength alone would give.
    chance = before * odds / total
    slope, pull = weight * (odds - 1), others * weight * (pulled - known * stronger)
    information = (slope**2).sum(axis=1) - (slope @ pull) ** 2 / max(_HAIR, float(pull @ pull))
    return shares[:, 0], np.maximum(LEAST_ERROR, 1 / np.sqrt(np.maximum(_HAIR, information))), chance


def _sum_by(group: NDArray[np.intp], values: NDArray[Any], groups: int) -> Array:
    """Return the sum of the values of each group, shape (groups,)."""
    return np.bincount(group, values, groups).astype(np.float64, copy=False)


def _compare(
    scores: Array, fisher: Array, of_cells: NDArray[np.intp], shape: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Return, by cohort and system, the weight of the votes, z, and the number of voters.

    Args:
        scores: the score of each cell's votes.
        fisher: their Fisher information.
        of_cells: the cohort and system of each cell, encoded as one number.
        shape: the numbers of cohorts and of systems.
    """

    def total(values: NDArray[Any]) -> Array:
        return _sum_by(of_cells, values, shape[0] * shape[1]).reshape(shape)

    pulled, information, judged = total(scores), total(fisher), total(fisher > 0)
    apart = pulled / np.maximum(information, _HAIR)
    # The variance of the score, which is at least the variance for independent votes.
    by_voter = total((scores - apart.ravel()[of_cells] * fisher) ** 2)
    spread = np.maximum(by_voter * judged / np.maximum(1, judged - 1), information)
    weight, z = np.ones_like(apart), np.zeros_like(apart)
    examined = (judged >= FEWEST) & (2 * information <= information.sum(axis=0))
    for _ in range(_PASSES):
        # The other cohorts, with their current weights.
        theirs = np.maximum(_sum_others(weight * information), _HAIR)
        variance = spread / np.maximum(information, _HAIR) ** 2 + _sum_others(weight**2 * spread) / theirs**2
        difference = apart - _sum_others(weight * pulled) / theirs
        z = np.where(examined, difference / np.sqrt(np.maximum(variance, _HAIR)), 0.0)
        weight = np.minimum(1.0, (FAR / np.maximum(np.abs(z), _HAIR)) ** 2)
    return weight, z, judged


def _sum_others(table: Array) -> Array:
    """Return, for each cohort, the sum over the other cohorts."""
    return np.asarray(table.sum(axis=0) - table, dtype=np.float64)
