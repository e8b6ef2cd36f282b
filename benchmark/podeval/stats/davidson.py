"""Davidson's (1970) model of comparisons with ties: its fit, its information matrix, and its covariance by voter.

With h = (strength of A - strength of B + effects of covariates) / 2, the outcomes A, B and tie have odds e^h : e^-h :
v, where v sets the probability of ties. Without ties, this is the Bradley–Terry model. The likelihood is concave, so
Newton's method finds its maximum, even with covariates, which no library supports.

As Newman advises (2023, Efficient Computation of Rankings from Pairwise Comparisons), every system also meets an
opponent of average strength, with half a win and half a loss by default, so even a system that never lost has a finite
rating. Intervals do not count these battles as votes.

The parameters form one vector: strengths as natural log odds, with the average opponent at 0; effects; log v.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput, PodevalError
from podeval.stats.battles import Battles, Codes, number_present

Array = NDArray[np.float64]

PRIOR = 0.5
_TOLERANCE = 1e-9
_MOST_STEPS = 100
_HEAVY = 0.1
_MOST_LEVERAGE = 0.95
_NO_TIES = -math.inf
_MOST_LOG_ODDS = 300.0


@dataclass(frozen=True)
class Rows:
    """Votes by one voter on one pair, counted together.

    `a`, `b` and `voter` are codes; `x` (rows, k) contains the covariates as A minus B; `counts` (3, rows) contains the
    votes for A, for B and for a tie. `systems` are the codes of the systems in the battles.
    """

    systems: Codes
    voters: int
    covariates: tuple[str, ...]
    a: Codes
    b: Codes
    voter: Codes
    x: Array
    counts: Array

    @cached_property
    def weight(self) -> Array:
        """The number of votes that a row represents, shape (rows,)."""
        return np.asarray(self.counts.sum(axis=0), dtype=np.float64)

    @property
    def ties(self) -> bool:
        """Whether there are ties; without them, v is zero and not a parameter."""
        return bool(self.counts[2].any())

    @cached_property
    def by_pair(self) -> "Rows":
        """The votes of all voters, combined by pair; with covariates, the same rows, because they cannot be
        combined.
        """
        if self.covariates:
            return self
        cells, counts = _count_together(self.a * len(self.systems) + self.b, self.counts)
        a, b = np.divmod(cells, len(self.systems))
        return replace(self, voters=1, a=a, b=b, voter=np.zeros_like(a), x=np.zeros((len(a), 0)), counts=counts)


def group_into_rows(battles: Battles, position: bool, strength: bool = False) -> Rows:
    """Group the votes by voter and pair; votes with their own covariates stay separate.

    Args:
        battles: the votes.
        position: whether being shown first is a covariate.
        strength: whether a slight preference counts as half a preference and half a tie.
    """
    systems, sides = number_present(np.concatenate([battles.first, battles.second]))
    first, second = np.split(sides, 2)
    people, voter = number_present(battles.voter)
    counts = np.eye(3)[:, np.minimum(battles.outcome, 2)]
    if strength and battles.slight is not None:
        halved = battles.slight & (battles.outcome < 2)
        counts[:, halved] = (counts[:, halved] + np.eye(3)[:, 2:]) / 2
    size, voters = len(systems), len(people)
    names = (*(("position",) if position else ()), *battles.covariates)
    x = np.ones((len(battles), len(names)))
    if battles.covariates:
        x[:, -len(battles.covariates) :] = np.stack([*battles.covariates.values()], axis=1)
        return Rows(systems, voters, names, first, second, voter, x, counts)
    # If position is not a covariate, each pair is counted in one order.
    if not position:
        turned = first > second
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        counts[:2, turned] = counts[1::-1, turned]
    # Counting is fast if there are fewer possible rows than votes; if there are more, hardly any votes are alike.
    if voters * size * size <= len(battles):
        cells, counts = _count_together((voter * size + first) * size + second, counts)
        rest, second = np.divmod(cells, size)
        voter, first = np.divmod(rest, size)
    return Rows(systems, voters, names, first, second, voter, x[: len(voter)], counts)


def _count_together(cell: Codes, counts: Array) -> tuple[Codes, Array]:
    """Return the cells that occur, and the counts of the votes in each, shape (3, cells)."""
    table: Array = np.stack([np.bincount(cell, outcome) for outcome in counts])
    cells = np.flatnonzero(table.any(axis=0))
    return cells, table[:, cells]


def fit(rows: Rows, prior: float = PRIOR) -> Array:
    """Fit the most likely parameters by Newton's method: strengths, effects, log v.

    Raises:
        PodevalError: the fit did not converge, for example because covariates alone identify the systems.
    """
    rows = rows.by_pair
    size, effects = len(rows.systems), len(rows.covariates)
    # Start from equal strengths.
    at = np.append(np.zeros(size + effects), math.log(0.5) if rows.ties else _NO_TIES)
    free = _find_free_parameters(rows, at)
    now = _likelihood(rows, at, prior)
    for _ in range(_MOST_STEPS):
        # Try the full Newton step.
        uphill, information = gradient(rows, at, prior)[free], information_matrix(rows, at, prior)[free, free]
        # A prior makes the information of strengths regular; otherwise the shortest solution is taken.
        is_regular = prior and not rows.covariates
        step = np.linalg.solve(information, uphill) if is_regular else np.linalg.lstsq(information, uphill)[0]
        if float(uphill @ step) < _TOLERANCE:
            return at
        # Halve the step until the likelihood no longer falls.
        for shrink in 0.5 ** np.arange(30):
            tried = at.copy()
            tried[free] += shrink * step
            value = _likelihood(rows, tried, prior)
            if value >= now:
                break
        if value - now < 1e-12 * max(1.0, abs(now)):
            return tried
        at, now = tried, value
    raise PodevalError("the ratings did not converge, because a covariate separates the systems: leave it out")


def naive_covariance(rows: Rows, fitted: Array, prior: float = PRIOR) -> Array:
    """Return what the parameters' covariance would be if all votes were by different voters: the inverse of the
    information.
    """
    rows = rows.by_pair
    free = _find_free_parameters(rows, fitted)
    full = np.zeros((fitted.size, fitted.size))
    try:
        full[free, free] = np.linalg.inv(information_matrix(rows, fitted, prior)[free, free])
    except np.linalg.LinAlgError:
        raise BadInput(
            f"the effects of {' and '.join(rows.covariates)} cannot be separated; compute the ratings "
            f"with fewer covariates"
        ) from None
    return full


def covariance(rows: Rows, fitted: Array, prior: float = PRIOR) -> Array:
    """Return the parameters' covariance, robust to any dependence between one voter's votes.

    A voter's influence is the first-order change without that voter: H^-1 (I - H_g H^-1)^-1 u_g, with H the information
    of all votes, H_g and u_g that voter's information and score. The leverage of a voter who provides nearly all the
    information about a parameter is capped at 0.95; the leverage of a voter with little weight is ignored.
    """
    free = _find_free_parameters(rows, fitted)
    inverse = naive_covariance(rows, fitted, prior)[free, free]
    scores = _scores(rows, fitted)[:, free]
    heavy = np.flatnonzero(_leverage(rows, fitted, inverse) > _HEAVY)
    of_voters = np.split(np.argsort(rows.voter), np.cumsum(np.bincount(rows.voter))[:-1]) if len(heavy) else []
    for voter in heavy.tolist():
        theirs, parameters = _select_rows(rows, fitted, of_voters[voter])
        judged = parameters[parameters < len(inverse)]
        information = information_matrix(theirs, fitted[parameters], 0.0)[: len(judged), : len(judged)]
        scores[voter, judged] = _stretch(scores[voter, judged], information, inverse[np.ix_(judged, judged)])
    # The elements of every score sum to 0, so this affects only rounding errors.
    inverse[: len(rows.systems)] -= inverse[: len(rows.systems)].mean(axis=0)
    full = np.zeros((fitted.size, fitted.size))
    full[free, free] = inverse.T @ (scores.T @ scores) @ inverse
    return full


def _stretch(score: Array, information: Array, inverse: Array) -> Array:
    """Return (I - H_g H^-1)^-1 u_g for one voter, in the parameters that the voter's votes concern.

    Args:
        score: the voter's score, u_g.
        information: the voter's information, H_g.
        inverse: the inverse of the information of all votes, H^-1.
    """
    if float(np.vdot(information, inverse)) < _MOST_LEVERAGE:
        return np.asarray(np.linalg.solve(np.eye(len(score)) - information @ inverse, score), np.float64)
    # In coordinates in which H is the identity, the leverage along each axis can be capped.
    inner = np.linalg.cholesky(inverse).T
    values, axes = np.linalg.eigh(inner @ information @ inner.T)
    share = 1 / (1 - np.minimum(values, _MOST_LEVERAGE)) - 1
    return np.asarray(score + np.linalg.solve(inner, axes @ (share * (axes.T @ (inner @ score)))))


def information_of_a_battle(apart: float, tie_odds: float) -> float:
    """Return the Fisher information that one battle between two systems provides about the difference between their
    strengths.
    """
    odds = np.array([math.exp(apart / 2), math.exp(-apart / 2), tie_odds])
    return float(_curvature(odds / odds.sum())[0])


def _find_free_parameters(rows: Rows, fitted: Array) -> slice:
    return slice(fitted.size if rows.ties else fitted.size - 1)


def _chances(rows: Rows, fitted: Array) -> Array:
    """Return the probabilities of A, B and tie, shape (3, rows)."""
    effects = rows.x @ fitted[len(rows.systems) : -1]
    up = np.exp(np.clip((fitted[rows.a] - fitted[rows.b] + effects) / 2, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    odds = np.stack([up, 1 / up, np.full_like(up, math.exp(fitted[-1]))])
    return np.asarray(odds / odds.sum(axis=0))


def _likelihood(rows: Rows, fitted: Array, prior: float) -> float:
    of_votes = np.vdot(rows.counts, np.log(np.maximum(_chances(rows, fitted), 1e-300)))
    strengths, v = fitted[: len(rows.systems)], math.exp(fitted[-1])
    against_average = -2 * np.log(np.exp(strengths / 2) + np.exp(-strengths / 2) + v)
    return float(of_votes + prior * against_average.sum())


def _pull(rows: Rows, chances: Array) -> tuple[Array, Array]:
    """Return the derivatives of each row's log likelihood with respect to the difference in strength and to log v."""
    off = rows.counts - rows.weight * chances
    return (off[0] - off[1]) / 2, off[2]


