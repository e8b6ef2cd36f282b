"""The running counts equal what a recount makes of the battles and votes, whatever happened to them."""

from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.import_votes import take_in
from podeval.arena.moderation import ArenaModeration
from podeval.arena.vote_records import read_erasure_records, read_standing_records, read_vote_records
from podeval.store.tables import Vote
from podeval.store.vote_counts import COUNTS, PAIR_COUNTS, RATED_VOTES, recount
from tests.fakes.databases import ON_SQLITE, Make
from tests.fakes.small_arena import SmallArena

Counts = dict[str, set[tuple[Any, ...]]]


def read_counts(session: Session) -> Counts:
    """Every row that counts something, by its table."""
    return {
        table.name: {
            tuple(row)
            for row in session.execute(select(table))
            if table is RATED_VOTES or any(isinstance(value, int) and value for value in row)
        }
        for table in COUNTS
    }


def compare_with_recount(small: Any) -> Counts:
    with small.database.writing() as session:
        running = read_counts(session)
        recount(session)
        assert running == read_counts(session)
    return running


def vote_of_all_kinds(small: Any, voters: int = 4, votes: int = 30) -> list[str]:
    outcomes = ("a", "b", "tie", "both_bad", "skip")
    return [small.vote(f"voter{number % voters}", outcomes[number % 5]).vote for number in range(votes)]


def test_counts_follow_votes_decisions_and_erasures(small_arena: Make) -> None:
    small = small_arena(systems=5, items=4, gold_share=0.2, gold_after=3)
    votes = vote_of_all_kinds(small)
    small.serve("voter1")
    before = compare_with_recount(small)
    assert sum(row[-4] for row in before["pair_counts"]) > len(before["rated_votes"]), "skips and open battles, too"
    assert {row[-1] for row in before["system_counts"]} & {2, 3, 4}, "several voters on a system"
    operator = ArenaModeration(small.arena)
    operator.count_vote(votes[0], False, "a test", "ada")
    after = compare_with_recount(small)
    assert len(after["rated_votes"]) == len(before["rated_votes"]) - 1
    operator.count_vote(votes[0], True, "a test", "ada")
    assert compare_with_recount(small) == before
    operator.count_voter("voter2", False, "a test", "ada")
    compare_with_recount(small)
    operator.count_voter("voter2", True, "a test", "ada")
    assert compare_with_recount(small) == before
    small.arena.erase(pseudonym="voter3")
    assert len(compare_with_recount(small)["rated_votes"]) < len(before["rated_votes"])


@ON_SQLITE
def test_counts_follow_the_rules_of_integrity(small_arena: Make) -> None:
    small = small_arena(systems=6, gold_share=0.0)
    for number in range(12):
        small.vote(f"voter{number % 4}", "ab"[number % 2], comment=f"reason number {number} about the content of it")
    for number in range(5):
        small.vote("copier", "ab"[number % 2], comment="the first answer explains the context far better")
    assert len(small.arena.sweep().excluded) == 5
    assert len(compare_with_recount(small)["rated_votes"]) == small.arena.list_votes(limit=1)[0] == 12


@ON_SQLITE
def test_counts_follow_an_import_of_votes_decisions_and_erasures(small_arena: Make, tmp_path: Path) -> None:
    small = small_arena(systems=5, items=4, gold_share=0.2, gold_after=3)
    votes = vote_of_all_kinds(small)
    small.arena.decide(votes[1], "excluded", "a test", "ada")
    other = SmallArena(str(tmp_path / "other.db"), systems=1, items=1)
    with small.database.reading() as session:
        records = [*read_vote_records(session), *read_standing_records(session)]
    for _ in range(2):
        other.database.write(lambda session: take_in(session, records))
        counts = compare_with_recount(other)
    assert len(counts["rated_votes"]) == small.arena.list_votes(limit=1)[0]
    small.arena.erase(pseudonym="voter0")
    with small.database.reading() as session:
        erasures = list(read_erasure_records(session))
    other.database.write(lambda session: take_in(session, erasures))
    assert len(compare_with_recount(other)["rated_votes"]) == small.arena.list_votes(limit=1)[0]
    other.close()


@ON_SQLITE
def test_a_database_from_before_the_counts_has_them_once_it_is_opened(tmp_path: Path, small_arena: Make) -> None:
    from alembic import command

    from podeval.store.migrate import build_configuration

    small = small_arena(systems=5, items=4)
    vote_of_all_kinds(small)
    with small.database.reading() as session:
        expected = read_counts(session)
    # Take the tables away, as a version before them left the database.
    with small.database.engine.execution_options(writes=True).begin() as connection:
        for table in COUNTS:
            connection.exec_driver_sql(f"DROP TABLE {table.name}")
        command.stamp(build_configuration(connection), "0007")
    place = str(small.database.url.database)
    small.close()
    again = SmallArena(place, systems=5, items=4)
    with again.database.reading() as session:
        assert read_counts(session) == expected
        assert len(session.scalars(select(Vote.id)).all()) == 30
    again.close()


@ON_SQLITE
def test_counts_that_were_spoilt_are_made_anew_by_a_command(small_arena: Make) -> None:
    from tests.fakes.command import run_command

    small = small_arena(systems=5, items=4)
    vote_of_all_kinds(small)
    with small.database.writing() as session:
        expected = read_counts(session)
        session.execute(PAIR_COUNTS.update().values(served=PAIR_COUNTS.c.served + 3))
    assert "30 votes" in run_command("arena", "status", "--recount", "--database", small.database.url.database)
    with small.database.reading() as session:
        assert read_counts(session) == expected
