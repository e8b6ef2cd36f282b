"""Davidson's (1970) model of a comparison with ties: its fit, its information, its voter-robust covariance.

With h = (strength of A - strength of B + effects of covariates) / 2, the outcomes A, B and tie have odds e^h : e^-h :
v, where v sets the probability of ties. Without ties it is Bradley and Terry's model. The likelihood is concave, so
Newton's method finds its maximum, also with covariates, which no library supports.

As Newman advises (2023, Efficient Computation of Rankings from Pairwise Comparisons), every system also meets one of
average strength: one half win and one half loss by default, so a system that never lost has a finite rating.
Intervals do not count these as votes.

Parameters are one vector: strengths in natural logarithms of odds, with the average opponent at 0; effects; log v.
"""

import math
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Rows:
    """Votes with equal properties, counted together.

    `a`, `b` and `voter` are codes, `outcome` is 0 for A, 1 for B, 2 for a tie; `x` (rows, k) contains the covariates as
    A minus B, `weight` the number of votes in a row. `systems` are the codes of the systems in the battles.
    """

    systems: Codes
    voters: int
    covariates: tuple[str, ...]
    a: Codes
    b: Codes
    outcome: Codes
    voter: Codes
    x: Array
    weight: Array

    @property
    def ties(self) -> bool:
        """Whether there are ties: without them, v is zero and not a parameter."""
        return bool(self.weight[self.outcome == 2].any())


def group_into_rows(battles: Battles, position: bool, strength: bool = False) -> Rows:
    """Group the votes by voter, pair and outcome; votes with their own covariates stay separate.

    Args:
        battles: the votes.
        position: whether being shown first is a covariate.
        strength: whether a slight preference counts as half a preference and half a tie.
    """
    systems, sides = number_present(np.concatenate([battles.first, battles.second]))
    first, second = sides[: len(battles)], sides[len(battles) :]
    people, voter = number_present(battles.voter)
    outcome, weight = np.minimum(battles.outcome, 2), np.ones(len(battles))
    rows = np.arange(len(battles))
    if strength and battles.slight is not None:
        # The half that is a tie is one more row of the same voter.
        halved = np.flatnonzero(battles.slight & (outcome < 2))
        weight[halved] = 0.5
        rows = np.concatenate([rows, halved])
        outcome = np.concatenate([outcome, np.full(len(halved), 2, dtype=outcome.dtype)])
        weight = np.concatenate([weight, np.full(len(halved), 0.5)])
        first, second, voter = first[rows], second[rows], voter[rows]
    size, voters = len(systems), len(people)
    names = (*(("position",) if position else ()), *battles.covariates)
    # Battles with covariates stay separate.
    if battles.covariates:
        first_side = [np.ones(len(battles))] if position else []
        x = np.stack([*first_side, *battles.covariates.values()], axis=1)[rows]
        return Rows(systems, voters, names, first, second, outcome, voter, x, weight)
    # If the position has no effect, each pair is counted in one order.
    if not position:
        turned = first > second
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        outcome = np.where(turned & (outcome < 2), 1 - outcome, outcome)
    # Count equal votes: each is one number, which is taken apart again afterwards.
    cells, cell = np.unique(((voter * size + first) * size + second) * 3 + outcome, return_inverse=True)
    counts = np.bincount(cell, weights=weight, minlength=len(cells))
    rest, outcome = np.divmod(cells, 3)
    rest, b = np.divmod(rest, size)
    voter, a = np.divmod(rest, size)
    x = np.ones((len(cells), len(names)))
    return Rows(systems, voters, names, a, b, outcome, voter, x, counts.astype(np.float64))


def fit(rows: Rows, prior: float = PRIOR) -> Array:
    """Fit the most likely parameters by Newton's method: strengths, effects, log v.

    Raises:
        PodevalError: it did not converge, for example because covariates alone identify the systems.
    """
    if not rows.covariates:
        rows = group_by_cell(rows)
    size, effects = len(rows.systems), len(rows.covariates)
    # From equal strengths.
    at = np.append(np.zeros(size + effects), math.log(0.5) if rows.ties else _NO_TIES)
    free = _find_free_parameters(rows, at)
    now = _likelihood(rows, at, prior)
    # A prior makes the information of strengths regular.
    solve = _solve_singular if rows.covariates or not prior else np.linalg.solve
    for _ in range(_MOST_STEPS):
        # The full Newton step.
        uphill, information = gradient(rows, at, prior)[free], information_matrix(rows, at, prior)[np.ix_(free, free)]
        step = solve(information, uphill)
        if float(uphill @ step) < _TOLERANCE:
            return at
        # Halve the step until the likelihood does not fall.
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


