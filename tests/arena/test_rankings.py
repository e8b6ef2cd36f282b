"""What a ranking is made of changes: it is made anew."""

from podeval.arena.ranking import Rankings
from podeval.store.tables import ArenaSystem
from tests.fakes.databases import Make
from tests.fakes.waiting import wait_until


def test_a_system_that_gets_another_title_has_it_in_the_next_ranking(small_arena: Make) -> None:
    small = small_arena(systems=2)
    small.vote("alice")
    rankings = Rankings(small.arena, share=1e9)
    assert rankings.current().systems["s0"].title != "Renamed"
    with small.database.writing() as session:
        session.get_one(ArenaSystem, "s0").title = "Renamed"
    # On a busy machine the first rating took long, and the next is made beside.
    wait_until(lambda: rankings.current().systems["s0"].title == "Renamed")
