"""Putting a backup back without what was taken down since it was made.

What was taken down is known from the database that is replaced, from the file beside the backup, and from the backup's
own database. It is deleted from what was unpacked, before anything is moved into place.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from podeval.errors import PodevalError
from podeval.operations.backup import RUNS
from podeval.operations.restore import Restored, restore
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.store.copies import folder_of_list, keep_lines, lines_of_list
from podeval.store.database import Database, address
from podeval.submissions.queue import Queue
from podeval.submissions.takedown import take_down_again
from podeval.submissions.taken_down import TakenDown, beside, taken_down_in, together

_LOG = logging.getLogger("podeval.submissions")


@dataclass(frozen=True)
class RestoredBoard:
    """What was put back, and the submissions of which nothing was, as they had been taken down."""

    restored: Restored
    taken_down: list[str]


def restore_board(place: Path, database: str | Path, runs: Path, *, force: bool = False) -> RestoredBoard:
    """Put a backup back; see `store.backup_restoring.restore`.

    Raises:
        BadInput: also where the file beside the backup is damaged. Nothing was changed.
        StoreUnusable: the database is in use, or cannot be opened.
        DiskFull: nothing was changed.
    """
    decisions = [beside(place), _replaced(database)]
    listed = lines_of_list(folder_of_list(database, runs))
    taken: list[TakenDown] = []

    def settle(copy: Path, unpacked: Path) -> None:
        with Database(copy) as opened:
            taken.extend(together(taken_down_in(opened), *decisions))
            for each in taken:
                take_down_again(Queue(opened), each, unpacked / RUNS)
        for name in (BOARD, ITEMS, SYSTEMS) if taken else ():
            (unpacked / RUNS / name).unlink(missing_ok=True)

    restored = restore(place, database, runs, force=force, settle=settle)
    keep_lines(listed, folder_of_list(database, runs))
    return RestoredBoard(restored, sorted(each.submission for each in taken))


def _replaced(database: str | Path) -> list[TakenDown]:
    """What is known from the database that is replaced, as far as it can still be read."""
    url = address(database)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        return []
    try:
        with Database(database) as opened:
            return taken_down_in(opened)
    except (PodevalError, DBAPIError) as error:
        _LOG.warning("what was taken down is not known from the database that is replaced: %s", error)
        return []
