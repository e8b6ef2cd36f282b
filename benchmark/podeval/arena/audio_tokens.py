"""Make and resolve the signed names of a battle's sounds, which do not reveal the system."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from cachetools import TTLCache, cachedmethod
from sqlalchemy import Row, Select, bindparam, select
from sqlalchemy.orm import aliased

from podeval.arena import refusal
from podeval.arena.excerpt_choice import EXCERPTS
from podeval.arena.refusal import ArenaRefused
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import PLAYED_AFTER, ArenaItem, ArenaOutput, Battle
from podeval.texts import write_sentence

CACHED_SECONDS, CACHED = 30.0, 10_000
"""Seconds for which a lookup is cached, and the number of cached lookups."""

# The statement is made once: making one takes longer than asking it.
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
    """The location of the sound behind an opaque name; `end` is None for a sound that is played to its end."""

    path: str
    start: float
    end: float | None
    sha256: str = ""
    output: str = ""
    """Id of the output; empty for a user's turn."""
    compared: "tuple[Audio, Audio] | None" = None
    """For a side: its own excerpt and the other side's, whose loudness is compared."""
    seconds: float | None = None
    """Length as played, with the silence that hides its exact length; None where nothing has to be hidden."""
    is_excerpt: bool = False
    """Whether it is one of two excerpts, which are of equal length and size."""


class AudioTokens:
    """The maker and resolver of the opaque names of sounds; may be used by any number of threads.

    Args:
        database: database of the battles.
        secret: key for signing names.
        clock: returns the time in UTC.
    """

    def __init__(self, database: Database, secret: Secret, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: TTLCache[Any, Row[Any]] = TTLCache(CACHED, CACHED_SECONDS)
        """Rows of `_SOUNDS_OF_BATTLE` by battle."""

    def name_side(self, battle: str, side: str, extent: str) -> str:
        """Make the name of a side's sound.

        Args:
            battle: id.
            side: `a` or `b`.
            extent: `excerpt` or `whole`.
        """
        return self._secret.sign("audio", battle, side, extent)

    def name_turn(self, battle: str, number: int) -> str:
        """Make the name of the sound of a user's turn in a battle's item."""
        return self._secret.sign("audio", battle, str(number), "turn")

    def find(self, name: str) -> Audio:
        """Return the sound behind a name.

        Raises:
            ArenaRefused: the name is not of this arena, or its battle is long over.
        """
        parts = self._secret.verify("audio", name)
        if parts is None or len(parts) != 3:
            raise ArenaRefused(refusal.FORGED, write_sentence("not-a-name-of-audio"))
        battle, side, extent = parts
        row = self._read_row(battle)
        if self._clock() > row.expires_at + PLAYED_AFTER:
            raise ArenaRefused(refusal.EXPIRED, write_sentence("battle-over"))
        return self._find_turn(row.item, int(side)) if extent == "turn" else _find_side(row, side, extent)

    def forget(self) -> None:
        """Forget cached sounds, because something was changed."""
        with self._lock:
            self._rows.clear()

    @cachedmethod(attrgetter("_rows"), lock=attrgetter("_lock"))
    def _read_row(self, battle: str) -> Row[Any]:
        with self._database.reading(one_state=False) as session:
            row = session.execute(_SOUNDS_OF_BATTLE, {"battle": battle}).one_or_none()
        if row is None:
            raise ArenaRefused(refusal.UNKNOWN, write_sentence("battle-unknown"))
        return row

    def _find_turn(self, item: str, number: int) -> Audio:
        with self._database.reading() as session:
            return Audio(str(session.get_one(ArenaItem, item).turns[number]["audio"]), 0.0, None)


def _find_side(row: Row[Any], side: str, extent: str) -> Audio:
    if not (row.audio_a and row.audio_b):
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("battle-recording-taken-down"))
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


def compute_played_seconds(length: float, other: float, protocol: str) -> float:
    """Return how long a side is played, with the silence that hides its exact length.

    Two excerpts are equally long: how long one takes for the same words would identify it.
    """
    return round_up_seconds(max(length, other) if protocol == EXCERPTS else length)


def round_up_seconds(length: float) -> float:
    """Round a length up to whole seconds, at least one: the exact length of a recording would identify it."""
    # A hair above a whole second is one of rounding.
    return float(max(1, math.ceil(round(length, 3))))
