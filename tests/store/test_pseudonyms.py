"""Persons by the names they sign in with: a keyed hash beside the pseudonym, gone with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from podeval.store.database import Database
from podeval.store.pseudonyms import erase, find_pseudonym_by_name, make_pseudonym, remember_name
from podeval.store.secret import Secret
from podeval.store.tables import Pseudonym

SECRET = Secret(b"a secret of the tests, and of none else")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store.db") as opened:
        yield opened


def here(database: Database, identity: str, name: str) -> str:
    with database.writing() as session:
        made = make_pseudonym(session, SECRET, identity)
        remember_name(session, SECRET, identity, name)
    return made


def named(database: Database, name: str, issuer: str = "hf") -> str | None:
    with database.reading() as session:
        return find_pseudonym_by_name(session, SECRET, issuer, name)


def test_a_name_leads_to_whom_it_belongs_now_and_only_at_its_provider(database: Database) -> None:
    alice, bob = here(database, "hf:1", "alice"), here(database, "hf:2", "bob")
    assert (named(database, "alice"), named(database, "bob")) == (alice, bob)
    assert named(database, "alice", "https://idp.example") is None
    assert here(database, "hf:1", "alicia") == alice
    assert (named(database, "alice"), named(database, "alicia")) == (None, alice)
    assert here(database, "hf:3", "bob") == named(database, "bob") != bob, "the name is another person's now"


def test_no_name_is_stored_and_erasing_leaves_no_way_from_it(database: Database) -> None:
    alice = here(database, "hf:1", "alice")
    with database.reading() as session:
        rows = session.scalars(select(Pseudonym)).all()
        assert len(rows) == 2
        assert not any("alice" in f"{row.identity} {row.pseudonym} {row.key!r}" for row in rows)
    with database.writing() as session:
        erase(session, alice)
    assert named(database, "alice") is None
    with database.reading() as session:
        assert session.scalars(select(Pseudonym)).all() == []


def test_who_is_known_by_no_provider_has_no_name(database: Database) -> None:
    here(database, "local", "you")
    with database.reading() as session:
        assert len(session.scalars(select(Pseudonym)).all()) == 1
