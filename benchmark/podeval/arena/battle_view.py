"""What a listener sees of a battle: two sides, what was asked, and nothing that tells which systems meet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from podeval.arena.audio_tokens import AudioTokens, compute_played_seconds
from podeval.arena.matchmaking import read_spans
from podeval.arena.settings import ArenaSettings
from podeval.store.tables import ArenaItem, Battle


@dataclass(frozen=True)
class BattleSide:
    """One side as a listener sees it: an opaque name of audio, its length, and how much has to be heard, in seconds.

    The length is in whole seconds, as is the sound behind the name: an exact length would identify the recording.
    """

    audio: str
    seconds: float
    needed: float


@dataclass(frozen=True)
class BattleView:
    """Everything that leaves the service about a battle: nothing in it reveals the systems."""

    token: str
    protocol: str
    """`excerpts` or `whole`."""
    dimension: str
    capability: str
    title: str
    instructions: str
    language: str
    turns: list[Any]
    """What was asked: `{"text": …, "audio": …}`, audio by an opaque name, empty where there is none."""
    a: BattleSide
    b: BattleSide
    rule: str
    """How the excerpts were chosen."""
    served_at: datetime
    expires_at: datetime
    comment_required: bool
    loudness: float | None
    """LUFS to which both sides are brought; None where they are played as they are."""


def make_view(session: Session, battle: Battle, sounds: AudioTokens, token: str, settings: ArenaSettings) -> BattleView:
    """Return all that a listener learns of a battle.

    Args:
        session: reads what is played.
        battle: which.
        sounds: names audio opaquely.
        token: that the vote on it has to bear.
        settings: what an operator has set.
    """
    item = session.get_one(ArenaItem, battle.item)
    lengths = [end - begin for begin, end in read_spans(battle)]
    sides = []
    for side, length, other in zip("ab", lengths, reversed(lengths), strict=True):
        seconds = compute_played_seconds(length, other, battle.protocol)
        needed = settings.asked_seconds(seconds, battle.protocol)
        sides.append(BattleSide(sounds.name_side(battle.id, side, "excerpt"), seconds, needed))
    a, b = sides
    return BattleView(
        token=token,
        protocol=battle.protocol,
        dimension=battle.dimension,
        capability=battle.capability,
        title=item.title,
        instructions=item.instructions,
        language=item.language,
        turns=[_show_turn(battle, number, turn, sounds) for number, turn in enumerate(item.turns)],
        a=a,
        b=b,
        rule=str(battle.excerpt["rule"]),
        served_at=battle.served_at,
        expires_at=battle.expires_at,
        comment_required=settings.comment_required,
        loudness=settings.loudness,
    )


def _show_turn(battle: Battle, number: int, turn: dict[str, Any], sounds: AudioTokens) -> dict[str, str]:
    here = turn.get("audio") and "://" not in turn["audio"]
    audio = sounds.name_turn(battle.id, number) if here else ""
    return {"text": str(turn.get("text") or ""), "audio": audio}