def score_rows(rows: Rows, fitted: Array) -> tuple[Array, Array, Array]:
    """Return each row's score and information about the difference between its two strengths, and its probabilities.

    The probabilities are those of A, B and a tie, shape (3, rows).
    """
    chances = _chances(rows, fitted)
    return _pull(rows, chances)[0], rows.weight * _curvature(chances)[0], chances


def _scores(rows: Rows, fitted: Array) -> Array:
    """Return the gradient of each voter's log likelihood, shape (voters, parameters)."""
    size, parameters = len(rows.systems), fitted.size
    difference, tie = _pull(rows, _chances(rows, fitted))
    entries = [(rows.a, difference), (rows.b, -difference)]
    entries += [(np.full_like(rows.a, size + k), difference * rows.x[:, k]) for k in range(rows.x.shape[1])]
    columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    places = np.tile(rows.voter * parameters, len(entries)) + columns
    flat = np.bincount(places, weights=values, minlength=rows.voters * parameters)
    scores = flat.astype(np.float64, copy=False).reshape(rows.voters, parameters)
    scores[:, -1] = np.bincount(rows.voter, weights=tie, minlength=rows.voters)
    return scores


def gradient(rows: Rows, fitted: Array, prior: float) -> Array:
    """Return the first derivatives of the log likelihood with its prior, shape (parameters,)."""
    size = len(rows.systems)
    uphill: Array = _scores(replace(rows, voter=np.zeros_like(rows.voter), voters=1), fitted)[0]
    win, loss, tie = _against_average(fitted, size)
    uphill[:size] += prior * (loss - win)
    uphill[-1] -= 2 * prior * tie.sum()
    return uphill


