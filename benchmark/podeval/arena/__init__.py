"""The arena: two outputs, one listener, one vote; and what all votes imply.

`Arena` serves battles and records votes, `Settings` is what an operator can set, `Refused` why something was not taken.
"""

from podeval.arena.refusal import Refused
from podeval.arena.service import Arena, Audio, BattleView, Side
from podeval.arena.settings import Settings
from podeval.arena.voting import Acknowledgement, Ballot

__all__ = ["Acknowledgement", "Arena", "Audio", "Ballot", "BattleView", "Refused", "Settings", "Side"]
