"""The arena's rating of a system: its strength on the Elo scale, as implied by all blind comparisons.

Bradley–Terry with ties (Davidson 1970): a difference of 400 points means odds of ten to one, and the mean of all
systems is 1000; higher is better. The 95 % interval treats the votes of one voter as dependent. Ranks are ranges,
corrected for the number of pairs; systems that are not connected by a chain of battles are not ranked against each
other (note `islands`). Until a system has ten battles against three opponents, decided by five voters, it has neither
an interval nor a rank (note `provisional`; up to version 1.2 it had both). "Tie" and "both bad" both count as ties.
MTalk-Bench section 5.1.

Differs from the paper, whose Elo rating (starting at 1000, K = 4, scale 400) allows no ties, depends on the order of
the votes and has no interval; the variant "mtalk" reproduces it. The variant "elo" is the same, but counts "tie" and
"both bad" as ½.
"""

from functools import lru_cache
from typing import Literal

from podeval.errors import CannotScore
from podeval.metrics import Key, Score, facts, metric
from podeval.stats.battles import Battles, elo
from podeval.stats.bradley_terry import rate

# All systems are rated together, so rating a second system with the same votes takes no extra time.
_rate = lru_cache(maxsize=4)(rate)
_elo = lru_cache(maxsize=4)(elo)


@metric(
    name="arena",
    title="Arena",
    version="1.3",
    dimension="human.preference",
    keys=(
        Key(
            "rating",
            "higher",
            "Elo points",
            unreached=facts.PLACE,
            about="Bradley–Terry strength; the mean over all systems is 1000",
        ),
        Key(
            "rating_low",
            "higher",
            "Elo points",
            unreached=facts.PLACE,
            about="lower end of the 95 % interval of the rating, clustered by voter",
        ),
        Key(
            "rating_high",
            "higher",
            "Elo points",
            unreached=facts.PLACE,
            about="upper end of the 95 % interval of the rating",
        ),
        Key(
            "rank_best",
            "lower",
            "",
            (1, None),
            unreached=facts.PLACE,
            about="best rank compatible with the votes",
        ),
        Key(
            "rank_worst",
            "lower",
            "",
            (1, None),
            unreached=facts.PLACE,
            about="worst rank compatible with the votes",
        ),
        Key(
            "wins",
            "informative",
            "",
            (0, None),
            about="battles won",
        ),
        Key(
            "battles",
            "informative",
            "",
            (0, None),
            about='battles fought, including ties and "both bad"',
        ),
    ),
    paper="MTalk-Bench",
    intended_use="Ranking systems by the blind comparisons of many voters.",
    limitations=(
        "The result depends on who votes: volunteers on one site, using their own devices, in languages they may not "
        "speak well. Ratings compare only systems that have met, directly or through others. With few votes the "
        "intervals are wide, and they are shown."
    ),
    no_benchmark="It is computed from votes, which the arena collects after a run.",
)
def arena(
    system: str,
    reference_votes: Battles,
    *,
    variant: Literal["default", "elo", "mtalk"] = "default",
    position: bool = False,
) -> Score:
    """Rate one system, based on the votes on all systems.

    Args:
        system: its name.
        reference_votes: all votes, in recorded order.
        variant: `default` is Bradley–Terry; `elo` and `mtalk` are Elo, `mtalk` as in the paper.
        position: whether to correct for the advantage of being played first, and report it in the notes.
    """
    if variant == "default":
        ratings = _rate(reference_votes, position=position)
        of_system = next((rating for rating in ratings.systems if rating.system == system), None)
        if of_system is None:
            raise CannotScore(f"{system} was not in any battle")
        return Score(
            values={
                "rating": of_system.rating,
                "rating_low": of_system.low,
                "rating_high": of_system.high,
                "rank_best": of_system.best,
                "rank_worst": of_system.worst,
                "wins": of_system.wins,
                "battles": of_system.battles,
            },
            notes={
                "losses": of_system.losses,
                "ties": of_system.ties,
                "both_bad": of_system.both_bad,
                "votes": ratings.votes,
                "voters": ratings.voters,
                "effects": {e.name: {"points": e.points, "ci95": [e.low, e.high]} for e in ratings.effects},
                **({"provisional": of_system.provisional} if of_system.provisional else {}),
                **({"islands": [list(group) for group in ratings.islands]} if len(ratings.islands) > 1 else {}),
            },
        )
    counted = _elo(reference_votes, "mtalk" if variant == "mtalk" else "default").get(system)
    if counted is None:
        raise CannotScore(f"{system} was not in any battle")
    fought = counted.wins + counted.losses + counted.ties + counted.both_bad
    return Score(values={"rating": counted.rating, "wins": counted.wins, "battles": fought})
