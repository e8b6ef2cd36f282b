"""`podeval submissions list` with many submissions."""

from pathlib import Path
from types import ModuleType

from typer.testing import CliRunner

from podeval.cli import app
from podeval.store.database import Database
from podeval.submissions.queue import Queue


def test_a_list_is_in_the_order_of_the_queue(tiny: ModuleType, store: Path) -> None:
    with Database(store) as database:
        for number in range(9):
            tiny.enqueue(Queue(database), f"system_{number}", owner=f"owner {number}")
    done = CliRunner().invoke(app, ["submissions", "list", "--database", str(store)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    positions = [line.rpartition("number ")[2] for line in done.stdout.splitlines()]
    assert positions == [f"{n} in the queue" for n in range(1, 10)]
