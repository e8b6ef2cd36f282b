"""Repeat takedowns when a backup is restored.

The decisions come from the replaced database, from the file beside the backup, and from the backup's own database. The
content is deleted from the unpacked files before they are moved into place.
"""

import logging
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from podeval.errors import PodevalError
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.store.database import Database, parse_address
from podeval.submissions.queue import Queue
from podeval.submissions.takedown import take_down_again
from podeval.submissions.taken_down import TakenDown, list_takedowns, merge_takedowns, read_beside

_LOG = logging.getLogger("podeval.submissions")


class RestoredTakedowns:
    """Takedowns that a backup does not have, repeated in its unpacked files.

    Args:
        folder: folder of the backup.
        database: the database that is replaced.

    Raises:
        BadInput: the file beside the backup is damaged.
    """

    def __init__(self, folder: Path, database: str | Path) -> None:
        self._decisions = [read_beside(folder), _read_replaced(database)]
        self._done: set[str] = set()

    def repeat(self, copy: Database, runs: Path) -> None:
        """Delete taken-down content from a database that is not yet in its place and the unpacked runs."""
        takedowns = merge_takedowns(list_takedowns(copy), *self._decisions)
        for takedown in takedowns:
            take_down_again(Queue(copy), takedown, runs)
        self._done |= {takedown.submission for takedown in takedowns}
        for name in (BOARD, ITEMS, SYSTEMS) if takedowns else ():
            (runs / name).unlink(missing_ok=True)

    @property
    def submissions(self) -> list[str]:
        """The submissions that are not restored."""
        return sorted(self._done)


def _read_replaced(database: str | Path) -> list[TakenDown]:
    """Read the takedowns of the replaced database, if it can still be read."""
    url = parse_address(database)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        return []
    try:
        with Database(database) as opened:
            return list_takedowns(opened)
    except (PodevalError, DBAPIError) as error:
        _LOG.warning("takedowns cannot be read from the database that is replaced: %s", error)
        return []
