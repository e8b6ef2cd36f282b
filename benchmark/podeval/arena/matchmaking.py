"""Choose the next battle for a voter from past battles and votes, by the rules of `arena.pairing`."""

import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, func, select, union
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import RecordingLength, choose, choose_whole, list_protocols, time_open
from podeval.arena.pairing import Deal, Pair, PairingPool, choose_next_meeting, pair, pick_dimension
from podeval.arena.refusal import NOTHING_LEFT, NOTHING_YET, ArenaRefused
from podeval.arena.settings import EXCERPTS, PROTOCOLS, ArenaSettings
from podeval.stats.battles import rate_quickly
from podeval.stats.bradley_terry import NEEDED
from podeval.store.operator_settings import read_closed_dimensions
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle, Vote
from podeval.texts import write_sentence

_SEED_BITS = 53
"""Bits of a battle's seed, which JSON can hold exactly."""

_FRESH_SECONDS = 30.0
"""Seconds for which counts are used at least."""

_GOLD_APART = 5
"""Fewest votes between a battle and its repetition."""


_MET_BY_VOTER = (
    select(Battle.low, Battle.high, Battle.item, Battle.protocol, Battle.dimension, Vote.outcome)
    .outerjoin(Vote, Vote.battle == Battle.id)
    .where(Battle.voter == bindparam("voter"), Battle.purpose == "rating")
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
    votes: dict[_Kind, Counter[Pair]] = field(default_factory=dict)
    provisional: dict[_Kind, set[str]] = field(default_factory=dict)

    def shows(self, battle: Battle) -> bool:
        """Tell whether a battle like this one could be made now: with an open dimension and outputs in the pool."""
        compared = self.fields.get(_kind(battle))
        return compared is not None and {battle.low, battle.high} <= compared.items.get(battle.item, frozenset())


class Matchmaker:
    """The maker of battles; its counts are kept for half a minute, longer where counting takes long.

    Args:
        settings: settings of the arena.
    """

    def __init__(self, settings: ArenaSettings) -> None:
        self._settings = settings
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
            session: a session that reads battles and votes.
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
        served = session.execute(_MET_BY_VOTER, {"voter": wish.voter}).all()
        judged = {((row.low, row.high), row.item) for row in served}
        fields = {kind: compared for kind, compared in snapshot.fields.items() if wish.covers(*kind)}
        # A vote is answered with who was who: what it named comes again only where there is nothing else.
        heard_on: dict[str, set[str]] = {}
        for both, item_id in judged:
            heard_on.setdefault(item_id, set()).update(both)
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
        voted = [row for row in served if (row.protocol, row.dimension) == chosen and row.outcome not in (None, "skip")]
        deal = Deal(
            wish.voter, [(row.low, row.high) for row in voted], snapshot.votes[chosen], snapshot.provisional[chosen]
        )
        pool, rule = snapshot.fields[chosen], self._settings.pairing
        meeting = choose_next_meeting(pool, snapshot.ratings[chosen], battles, avoided, seed=seed, rule=rule, deal=deal)
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
            excerpt=asdict(excerpt),
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
            keep = max(_FRESH_SECONDS, 50 * self._snapshot.cost)
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
        fields: pools of what can be compared, by protocol and dimension.
        avoidable: sets of meetings to avoid if anything is left then; the last set is avoided in any case.
    """
    for protocol in PROTOCOLS:
        for avoided in avoidable:
            dimensions = [name for (of, name), pool in fields.items() if of == protocol and pool.open_pairs(avoided)]
            if dimensions:
                return protocol, avoided, dimensions
    return PROTOCOLS[0], avoidable[-1], []


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
        results, names = _read_results(session, *kind), {s for group in systems.values() for s in group}
        snapshot.ratings[kind] = rate_quickly(names, results)
        votes = snapshot.votes.setdefault(kind, Counter())
        for a, b, _, count in results:
            votes[pair(a, b)] += count
        opponents, voters = Counter(name for met in votes for name in met), _count_voters(session, *kind)
        snapshot.provisional[kind] = {
            name
            for name in names
            if opponents[name] < min(NEEDED["opponents"], len(names) - 1) or voters[name] < NEEDED["voters"]
        }
    return snapshot


def _count_voters(session: Session, protocol: str, dimension: str) -> Counter[str]:
    """Count the people whose votes on each system count."""
    of_sides = (
        select(side.label("system"), Vote.voter)
        .join(Vote, Vote.battle == Battle.id)
        .where(Battle.protocol == protocol, Battle.dimension == dimension, Battle.purpose == "rating")
        .where(Vote.standing == "counted", Vote.outcome != "skip")
        for side in (Battle.low, Battle.high)
    )
    judged = union(*of_sides).subquery()
    counts = session.execute(select(judged.c.system, func.count()).group_by(judged.c.system))
    return Counter({system: count for system, count in counts})


def count_between(session: Session, battle: Battle, a: str) -> tuple[int, int, int]:
    """Count the votes on the pair of a battle, on its dimension: for system `a`, for the other, for neither."""
    counts: Counter[str] = Counter()
    for on_a, _, outcome, count in _read_results(session, battle.protocol, battle.dimension, (battle.low, battle.high)):
        winner = {"a": on_a == a, "b": on_a != a}.get(outcome)
        counts["neither" if winner is None else "a" if winner else "b"] += count
    return counts["a"], counts["b"], counts["neither"]


def _read_results(
    session: Session, protocol: str, dimension: str, only: Pair | None = None
) -> list[tuple[str, str, str, int]]:
    """Return the counted votes of one kind, or on one pair: `(system on side a, the other, outcome, how often)`."""
    a = aliased(ArenaOutput)
    query = (
        select(Battle.low, Battle.high, a.system, Vote.outcome, func.count())
        .join(Vote, Vote.battle == Battle.id)
        .join(a, Battle.output_a == a.id)
        .where(Battle.protocol == protocol, Battle.dimension == dimension, Battle.purpose == "rating")
        .where(Vote.standing == "counted", Vote.outcome != "skip")
        .group_by(Battle.low, Battle.high, a.system, Vote.outcome)
    )
    if only is not None:
        query = query.where(Battle.low == only[0], Battle.high == only[1])
    return [
        (on_a, high if on_a == low else low, outcome, count)
        for low, high, on_a, outcome, count in session.execute(query)
    ]


def _length(output: ArenaOutput) -> RecordingLength:
    return RecordingLength(output.seconds, [(float(start), float(end)) for start, end in output.turns])


def list_open_dimensions(session: Session) -> dict[str, list[str]]:
    """Return, by protocol, the open dimensions that have an item with outputs of at least two systems.

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