def _solve_singular(matrix: Array, right: Array) -> Array:
    """Return the shortest solution, or the nearest to one."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)


def naive_covariance(rows: Rows, fitted: Array, prior: float = PRIOR) -> Array:
    """Return the parameters' covariance if every vote came from a different voter: the inverse of the information."""
    free = _find_free_parameters(rows, fitted)
    full = np.zeros((fitted.size, fitted.size))
    try:
        full[np.ix_(free, free)] = np.linalg.inv(information_matrix(rows, fitted, prior)[np.ix_(free, free)])
    except np.linalg.LinAlgError:
        raise BadInput(f"the effects of {' and '.join(rows.covariates)} cannot be separated; rate with fewer") from None
    return full


def covariance(rows: Rows, fitted: Array, prior: float = PRIOR) -> Array:
    """Return the parameters' covariance, robust to any dependence between the votes of one voter.

    A voter's influence is the first-order change without that voter: H^-1 (I - H_g H^-1)^-1 u_g, with H the
    information of all votes, H_g and u_g that voter's information and score. The leverage of a voter who is nearly
    the only one on something is capped at 0.95; the leverage of a voter with little weight is neglected.
    """
    # Each voter's influence to first order, in coordinates where the naive covariance is the identity.
    free = _find_free_parameters(rows, fitted)
    inverse = naive_covariance(rows, fitted, prior)[np.ix_(free, free)]
    scores = _scores(rows, fitted)[:, free]
    half = np.linalg.cholesky(inverse)
    pulls = scores @ half
    for voter in np.flatnonzero(_leverage(rows, fitted, inverse, free) > _HEAVY).tolist():
        # For voters with much leverage: exactly, with the leverage capped, in the space of what they judged.
        theirs, parameters = _select_voter(rows, fitted, voter)
        judged = parameters[: np.count_nonzero(parameters < len(free))]
        information = information_matrix(theirs, fitted[parameters], 0.0)[: len(judged), : len(judged)]
        space, inner = np.linalg.qr(half[judged].T)
        values, vectors = np.linalg.eigh(inner @ information @ inner.T)
        axes = space @ vectors
        stretch = 1 / (1 - np.minimum(values, _MOST_LEVERAGE)) - 1
        pulls[voter] += axes @ (stretch * (axes.T @ pulls[voter]))
    full = np.zeros((fitted.size, fitted.size))
    full[np.ix_(free, free)] = half @ (pulls.T @ pulls) @ half.T
    return full


def information_of_a_battle(apart: float, tie_odds: float) -> float:
    """Return Fisher's information about the difference of two strengths from one battle between them."""
    up, down = math.exp(apart / 2), math.exp(-apart / 2)
    total = up + down + tie_odds
    return ((up + down) / total - ((up - down) / total) ** 2) / 4


def group_by_cell(rows: Rows) -> Rows:
    """Combine the votes of all voters by pair and outcome."""
    size = len(rows.systems)
    cell = (rows.a * size + rows.b) * 3 + rows.outcome
    counts: Array = np.bincount(cell, weights=rows.weight, minlength=3 * size * size).astype(np.float64)
    cells = np.flatnonzero(counts)
    pair, outcome = np.divmod(cells, 3)
    a, b = np.divmod(pair, size)
    x = np.zeros((len(cells), 0))
    return replace(rows, voters=1, a=a, b=b, outcome=outcome, voter=np.zeros_like(a), x=x, weight=counts[cells])


def _find_free_parameters(rows: Rows, fitted: Array) -> NDArray[np.intp]:
    return np.arange(fitted.size if rows.ties else fitted.size - 1)


def _chances(rows: Rows, fitted: Array) -> Array:
    """Return the probabilities of A, B and tie, shape (rows, 3)."""
    size = len(rows.systems)
    half = (fitted[rows.a] - fitted[rows.b] + rows.x @ fitted[size:-1]) / 2
    logits = np.stack([half, -half, np.full_like(half, fitted[-1])], axis=1)
    odds = np.exp(logits - np.abs(half)[:, None])
    chances: Array = odds / odds.sum(axis=1, keepdims=True)
    return chances


def _likelihood(rows: Rows, fitted: Array, prior: float) -> float:
    chance = _chances(rows, fitted)[np.arange(len(rows.a)), rows.outcome]
    strengths, v = fitted[: len(rows.systems)], math.exp(fitted[-1])
    against_average = -2 * np.log(np.exp(strengths / 2) + np.exp(-strengths / 2) + v)
    return float(rows.weight @ np.log(np.maximum(chance, 1e-300)) + prior * against_average.sum())


