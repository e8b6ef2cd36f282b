"""Choose the next battle for a voter from past battles and votes, by the rules of `arena.pairing`."""

import math
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import EXCERPTS, PROTOCOLS, RecordingLength, choose, choose_whole, list_protocols
from podeval.arena.pairing import Pair, PairingPool, choose_next_meeting, pair, pick_dimension
from podeval.arena.ratings import list_open_dimensions, rate_quickly
from podeval.arena.refusal import NOTHING_LEFT, NOTHING_YET, ArenaRefused
from podeval.arena.settings import ArenaSettings
from podeval.store.operator_settings import read_closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote
from podeval.texts import write_sentence

_SEED_BITS = 53
"""Bits of a battle's seed, which JSON can hold exactly."""

_TIMES_HEARD = 3
"""How often both sides can be heard before a battle lapses."""

_GOLD_APART = 5
"""Fewest votes between a battle and its repetition."""


_MET_BY_VOTER = select(Battle.low, Battle.high, Battle.item).where(
    Battle.voter == bindparam("voter"), Battle.purpose == "rating"
)
_A, _B = aliased(ArenaOutput), aliased(ArenaOutput)
_OUTPUTS_OF_MEETING = (
    select(ArenaItem, _A, _B)
    .join(_A, _A.item == ArenaItem.id)
    .join(_B, _B.item == ArenaItem.id)
    .where(ArenaItem.id == bindparam("item"), _A.system == bindparam("a"), _B.system == bindparam("b"))
)


_Kind = tuple[str, str]
"""A protocol and a dimension: votes of one kind are rated together."""


@dataclass
class _Snapshot:
    """The counts that are the same for all voters, kept for a while."""

    made_at: float = 0.0
    cost: float = 0.0
    fields: dict[_Kind, PairingPool] = field(default_factory=dict)
    battles: dict[_Kind, Counter[tuple[Pair, str]]] = field(default_factory=dict)
    ratings: dict[_Kind, dict[str, float]] = field(default_factory=dict)

    def shows(self, battle: Battle) -> bool:
        """Tell whether a battle like this one could be made now: with an open dimension and outputs in the pool."""
        compared = self.fields.get(_kind(battle))
        return compared is not None and {battle.low, battle.high} <= compared.items.get(battle.item, frozenset())


