"""Battles as data: each has two systems in order, a judge, and an outcome.

The columns are stored as integer codes, so a million votes take up only a few arrays. Skipped battles are omitted.

The papers report Elo ratings: R_A + K (S_A - E_A) with E_A = 1 / (1 + 10^((R_B - R_A) / 400)), from 1000 with K = 4, in
recorded order (MTalk-Bench section 5.1 and App. C.1; computed by evalica). Elo is easy to follow battle by battle, but
it depends on the order of the votes and has no interval. Ranks come from the Bradley–Terry model
(`podeval.stats.bradley_terry`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput

OUTCOMES = ("a", "b", "tie", "both_bad")
"""Outcomes: the first system wins, the second wins, both are equally good, or both are bad."""

SKIPPED = "skip"

Codes = NDArray[np.intp]

Variant = Literal["default", "mtalk"]

INITIAL = 1000.0
K = 4.0
SCALE = 400.0
_WINNERS = {"a": "X", "b": "Y", "tie": "Draw", "both_bad": "Draw"}
_INVISIBLE = "\x00"
_PRIOR = 2.0


@dataclass(frozen=True, eq=False)
class Battles:
    """The n judged battles, in the order in which they were recorded.

    `first`, `second` and `voter` are codes into `systems` and `voters`; `outcome` is a code into `OUTCOMES`;
    `covariates` contains, by name, the first side's value minus the second's (seconds, LU). `slight` marks outcomes
    that the voter called a slight preference; it is None if voters were not asked.
    """

    systems: tuple[str, ...]
    voters: tuple[str, ...]
    first: Codes
    second: Codes
    outcome: Codes
    voter: Codes
    covariates: Mapping[str, NDArray[np.float64]]
    slight: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.outcome.size)

    @classmethod
    def of(
        cls,
        first: Sequence[str],
        second: Sequence[str],
        outcome: Sequence[str],
        voter: Sequence[str] | None = None,
        covariates: Mapping[str, Sequence[float]] | None = None,
        slight: Sequence[bool] | None = None,
    ) -> "Battles":
        """Create battles from columns, omitting skipped ones; without `voters`, each vote counts as a different
        voter's.

        Raises:
            BadInput: the columns have unequal length, an outcome is unknown, a system meets itself, or a covariate is
                not finite.
        """
        import pandas

        # Check that the columns have equal length.
        n = len(outcome)
        columns = {"first": first, "second": second, "voter": voter, "slight": slight, **(covariates or {})}
        for name, column in columns.items():
            if column is not None and len(column) != n:
                raise BadInput(f"there are {n} outcomes, but {len(column)} entries of {name}; give one per battle")
        # Outcomes as codes; skipped battles are dropped.
        ending, kinds = pandas.factorize(np.asarray(outcome, dtype=object))
        unknown = [kind for kind in kinds if kind not in (*OUTCOMES, SKIPPED)]
        if unknown or (ending < 0).any():
            raise BadInput(f"an outcome must be {', '.join(OUTCOMES)} or {SKIPPED}, not {(unknown or [None])[0]!r}")
        meaning = np.array([OUTCOMES.index(kind) if kind != SKIPPED else -1 for kind in kinds], dtype=np.intp)
        result = meaning[ending] if n else np.zeros(0, dtype=np.intp)
        kept = result >= 0
        # Systems and voters as codes.
        sides, systems = pandas.factorize(np.asarray([*first, *second], dtype=object), sort=True)
        people, voters = (
            (np.arange(n), np.arange(n).astype(str))
            if voter is None
            else pandas.factorize(np.asarray(voter, dtype=object), sort=True)
        )
        battles = cls(
            systems=tuple(str(name) for name in systems),
            voters=tuple(voters),
            first=sides[:n][kept],
            second=sides[n:][kept],
            outcome=result[kept],
            voter=people[kept].astype(np.intp),
            covariates={
                name: np.asarray(values, dtype=np.float64)[kept] for name, values in (covariates or {}).items()
            },
            slight=None if slight is None else np.asarray(slight, dtype=np.bool_)[kept],
        )
        # Refuse battles that cannot be rated.
        if (battles.first == battles.second).any():
            name = battles.systems[int(battles.first[(battles.first == battles.second).argmax()])]
            raise BadInput(f"{name} is on both sides of a battle; leave such battles out")
        for name, values in battles.covariates.items():
            if not np.isfinite(values).all():
                raise BadInput(f"the covariate {name} contains NaN or infinity; leave those battles out")
        return battles

    def only(self, kept: NDArray[np.bool_]) -> "Battles":
        """Return the battles for which `kept` is true, with the same systems and voters."""
        return Battles(
            self.systems,
            self.voters,
            self.first[kept],
            self.second[kept],
            self.outcome[kept],
            self.voter[kept],
            {name: values[kept] for name, values in self.covariates.items()},
            None if self.slight is None else self.slight[kept],
        )


@dataclass(frozen=True)
class Tally:
    """Outcomes by pair of systems: `wins[i, j]` is the number of battles that i won against j; `ties` and `both_bad`
    are symmetric.
    """

    systems: tuple[str, ...]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    both_bad: NDArray[np.int64]

    @property
    def battles(self) -> NDArray[np.int64]:
        """The number of battles between each pair; symmetric."""
        return np.asarray(self.wins + self.wins.T + self.ties + self.both_bad)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Win rate of i against j, with a tie as half a win; NaN if they never met."""
        met, won = self.battles, self.wins + (self.ties + self.both_bad) / 2
        return np.asarray(np.divide(won, met, out=np.full(met.shape, np.nan), where=met > 0))

    @property
    def pairs(self) -> dict[tuple[str, str], tuple[float, int]]:
        """The win rate of each system against each system that it met, and the number of battles between them."""
        names, shares, battles = self.systems, self.shares, self.battles
        met = np.argwhere(battles).tolist()
        return {(names[i], names[j]): (float(shares[i, j]), int(battles[i, j])) for i, j in met}


