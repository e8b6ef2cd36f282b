from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena import ttl_cache
from podeval.arena.refusal import ArenaRefused
from podeval.arena.ttl_cache import Remembered
from podeval.store.tables import ArenaOutput

Make = Callable[..., Any]


def test_things_are_kept_for_a_while_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(ttl_cache, "time", SimpleNamespace(monotonic=lambda: now[0]))
    kept: Remembered[str] = Remembered(seconds=30, most=2)
    kept.put("a", "x")
    now[0] += 29
    assert kept.get("a") == "x"
    assert kept.get("b") is None
    now[0] += 2
    assert kept.get("a") is None


def test_there_are_never_more_than_so_many() -> None:
    kept: Remembered[int] = Remembered(most=2)
    for number in range(5):
        kept.put(str(number), number)
        assert len(kept._kept) <= 2
    assert kept.get("4") == 4


def test_all_is_forgotten_when_something_changed() -> None:
    kept: Remembered[int] = Remembered()
    kept.put("a", 1)
    kept.forget()
    assert kept.get("a") is None


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_recording_that_an_operator_takes_down_is_not_played_from_memory(small_arena: Make) -> None:
    small = small_arena()
    name = small.serve("alice").a.excerpt
    assert small.arena.audio(name).path
    with small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput)):
            output.audio = ""
    small.arena.changed()
    with pytest.raises(ArenaRefused, match="taken down"):
        small.arena.audio(name)
