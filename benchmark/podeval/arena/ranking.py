"""The public ranking of an arena, cached until the votes change: the data for its page, JSON and CSV."""

import json
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.kept_ranking import VoteReader, find_file, read_kept, write_kept
from podeval.arena.matchmaking import count_between
from podeval.arena.ratings import (
    POOLED,
    HeardRatings,
    Standings,
    compute_standings,
    compute_standings_by_dimension,
    rate_by_heard,
)
from podeval.arena.service import Arena
from podeval.arena.settings import PROTOCOLS
from podeval.arena.vote_review import Status, report_status
from podeval.arena.voting import may_tell
from podeval.errors import BadInput, PodevalError, StoreUnusable
from podeval.metrics.battle_log import BATTLES, JUDGES, read_judged_logs
from podeval.runs.board_tables import stamp
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import SystemRating, describe_missing, votes_needed
from podeval.store.tables import ArenaOutput, ArenaSystem, Battle, Erasure, Flag, Vote
from podeval.store.vote_counts import count_rated

_LOG = logging.getLogger("podeval.arena")

CSV_COLUMNS = (
    "protocol", "dimension", "system", "title", "kind", "rank_best", "rank_worst", "rating", "low", "high",
    "rating_by_strength", "elo", "battles", "wins", "losses", "ties", "both_bad", "provisional",
)  # fmt: skip

_OUTPUT_A, _OUTPUT_B, _A, _B = aliased(ArenaOutput), aliased(ArenaOutput), aliased(ArenaSystem), aliased(ArenaSystem)
_SYSTEMS_OF_VOTE = (
    select(Vote, Battle, _A.id, _A.title, _A.kind, _B.id, _B.title, _B.kind)
    .join(Battle, Vote.battle == Battle.id)
    .join(_OUTPUT_A, Battle.output_a == _OUTPUT_A.id)
    .join(_OUTPUT_B, Battle.output_b == _OUTPUT_B.id)
    .join(_A, _OUTPUT_A.system == _A.id)
    .join(_B, _OUTPUT_B.system == _B.id)
    .where(Vote.id == bindparam("vote"), Vote.voter == bindparam("voter"))
)


@dataclass(frozen=True)
class Known:
    """The public facts about a system: title, and kind (`system`, `human`, `control`)."""

    title: str
    kind: str


