"""The settings of an arena: its protocols, the questions to voters, and the thresholds of the integrity rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast, get_args

from podeval.arena.pairing import Rule
from podeval.errors import BadInput

EXCERPTS, WHOLE = "excerpts", "whole"
PROTOCOLS = (EXCERPTS, WHOLE)
"""The protocols of comparison, in the order in which they are offered to voters without a preference."""


@dataclass(frozen=True)
class IntegrityLimits:
    """The thresholds of the integrity rules."""

    exclude_at: float = 3.0
    alarm_share: float = 0.2
    """Share of excluded votes, among all votes or among those of the last day, above which an alarm is raised."""
    alarm_votes: int = 20
    """Minimum number of votes for an alarm."""
    fastest_seconds: float = 2.0
    heard_share: float = 0.5
    side_votes: int = 20
    """Minimum number of decided battles needed to examine a preference for one side."""
    side_share: float = 0.85
    side_chance: float = 1e-5
    undecided_share: float = 0.95
    gold_error: float = 0.2
    """Share of known answers that even an attentive listener may contradict."""
    gold_chance: float = 0.005
    comment_votes: int = 4
    """Number of votes with the same comment at which the comment is considered copied."""
    comment_letters: int = 12
    """Minimum number of letters in a copied comment, because short comments ("A is better") are common; a Chinese
    character counts as three letters, and comments shared by voters must be three times as long."""
    origin_voters: int = 4
    """Maximum number of voters from one origin within a day."""
    partisan_battles: int = 8
    partisan_z: float = 4.0
    """A voter is flagged if the voter's results for one system exceed the expected results by this many standard
    deviations.
    """
    ally_battles: int = 4
    ally_z: float = 2.5
    ally_chance: float = 1e-5
    """Voters who favour a system unusually often are flagged if the probability that chance produces so many of them is
    below this value."""
    burst_seconds: float = 3600.0
    burst_votes: int = 15
    burst_z: float = 4.5
    newcomer_votes: int = 10
    """Maximum number of votes for a voter to be considered a newcomer."""


PAIRING, REASON = "PODEVAL_ARENA_PAIRING", "PODEVAL_ARENA_REASON"
"""Environment variables of a site: the pairing rule, and whether a vote needs a reason."""


@dataclass(frozen=True)
class ArenaSettings:
    """The settings for battles and votes."""

    pairing: Rule = "closest"
    """The rule that pairs systems."""
    excerpt_seconds: float = 30.0
    """Maximum length of an excerpt in seconds; for a long recording, the minimum is two thirds of this length."""
    vote_within: float = 3600.0
    """Number of seconds after which a battle expires."""
    heard_share: float = 0.9
    """Share of each whole recording that must be heard before judging; a battle can be skipped at any time."""
    heard_seconds: float = 10.0
    """Number of seconds of each excerpt that must be heard; if `heard_share` of the excerpt is less, that share is
    required instead.
    """
    fastest_playback: float = 2.0
    """Fastest allowed playback rate; a vote that arrives sooner than listening at this rate allows is refused."""
    comment_required: bool = False
    gold_share: float = 0.05
    """Share of a voter's battles that repeat an earlier battle."""
    gold_after: int = 10
    """Number of votes that a voter must cast before the first repeated battle."""
    most_open: int = 5
    """Maximum number of open battles per voter; if one more is served, the oldest expires."""
    most_an_hour: int = 120
    """Maximum number of battles per voter per hour."""
    loudness: float | None = -18.0
    """Loudness of both excerpts in LUFS (-18: speech, AES TD1008), or less if either would clip; None leaves both
    unchanged, as needed in an arena about loudness itself.
    """
    limits: IntegrityLimits = field(default_factory=IntegrityLimits)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "ArenaSettings":
        """Read a site's settings: the pairing rule (`closest` or `mtalk`), and whether reasons are `required` or
        `optional`.

        Raises:
            BadInput: a setting has any other value.
        """
        pairing, reason = environment.get(PAIRING) or "closest", environment.get(REASON) or "optional"
        if pairing not in get_args(Rule):
            raise BadInput(f"{PAIRING} must be {' or '.join(get_args(Rule))}, not {pairing!r}")
        if reason not in ("required", "optional"):
            raise BadInput(f"{REASON} must be required or optional, not {reason!r}")
        return cls(pairing=cast(Rule, pairing), comment_required=reason == "required")

    def asked_seconds(self, length: float, protocol: str) -> float:
        """Return how many seconds of a side must be heard.

        Args:
            length: length of the side as played, in seconds.
            protocol: `excerpts` or `whole`.
        """
        share = self.heard_share * length
        return min(self.heard_seconds, share) if protocol == EXCERPTS else share

    def needed_seconds(self, length_a: float, length_b: float, protocol: str) -> float:
        """Return the minimum time in seconds needed to hear the required parts of both sides."""
        return (self.asked_seconds(length_a, protocol) + self.asked_seconds(length_b, protocol)) / self.fastest_playback
