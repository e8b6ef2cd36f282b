"""Measure the cost of a battle, a vote, a page, a rating and a sweep in an arena of 300 systems, 100 items and many
votes.

.venv/bin/python studies/speed/arena.py [many]                 # 10,000 votes in a folder that is removed afterwards
.venv/bin/python studies/speed/arena.py make FILE [VOTES]      # a million, written by SQL, then counted
.venv/bin/python studies/speed/arena.py measure FILE [battles] [pages] [ratings] [sweep]   # also again

The figures are processor time. To see how much memory a part needs, measure it in a separate process.
"""

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sqlalchemy import func, select, text

from podeval.store.tables import Battle
from podeval.store.vote_counts import recount
from studies.speed.timing import keep
from tests.fakes.small_arena import SmallArena

SYSTEMS, ITEMS, VOTERS, VOTES = 300, 100, 20_000, 1_000_000
REQUESTS = 1_000

_POOL = """
insert or ignore into systems (id, title, kind, active, added_at)
select printf('system-%03d', i), 'System ' || i, 'system', 1, '2026-01-01' from n where i < :systems;
insert or ignore into items (id, benchmark, dimension, capability, language, title, instructions, turns, active,
    added_at)
select printf('item-%03d', i), '', case i % 2 when 0 then 'semantic' else 'ambient' end, '', 'en', '', '',
    '[{"text": "Why?"}]', 1, '2026-01-01' from n where i < :items;
insert or ignore into outputs (id, system, item, audio, sha256, seconds, loudness, turns, active, added_at)
select printf('%032d', 1000 * substr(s.id, -3) + substr(i.id, -3)), s.id, i.id, '/' || s.id || '/' || i.id || '.wav',
    '', 20, -23, '[]', 1, '2026-01-01' from systems s, items i;
"""
_BATTLES = """
create temporary table drawn as
select i, abs(random()) % :systems as a, abs(random()) % (:systems - 1) as b, abs(random()) % :items as item,
    abs(random()) % :voters as voter, abs(random()) % 1000 as chance from n where i < :votes;
update drawn set b = b + 1 where b >= a;
insert or ignore into battles (id, voter, item, output_a, output_b, low, high, dimension, capability, purpose, seed,
    pairing, excerpt, protocol, served_at, expires_at, fetched_a, fetched_b)
select lower(hex(randomblob(16))), printf('p%024d', voter), printf('item-%03d', item), printf('%032d', 1000 * a + item),
    printf('%032d', 1000 * b + item), printf('system-%03d', min(a, b)), printf('system-%03d', max(a, b)),
    case item % 2 when 0 then 'semantic' else 'ambient' end, '', 'rating', chance, 'closest',
    '{"a": [0, 20], "b": [0, 20], "rule": "turns"}', 'excerpts', datetime('2026-01-01', i || ' seconds'),
    datetime('2026-01-01', (i + 3600) || ' seconds'), 1, 1 from drawn;
insert into votes (id, battle, voter, outcome, comment, comment_cut, heard_a, heard_b, seconds_a, seconds_b,
    heard_seconds_a, heard_seconds_b, preference, elapsed, origin, recorded_at, standing, standing_reason, standing_by)
select 'vote-' || id, id, voter, case when seed % 10 = 9 then 'tie' when seed < 450 + (output_b - output_a) / 1000
    then 'a' else 'b' end, '', 0, 1, 1, 20, 20, 20, 20, '', 60, '', expires_at, 'counted', '', '' from battles
order by battles.rowid;
drop table drawn;
"""


@contextmanager
def cost(what: str) -> Iterator[None]:
    """Print the processor time of a block, and the process's maximum memory so far."""
    began = time.process_time()
    yield
    took, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {took:.2f} s of processor, {memory:.2f} GB at most", flush=True)


def make(file: str, votes: int) -> None:
    """Fill an arena by SQL; if a voter would vote twice on the same battle, one vote is kept."""
    small = SmallArena(file, systems=0, items=0)
    numbers = {"systems": SYSTEMS, "items": ITEMS, "voters": VOTERS, "votes": votes}
    with cost(f"{votes:,} votes written"), small.database.writing() as session:
        session.execute(text("pragma cache_size = -1500000"))
        session.execute(text("create temporary table n (i integer primary key)"))
        session.execute(
            text("insert into n with recursive up(i) as (select 0 union all select i + 1 from up where i < :most) "
                 "select i from up"), {"most": max(votes, 1000)},
        )  # fmt: skip
        for statement in (_POOL + _BATTLES).split(";\n"):
            if statement.strip():
                session.execute(text(statement), {n: v for n, v in numbers.items() if f":{n}" in statement})
        session.execute(text("drop table n"))
    with cost("counted anew"), small.database.writing() as session:
        recount(session)
    small.close()


