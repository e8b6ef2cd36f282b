"""What a listener sees of a battle: two sides, what was asked, and nothing that tells which systems meet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from podeval.arena.audio_tokens import AudioTokens, whole_seconds
from podeval.arena.matchmaking import read_spans
from podeval.arena.settings import ArenaSettings
from podeval.store.tables import ArenaItem, ArenaOutput, Battle


@dataclass(frozen=True)
class BattleSide:
    """One side as a listener sees it: two opaque names of audio, and their lengths in seconds.

    Both lengths are whole seconds, as are the sounds behind the names: an exact length would identify the recording.
    """

    excerpt: str
    whole: str
    seconds: float
    whole_seconds: float


@dataclass(frozen=True)
class BattleView:
    """Everything that leaves the service about a battle: nothing in it reveals the systems."""

    token: str
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
    heard_share: float
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
    lengths = [session.get_one(ArenaOutput, output).seconds for output in (battle.output_a, battle.output_b)]
    a, b = (
        BattleSide(
            excerpt=sounds.name_side(battle.id, side, "excerpt"),
            whole=sounds.name_side(battle.id, side, "whole"),
            seconds=whole_seconds(end - begin),
            whole_seconds=whole_seconds(length),
        )
        for side, (begin, end), length in zip("ab", read_spans(battle), lengths, strict=True)
    )
    return BattleView(
        token=token,
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
        heard_share=settings.heard_share,
        comment_required=settings.comment_required,
        loudness=settings.loudness,
    )


def _show_turn(battle: Battle, number: int, turn: dict[str, Any], sounds: AudioTokens) -> dict[str, str]:
    here = turn.get("audio") and "://" not in turn["audio"]
    audio = sounds.name_turn(battle.id, number) if here else ""
    return {"text": str(turn.get("text") or ""), "audio": audio}
