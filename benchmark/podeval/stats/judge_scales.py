"""The scale of a judge that dies or is replaced: how far a new version drifts from it, and its scores carried over.

Both versions judge the same anchor items. The mean difference with its interval is the drift; mean and spread of the
anchors give the line by which old scores are carried to the new scale (linear equating), with the interval that the
number of anchors allows. Several judges make a panel in which each counts by how well it predicts people.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from podeval.errors import BadInput
from podeval.stats.agreement import Estimate, srcc
from podeval.stats.intervals import Interval, mean_ci

FEWEST = 5
"""Anchor items below which nothing is carried over."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScaleLink:
    """How the new version of a judge scores what the old one scored.

    Attributes:
        drift: mean of new minus old over the anchors, with its 95 % interval.
        order: SRCC of the two over the anchors.
        slope, offset: of the line from old scores to new ones.
        anchors: old and new score of each anchor.
    """

    drift: Interval
    order: Estimate
    slope: float
    offset: float
    anchors: tuple[tuple[float, float], ...]

    @property
    def drifted(self) -> bool:
        """Whether the interval of the drift leaves out 0."""
        low, high = self.drift.low, self.drift.high
        return low is not None and high is not None and not low <= 0 <= high

    def carry(self, score: float) -> tuple[float, float | None, float | None]:
        """Return an old score, such as a system's mean, on the new scale, with its 95 % interval (jackknife)."""
        pairs = np.array(self.anchors)
        value = _equate(pairs)(score)
        without = np.array([_equate(np.delete(pairs, n, axis=0))(score) for n in range(len(pairs))])
        if not np.isfinite(without).all():
            return value, None, None
        count = len(pairs)
        error = math.sqrt((count - 1) / count * float(np.square(without - without.mean()).sum()))
        reach = float(special.stdtrit(count - 2, 0.975)) * error
        return value, value - reach, value + reach


def link_scales(old: Mapping[str, float], new: Mapping[str, float]) -> ScaleLink:
    """Link two versions of a judge by the anchor items that both scored.

    Raises:
        BadInput: fewer than `FEWEST` items are common, or the old scores of all of them are equal.
    """
    shared = sorted(old.keys() & new.keys())
    if len(shared) < FEWEST:
        raise BadInput(f"the two versions have {len(shared)} anchor items in common; at least {FEWEST} are needed")
    pairs = np.array([[old[item], new[item]] for item in shared])
    if float(pairs[:, 0].std()) == 0:
        raise BadInput("the old version gave every anchor the same score, so no scale can be derived")
    line = _equate(pairs)
    offset = line(0.0)
    return ScaleLink(
        mean_ci((pairs[:, 1] - pairs[:, 0]).tolist()),
        srcc(pairs[:, 0].tolist(), pairs[:, 1].tolist()),
        line(1.0) - offset,
        offset,
        tuple((float(one), float(other)) for one, other in pairs),
    )


def weigh_panel(judges: Mapping[str, Mapping[str, float]], people: Mapping[str, float]) -> dict[str, float]:
    """Return what each judge of a panel counts, in all 1: in proportion to the precision with which it predicts people.

    Each judge's scores are brought to people's scale by a line fitted without the item that is predicted; a judge that
    predicts no better than people's mean counts nothing.

    Args:
        judges: scores by judge and item.
        people: people's mean score by item.

    Raises:
        BadInput: fewer than `FEWEST` items are judged by all, or no judge predicts anything.
    """
    shared = sorted(set(people).intersection(*(set(scores) for scores in judges.values())))
    if len(shared) < FEWEST:
        raise BadInput(f"all judges and people have {len(shared)} items in common; at least {FEWEST} are needed")
    truth = np.array([people[item] for item in shared])
    by_mean = _left_out_error(np.zeros(len(shared)), truth)
    precision = {}
    for name, scores in judges.items():
        error = _left_out_error(np.array([scores[item] for item in shared]), truth)
        precision[name] = 0.0 if error >= by_mean else 1 / max(error, 1e-9) - 1 / by_mean
    total = sum(precision.values())
    if total == 0:
        raise BadInput("no judge of the panel predicts people better than their mean does")
    return {name: value / total for name, value in precision.items()}


def _left_out_error(scores: Array, truth: Array) -> float:
    """Return the mean squared error of predicting each item by a line fitted to the others."""
    errors = []
    for number in range(len(truth)):
        x, y = np.delete(scores, number), np.delete(truth, number)
        spread = float(np.square(x - x.mean()).sum())
        slope = float((x - x.mean()) @ (y - y.mean())) / spread if spread > 0 else 0.0
        errors.append(truth[number] - (y.mean() + slope * (scores[number] - x.mean())))
    return float(np.mean(np.square(errors)))


def _equate(pairs: Array) -> Callable[[float], float]:
    """Return the line that gives old scores mean and spread of the new ones, turned where the two run against."""
    old, new = pairs.T
    spread = float(old.std())
    sign = -1.0 if spread > 0 and float((old - old.mean()) @ (new - new.mean())) < 0 else 1.0
    slope = sign * float(new.std()) / spread if spread > 0 else math.nan
    return lambda score: float(new.mean() + slope * (score - old.mean()))