@dataclass(frozen=True)
class Ranking:
    """The standings by protocol and dimension, and the data on which they are based.

    A protocol without votes is left out; within a protocol, `pooled` comes first if there are several dimensions.
    Protocols are never pooled. Battles that a judge decided form a separate protocol, named after the judge's folder;
    each dialogue counts as a voter.
    """

    protocols: Mapping[str, Mapping[str, Standings]]
    systems: Mapping[str, Known]
    status: Status
    made_at: datetime
    newest: tuple[int, str]
    """The number of the newest vote in the ranking, and the id of its battle."""
    heard: tuple[HeardRatings, ...]
    """Ratings grouped by the amount heard, for each of `PROTOCOLS` that has votes."""

    @property
    def excluded_share(self) -> float:
        """Share of excluded votes among the votes that could count, 0 to 1."""
        people = [parts for protocol, parts in self.protocols.items() if protocol in PROTOCOLS]
        counted = sum(next(iter(parts.values())).ratings.votes for parts in people)
        return self.status.excluded / max(1, counted + self.status.excluded)

    @cached_property
    def encoded(self) -> bytes:
        """The `document` as JSON; with 300 systems, encoding it delays all requests by a quarter of a second, so it is
        encoded once.
        """
        return json.dumps(self.document(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def document(self) -> dict[str, Any]:
        """Return the ranking as plain data; rows and columns of matrices follow the order of `systems`."""
        return {
            "votes": self.status.votes,
            "voters": self.status.voters,
            "excluded": self.status.excluded,
            "excluded_share": self.excluded_share,
            "alarms": self.status.alarms,
            "made_at": self.made_at.isoformat(timespec="seconds"),
            "protocols": {
                protocol: {"dimensions": {name: self._plain(part) for name, part in parts.items()}}
                for protocol, parts in self.protocols.items()
            },
        }

    def table(self) -> pd.DataFrame:
        """Return a table with `CSV_COLUMNS` and one row for each system, dimension and protocol."""
        rows = [
            {
                "protocol": protocol,
                "dimension": name,
                "title": self.systems[row.system].title,
                "kind": self.systems[row.system].kind,
                "rank_best": row.best,
                "rank_worst": row.worst,
                "elo": part.elo[row.system].rating,
                "rating_by_strength": part.by_strength.get(row.system).rating if part.by_strength else None,
                **asdict(row),
                "provisional": describe_missing(row.provisional) if row.provisional else "",
            }
            for protocol, parts in self.protocols.items()
            for name, part in parts.items()
            for row in part.ratings.systems
        ]
        table = pd.DataFrame(rows, columns=list(CSV_COLUMNS))
        return table.astype({"rank_best": "Int64", "rank_worst": "Int64"})

    def _plain(self, part: Standings) -> dict[str, Any]:
        order = [row.system for row in part.ratings.systems]
        positions = [part.tally.systems.index(system) for system in order]
        return {
            "votes": part.ratings.votes,
            "voters": part.ratings.voters,
            "coverage": part.coverage,
            "islands": part.ratings.islands,
            "lowered": [asdict(cohort) for cohort in part.ratings.lowered],
            "systems": [{**asdict(self.systems[row.system]), **asdict(row)} for row in part.ratings.systems],
            "wins": part.tally.wins[positions][:, positions].tolist(),
            "battles": part.tally.battles[positions][:, positions].tolist(),
            "undecided": [asdict(pair) for pair in part.undecided],
            "by_strength": [asdict(row) for row in part.by_strength.systems] if part.by_strength else None,
        }


@dataclass(frozen=True)
class Revealed:
    """The system on one side of a judged battle: its title, and its rating on the battle's dimension, if the system has
    been rated.

    `audio` is the opaque name of the played sound; `whole` is the opaque name of the whole recording, or empty if both
    names are the same.
    """

    system: str
    title: str
    kind: str
    rating: SystemRating | None
    item: str
    audio: str
    whole: str


@dataclass(frozen=True)
class RevealedBattle:
    """The two systems of a judged battle, and the result of the votes on them.

    `between` counts the votes on this pair for `a`, for `b` and for neither, including this vote; None if this vote
    does not count. `apart` says whether the votes separate the two systems; `votes_needed` is the number of additional
    votes that would separate the systems, or None if unknown.
    """

    a: Revealed
    b: Revealed
    protocol: str
    dimension: str
    outcome: str
    between: tuple[int, int, int] | None
    apart: bool
    votes_needed: int | None


class Rankings:
    """Provides the ranking of an arena, and recomputes it when the counted votes change; thread-safe.

    The ranking is computed in the background, and readers get the previous ranking in the meantime; after a restart,
    the previous ranking is read from disk. If rating is quick, the first reader waits for the new ranking instead.

    Args:
        arena: the arena whose votes are ranked.
        share: maximum share of the time that may be spent on computing ratings; after the first ranking, ten times as
            much.
        runs: folder of runs whose judges' battles are also ranked; None to rank only human votes.
        quick: readers wait for the new ranking if computing it takes at most this many seconds; slower rankings are
            saved to disk.
    """

    def __init__(self, arena: Arena, share: float = 0.01, runs: Path | None = None, quick: float = 0.2) -> None:
        self._arena, self._runs = arena, runs
        self._share = share
        self._quick = quick
        self._reader = VoteReader(find_file(arena.database.name).with_suffix(".votes.npz"))
        self._lock = threading.Lock()
        self._state: tuple[object, ...] | None = None
        self._ranking: Ranking | None = None
        self._renewing: threading.Thread | None = None
        self._error: Exception | None = None
        self._cost = 0.0
        self._until = 0.0

    def current(self) -> Ranking:
        """Return the ranking from all counted votes, or a slightly older ranking if rating takes a long time.

        Raises:
            PodevalError: no ranking exists yet, and none could be computed.
        """
        ranking = self._look(None)
        if ranking is None:
            raise self._error or StoreUnusable("the ratings could not be computed; try again")
        return ranking

    def _look(self, patience: float | None) -> Ranking | None:
        """Return the newest ranking; if none exists yet, wait for `patience` seconds, or without limit if None."""
        with self._lock:
            if self._ranking is None and self._renewing is None and (kept := self._read_kept()) is not None:
                self._ranking, self._cost = kept, math.inf
            mine = time.monotonic() > self._until and self._renewing is None
            if mine:
                self._renewing = threading.Thread(target=self._renew, daemon=True)
                self._renewing.start()
            renewing, ranking, quick = self._renewing, self._ranking, self._cost <= self._quick
        if renewing is not None and (ranking is None or (mine and quick)):
            renewing.join(patience)
        return self._ranking

    def _read_kept(self) -> Ranking | None:
        """Return the ranking on disk if its votes are in this database."""
        ranking = read_kept(find_file(self._arena.database.name), Ranking)
        if ranking is None:
            return None
        number, battle = ranking.newest
        with self._arena.database.reading(one_state=False) as session:
            return ranking if session.scalar(select(Vote.battle).where(Vote.number == number)) == battle else None

    def reveal(self, voter: str, vote: str) -> RevealedBattle | None:
        """Return the two systems of a battle that this voter judged; None if the voter may not see them.

        Args:
            voter: a pseudonym.
            vote: the vote's id.
        """
        with self._arena.database.reading(one_state=False) as session:
            judged = session.execute(_SYSTEMS_OF_VOTE, {"vote": vote, "voter": voter}).one_or_none()
            if judged is None or not may_tell(session, *judged[:2], self._arena.settings):
                return None
            vote_row, battle, *sides = judged
            counts = vote_row.standing == "counted" and vote_row.outcome != "skip" and battle.purpose == "rating"
            between = count_between(session, battle, sides[0]) if counts else None
        # A voter does not wait for the first ranking if there are many votes.
        ranking = self._look(self._quick)
        part = ranking.protocols.get(battle.protocol, {}).get(battle.dimension) if ranking is not None else None
        rated = {row.system: row for row in part.ratings.systems} if part else {}
        a, b = (
            self._reveal_side(battle, side, system, Known(title, kind), rated.get(system))
            for side, (system, title, kind) in (("a", sides[:3]), ("b", sides[3:]))
        )
        both_rated = part is not None and a.rating is not None and b.rating is not None
        needed = votes_needed(part.ratings, a.system, b.system) if part is not None and both_rated else None
        return RevealedBattle(a, b, battle.protocol, battle.dimension, vote_row.outcome, between, needed == 0, needed)

    def _reveal_side(
        self, battle: Battle, side: str, system: str, known: Known, rating: SystemRating | None
    ) -> Revealed:
        audio = self._arena.sounds.name(battle.id, side, "excerpt")
        whole = self._arena.sounds.name(battle.id, side, "whole") if battle.excerpt.get("rule") != "whole" else ""
        return Revealed(system, known.title, known.kind, rating, battle.item, audio, whole)

    def _renew(self) -> None:
        began, first = time.monotonic(), self._state is None
        try:
            with self._arena.database.reading() as session:
                state = self._count(session)
                if state != self._state:
                    ranking = self._make(session)
                    self._ranking, self._state, self._error = ranking, state, None
                    self._arena.rated_at = ranking.made_at
                    self._cost = time.monotonic() - began
                    self._reader.keep(session)
                    if self._cost > self._quick:
                        write_kept(find_file(self._arena.database.name), ranking)
        except (PodevalError, OSError) as error:
            _LOG.warning("the ranking could not be computed or saved: %s", error)
            self._error = error
        finally:
            # The first ranking also loads libraries and reads all votes, so it takes longer than the next ones.
            share = 10 * self._share if first else self._share
            self._until = time.monotonic() + (time.monotonic() - began) / share
            self._renewing = None

    def _count(self, session: Session) -> tuple[object, ...]:
        """Return a key that changes if a vote is added or removed, or a vote's standing or a system's title changes."""
        decided, erased = select(func.max(Flag.number)), select(func.count()).select_from(Erasure)
        systems = select(ArenaSystem.id, ArenaSystem.title, ArenaSystem.kind).order_by(ArenaSystem.id)
        logs = sorted(self._runs.glob(f"{JUDGES}/*/{BATTLES}")) if self._runs else []
        return (
            *(session.scalar(query) for query in (select(func.max(Vote.number)), decided, erased)),
            count_rated(session),
            *session.execute(systems).all(),
            *((log, stamp(log)) for log in logs),
        )

    def _make(self, session: Session) -> Ranking:
        newest = session.execute(select(Vote.number, Vote.battle).order_by(Vote.number.desc()).limit(1)).one_or_none()
        status, votes = report_status(session, self._arena.settings), self._reader.read(session)
        protocols = {name: rate_dimensions(part.battles, part.dimensions) for name, part in votes.items()}
        heard = tuple(
            rate_by_heard(name, part, next(iter(protocols[name].values())).ratings) for name, part in votes.items()
        )
        try:
            protocols |= rate_judges(self._runs) if self._runs else {}
        except BadInput as refusal:
            status = replace(status, alarms=[*status.alarms, str(refusal).replace(str(self._runs), "")])
        rated = (row.system for parts in protocols.values() for part in parts.values() for row in part.ratings.systems)
        systems = {name: Known(name, "system") for name in rated}
        systems |= {row.id: Known(row.title, row.kind) for row in session.scalars(select(ArenaSystem))}
        basis = (newest[0], newest[1]) if newest else (0, "")
        return Ranking(protocols, systems, status, datetime.now(UTC), basis, heard)


def rate_dimensions(battles: Battles, dimensions: Sequence[str]) -> dict[str, Standings]:
    """Rate the systems by the votes of one protocol: by dimension, and pooled if there are several dimensions.

    Args:
        battles: the votes; must not be empty.
        dimensions: the dimension of each vote.
    """
    is_one = len(set(dimensions)) == 1
    return (
        {dimensions[0]: compute_standings(battles)} if is_one else compute_standings_by_dimension(battles, dimensions)
    )


def rate_judges(runs: Path) -> dict[str, dict[str, Standings]]:
    """Rate the systems by the battles of each judge in a folder of runs, as `rate_dimensions` does for votes.

    A judge is named after its folder, with a number added if its battles were held under several protocols. Here,
    groups of votes are not down-weighted, because each voter is a dialogue, and dialogues cannot collude.

    Raises:
        BadInput: a file does not contain judged battles.
    """
    rated: dict[str, dict[str, Standings]] = {}
    for log in read_judged_logs(runs):
        parts, trial = log.read_by_dimension(), " (trial model)" if log.is_trial else ""
        name = f"judge {log.file.parent.name}{trial}"
        parts = {dimension or POOLED: part for dimension, part in parts.items() if dimension or len(parts) != 2}
        rated[f"{name} {len(rated) + 1}" if name in rated else name] = {
            dimension: compute_standings(part, robust=False) for dimension, part in parts.items()
        }
    return rated
