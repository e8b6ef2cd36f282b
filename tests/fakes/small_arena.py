"""A small arena without audio files: systems s0, s1, …, items of two dimensions, and a clock that is set by hand."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from podeval.arena import Acknowledgement, Arena, ArenaSettings, Ballot, BattleView
from podeval.arena.import_votes import make_output_id
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle
from podeval.store.vote_counts import recount

SECRET = Secret(b"a secret of the tests, and of none else")


@dataclass
class Clock:
    """The time, which goes only where it is put."""

    now: datetime = field(default_factory=lambda: datetime(2026, 11, 22, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def fetch(arena: Arena, battle: BattleView) -> None:
    """What a site counts once it sent both sounds."""
    for side in (battle.a, battle.b):
        arena.sounds.count_fetched(side.audio, 1.0)


class SmallArena:
    """An arena, its clock, and voters who listen."""

    def __init__(
        self,
        place: str,
        *,
        systems: int = 4,
        items: int = 3,
        seconds: float = 20.0,
        objects: Any = None,
        **settings: Any,
    ) -> None:
        self.database = Database(place)
        self.clock = Clock()
        self.arena = Arena(self.database, ArenaSettings(**settings), secret=SECRET, clock=self.clock, objects=objects)
        self.fill(systems, items, seconds)
        self._ballots = 0

    def fill(self, systems: int, items: int, seconds: float) -> None:
        """Make the systems, items and outputs that are not there."""
        with self.database.writing() as session:
            for number in range(systems):
                session.merge(
                    ArenaSystem(id=f"s{number}", title=f"System {number}", added_at=self.clock.now, active=True)
                )
            for number in range(items):
                dimension = ("semantic", "ambient")[number % 2]
                session.merge(
                    ArenaItem(
                        id=f"i{number}",
                        dimension=dimension,
                        turns=[{"text": "Why?"}],
                        added_at=self.clock.now,
                        active=True,
                    )
                )
            session.flush()
            for system in (f"s{number}" for number in range(systems)):
                for item in (f"i{number}" for number in range(items)):
                    session.merge(ArenaOutput(
                        id=make_output_id(system, item), system=system, item=item, audio=f"/{system}/{item}.wav",
                        sha256="0" * 64, seconds=seconds, loudness=-23.0, turns=[], active=True,
                        added_at=self.clock.now,
                    ))  # fmt: skip

    def serve(self, voter: str, **choices: Any) -> BattleView:
        return self.arena.serve(voter, **choices)

    def listen(self, voter: str, **choices: Any) -> BattleView:
        """Serve, and listen for a minute."""
        battle = self.serve(voter, **choices)
        self.clock.on(60)
        return battle

    def ballot(self, battle: BattleView, outcome: str = "a", **changes: Any) -> Ballot:
        """A ballot of someone who fetched and heard everything."""
        self._ballots += 1
        fetch(self.arena, battle)
        played = {"played_a": [(0.0, battle.a.seconds)], "played_b": [(0.0, battle.b.seconds)]}
        return Ballot(
            **{"id": f"ballot-{self._ballots:06}", "token": battle.token, "outcome": outcome, **played, **changes}
        )

    def vote(
        self, voter: str, outcome: str = "a", *, battle: BattleView | None = None, **changes: Any
    ) -> Acknowledgement:
        """Serve, listen for a minute, vote."""
        battle = battle or self.serve(voter)
        self.clock.on(60)
        return self.arena.vote(voter, self.ballot(battle, outcome, **changes))

    def prefer(self, voter: str, system: str, *, protocol: str | None = None, **changes: Any) -> Acknowledgement:
        """Serve a battle of two systems, and vote for one of them."""
        battle = self.serve(voter, **({"protocol": protocol} if protocol else {}))
        return self.vote(voter, "ab"[self.sides(battle).index(system)], battle=battle, **changes)

    def sides(self, battle: BattleView) -> tuple[str, str]:
        """Which systems a battle shows; only the database knows."""
        with self.database.reading() as session:
            row = session.get_one(Battle, battle.token.partition(".")[0])
            return tuple(session.get_one(ArenaOutput, output).system for output in (row.output_a, row.output_b))

    def close(self) -> None:
        self.database.close()


def fill_votes(database: Database, count: int) -> None:
    """So many votes of as many voters for the same system, written at once."""
    with database.writing() as session:
        session.execute(text("""
            with recursive n(i) as (select 1 union all select i + 1 from n where i < :count)
            insert into battles (id, voter, item, output_a, output_b, low, high, dimension, capability, purpose, seed,
                pairing, excerpt, protocol, served_at, expires_at)
            select printf('b%08d', i), printf('v%06d', i), a.item, a.id, b.id, 's0', 's1', items.dimension, '',
                'rating', 1, 'closest', '{"a": [0, 20], "b": [0, 20], "rule": "whole"}', 'excerpts',
                '2026-11-01 00:00:00', '2026-11-01 01:00:00'
            from n, outputs a, outputs b, items
            where a.system = 's0' and b.system = 's1' and a.item = b.item and items.id = a.item
                and items.id = 'i' || (i % 3)
        """), {"count": count})  # fmt: skip
        session.execute(text("""
            insert into votes (id, battle, voter, outcome, comment, comment_cut, heard_a, heard_b, seconds_a, seconds_b,
                heard_seconds_a, heard_seconds_b, preference, elapsed, origin, recorded_at, standing, standing_reason,
                standing_by)
            select 'vote-' || id, id, voter, 'a', '', 0, 1, 1, 20, 20, 20, 20, '', 60, '', '2026-11-01 00:30:00',
                'counted', '', ''
            from battles order by id
        """))  # fmt: skip
        recount(session)
