"""Partial effects of the bias study: by how much a level of a factor moves a key, with an interval over voices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from podeval.stats.intervals import mean_ci

FEWEST = 3
"""Voices below which nothing is said of a change."""


@dataclass(frozen=True)
class PartialEffect:
    """How far a level of a factor moves a key, with its 95 % interval; `voices` is the number it rests on."""

    key: str
    factor: str
    level: str
    effect: float
    low: float | None
    high: float | None
    voices: int


def partial_effects(rows: Sequence[Mapping[str, str]]) -> list[PartialEffect]:
    """Compute the effects from the rows of the table."""
    keys = [name for name in rows[0] if "." in name]
    plain = {row["voice"]: row for row in rows if row["factor"] == "plain"}
    effects: list[PartialEffect] = []
    for key in keys:
        base = {voice: float(row[key]) for voice, row in plain.items() if row[key]}
        levels = dict.fromkeys((row["factor"], row["level"]) for row in rows if row["factor"] != "plain")
        for factor, level in levels:
            pairs = [
                float(row[key]) - base[row["voice"]]
                for row in rows
                if (row["factor"], row["level"]) == (factor, level) and row[key] and row["voice"] in base
            ]
            if len(pairs) >= FEWEST:
                ci = mean_ci(pairs)
                effects.append(PartialEffect(key, factor, level, ci.mean, ci.low, ci.high, ci.n))
        effects += _between(key, "sex", "female", base, plain, "male")
        effects += _between(key, "sex", "two sexes", base, plain, "one sex")
        for engine in sorted({row["engine"] for row in plain.values()} - {"Kokoro", ""}):
            effects += _between(key, "engine", engine, base, plain, "Kokoro")
    return effects


def _between(
    key: str, factor: str, level: str, base: Mapping[str, float], plain: Mapping[str, Mapping[str, str]], against: str
) -> list[PartialEffect]:
    """Return the difference of the voices of a level from those it is set against; sexes within engines."""
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