def _curvature(chances: Array | tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return the second derivatives of -log likelihood with respect to the difference, to both, and to log v."""
    won, lost, tied = chances
    return ((won + lost) - (won - lost) ** 2) / 4, -(won - lost) * tied / 2, tied * (1 - tied)


def information_matrix(rows: Rows, fitted: Array, prior: float) -> Array:
    """Return the negative second derivatives of the log likelihood, shape (parameters, parameters)."""
    size, parameters = len(rows.systems), fitted.size
    twice, mixed, tie = (rows.weight * part for part in _curvature(_chances(rows, fitted)))
    one = np.ones_like(twice)
    # The parameters on which the difference in strength depends, each with its factor.
    columns = [(rows.a, one), (rows.b, -one)]
    columns += [(np.full_like(rows.a, size + k), rows.x[:, k]) for k in range(rows.x.shape[1])]
    flat = np.zeros(parameters * parameters)
    for row, left in columns:
        for column, right in columns:
            flat += np.bincount(row * parameters + column, weights=twice * left * right, minlength=flat.size)
    information: Array = flat.reshape(parameters, parameters)
    for row, left in columns:
        # The mixed derivatives with log v.
        by_tie = np.bincount(row, weights=mixed * left, minlength=parameters)
        information[:, -1] += by_tie
        information[-1] += by_tie
    information[-1, -1] += tie.sum()
    # The half win and half loss against the average opponent.
    if prior:
        twice, mixed, tie = (2 * prior * part for part in _curvature(_against_average(fitted, size)))
        information[np.arange(size), np.arange(size)] += twice
        information[:size, -1] += mixed
        information[-1, :size] += mixed
        information[-1, -1] += tie.sum()
    return information


def _against_average(fitted: Array, size: int) -> tuple[Array, Array, Array]:
    """Return each system's probabilities of winning, losing and tying against an average one."""
    up, down = np.exp(fitted[:size] / 2), np.exp(-fitted[:size] / 2)
    total = up + down + math.exp(fitted[-1])
    return up / total, down / total, math.exp(fitted[-1]) / total


def _leverage(rows: Rows, fitted: Array, inverse: Array) -> Array:
    """Return a lower bound on trace(H_g H^-1) per voter, from the strengths and effects of each row and from v."""
    size = len(rows.systems)
    twice, _, tie = (rows.weight * part for part in _curvature(_chances(rows, fitted)))
    variances = np.diag(inverse)
    reach = variances[rows.a] + variances[rows.b] - 2 * inverse[rows.a, rows.b]
    for k in range(rows.x.shape[1]):
        column = inverse[size + k]
        reach = reach + rows.x[:, k] * (2 * (column[rows.a] - column[rows.b]) + rows.x[:, k] * column[size + k])
    by_tie = tie * variances[-1] if len(inverse) == fitted.size else 0.0
    return np.bincount(rows.voter, weights=twice * reach + by_tie, minlength=rows.voters).astype(np.float64)


def _select_rows(rows: Rows, fitted: Array, chosen: NDArray[np.intp]) -> tuple[Rows, NDArray[np.intp]]:
    """Return one voter's rows as if there were no other systems, and the positions of the remaining parameters.

    Args:
        rows: the grouped votes of all voters.
        fitted: all parameters.
        chosen: the positions of the voter's rows.
    """
    systems, sides = number_present(np.concatenate([rows.a[chosen], rows.b[chosen]]))
    a, b = np.split(sides, 2)
    return (
        Rows(rows.systems[systems], 1, rows.covariates, a, b, np.zeros_like(a), rows.x[chosen], rows.counts[:, chosen]),
        np.append(systems, np.arange(len(rows.systems), fitted.size)),
    )
