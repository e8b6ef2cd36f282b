"""A small arena without audio files: systems s0, s1, …, items of two dimensions, and a clock that is set by hand."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from podeval.arena import Acknowledgement, Arena, ArenaSettings, Ballot, BattleView
from podeval.arena.import_votes import make_output_id
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle

SECRET = Secret(b"a secret of the tests, and of none else")


@dataclass
class Clock:
    """The time, which goes only where it is put."""

    now: datetime = field(default_factory=lambda: datetime(2026, 11, 22, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


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
        """A ballot of someone who heard everything."""
        self._ballots += 1
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
