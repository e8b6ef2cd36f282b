"""`podeval submissions list` with many submissions."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import Engine, event
from typer.testing import CliRunner

from podeval.cli import app
from podeval.store.database import Database
from podeval.submissions.queue import Queue


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The statements that any database is sent."""
    result: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        result.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield result
    event.remove(Engine, "before_cursor_execute", note)


def test_a_long_list_is_in_order_and_asks_the_database_as_often_as_a_short_one(
    tiny: ModuleType, empty_store: Path, tmp_path: Path, asked: list[str]
) -> None:
    def listed(count: int) -> tuple[int, list[str]]:
        path = Path(shutil.copy(empty_store, tmp_path / f"{count}.db"))
        with Database(path) as database:
            queue = Queue(database)
            rows = [tiny.enqueue(queue, f"system_{number}", owner=f"owner {number}") for number in range(count)]
            database.close()
        asked.clear()
        done = CliRunner().invoke(app, ["submissions", "list", "--database", str(path)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        lines = done.stdout.splitlines()
        return len(asked), [line for line in lines if any(row.id in line for row in rows)]

    (few, short), (many, long) = listed(2), listed(9)
    assert (len(short), len(long)) == (2, 9)
    assert few == many
    assert [line.rpartition("number ")[2] for line in long] == [f"{n} in the queue" for n in range(1, 10)]
