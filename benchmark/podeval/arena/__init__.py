"""The arena: listeners compare two outputs without knowing which systems produced them, and ratings are computed from
their votes.

`Arena` serves battles and records votes, `ArenaSettings` contains the operator's settings, and `ArenaRefused` states
why a request was refused.
"""

from podeval.arena.refusal import ArenaRefused
from podeval.arena.served_battles import Audio, BattleSide, BattleView
from podeval.arena.service import Arena
from podeval.arena.settings import ArenaSettings
from podeval.arena.voting import Acknowledgement, Ballot

__all__ = [
    "Acknowledgement",
    "Arena",
    "ArenaRefused",
    "ArenaSettings",
    "Audio",
    "Ballot",
    "BattleSide",
    "BattleView",
    "battle_audio",
    "import_votes",
    "judged_battles",
    "manifest",
    "moderation",
    "public_log",
    "ranking",
    "ratings",
    "refusal",
    "service",
    "settings",
    "vote_objects",
    "vote_records",
    "voter_stats",
]
