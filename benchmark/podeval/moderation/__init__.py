"""What operators of a board decide about votes, listeners, submissions and the arena."""

from podeval.moderation.decisions import Moderation, Pool
from podeval.moderation.flagged import FlaggedSession, FlaggedVote, Signal

__all__ = ["FlaggedSession", "FlaggedVote", "Moderation", "Pool", "Signal"]