def number_present(codes: Codes) -> tuple[Codes, Codes]:
    """Return the codes that occur, in order, and the position of each given code among them."""
    present = np.flatnonzero(np.bincount(codes))
    index = np.zeros(int(present.max(initial=-1)) + 1, dtype=np.intp)
    index[present] = np.arange(len(present))
    return present, index[codes]


def tally(battles: Battles) -> Tally:
    """Count the outcomes of every pair among the systems that were in a battle."""
    present, sides = number_present(np.concatenate([battles.first, battles.second]))
    size, (first, second) = len(present), np.split(sides, 2)

    def count(rows: Codes, columns: Codes) -> NDArray[np.int64]:
        counted = np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
        return counted.astype(np.int64)

    a_won, b_won, tied, bad = (battles.outcome == code for code in range(len(OUTCOMES)))
    wins = count(first[a_won], second[a_won]) + count(second[b_won], first[b_won])
    ties, both_bad = (count(first[kind], second[kind]) for kind in (tied, bad))
    return Tally(tuple(battles.systems[code] for code in present), wins, ties + ties.T, both_bad + both_bad.T)


def count_outcomes(battles: Battles) -> NDArray[np.int64]:
    """Count the battles that each system won, lost and tied, and those judged both bad; shape (systems, 4)."""
    table = np.zeros((len(battles.systems), len(OUTCOMES)), dtype=np.int64)
    for side, order in ((battles.first, (0, 1, 2, 3)), (battles.second, (1, 0, 2, 3))):
        cells = side * len(OUTCOMES) + np.asarray(order)[battles.outcome]
        table += np.bincount(cells, minlength=table.size).reshape(table.shape)
    return table


@dataclass(frozen=True)
class Elo:
    """A system's rating after its last battle, and its outcomes; `both_bad` battles are neither wins nor ties."""

    rating: float
    wins: int
    losses: int
    ties: int
    both_bad: int


def elo(battles: Battles, variant: Variant = "default") -> dict[str, Elo]:
    """Compute the Elo rating of every system that was in a battle, best first.

    Args:
        battles: battles in the order in which they are rated.
        variant: `default` gives each side ½ for a tie or both bad; `mtalk` skips these battles, as the paper's code
            does.
    """
    ratings = _ratings(battles, variant)
    outcomes = zip(battles.systems, count_outcomes(battles), strict=True)
    elos = {name: Elo(ratings.get(name, INITIAL), *map(int, row)) for name, row in outcomes if row.any()}
    return dict(sorted(elos.items(), key=lambda entry: (-entry[1].rating, entry[0])))


def _ratings(battles: Battles, variant: Variant) -> dict[str, float]:
    """Rate the battles that the variant counts, in order."""
    import evalica
    import pandas

    if variant == "mtalk":
        battles = battles.only(battles.outcome < 2)
    if not len(battles):
        return {}
    ending = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.Draw)
    result = evalica.elo(
        battles.first,
        battles.second,
        [ending[code] for code in battles.outcome.tolist()],
        pandas.RangeIndex(len(battles.systems)),
        initial=INITIAL,
        base=10.0,
        scale=SCALE,
        k=K,
        win_weight=1.0,
        tie_weight=0.5,
    )
    scores, (present, _) = result.scores.to_dict(), number_present(np.concatenate([battles.first, battles.second]))
    return {battles.systems[code]: scores[code] for code in present.tolist()}


def rate_quickly(systems: Iterable[str], battles: Iterable[tuple[str, str, str, float]]) -> dict[str, float]:
    """Estimate strengths on Elo's scale, centred at 0, without intervals, for choosing pairs and checking voters.

    The model is Bradley–Terry by evalica; a tie or both bad is half a win. Every system also has two drawn battles
    against an invisible one, so the estimate for a system that never lost is finite.

    Args:
        systems: the systems to rate, including those without a battle.
        battles: `(a, b, outcome, count)`, with the outcome `a`, `b`, `tie` or `both_bad`; a count may be a fraction.
    """
    import evalica

    names, met = sorted(set(systems)), list(battles)
    if not names:
        return {}
    winners = {outcome: evalica.Winner[name] for outcome, name in _WINNERS.items()}
    fitted = evalica.bradley_terry(
        [a for a, *_ in met] + names,
        [b for _, b, *_ in met] + [_INVISIBLE] * len(names),
        [winners[outcome] for *_, outcome, _ in met] + [evalica.Winner.Draw] * len(names),
        weights=[float(count) for *_, count in met] + [_PRIOR] * len(names),
    )
    scale = {system: SCALE * math.log10(score) for system, score in fitted.scores.items()}
    middle = sum(scale[system] for system in names) / len(names)
    return {system: scale[system] - middle for system in names}
