"""Serve battles to a voter: the view of a battle, the limit on open battles, and battles that are shown again.

A voter sees the two sides and the question, but nothing that reveals the systems.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from cachetools import TTLCache, cachedmethod
from sqlalchemy import Row, Select, Table, bindparam, exists, func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import compute_played_seconds, read_spans, round_up_seconds, time_open
from podeval.arena.refusal import EXPIRED, FORGED, TOO_MANY, UNKNOWN, ArenaRefused
from podeval.arena.settings import EXCERPTS, ArenaSettings
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import PLAYED_AFTER, ArenaItem, ArenaOutput, Battle, Erasure, Vote
from podeval.store.vote_counts import count_battles
from podeval.texts import write_sentence

CACHED_SECONDS, CACHED = 30.0, 10_000
"""Seconds for which a lookup is cached, and the number of cached lookups."""

_BATTLES: Table = Battle.metadata.tables["battles"]
_ADD_FETCHED = (
    _BATTLES.update()
    .where(_BATTLES.c.id == bindparam("battle"))
    .values(fetched_a=_BATTLES.c.fetched_a + bindparam("a"), fetched_b=_BATTLES.c.fetched_b + bindparam("b"))
)

# The statement is built once, because building it takes longer than executing it.
_A, _B = aliased(ArenaOutput), aliased(ArenaOutput)
_SOUNDS_OF_BATTLE: Select[Any] = (
    select(Battle.item, Battle.excerpt, Battle.protocol, Battle.expires_at)
    .add_columns(_A.audio.label("audio_a"), _A.sha256.label("sha256_a"), _A.seconds.label("seconds_a"))
    .add_columns(Battle.output_a, Battle.output_b)
    .add_columns(_B.audio.label("audio_b"), _B.sha256.label("sha256_b"), _B.seconds.label("seconds_b"))
    .join(_A, Battle.output_a == _A.id)
    .join(_B, Battle.output_b == _B.id)
    .where(Battle.id == bindparam("battle"))
)


@dataclass(frozen=True)
class Audio:
    """The sound with a given opaque name; `end` is None if the sound is played to its end."""

    path: str
    start: float
    end: float | None
    sha256: str = ""
    output: str = ""
    """Id of the output; empty for a user's turn."""
    compared: "tuple[Audio, Audio] | None" = None
    """The excerpts of this side and of the other side, whose loudness is compared."""
    seconds: float | None = None
    """Length as played, including the silence that hides the exact length; None if the length need not be hidden."""
    is_excerpt: bool = False
    """Whether the sound is one of two excerpts that must have the same length and file size."""


