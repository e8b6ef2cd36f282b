"""The settings of an arena."""

from dataclasses import dataclass, field

from podeval.arena.excerpt_choice import EXCERPTS
from podeval.arena.pairing import Rule
from podeval.arena.vote_integrity import IntegrityLimits


@dataclass(frozen=True)
class ArenaSettings:
    """The settings of battles and votes."""

    pairing: Rule = "closest"
    """The rule for which two systems meet."""

    excerpt_seconds: float = 30.0
    """Longest excerpt of one side; the shortest of a long recording is two thirds of it."""
    vote_within: float = 3600.0
    """Seconds after which a battle lapses."""
    heard_share: float = 0.9
    """Share of each whole recording that has to be heard before a judgement; a skip needs none."""
    heard_seconds: float = 10.0
    """Seconds of each excerpt that have to be heard, less where `heard_share` of it is less."""
    fastest_playback: float = 2.0
    """Fastest playback rate; a vote that is sooner than it allows is refused."""
    comment_required: bool = False
    gold_share: float = 0.05
    """Share of a voter's battles that repeat an earlier one."""
    gold_after: int = 10
    """Votes of a voter before the first repeated battle."""
    most_open: int = 5
    """Most open battles of one voter; the oldest lapses for a further one."""
    most_an_hour: int = 120
    """Most battles for one voter in an hour."""
    loudness: float | None = -18.0
    """LUFS to which both excerpts are brought (-18: speech, AES TD1008), or less where one would clip; None plays all
    as it is, which an arena of loudness itself needs."""
    limits: IntegrityLimits = field(default_factory=IntegrityLimits)

    def asked_seconds(self, length: float, protocol: str) -> float:
        """Return how many seconds of a side have to be heard.

        Args:
            length: the length of the side as it is played, seconds.
            protocol: `excerpts` or `whole`.
        """
        share = self.heard_share * length
        return min(self.heard_seconds, share) if protocol == EXCERPTS else share

    def needed_seconds(self, length_a: float, length_b: float, protocol: str) -> float:
        """Return the fewest seconds in which what has to be heard of both sides can be heard."""
        seconds = self.asked_seconds(length_a, protocol) + self.asked_seconds(length_b, protocol)
        return seconds / self.fastest_playback