def _pull(rows: Rows, chances: Array) -> tuple[Array, Array]:
    """Return the derivatives of each row's log likelihood with respect to the difference of strengths and to log v."""
    came = np.eye(3)[rows.outcome]
    off = rows.weight[:, None] * (came - chances)
    return (off[:, 0] - off[:, 1]) / 2, off[:, 2]


def score_rows(rows: Rows, fitted: Array) -> tuple[Array, Array, Array]:
    """Return the score and the information of each row about the difference of its two strengths, and its chances.

    The chances are those of A, B and a tie, shape (rows, 3).
    """
    chances = _chances(rows, fitted)
    return _pull(rows, chances)[0], rows.weight * _curvature(chances)[0], chances


def _scores(rows: Rows, fitted: Array) -> Array:
    """Return the gradient of each voter's log likelihood, shape (voters, parameters)."""
    size, parameters = len(rows.systems), fitted.size
    difference, tie = _pull(rows, _chances(rows, fitted))
    entries = [(rows.a, difference), (rows.b, -difference), (np.full_like(rows.a, parameters - 1), tie)]
    entries += [(np.full_like(rows.a, size + k), difference * rows.x[:, k]) for k in range(rows.x.shape[1])]
    columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    places = np.tile(rows.voter * parameters, len(entries)) + columns
    scores = np.bincount(places, weights=values, minlength=rows.voters * parameters)
    return np.asarray(scores, dtype=np.float64).reshape(rows.voters, parameters)


def gradient(rows: Rows, fitted: Array, prior: float) -> Array:
    """Return the first derivatives of the log likelihood with its prior, shape (parameters,)."""
    size = len(rows.systems)
    uphill: Array = _scores(replace(rows, voter=np.zeros_like(rows.voter), voters=1), fitted)[0]
    win, loss, tie = _against_average(fitted, size)
    uphill[:size] += prior * (loss - win)
    uphill[-1] -= 2 * prior * tie.sum()
    return uphill


def _curvature(chances: Array) -> tuple[Array, Array, Array]:
    """Return the second derivatives of -log likelihood: by difference twice, by both, by log v twice."""
    won, lost, tied = chances[:, 0], chances[:, 1], chances[:, 2]
    return ((won + lost) - (won - lost) ** 2) / 4, -(won - lost) * tied / 2, tied * (1 - tied)


def information_matrix(rows: Rows, fitted: Array, prior: float) -> Array:
    """Return minus the second derivatives of the log likelihood, shape (parameters, parameters)."""
    size, parameters = len(rows.systems), fitted.size
    twice, mixed, tie = (rows.weight * part for part in _curvature(_chances(rows, fitted)))
    one = np.ones_like(twice)
    # The parameters in the difference of strengths, each with its factor.
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
        twice, mixed, tie = (2 * prior * part for part in _curvature(np.stack(_against_average(fitted, size), axis=1)))
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


def _leverage(rows: Rows, fitted: Array, inverse: Array, free: NDArray[np.intp]) -> Array:
    """Return a lower bound of trace(H_g H^-1) per voter, from the strengths and effects of each row and from v."""
    size = len(rows.systems)
    twice, _, tie = (rows.weight * part for part in _curvature(_chances(rows, fitted)))
    variances = np.diag(inverse)
    reach = variances[rows.a] + variances[rows.b] - 2 * inverse[rows.a, rows.b]
    for k in range(rows.x.shape[1]):
        column = inverse[size + k]
        reach = reach + rows.x[:, k] * (2 * (column[rows.a] - column[rows.b]) + rows.x[:, k] * column[size + k])
    by_tie = tie * variances[-1] if len(free) == fitted.size else 0.0
    by_voter: Array = np.bincount(rows.voter, weights=twice * reach + by_tie, minlength=rows.voters).astype(np.float64)
    return by_voter


def _select_voter(rows: Rows, fitted: Array, voter: int) -> tuple[Rows, NDArray[np.intp]]:
    """Return the rows of one voter as if there were no other systems, and the places of the remaining parameters.

    Args:
        rows: the rows.
        fitted: all parameters.
        voter: the voter.
    """
    kept = rows.voter == voter
    fields = {name: getattr(rows, name)[kept] for name in ("outcome", "x", "weight")}
    systems, sides = number_present(np.concatenate([rows.a[kept], rows.b[kept]]))
    a, b = np.split(sides, 2)
    theirs = replace(rows, **fields, a=a, b=b, systems=rows.systems[systems], voter=np.zeros_like(a), voters=1)
    return theirs, np.append(systems, np.arange(len(rows.systems), fitted.size))
