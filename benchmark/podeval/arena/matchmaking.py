"""Choose the next battle for a voter from past battles and votes, by the rules of `arena.pairing`."""

import logging
import random
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import RecordingLength, choose, choose_whole, list_protocols, time_open
from podeval.arena.pairing import (
    Deal,
    MetBefore,
    Pair,
    PairingField,
    PairingPool,
    choose_next_meeting,
    pick_dimension,
)
from podeval.arena.refusal import NOTHING_LEFT, NOTHING_YET, ArenaRefused
from podeval.arena.settings import EXCERPTS, PROTOCOLS, ArenaSettings
from podeval.errors import PodevalError
from podeval.stats.battles import rate_quickly
from podeval.stats.bradley_terry import NEEDED
from podeval.store.database import Database
from podeval.store.operator_settings import read_closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote
from podeval.store.vote_counts import ITEM_COUNTS, PAIR_COUNTS, SYSTEM_COUNTS
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.arena")

_SEED_BITS = 53
"""Number of bits in a battle's seed, small enough for JSON to represent every seed exactly."""

_FRESH_SECONDS = 30.0
"""Number of seconds for which ratings and counts are used before they are computed again."""

_GOLD_APART = 5
"""Minimum number of votes between a battle and its repetition."""


_MET_BY_VOTER = select(Battle.low, Battle.high, Battle.item).where(
    Battle.voter == bindparam("voter"), Battle.purpose == "rating"
)
"""The query for a voter's meetings, which the database answers from an index without reading any battle rows."""
_JUDGED_BY_VOTER = (
    select(Battle.protocol, Battle.dimension, Battle.low, Battle.high)
    .join(Vote, Vote.battle == Battle.id)
    .where(Battle.voter == bindparam("voter"), Battle.purpose == "rating", Vote.outcome != "skip")
)
_A, _B = aliased(ArenaOutput), aliased(ArenaOutput)
_OUTPUTS_OF_MEETING = (
    select(ArenaItem, _A, _B)
    .join(_A, _A.item == ArenaItem.id)
    .join(_B, _B.item == ArenaItem.id)
    .where(ArenaItem.id == bindparam("item"), _A.system == bindparam("a"), _B.system == bindparam("b"))
)


_COUNTS_OF_ITEMS = select(ITEM_COUNTS.c.item, ITEM_COUNTS.c.served).where(
    *(ITEM_COUNTS.c[name] == bindparam(name) for name in ("protocol", "dimension", "low", "high"))
)

_Kind = tuple[str, str]
"""A protocol and a dimension; votes of the same kind are rated together."""


@dataclass
class _Snapshot:
    """The data that all voters share, cached for a limited time."""

    made_at: float = -1e9
    cost: float = 0.0
    fields: dict[_Kind, PairingField] = field(default_factory=dict)

    def shows(self, battle: Battle) -> bool:
        """Return whether this battle could be created now: its dimension is open, and its outputs are in the pool."""
        compared = self.fields.get(_kind(battle))
        return compared is not None and {battle.low, battle.high} <= compared.pool.items.get(battle.item, frozenset())

    def clearness(self, battle: Battle) -> float:
        """Return the absolute difference between the ratings of the two systems in a battle."""
        ratings = self.fields[_kind(battle)].ratings
        return abs(ratings.get(battle.low, 0.0) - ratings.get(battle.high, 0.0))