class Matchmaker:
    """The maker of battles; its counts are kept for half a minute, longer where counting takes long.

    Args:
        settings: settings of the arena.
        fresh_seconds: how long counts are used.
    """

    def __init__(self, settings: ArenaSettings, fresh_seconds: float = 30.0) -> None:
        self._settings = settings
        self._fresh = fresh_seconds
        self._snapshot = _Snapshot(made_at=-1e9)
        self._lock = threading.Lock()

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
        """Make a battle for a voter, which is not recorded yet.

        Args:
            session: reads what was compared and judged.
            voter: a pseudonym.
            now: the time.
            protocol: the protocol of the comparison; by default the first of `PROTOCOLS` that has something left.
            dimension: the dimension to be judged; a random one by default.
            seed: the seed of all random choices; random by default.

        Raises:
            ArenaRefused: the voter has judged everything, or there is nothing to judge.
        """
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        settings = self._settings
        wish = _BattleWish(voter, seed, protocol, dimension)
        battle = self._repeated(session, wish) or self._fresh_battle(session, wish)
        battle.id = secrets.token_hex(16)
        battle.served_at = now
        battle.expires_at = now + time_open(battle, settings)
        return battle

    def count(self, battle: Battle) -> None:
        """Add a new battle to the present counts."""
        if battle.purpose == "rating":
            with self._lock:
                self._snapshot.battles.setdefault(_kind(battle), Counter())[(battle.low, battle.high), battle.item] += 1

    def shows(self, session: Session, battle: Battle) -> bool:
        """Tell whether a battle like this one could be made now."""
        return self._current(session).shows(battle)

    def forget(self) -> None:
        """Drop the counts, because something was added, excluded or restored."""
        with self._lock:
            self._snapshot.made_at = -1e9

    def _fresh_battle(self, session: Session, wish: "_BattleWish") -> Battle:
        snapshot, seed = self._current(session), wish.seed
        judged = {((low, high), item) for low, high, item in session.execute(_MET_BY_VOTER, {"voter": wish.voter})}
        fields = {kind: compared for kind, compared in snapshot.fields.items() if wish.covers(*kind)}
        # A vote is answered with who was who: what it named comes again only where there is nothing else.
        heard_on = _collect_heard(judged)
        avoided = judged | {
            (pair(met, other), item)
            for compared in fields.values()
            for item, systems in heard_on.items()
            for met in systems & compared.items.get(item, frozenset())
            for other in compared.items[item] - {met}
        }
        protocol, avoided, possible = _find_open(fields, (avoided, judged))
        if not possible and not list_open_dimensions(session):
            raise ArenaRefused(NOTHING_YET, write_sentence("nothing-to-compare"))
        if not possible:
            raise ArenaRefused(NOTHING_LEFT, write_sentence("all-judged"))
        chosen = protocol, pick_dimension(possible, seed=seed)
        with self._lock:
            # Others count battles while this one looks through them.
            battles: dict[tuple[Pair, str], int] = dict(snapshot.battles.get(chosen, Counter()))
        meeting = choose_next_meeting(
            snapshot.fields[chosen],
            snapshot.ratings[chosen],
            battles,
            avoided,
            seed=seed,
            rule=self._settings.pairing,
        )
        assert meeting is not None, "an open pair has an open item"
        met = {"item": meeting.item, "a": meeting.a, "b": meeting.b}
        item, a, b = session.execute(_OUTPUTS_OF_MEETING, met).one()
        # A session forgets what nobody holds: who shows the battle needs them once more.
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
            excerpt=excerpt.document(),
        )

    def _repeated(self, session: Session, wish: "_BattleWish") -> Battle | None:
        """Return, now and then, the voter's earlier battle with the clearest difference, sides exchanged."""
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
        earlier = [battle for battle in played if self._current(session).shows(battle)]
        if len(earlier) < settings.gold_after:
            return None
        ratings = self._current(session).ratings

        def clearness(battle: Battle) -> float:
            scale = ratings.get(_kind(battle), {})
            return abs(scale.get(battle.low, 0.0) - scale.get(battle.high, 0.0))

        first = max(earlier[: -min(_GOLD_APART, len(earlier) - 1)], key=clearness)
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
            # Counting takes at most a fiftieth of the time, however much there is to count.
            keep = max(self._fresh, 50 * self._snapshot.cost)
            if time.monotonic() - self._snapshot.made_at > keep:
                began = time.monotonic()
                self._snapshot = _take_snapshot(session)
                self._snapshot.made_at = time.monotonic()
                self._snapshot.cost = self._snapshot.made_at - began
            return self._snapshot


@dataclass(frozen=True)
class _BattleWish:
    """Whose battle it is, the seed of its choices, and what it is to be about; None for anything."""

    voter: str
    seed: int
    protocol: str | None
    dimension: str | None

    def covers(self, protocol: str, dimension: str) -> bool:
        return self.protocol in (None, protocol) and self.dimension in (None, dimension)


def _kind(battle: Battle) -> _Kind:
    return battle.protocol, battle.dimension


def _find_open(
    fields: Mapping[_Kind, PairingPool], avoidable: Sequence[set[tuple[Pair, str]]]
) -> tuple[str, set[tuple[Pair, str]], list[str]]:
    """Return the first protocol in which something is left to judge, what is avoided there, and its dimensions.

    Args:
        fields: what can be compared.
        avoidable: what is avoided if anything is left then; the last is avoided in any case.
    """
    for protocol in PROTOCOLS:
        for avoided in avoidable:
            dimensions = [name for (of, name), pool in fields.items() if of == protocol and pool.open_pairs(avoided)]
            if dimensions:
                return protocol, avoided, dimensions
    return PROTOCOLS[0], avoidable[-1], []


