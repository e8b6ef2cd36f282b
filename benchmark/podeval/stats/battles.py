"""Battles as data: which systems met, in which order, who judged, and the outcome.

The columns are stored as integer codes, so that a million votes are a few arrays. Skipped battles are left out.

Elo is what the papers print: R_A + K (S_A - E_A) with E_A = 1 / (1 + 10^((R_B - R_A) / 400)), from 1000 with K = 4, in
recorded order (MTalk-Bench section 5.1 and App. C.1; computed by evalica). It is easy to follow battle by battle, but
it depends on the order of the votes and has no interval: `order_spread` shows how much the order alone changes it.
Ranks are by Bradley and Terry (`podeval.stats.bradley_terry`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput
from podeval.text.characters import clean_text
from podeval.text.missing_value import is_missing

Outcome = Literal["a", "b", "tie", "both_bad"]
OUTCOMES: tuple[Outcome, ...] = ("a", "b", "tie", "both_bad")
"""The first wins, the second wins, both are equally good, both are bad."""

SKIPPED = "skip"

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("a", "first", "left", "modela", "systema", "assistanta"), "a"),
    **dict.fromkeys(("b", "second", "right", "modelb", "systemb", "assistantb"), "b"),
    **dict.fromkeys(("tie", "tied", "draw", "equal", "bothgood", "tiebothgood"), "tie"),
    **dict.fromkeys(("bothbad", "tiebothbad"), "both_bad"),
    **dict.fromkeys(("skip", "skipped"), SKIPPED),
}
"""What logs call an outcome, in lower case and without spaces, underscores, hyphens and brackets."""

_VOTERS = (
    "voter",
    "judge",
    "judge_hash",
    "user_id",
    "user",
    "username",
    "rater",
    "annotator",
    "annotator_id",
    "worker_id",
)
"""What logs call whoever judged; with an `outcome` only the first, for a judge that is a model judges all."""
_SIDES = (("first", "second"), ("system_a", "system_b"), ("model_a", "model_b"))

Codes = NDArray[np.intp]

Variant = Literal["default", "mtalk"]

INITIAL = 1000.0
K = 4.0
SCALE = 400.0
_SHUFFLES = 100


@dataclass(frozen=True, eq=False)
class Battles:
    """The judged battles (n of them) in the order in which they were recorded.

    `first`, `second` and `voter` are codes into `systems` and `voters`; `outcome` is a code into `OUTCOMES`;
    `covariates` holds, by name, the first side's value minus the second's (seconds, LU). `slight` says which outcomes
    the voter called a slight preference; None where nobody was asked.
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
        """Create battles from columns; `skip` is left out, and without voters each vote counts as a different voter's.

        Raises:
            BadInput: the columns have unequal length, an outcome is unknown, a system meets itself, or a covariate is
                not finite.
        """
        import pandas

        # Columns of equal length.
        n = len(outcome)
        columns = {"first": first, "second": second, "voter": voter, "slight": slight, **(covariates or {})}
        for name, column in columns.items():
            if column is not None and len(column) != n:
                raise BadInput(f"there are {n} outcomes and {len(column)} entries of {name}; give one a battle")
        # Outcomes as codes; skipped battles are dropped.
        ending, kinds = pandas.factorize(np.asarray(outcome, dtype=object))
        unknown = [kind for kind in kinds if kind not in (*OUTCOMES, SKIPPED)]
        if unknown or (ending < 0).any():
            raise BadInput(f"an outcome is {', '.join(OUTCOMES)} or {SKIPPED}, not {(unknown or [None])[0]!r}")
        meaning = np.array([OUTCOMES.index(kind) if kind != SKIPPED else -1 for kind in kinds], dtype=np.intp)
        result = meaning[ending] if n else np.zeros(0, dtype=np.intp)
        kept = result >= 0
        # Systems and voters as codes.
        sides, systems = pandas.factorize(np.concatenate([_to_objects(first), _to_objects(second)]), sort=True)
        people, voters = (
            (np.arange(n), np.arange(n).astype(str))
            if voter is None
            else pandas.factorize(_to_objects(voter), sort=True)
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
        # Battles that cannot be rated.
        if (battles.first == battles.second).any():
            name = battles.systems[int(battles.first[(battles.first == battles.second).argmax()])]
            raise BadInput(f"{name} is on both sides of a battle; leave such battles out")
        for name, values in battles.covariates.items():
            if not np.isfinite(values).all():
                raise BadInput(f"the covariate {name} holds NaN or infinity; leave those battles out")
        return battles

    @classmethod
    def of_records(cls, records: Iterable[Mapping[str, Any]], places: Sequence[str] = ()) -> "Battles":
        """Create battles from the records of a log, in any form of `read_log_record`.

        Votes that an export calls excluded, and its gold battles, are skipped.

        Args:
            records: the records.
            places: for each record its place in the log, such as `line 3`; by default they are numbered.

        Raises:
            BadInput: a record has another form or another word for its outcome, or only some battles have a covariate;
                the message names its place.
        """
        rows = []
        for number, record in enumerate(records):
            row = read_log_record(places[number] if places else f"vote {number + 1}", record)
            left_out = record.get("standing") == "excluded" or record.get("purpose") == "gold"
            rows.append(row | {"outcome": SKIPPED} if left_out else row)
        names = sorted({name for row in rows for name in row["covariates"]})
        for name in names:
            if missing := sum(name not in row["covariates"] for row in rows):
                raise BadInput(f"{missing} of {len(rows)} votes lack the covariate {name}; give it to all or to none")
        voters = [row["voter"] for row in rows]
        if not all(voters):
            voters = [voter or f"vote {number}" for number, voter in enumerate(voters)]
        return cls.of(
            [row["first"] for row in rows],
            [row["second"] for row in rows],
            [row["outcome"] for row in rows],
            voters,
            {name: [row["covariates"][name] for row in rows] for name in names},
        )

    def only(self, kept: NDArray[np.bool_]) -> "Battles":
        """Return the battles where `kept` is true, with the same systems and voters."""
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
    """Outcomes by pair of systems: `wins[i, j]` battles that i won against j; `ties` and `both_bad` are symmetric."""

    systems: tuple[str, ...]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    both_bad: NDArray[np.int64]

    @property
    def battles(self) -> NDArray[np.int64]:
        """How often every pair met; symmetric."""
        total: NDArray[np.int64] = self.wins + self.wins.T + self.ties + self.both_bad
        return total

    @property
    def shares(self) -> NDArray[np.float64]:
        """Win rate of i against j, with a tie counting half; NaN where they never met."""
        met = self.battles
        won = self.wins + (self.ties + self.both_bad) / 2
        shares: NDArray[np.float64] = np.divide(won, met, out=np.full(met.shape, np.nan), where=met > 0)
        return shares

    @property
    def unmet(self) -> list[tuple[str, str]]:
        """Return the pairs that never met."""
        met = self.battles
        count = len(self.systems)
        return [(self.systems[i], self.systems[j]) for i in range(count) for j in range(i + 1, count) if not met[i, j]]


def tally(battles: Battles) -> Tally:
    """Count the outcomes of every pair."""
    size = len(battles.systems)

    def count(rows: Codes, columns: Codes) -> NDArray[np.int64]:
        counted = np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
        return counted.astype(np.int64)

    a_won, b_won, tied, bad = (battles.outcome == code for code in range(len(OUTCOMES)))
    wins = count(battles.first[a_won], battles.second[a_won]) + count(battles.second[b_won], battles.first[b_won])
    ties, both_bad = (count(battles.first[kind], battles.second[kind]) for kind in (tied, bad))
    return Tally(battles.systems, wins, ties + ties.T, both_bad + both_bad.T)


def count_outcomes(battles: Battles) -> NDArray[np.int64]:
    """Count for each system how many battles it won, lost, tied, and had judged both bad; shape (systems, 4)."""
    table = np.zeros((len(battles.systems), len(OUTCOMES)), dtype=np.int64)
    for side, order in ((battles.first, (0, 1, 2, 3)), (battles.second, (1, 0, 2, 3))):
        cells = side * len(OUTCOMES) + np.asarray(order)[battles.outcome]
        table += np.bincount(cells, minlength=table.size).reshape(table.shape)
    return table


def _to_objects(column: Sequence[str]) -> NDArray[np.object_]:
    return np.asarray(column, dtype=object)


def read_log_record(place: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Read a record of a log of battles: ours, a judge's (`podeval judge battles`), an export's or another arena's.

    It has two sides (`first` and `second`, `system_a` and `system_b`, or `model_a` and `model_b`) and an `outcome` or a
    `winner`: a word such as `a`, `model_a`, `left`, `tie`, `tie (bothbad)` or `draw`, or the name of a side. None, NaN
    and an empty text are a skipped battle. It may have `covariates` by name and a `voter`, which with `winner` may be
    called `judge`, `user_id` and the like; without one, battles on one `dialogue` belong together. Names are cleaned
    by `clean_name`.

    Args:
        place: its place in the log, for the message.
        record: the record as plain data.

    Returns:
        `first`, `second`, `outcome` (of `OUTCOMES`, or `SKIPPED`), `voter` and `covariates`.

    Raises:
        BadInput: it has another form, or another word for its outcome.
    """
    sides = next((pair for pair in _SIDES if not set(pair).isdisjoint(record)), _SIDES[0])
    key = next((name for name in ("outcome", "winner") if not is_missing(record.get(name))), "")
    key = key or next((name for name in ("outcome", "winner") if name in record), "")
    lacking = [name for name in sides if not isinstance(record.get(name), str) or is_missing(record[name])]
    if lacking or not key:
        lacking += ["outcome"] * (not key)
        raise BadInput(f"{place} lacks {' and '.join(lacking)}; a vote has first, second, outcome and voter")
    first, second = (clean_name(record[name]) for name in sides)
    outcome = _read_outcome(place, key, record[key], first, second)
    if first == second and outcome != SKIPPED:
        raise BadInput(f"{place}: {first} is on both sides of a battle; leave such battles out")
    covariates = record.get("covariates")
    covariates = {} if is_missing(covariates) else covariates
    if not isinstance(covariates, Mapping) or not all(isinstance(one, int | float) for one in covariates.values()):
        raise BadInput(f"{place}: its covariates are an object of numbers by name, not {covariates!r}")
    voters = (record.get(name) for name in (_VOTERS if key == "winner" else ("voter", "dialogue")))
    voter = next((voter for voter in voters if not is_missing(voter)), None)
    return {
        "first": first,
        "second": second,
        "outcome": outcome,
        "voter": None if voter is None else clean_name(voter),
        "covariates": covariates,
    }


def clean_name(name: object) -> str:
    """Return a name of a system or a person as it is compared: NFC, without spaces around it or invisible letters."""
    return clean_text(str(name)).strip()


def _read_outcome(place: str, key: str, word: Any, first: str, second: str) -> str:
    """Return the outcome of a record; a `winner` is a name before it is a word, and an `outcome` a word before that."""
    if is_missing(word):
        return SKIPPED
    word_only = re.sub(r"[\s_()-]+", "", word.lower()) if isinstance(word, str) else ""
    meanings = ({first: "a", second: "b"}.get(clean_name(word)), _WORDS.get(word_only))
    outcome = next(filter(None, meanings if key == "winner" else reversed(meanings)), None)
    if outcome is None:
        raise BadInput(
            f"{place}: the {key} {word!r} is neither {first} nor {second}, nor a word for an outcome; write "
            f"{', '.join(OUTCOMES)}, {SKIPPED}, model_a, model_b or the name of a side"
        )
    return outcome


@dataclass(frozen=True)
class Elo:
    """A system's rating after its last battle, and its outcomes; `both_bad` is counted neither in wins nor in ties."""

    rating: float
    wins: int
    losses: int
    ties: int
    both_bad: int


def elo(battles: Battles, variant: Variant = "default") -> dict[str, Elo]:
    """Compute the Elo rating of every system that was in a battle, best first.

    Args:
        battles: in the order in which they count.
        variant: `default` gives both sides ½ for a tie and for both bad; `mtalk` leaves those out, as the paper's code.
    """
    # Ratings, from the battles that the variant counts.
    decided = battles.outcome < 2
    counted = battles.only(decided) if variant == "mtalk" else battles
    ratings = _ratings(counted, np.arange(len(counted)))
    outcomes = zip(battles.systems, count_outcomes(battles), strict=True)
    elos = {name: Elo(ratings.get(name, INITIAL), *map(int, row)) for name, row in outcomes if row.any()}
    return dict(sorted(elos.items(), key=lambda entry: (-entry[1].rating, entry[0])))


def order_spread(
    battles: Battles, variant: Variant = "default", shuffles: int = _SHUFFLES, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Return the 2.5 and 97.5 % points of each system's Elo over shuffles of the same votes: what order alone does."""
    counted = battles.only(battles.outcome < 2) if variant == "mtalk" else battles
    random = np.random.default_rng(seed)
    runs = [_ratings(counted, random.permutation(len(counted))) for _ in range(shuffles)]
    spread = {}
    for system in runs[0] if runs else ():
        low, high = np.quantile([run[system] for run in runs], (0.025, 0.975))
        spread[system] = (float(low), float(high))
    return spread


def _ratings(battles: Battles, order: np.ndarray) -> dict[str, float]:
    import evalica

    if not len(battles):
        return {}
    ending = (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.Draw)
    result = evalica.elo(
        battles.first[order].tolist(),
        battles.second[order].tolist(),
        [ending[code] for code in battles.outcome[order].tolist()],
        initial=INITIAL,
        base=10.0,
        scale=SCALE,
        k=K,
        win_weight=1.0,
        tie_weight=0.5,
    )
    return {battles.systems[code]: float(result.scores[code]) for code in result.scores.index.tolist()}