class Matchmaker:
    """Creates battles; a background task refreshes the data shared by all voters at most every 30 seconds.

    Args:
        database: the database of the arena.
        settings: settings of the arena.
    """

    def __init__(self, database: Database, settings: ArenaSettings) -> None:
        self._database = database
        self._settings = settings
        self._snapshot = _Snapshot()
        self._lock = threading.Lock()
        self._renewing = False

    def new_battle(
        self,
        session: Session,
        voter: str,
        now: datetime,
        *,
        protocol: str | None = None,
        dimension: str | None = None,
        seed: int | None = None,
    ) -> Battle:
        """Create a battle for a voter, without recording it.

        Args:
            session: a session that reads battles and votes.
            voter: a pseudonym.
            now: the time.
            protocol: the protocol of the comparison; by default, the first of `PROTOCOLS` in which the voter has
                something left to judge.
            dimension: the dimension to judge; a random one by default.
            seed: the seed for all random choices; random by default.

        Raises:
            ArenaRefused: the voter has judged everything, or there is nothing to judge.
        """
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        wish = _BattleWish(voter, seed, protocol, dimension)
        battle = self._repeated(session, wish) or self._fresh_battle(session, wish)
        battle.id = secrets.token_hex(16)
        battle.served_at = now
        battle.expires_at = now + time_open(battle, self._settings)
        return battle

    def count(self, battle: Battle) -> None:
        """Add a new battle to the current counts."""
        compared = self._snapshot.fields.get(_kind(battle))
        if battle.purpose == "rating" and compared is not None:
            with self._lock:
                compared.count((battle.low, battle.high))

    def shows(self, session: Session, battle: Battle) -> bool:
        """Return whether this battle could be created now."""
        return self._current(session).shows(battle)

    def forget(self) -> None:
        """Read the pool and the counts again before the next battle; to be called after either has changed."""
        with self._lock:
            self._snapshot = _Snapshot()

    def _fresh_battle(self, session: Session, wish: "_BattleWish") -> Battle:
        snapshot, seed = self._current(session), wish.seed
        fields = {kind: compared for kind, compared in snapshot.fields.items() if wish.covers(*kind)}
        judged = {((low, high), item) for low, high, item in session.execute(_MET_BY_VOTER, {"voter": wish.voter})}
        # The response to a vote names the systems, so a battle whose systems were revealed is repeated only if nothing
        # else is left.
        protocol, before, possible = _find_open(fields, (MetBefore(judged, again=False), MetBefore(judged)))
        if not possible and not list_open_dimensions(session):
            raise ArenaRefused(NOTHING_YET, write_sentence("nothing-to-compare"))
        if not possible:
            raise ArenaRefused(NOTHING_LEFT, write_sentence("all-judged"))
        kind = protocol, pick_dimension(possible, seed=seed)
        field = snapshot.fields[kind]
        # Only battles of new systems depend on the voter's earlier judgements.
        voted = session.execute(_JUDGED_BY_VOTER, {"voter": wish.voter}).all() if len(field.with_new) else []

        def count_items(met: Pair) -> dict[str, int]:
            about = dict(zip(("protocol", "dimension", "low", "high"), (*kind, *met), strict=True))
            return {item: count for item, count in session.execute(_COUNTS_OF_ITEMS, about)}

        pairs_of_voter = [(low, high) for *kind_of_vote, low, high in voted if tuple(kind_of_vote) == kind]
        deal, rule = Deal(wish.voter, pairs_of_voter), self._settings.pairing
        meeting = choose_next_meeting(field, before, count_items, seed=seed, rule=rule, deal=deal)
        assert meeting is not None, "a pair that can meet has an item on which it can meet"
        met = {"item": meeting.item, "a": meeting.a, "b": meeting.b}
        item, a, b = session.execute(_OUTPUTS_OF_MEETING, met).one()
        # A database session drops objects that nothing refers to, and the page of the battle needs these objects again.
        session.info["shown"] = (item, a, b)
        lengths = _length(a), _length(b)
        excerpt = (
            choose(*lengths, seed=seed, seconds=self._settings.excerpt_seconds)
            if protocol == EXCERPTS
            else choose_whole(*lengths)
        )
        low, high = meeting.pair
        return Battle(
            voter=wish.voter,
            protocol=protocol,
            item=item.id,
            output_a=a.id,
            output_b=b.id,
            low=low,
            high=high,
            dimension=item.dimension,
            capability=item.capability,
            purpose="rating",
            seed=seed,
            pairing=self._settings.pairing,
            excerpt=asdict(excerpt),
        )

    def _repeated(self, session: Session, wish: "_BattleWish") -> Battle | None:
        """Occasionally return the voter's battle with the largest rating difference, with its sides swapped."""
        settings, seed, voter = self._settings, wish.seed, wish.voter
        if random.Random(f"{seed}:gold").random() >= settings.gold_share:  # noqa: S311 - by the recorded seed
            return None
        again = aliased(Battle)
        decided = (
            select(Battle)
            .join(Vote, Vote.battle == Battle.id)
            .where(Battle.voter == voter, Battle.purpose == "rating", Vote.outcome.in_(("a", "b")))
            .where(~select(again.id).where(again.repeats == Battle.id).exists())
            .order_by(Vote.number)
        )
        played = [battle for battle in session.scalars(decided) if wish.covers(*_kind(battle))]
        snapshot = self._current(session)
        earlier = [battle for battle in played if snapshot.shows(battle)]
        if len(earlier) < settings.gold_after:
            return None
        first = max(earlier[: -min(_GOLD_APART, len(earlier) - 1)], key=snapshot.clearness)
        sides = first.excerpt
        return Battle(
            voter=voter,
            protocol=first.protocol,
            item=first.item,
            output_a=first.output_b,
            output_b=first.output_a,
            low=first.low,
            high=first.high,
            dimension=first.dimension,
            capability=first.capability,
            purpose="gold",
            repeats=first.id,
            seed=seed,
            pairing="repeat",
            excerpt={**sides, "a": sides["b"], "b": sides["a"]},
        )

    def _current(self, session: Session) -> _Snapshot:
        with self._lock:
            if not self._snapshot.made_at > 0:
                # The first snapshot is made immediately, because no battle can be served without it; making it only
                # reads counts.
                self._snapshot = _take_snapshot(session)
            # Refreshing takes at most 2 % of the time, however many votes there are.
            keep = max(_FRESH_SECONDS, 50 * self._snapshot.cost)
            is_due = time.monotonic() - self._snapshot.made_at > keep and not self._renewing
            self._renewing = self._renewing or is_due
            snapshot = self._snapshot
        if is_due:
            threading.Thread(target=self._renew, args=(snapshot,), daemon=True).start()
        return snapshot

    def _renew(self, old: _Snapshot) -> None:
        """Make a new snapshot while other requests use the old snapshot."""
        try:
            with self._database.reading() as session:
                snapshot = _take_snapshot(session)
            with self._lock:
                # The new snapshot lacks the changes made in the meantime.
                if self._snapshot is old:
                    self._snapshot = snapshot
        except PodevalError as error:
            _LOG.warning("the ratings were not updated, so battles are chosen with the previous ratings: %s", error)
        finally:
            self._renewing = False


