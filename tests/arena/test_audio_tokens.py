"""The sounds of battles are not looked up by every request, and what was changed is looked up anew."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, select

from podeval.arena.refusal import ArenaRefused
from podeval.store.tables import ArenaOutput
from tests.fakes.databases import ON_SQLITE, Make

pytestmark = ON_SQLITE


def count_statements(small: Any, call: Callable[[], Any]) -> int:
    """How many statements a call sends to the database."""
    statements: list[str] = []

    def note(*details: Any) -> None:
        statements.append(details[2])

    event.listen(small.database.engine, "before_cursor_execute", note)
    call()
    event.remove(small.database.engine, "before_cursor_execute", note)
    return len(statements)


def test_what_was_looked_up_is_not_asked_of_the_database_again_until_it_changes(small_arena: Make) -> None:
    small = small_arena()
    battle = small.serve("alice")
    side = battle.a
    assert count_statements(small, lambda: small.arena.sounds.find(side.audio)) > 0
    whole = small.arena.sounds.name(battle.token.partition(".")[0], "b", "whole")
    assert count_statements(small, lambda: small.arena.sounds.find(whole)) == 0, "it is the same battle"
    voter = small.arena.voter("hf:somebody", "somebody")
    assert count_statements(small, lambda: small.arena.voter("hf:somebody", "somebody")) == 0
    assert small.arena.voter("hf:somebody", "somebody") == voter != small.arena.voter("hf:other", "somebody")
    small.arena.changed()
    assert count_statements(small, lambda: small.arena.sounds.find(side.audio)) > 0
    small.arena.erase("hf:somebody")
    assert count_statements(small, lambda: small.arena.voter("hf:somebody", "somebody")) > 0


def test_a_recording_that_an_operator_takes_down_is_not_played_from_memory(small_arena: Make) -> None:
    small = small_arena()
    name = small.serve("alice").a.audio
    assert small.arena.sounds.find(name).path
    with small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput)):
            output.audio = ""
    small.arena.changed()
    with pytest.raises(ArenaRefused, match="taken down"):
        small.arena.sounds.find(name)