def repeat(what: str, ask: Callable[[int], Any], times: int = REQUESTS) -> float:
    """Print the median cost of something that is asked many times, and return it in seconds."""
    costs = []
    for number in range(times):
        began = time.process_time()
        ask(number)
        costs.append(1000 * (time.process_time() - began))
    print(
        f"{what}: median of {times} {statistics.median(costs):.2f} ms of processor, 99 % within "
        f"{statistics.quantiles(costs, n=100)[-1]:.2f}",
        flush=True,
    )
    return statistics.median(costs) / 1000


def measure_battles(small: SmallArena) -> float:
    """Deal battles to voters that there are, and take a vote on each; return the seconds of a battle."""
    # A day after the votes of another run.
    small.clock.now = small.database.read(lambda session: session.scalar(select(func.max(Battle.expires_at))))
    small.clock.on(86_400)
    with cost("the first battle after a start"):
        small.serve(f"p{0:024d}")
    dealt: list[Any] = []
    each = repeat("a battle", lambda number: dealt.append(small.serve(f"p{number + 1:024d}")))
    small.clock.on(60)
    ballots = [small.ballot(battle, id=f"{small.clock.now:%Y%m%d}-{number:06}") for number, battle in enumerate(dealt)]
    repeat("a vote", lambda number: small.arena.vote(f"p{number + 1:024d}", ballots[number]))
    return each


def measure_pages(small: SmallArena) -> None:
    """Read ten votes at different positions."""
    last = small.arena.list_votes(limit=1)[1][0]["number"] + 900_000
    arena, last_page = small.arena, {"after": last}
    for query in ({}, last_page, {"offset": 100_000}, {"dimension": "ambient", **last_page}, {"dimension": "no"}):

        def ask(_: int, query: dict[str, Any] = query) -> None:
            arena.list_votes(limit=10, **query)

        repeat(f"ten votes {query or ''}", ask, 100)


def measure_ratings(small: SmallArena) -> None:
    """Compute the public ranking as the site does."""
    from podeval.arena.ranking import Rankings

    rankings = Rankings(small.arena, share=1e9, quick=1e9)
    for what in ("the first ranking of a process", "a following ranking", "another"):
        with cost(what):
            rankings.current()
        small.arena.decide(small.arena.list_votes(limit=1)[1][0]["vote"], "excluded", "to be measured", "nobody")


def measure_sweep(small: SmallArena) -> None:
    """Apply the rules of integrity, and print for how long they block other writers."""
    write, holds = small.database.write, [0.0]

    def timed(work: Callable[[Any], Any], about: str = "") -> Any:
        began = time.process_time()
        written = write(work, about)
        holds.append(1000 * (time.process_time() - began))
        return written

    small.database.write = timed  # type: ignore[method-assign, assignment]
    with cost("the rules of integrity"):
        done = small.arena.sweep()
    print(f"{len(done.excluded)} excluded by {len(holds) - 1} writes of {max(holds):.0f} ms of processor at most")


def measure(file: str, chosen: list[str]) -> dict[str, Any]:
    """Measure parts, all by default, as a site that has just started; return what they returned."""
    small = SmallArena(file, systems=0, items=0, gold_share=0.0, most_an_hour=10**6)
    parts = {"battles": measure_battles, "pages": measure_pages, "ratings": measure_ratings, "sweep": measure_sweep}
    found = {name: part(small) for name, part in parts.items() if name in (chosen or parts)}
    small.close()
    return found


def main() -> None:
    match sys.argv[1:]:
        case ["make", file, *votes]:
            make(file, int(votes[0]) if votes else VOTES)
        case ["measure", file, *chosen]:
            measure(file, chosen)
        case _:
            with tempfile.TemporaryDirectory() as folder:
                make(f"{folder}/arena.db", 10_000)
                few = measure(f"{folder}/arena.db", [])["battles"]
                if "many" in sys.argv:
                    make(f"{folder}/many.db", VOTES)
                    many = measure(f"{folder}/many.db", ["battles"])["battles"]
                    keep("a battle with 10,000 votes", "with 1,000,000 votes", few, many, many / few, None)


if __name__ == "__main__":
    main()
