"""Partial effects of the bias study: how much a level of a factor changes a key, with an interval over voices.

If a change moves the machine-like voices of espeak-ng and the neural voices in opposite directions, their mean
describes neither, so the effects on both kinds of voices are listed next to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from podeval.stats.intervals import mean_ci

FEWEST = 3
"""Minimum number of voices for which an effect is reported."""
KINDS = ("espeak-ng", "neural voices")
Change = tuple[str, str]
"""A factor and its level."""
PLAIN: Change = ("plain", "plain")


@dataclass(frozen=True)
class PartialEffect:
    """How much a level of a factor changes a key, with its 95 % interval; `voices` is the number of voices."""

    key: str
    factor: str
    level: str
    effect: float
    low: float | None
    high: float | None
    voices: int


def partial_effects(
    rows: Sequence[Mapping[str, str]], bases: Mapping[Change, Change] | None = None
) -> list[PartialEffect]:
    """Compute the effects from the rows of the table.

    Args:
        rows: the rows of the table.
        bases: for each change, the change with whose clips its clips are compared, if not the unchanged clips.
    """
    keys = [name for name in rows[0] if "." in name]
    plain = {row["voice"]: row for row in rows if row["factor"] == "plain"}
    effects: list[PartialEffect] = []
    for key in keys:
        unchanged = {
            change: {
                row["voice"]: float(row[key]) for row in rows if (row["factor"], row["level"]) == change and row[key]
            }
            for change in {PLAIN, *(bases or {}).values()}
        }
        base = unchanged[PLAIN]
        levels = dict.fromkeys((row["factor"], row["level"]) for row in rows if row["factor"] != "plain")
        for factor, level in levels:
            before = unchanged[(bases or {}).get((factor, level), PLAIN)]
            pairs = [
                (_kind_of(row["engine"]), float(row[key]) - before[row["voice"]])
                for row in rows
                if (row["factor"], row["level"]) == (factor, level) and row[key] and row["voice"] in before
            ]
            if of_all := _mean(key, factor, level, [moved for _, moved in pairs]):
                effects += [of_all, *_opposites(key, factor, level, pairs)]
        effects += _between(key, "sex", "female", base, plain, "male")
        effects += _between(key, "sex", "two sexes", base, plain, "one sex")
        for engine in sorted({row["engine"] for row in plain.values()} - {"Kokoro", ""}):
            effects += _between(key, "engine", engine, base, plain, "Kokoro")
    return effects


def _mean(key: str, factor: str, level: str, moved: Sequence[float]) -> PartialEffect | None:
    if len(moved) < FEWEST:
        return None
    ci = mean_ci(moved)
    return PartialEffect(key, factor, level, ci.mean, ci.low, ci.high, ci.n)


def _opposites(key: str, factor: str, level: str, pairs: Sequence[tuple[str, float]]) -> list[PartialEffect]:
    """Return the effects on both kinds of voices if one effect is certainly positive and the other certainly
    negative.
    """
    effects = [_mean(key, factor, f"{level}, {kind}", [moved for its, moved in pairs if its == kind]) for kind in KINDS]
    sure = [each for each in effects if each and each.low is not None and each.high is not None]
    signs = {1 if each.low > 0 else -1 if each.high < 0 else 0 for each in sure}  # type: ignore[operator]
    return sure if signs == {1, -1} else []


def _kind_of(engine: str) -> str:
    """Return the kind of a voice or pair; for a pair of both kinds, the names of the engines."""
    if engine == KINDS[0]:
        return KINDS[0]
    return engine if KINDS[0] in engine else KINDS[1]


def _between(
    key: str, factor: str, level: str, base: Mapping[str, float], plain: Mapping[str, Mapping[str, str]], against: str
) -> list[PartialEffect]:
    """Return the difference between the voices of a level and those of the level that it is compared with; sexes are
    compared within each engine.
    """
    groups: dict[str, list[float]] = {level: [], against: []}
    for voice, value in base.items():
        row = plain[voice]
        same = [base[other] for other in base if plain[other]["engine"] == row["engine"]] if factor == "sex" else [0.0]
        if factor == "sex" and len({plain[v]["sex"] for v in base if plain[v]["engine"] == row["engine"]}) < 2:
            continue
        if row[factor] in groups:
            groups[row[factor]].append(value - sum(same) / len(same))
    one, other = groups[level], groups[against]
    if not one or not other:
        return []
    difference = float(np.mean(one) - np.mean(other))
    if min(len(one), len(other)) < 2:
        return [PartialEffect(key, factor, f"{level} − {against}", difference, None, None, len(one) + len(other))]
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    return [
        PartialEffect(
            key,
            factor,
            f"{level} − {against}",
            difference,
            float(interval.low),
            float(interval.high),
            len(one) + len(other),
        )
    ]
