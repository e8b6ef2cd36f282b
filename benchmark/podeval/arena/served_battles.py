"""The battles that a voter was served: what they see of each, how many may be open, and which come up again.

A voter sees two sides, what was asked, and nothing that tells which systems meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, exists, func, select
from sqlalchemy.orm import Session

from podeval.arena import refusal
from podeval.arena.audio_tokens import AudioTokens, compute_played_seconds
from podeval.arena.matchmaking import read_spans, time_open
from podeval.arena.refusal import ArenaRefused
from podeval.arena.settings import ArenaSettings
from podeval.store.tables import ArenaItem, Battle, Erasure, Vote
from podeval.texts import write_sentence


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
        token: the token that a vote on it must bear.
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


# Statements that every battle asks are made once: making one takes longer than asking it.
_IS_OPEN = (Battle.voter == bindparam("voter"), Battle.expires_at > bindparam("now"), Vote.number.is_(None))
_STANDING_OF_VOTER = select(
    exists().where(Erasure.pseudonym == bindparam("voter")).label("erased"),
    # What was served by a clock that was ahead was not served in this hour.
    select(func.count())
    .where(Battle.voter == bindparam("voter"), Battle.served_at.between(bindparam("since"), bindparam("now")))
    .scalar_subquery()
    .label("this_hour"),
    exists()
    .where(
        Battle.voter == bindparam("voter"),
        Battle.low == bindparam("low"),
        Battle.high == bindparam("high"),
        Battle.item == bindparam("item"),
        Battle.purpose == bindparam("purpose"),
    )
    .label("served_before"),
    select(func.count())
    .select_from(Battle)
    .outerjoin(Vote, Vote.battle == Battle.id)
    .where(*_IS_OPEN)
    .scalar_subquery()
    .label("unjudged"),
)
"""Whether a voter was erased, how many battles they had this hour, whether they were given this one already, and how
many wait for their judgement."""

_UNJUDGED_OF_VOTER = (
    select(Battle)
    .outerjoin(Vote, Vote.battle == Battle.id)
    .where(Battle.voter == bindparam("voter"), Battle.purpose == "rating", Vote.number.is_(None))
    .order_by(Battle.served_at)
)
_OPEN_OF_VOTER = select(Battle).outerjoin(Vote, Vote.battle == Battle.id).where(*_IS_OPEN).order_by(Battle.served_at)


def keep_battle(session: Session, battle: Battle, now: datetime, settings: ArenaSettings) -> bool:
    """Record a battle; False where the same voter was given the same one meanwhile.

    Not too many battles an hour; of too many open ones the oldest lapse.

    Raises:
        ArenaRefused: the voter was erased, or had too many battles this hour.
    """
    about = {"voter": battle.voter, "since": now - timedelta(hours=1), "now": now}
    same = {"low": battle.low, "high": battle.high, "item": battle.item, "purpose": battle.purpose}
    standing = session.execute(_STANDING_OF_VOTER, {**about, **same}).one()
    if standing.erased:
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("voter-forgotten"))
    if standing.this_hour >= settings.most_an_hour:
        raise ArenaRefused(refusal.TOO_MANY, write_sentence("too-much-listening"))
    if (too_many := standing.unjudged + 1 - settings.most_open) > 0:
        for lapsing in session.scalars(_OPEN_OF_VOTER, about).all()[:too_many]:
            lapsing.expires_at = now - timedelta(microseconds=1)
    if standing.served_before:
        return False
    session.add(battle)
    session.flush()
    return True


def find_unjudged(
    session: Session,
    voter: str,
    protocol: str | None,
    dimension: str | None,
    is_playable: Callable[[Session, Battle], bool],
) -> str | None:
    """Find the first battle that a voter opened and left, in another tab or on another day, and that can be played."""
    battles = session.scalars(_UNJUDGED_OF_VOTER, {"voter": voter})
    fitting = (each for each in battles if protocol in (None, each.protocol) and dimension in (None, each.dimension))
    playable = (each for each in fitting if is_playable(session, each))
    return next((battle.id for battle in playable), None)


def reopen_battle(session: Session, id: str, now: datetime, settings: ArenaSettings) -> Battle:
    """Return a battle, opened again where it lapsed."""
    battle = session.get_one(Battle, id)
    if battle.expires_at < now:
        battle.served_at, battle.expires_at = now, now + time_open(battle, settings)
    return battle
