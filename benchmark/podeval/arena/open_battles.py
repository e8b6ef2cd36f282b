"""The battles that a voter was served and has not judged: how many there may be, and which come up again."""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import bindparam, exists, func, select
from sqlalchemy.orm import Session

from podeval.arena import refusal
from podeval.arena.matchmaking import time_open
from podeval.arena.refusal import ArenaRefused
from podeval.arena.settings import ArenaSettings
from podeval.store.tables import Battle, Erasure, Vote

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
        raise ArenaRefused(refusal.UNKNOWN, "this voter asked to be forgotten; come back as a new one")
    if standing.this_hour >= settings.most_an_hour:
        raise ArenaRefused(
            refusal.TOO_MANY, "you have reached the hourly limit; please take a break and come back later"
        )
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
