"""Simulate honest, lazy, ring and bot voters: does the public ranking hold if one vote in ten is bad?

    .venv/bin/python studies/arena_integrity.py [SEEDS]

For each kind of bad voter, the script prints Kendall's tau between the ranking by the honest votes alone and two other
rankings: that by all votes, and the public one. It also prints the shares of good and bad votes that are excluded. This
is done once for votes on excerpts and once for votes on whole recordings, which take longer and are never rated
together with the others. The voting times, comments and origins of all voters look alike, except that half of the lazy
voters vote within 15 s, and that bots send the same comment with every vote, one second after the minimum duration. The
ring waits for the audio to end; it skips battles without the system that it pushes, the third from the bottom.
"""

import sys
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau

from podeval.arena.vote_integrity import judge

SYSTEMS = 10
KINDS = ("lazy", "ring", "bot", "mixed")
NEEDED = {"excerpts": 10.0, "whole": 540.0}
"""The minimum duration of a battle in seconds, by its protocol: ten seconds of each side at double speed, or 90 % of
two times ten minutes at double speed.
"""
DAY = 86_400.0

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one simulated arena."""

    tau_all: float
    tau_public: float
    bad_excluded: float
    honest_excluded: float


def simulate(kind: str, seed: int, votes: int = 6000, bad: float = 0.1, protocol: str = "excerpts") -> pd.DataFrame:
    """Return simulated votes with the columns of `vote_integrity.COLUMNS`, and `honest`."""
    chance = np.random.default_rng(seed)
    strength = chance.permutation(np.linspace(-1.2, 1.2, SYSTEMS))
    needed = NEEDED[protocol]
    parts = [_voters("honest", chance, strength, round(votes * (1 - bad)), 150, needed)]
    kinds = ("lazy", "ring", "bot") if kind == "mixed" else (kind,)
    crowds = {"lazy": 15, "ring": 15, "bot": 3}
    share = round(votes * bad / len(kinds))
    parts += [_voters(each, chance, strength, share, crowds[each], needed) for each in kinds if share]
    table = pd.concat(parts, ignore_index=True).sort_values("at", ignore_index=True)
    return table.assign(vote=[f"v{number}" for number in range(len(table))])


def _voters(
    kind: str, chance: np.random.Generator, strength: Numbers, votes: int, voters: int, needed: float
) -> pd.DataFrame:
    activity = chance.lognormal(0, 0.8 if kind == "honest" else 0.2, voters)
    voter = chance.choice(voters, votes, p=activity / activity.sum())
    pairs = np.array([chance.permutation(SYSTEMS)[:2] for _ in range(votes)])
    pushed = int(np.argsort(strength)[2])
    if kind == "ring":
        pairs = _with(pushed, pairs)
    liking = chance.normal(0, 0.3, (voters, SYSTEMS))
    gap = (strength + liking)[voter, pairs[:, 0]] - (strength + liking)[voter, pairs[:, 1]]
    outcome = _honest(gap, chance)
    repeat = chance.random(votes) < 0.05
    again = _honest(gap, chance)
    elapsed = needed * (1 + chance.lognormal(-0.5, 0.5, votes))
    comment = np.array(
        [f"the {word} of the answer was better, number {n}" for n, word in enumerate(_words(votes, chance))]
    )
    if kind == "lazy":
        outcome, again = (chance.choice(["a", "b"], votes) for _ in range(2))
        elapsed = np.where(voter % 2 == 0, chance.uniform(3, 15, votes), elapsed)
    if kind == "ring":
        for choice in (outcome, again):
            choice[pairs[:, 0] == pushed] = "a"
            choice[pairs[:, 1] == pushed] = "b"
    if kind == "bot":
        outcome = again = np.full(votes, "a", dtype=object)
        elapsed = np.full(votes, needed + 1)
        comment = np.full(votes, "A is clearly better in every way")
    decided = np.isin(outcome, ["a", "b"]) & np.isin(again, ["a", "b"])
    return pd.DataFrame({
        "voter": [f"{kind}{n}" for n in voter],
        "origin": [f"{kind}-{n}" for n in voter],
        "at": chance.uniform(0, 14 * DAY, votes),
        "elapsed": elapsed,
        "needed": needed,
        "heard": 1.0,
        "outcome": outcome,
        "a": [f"s{n}" for n in pairs[:, 0]],
        "b": [f"s{n}" for n in pairs[:, 1]],
        "dimension": "semantic",
        "comment": comment,
        "gold": np.where(repeat & decided, (outcome == again).astype(float), np.nan),
        "counts": ~repeat,
        "honest": kind == "honest",
    })  # fmt: skip


def _with(system: int, pairs: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return the pairs with the system in place of one side wherever it is missing, because a voter who pushes it skips
    other battles.
    """
    other = ~(pairs == system).any(axis=1)
    pairs = pairs.copy()
    pairs[other, np.arange(other.sum()) % 2] = system
    return pairs


def _honest(gap: Numbers, chance: np.random.Generator) -> NDArray[np.object_]:
    """Draw honest outcomes from a Bradley–Terry model; one vote in eight is a tie or "both bad", more often if the two
    systems are close.
    """
    said = np.where(chance.random(gap.size) < 1 / (1 + np.exp(-gap)), "a", "b").astype(object)
    undecided = chance.random(gap.size) < 0.2 * np.exp(-np.abs(gap))
    said[undecided] = chance.choice(["tie", "both_bad"], int(undecided.sum()))
    return said


def _words(count: int, chance: np.random.Generator) -> NDArray[np.str_]:
    return chance.choice(["content", "logic", "context", "relevance", "explanation"], count)


def ranking(votes: pd.DataFrame) -> Numbers:
    """Return the ratings of s0, s1, … according to the votes that count."""
    import evalica

    votes = votes[votes["counts"]]
    winner = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw, "both_bad": evalica.Winner.Draw}
    scores = evalica.bradley_terry(list(votes["a"]), list(votes["b"]), list(votes["outcome"].map(winner))).scores
    return np.asarray(scores[[f"s{number}" for number in range(SYSTEMS)]].to_numpy())


def outcome_of(votes: pd.DataFrame) -> Outcome:
    """Compare the ranking by all votes and the public ranking with the ranking by the honest votes."""
    found = judge(votes)
    out = votes["vote"].isin(found.excluded)
    clean = ranking(votes[votes["honest"]])
    return Outcome(
        tau_all=kendalltau(clean, ranking(votes)).statistic,
        tau_public=kendalltau(clean, ranking(votes[~out])).statistic,
        bad_excluded=float(out[~votes["honest"]].mean()),
        honest_excluded=float(out[votes["honest"]].mean()),
    )


def main() -> None:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("protocol bad votes   tau, all votes   tau, public (least)   bad excluded   honest excluded")
    for protocol, kind in product(NEEDED, KINDS):
        done = [outcome_of(simulate(kind, seed, protocol=protocol)) for seed in range(seeds)]
        every, public = ([getattr(one, name) for one in done] for name in ("tau_all", "tau_public"))
        bad, good = (np.mean([getattr(one, name) for one in done]) for name in ("bad_excluded", "honest_excluded"))
        print(
            f"{protocol:8} {kind:11} {np.mean(every):.3f} ({min(every):.3f})    "
            f"{np.mean(public):.3f} ({min(public):.3f})         "
            f"{bad:6.1%}         {good:.2%}"
        )


if __name__ == "__main__":
    main()