@dataclass(frozen=True)
class _BattleWish:
    """A voter's request for a battle: the protocol and the dimension (None for any), and the seed for the choices."""

    voter: str
    seed: int
    protocol: str | None
    dimension: str | None

    def covers(self, protocol: str, dimension: str) -> bool:
        return self.protocol in (None, protocol) and self.dimension in (None, dimension)


def _kind(battle: Battle) -> _Kind:
    return battle.protocol, battle.dimension


def _find_open(
    fields: Mapping[_Kind, PairingField], avoidable: tuple[MetBefore, ...]
) -> tuple[str, MetBefore, list[str]]:
    """Return the first protocol with something left to judge, the meetings to avoid, and the dimensions to choose from.

    Args:
        fields: the systems that can be compared, by protocol and dimension.
        avoidable: sets of meetings to avoid, the strictest first; the first that leaves something to judge is used.
    """
    for protocol in PROTOCOLS:
        for before in avoidable:
            dimensions = [
                name for (of, name), each in fields.items() if of == protocol and each.pool.find_open(before).any()
            ]
            if dimensions:
                return protocol, before, dimensions
    return PROTOCOLS[0], avoidable[-1], []


def _take_snapshot(session: Session) -> _Snapshot:
    began = time.monotonic()
    # For each item of the open dimensions, collect the systems that have a recording of it.
    rows = (
        select(ArenaItem.dimension, ArenaItem.benchmark, ArenaItem.id, ArenaOutput.system)
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
    )
    items: dict[_Kind, dict[str, set[str]]] = {}
    closed = read_closed_dimensions(session)
    for dimension, benchmark, item, system in session.execute(rows).all():
        for protocol in list_protocols(benchmark) if dimension not in closed else ():
            items.setdefault((protocol, dimension), {}).setdefault(item, set()).add(system)
    # Read how often each pair met, and the outcomes of the votes, by the driver, which takes half of SQLAlchemy's time.
    counts: defaultdict[_Kind, dict[Pair, tuple[int, ...]]] = defaultdict(dict)
    cursor = session.connection().connection.cursor()
    cursor.execute(str(select(PAIR_COUNTS).compile(session.get_bind())))
    for row in cursor.fetchall():
        counts[row[:2]][row[2:4]] = row[4:]
    voters: defaultdict[_Kind, Counter[str]] = defaultdict(Counter)
    for protocol, dimension, system, _, count in session.execute(select(SYSTEM_COUNTS)):
        voters[protocol, dimension][system] = count
    pools: dict[tuple[tuple[str, frozenset[str]], ...], PairingPool] = {}
    fields = {}
    for kind, systems in items.items():
        # Protocols that compare the same outputs share a pool.
        key = tuple((item, frozenset(names)) for item, names in sorted(systems.items()))
        if key not in pools:
            pools[key] = PairingPool(systems)
        fields[kind] = _arrange(pools[key], counts[kind], voters[kind])
    made_at = time.monotonic()
    return _Snapshot(made_at, made_at - began, fields)