def _collect_heard(judged: set[tuple[Pair, str]]) -> dict[str, set[str]]:
    """Return the systems that one voter met, by item."""
    systems: dict[str, set[str]] = {}
    for met, item in judged:
        systems.setdefault(item, set()).update(met)
    return systems


def _take_snapshot(session: Session) -> _Snapshot:
    snapshot = _Snapshot()
    # Collect the systems with a recording of each item, for open dimensions.
    rows = (
        select(ArenaItem.dimension, ArenaItem.benchmark, ArenaItem.id, ArenaOutput.system)
        .join(ArenaOutput, ArenaOutput.item == ArenaItem.id)
        .join(ArenaSystem, ArenaOutput.system == ArenaSystem.id)
        .where(ArenaItem.active, ArenaOutput.active, ArenaSystem.active, ArenaOutput.audio != "")
    )
    items: dict[_Kind, dict[str, set[str]]] = {}
    closed = read_closed_dimensions(session)
    for dimension, benchmark, item, system in session.execute(rows):
        for protocol in list_protocols(benchmark) if dimension not in closed else ():
            items.setdefault((protocol, dimension), {}).setdefault(item, set()).add(system)
    snapshot.fields = {kind: PairingPool(systems) for kind, systems in items.items()}
    # Count how often each pair met on each item.
    served = (
        select(Battle.protocol, Battle.dimension, Battle.low, Battle.high, Battle.item, func.count())
        .where(Battle.purpose == "rating")
        .group_by(Battle.protocol, Battle.dimension, Battle.low, Battle.high, Battle.item)
    )
    for protocol, dimension, low, high, item, count in session.execute(served):
        snapshot.battles.setdefault((protocol, dimension), Counter())[(low, high), item] = count
    # Estimate the strength of each system.
    for kind, systems in items.items():
        snapshot.ratings[kind] = rate_quickly(
            {s for group in systems.values() for s in group}, _read_results(session, *kind)
        )
    return snapshot


def _read_results(session: Session, protocol: str, dimension: str) -> list[tuple[str, str, str, int]]:
    """Return the counted votes of one kind without their sides: `(low, high, outcome, how often)`."""
    a = aliased(ArenaOutput)
    query = (
        select(Battle.low, Battle.high, a.system, Vote.outcome, func.count())
        .join(Vote, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .where(Battle.protocol == protocol, Battle.dimension == dimension, Battle.purpose == "rating")
        .where(Vote.standing == "counted", Vote.outcome != "skip")
        .group_by(Battle.low, Battle.high, a.system, Vote.outcome)
    )
    return [
        (on_a, high if on_a == low else low, outcome, count)
        for low, high, on_a, outcome, count in session.execute(query)
    ]


def _length(output: ArenaOutput) -> RecordingLength:
    return RecordingLength(output.seconds, [(float(start), float(end)) for start, end in output.turns])


def time_open(battle: Battle, settings: ArenaSettings) -> timedelta:
    """Return how long a battle can be judged: whole hours, which say nothing of exact lengths, where it is long."""
    (begin_a, end_a), (begin_b, end_b) = read_spans(battle)
    hours = math.floor(_TIMES_HEARD * (end_a - begin_a + end_b - begin_b) / 3600)
    return timedelta(seconds=max(settings.vote_within, 3600 * (hours + 1 if hours else 0)))


def read_spans(battle: Battle) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the begin and end of the excerpts of A and of B, in seconds."""
    (a, b), (c, d) = battle.excerpt["a"], battle.excerpt["b"]
    return (float(a), float(b)), (float(c), float(d))