class AudioTokens:
    """Makes and resolves the opaque names of sounds; thread-safe.

    Args:
        database: database of the battles.
        secret: key for signing names.
        clock: function that returns the current time in UTC.
    """

    def __init__(self, database: Database, secret: Secret, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: TTLCache[Any, Row[Any]] = TTLCache(CACHED, CACHED_SECONDS)
        """Cached rows of `_SOUNDS_OF_BATTLE`, by battle."""
        self._fetched: dict[str, list[float]] = {}
        """Shares of both sides, by battle, that were sent but are not saved yet."""

    def name(self, battle: str, part: str, extent: str) -> str:
        """Make the opaque name of a sound, for a person who is allowed to hear the sound.

        Args:
            battle: id of the battle.
            part: `a` or `b`, or the number of a user's turn in the battle's item.
            extent: `excerpt` or `whole` for a side, or `turn`.
        """
        return self._secret.sign("audio", battle, part, extent)

    def find(self, name: str) -> Audio:
        """Return the sound for a name.

        Raises:
            ArenaRefused: the name does not belong to this arena, or its battle ended long ago.
        """
        parts = self._secret.verify("audio", name)
        if parts is None or len(parts) != 3:
            raise ArenaRefused(FORGED, write_sentence("not-a-name-of-audio"))
        battle, side, extent = parts
        row = self._read_row(battle)
        if self._clock() > row.expires_at + PLAYED_AFTER:
            raise ArenaRefused(EXPIRED, write_sentence("battle-over"))
        if extent != "turn":
            return _find_side(row, side, extent)
        with self._database.reading() as session:
            return Audio(str(session.get_one(ArenaItem, row.item).turns[int(side)]["audio"]), 0.0, None)

    def count_fetched(self, name: str, share: float) -> None:
        """Count the bytes sent if the sound must be heard before a vote; ignore other sounds.

        Args:
            name: the opaque name under which the sound was fetched.
            share: the bytes sent, as a share of the file.
        """
        battle, side, extent = self._secret.verify("audio", name) or ("", "", "")
        if extent == "excerpt":
            with self._lock:
                self._fetched.setdefault(battle, [0.0, 0.0])["ab".index(side)] += share

    def read_unkept(self, battle: str) -> tuple[float, float]:
        """Return the shares of both sides that this process has counted but not yet saved with the battle."""
        with self._lock:
            a, b = self._fetched.get(battle, (0.0, 0.0))
        return a, b

    def keep_fetched(self) -> None:
        """Save all counts with their battles, where any process can read them; one thread may call this at a time."""
        with self._lock:
            counted = {battle: (a, b) for battle, (a, b) in self._fetched.items()}
        rows = [{"battle": battle, "a": a, "b": b} for battle, (a, b) in counted.items()]
        if not rows:
            return
        self._database.write(lambda session: session.connection().execute(_ADD_FETCHED, rows), about="fetched")
        # Counts are removed only now, so the check of a vote in the meantime uses a share that is too large rather than
        # too small.
        with self._lock:
            for battle, (kept_a, kept_b) in counted.items():
                a, b = self._fetched.pop(battle)
                if a > kept_a or b > kept_b:
                    self._fetched[battle] = [a - kept_a, b - kept_b]

    def forget(self) -> None:
        """Drop the cached sounds after a change."""
        with self._lock:
            self._rows.clear()

    @cachedmethod(attrgetter("_rows"), lock=attrgetter("_lock"))
    def _read_row(self, battle: str) -> Row[Any]:
        with self._database.reading(one_state=False) as session:
            row = session.execute(_SOUNDS_OF_BATTLE, {"battle": battle}).one_or_none()
        if row is None:
            raise ArenaRefused(UNKNOWN, write_sentence("battle-unknown"))
        return row


def _find_side(row: Row[Any], side: str, extent: str) -> Audio:
    if not (row.audio_a and row.audio_b):
        raise ArenaRefused(UNKNOWN, write_sentence("battle-recording-taken-down"))
    (start_a, end_a), (start_b, end_b) = row.excerpt["a"], row.excerpt["b"]
    first = Audio(row.audio_a, float(start_a), float(end_a), row.sha256_a, row.output_a)
    second = Audio(row.audio_b, float(start_b), float(end_b), row.sha256_b, row.output_b)
    this_side, other = (first, second) if side == "a" else (second, first)
    if extent == "excerpt":
        start, end = this_side.start, float(this_side.end or 0.0)
        lengths = [float(one.end or 0.0) - one.start for one in (this_side, other)]
        seconds = compute_played_seconds(lengths[0], lengths[1], row.protocol)
    else:
        start, end = 0.0, float(row.seconds_a if side == "a" else row.seconds_b)
        seconds = round_up_seconds(end)
    return Audio(
        this_side.path,
        start,
        end,
        this_side.sha256,
        this_side.output,
        compared=(this_side, other),
        seconds=seconds,
        is_excerpt=extent == "excerpt" and row.protocol == EXCERPTS,
    )


@dataclass(frozen=True)
class BattleSide:
    """One side as a listener sees it: the opaque name of its audio, and its length and the length of the part that must
    be heard, in seconds.

    The length stated here and the length of the sound itself are rounded to whole seconds, because an exact length
    would identify the recording.
    """

    audio: str
    seconds: float
    needed: float


@dataclass(frozen=True)
class BattleView:
    """Everything that the service publishes about a battle; the view does not reveal the systems."""

    token: str
    protocol: str
    """`excerpts` or `whole`."""
    dimension: str
    capability: str
    title: str
    instructions: str
    language: str
    turns: list[Any]
    """The user's turns: `{"text": …, "audio": …}`; `audio` is an opaque name, or empty if there is no audio."""
    a: BattleSide
    b: BattleSide
    rule: str
    """Rule that chose the excerpts."""
    served_at: datetime
    expires_at: datetime
    comment_required: bool
    loudness: float | None
    """Loudness of both sides in LUFS; None if they are played unchanged."""


def make_view(session: Session, battle: Battle, sounds: AudioTokens, token: str, settings: ArenaSettings) -> BattleView:
    """Return everything that a listener sees of a battle.

    Args:
        session: a session that reads the item.
        battle: the battle to show.
        sounds: the object that makes the opaque names.
        token: the token that a vote on the battle must contain.
        settings: the settings of the arena.
    """
    item = session.get_one(ArenaItem, battle.item)
    lengths = [end - begin for begin, end in read_spans(battle)]
    sides = []
    for side, length, other in zip("ab", lengths, reversed(lengths), strict=True):
        seconds = compute_played_seconds(length, other, battle.protocol)
        needed = settings.asked_seconds(seconds, battle.protocol)
        sides.append(BattleSide(sounds.name(battle.id, side, "excerpt"), seconds, needed))
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
    audio = sounds.name(battle.id, str(number), "turn") if here else ""
    return {"text": str(turn.get("text") or ""), "audio": audio}


# Statements that every battle needs are built once, because building a statement takes longer than executing it.
_IS_OPEN = (Battle.voter == bindparam("voter"), Battle.expires_at > bindparam("now"), Vote.number.is_(None))
_STANDING_OF_VOTER = select(
    exists().where(Erasure.pseudonym == bindparam("voter")).label("erased"),
    # Battles served while the clock was ahead do not count towards this hour.
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
"""Query for whether a voter was erased, how many battles the voter was served in the last hour, whether one of them was
this battle, and how many are open.
"""

_UNJUDGED_OF_VOTER = (
    select(Battle)
    .outerjoin(Vote, Vote.battle == Battle.id)
    .where(Battle.voter == bindparam("voter"), Battle.purpose == "rating", Vote.number.is_(None))
    .order_by(Battle.served_at)
)
_OPEN_OF_VOTER = select(Battle).outerjoin(Vote, Vote.battle == Battle.id).where(*_IS_OPEN).order_by(Battle.served_at)


def keep_battle(session: Session, battle: Battle, now: datetime, settings: ArenaSettings) -> bool:
    """Record a battle; return False if the voter has been served the same battle in the meantime.

    The number of battles per hour is limited; if too many battles are open, the oldest battles expire.

    Raises:
        ArenaRefused: the voter was erased, or was served too many battles in the last hour.
    """
    about = {"voter": battle.voter, "since": now - timedelta(hours=1), "now": now}
    same = {"low": battle.low, "high": battle.high, "item": battle.item, "purpose": battle.purpose}
    standing = session.execute(_STANDING_OF_VOTER, {**about, **same}).one()
    if standing.erased:
        raise ArenaRefused(UNKNOWN, write_sentence("voter-forgotten"))
    if standing.this_hour >= settings.most_an_hour:
        raise ArenaRefused(TOO_MANY, write_sentence("too-much-listening"))
    if (too_many := standing.unjudged + 1 - settings.most_open) > 0:
        for lapsing in session.scalars(_OPEN_OF_VOTER, about).all()[:too_many]:
            lapsing.expires_at = now - timedelta(microseconds=1)
    if standing.served_before:
        return False
    session.add(battle)
    session.flush()
    count_battles(session, [battle])
    return True


def find_unjudged(
    session: Session,
    voter: str,
    protocol: str | None,
    dimension: str | None,
    is_playable: Callable[[Session, Battle], bool],
) -> str | None:
    """Find the first playable battle that a voter left without a vote, for example in another tab or on another day."""
    battles = session.scalars(_UNJUDGED_OF_VOTER, {"voter": voter})
    fitting = (each for each in battles if protocol in (None, each.protocol) and dimension in (None, each.dimension))
    playable = (each for each in fitting if is_playable(session, each))
    return next((battle.id for battle in playable), None)


def reopen_battle(session: Session, id: str, now: datetime, settings: ArenaSettings) -> Battle:
    """Return a battle, reopening it if it has expired."""
    battle = session.get_one(Battle, id)
    if battle.expires_at < now:
        battle.served_at, battle.expires_at = now, now + time_open(battle, settings)
    return battle