def _arrange(pool: PairingPool, counts: Mapping[Pair, tuple[int, ...]], voters: Counter[str]) -> PairingField:
    """Rate the systems of a pool by the counts of their pairs, and find the provisional systems."""
    # A tie is half a win for each side; two rows per pair take less time than three.
    results = [
        (*met, outcome, won + neither / 2)
        for met, (_, low_won, high_won, neither) in counts.items()
        for outcome, won in (("a", low_won), ("b", high_won))
        if won or neither
    ]
    votes = {met: sum(numbers[1:]) for met, numbers in counts.items()}
    opponents = Counter(name for met, count in votes.items() if count for name in met)
    provisional = {
        name
        for name in pool.systems
        if opponents[name] < min(NEEDED["opponents"], len(pool.systems) - 1) or voters[name] < NEEDED["voters"]
    }
    served = {met: numbers[0] for met, numbers in counts.items()}
    return PairingField(pool, rate_quickly(pool.systems, results), votes, served, provisional)


def count_between(session: Session, battle: Battle, a: str) -> tuple[int, int, int]:
    """Count the votes on a battle's systems and dimension: for system `a`, for the other system, and for neither."""
    names = ("protocol", "dimension", "low", "high")
    same = (PAIR_COUNTS.c[name] == getattr(battle, name) for name in names)
    counts = session.execute(select(PAIR_COUNTS).where(*same)).one_or_none()
    if counts is None:
        return 0, 0, 0
    won = (counts.low_won, counts.high_won) if a == battle.low else (counts.high_won, counts.low_won)
    return *won, counts.neither


def _length(output: ArenaOutput) -> RecordingLength:
    return RecordingLength(output.seconds, [(float(start), float(end)) for start, end in output.turns])


def list_open_dimensions(session: Session) -> dict[str, list[str]]:
    """Return, by protocol, the open dimensions that have an item with outputs from at least two systems.

    A protocol without such a dimension is left out.
    """
    answered = (
        select(ArenaItem.dimension, ArenaItem.benchmark)
        .distinct()
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
        .group_by(ArenaItem.dimension, ArenaItem.benchmark, ArenaItem.id)
        .having(func.count(func.distinct(ArenaOutput.system)) > 1)
    )
    closed = read_closed_dimensions(session)
    dimensions: dict[str, set[str]] = {protocol: set() for protocol in PROTOCOLS}
    for dimension, benchmark in session.execute(answered):
        for protocol in list_protocols(benchmark) if dimension not in closed else ():
            dimensions[protocol].add(dimension)
    return {protocol: sorted(names) for protocol, names in dimensions.items() if names}
