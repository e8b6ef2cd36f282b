"""Whether the database takes what is written, asked by writing: a disk that is full still answers every question."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from podeval.errors import PodevalError
from podeval.store import operator_settings
from podeval.store.database import Database

_LOG = logging.getLogger("podeval.site")

EVERY = 10.0
"""Seconds for which an answer holds: who asks more often costs nothing."""
PATIENCE = 3.0
"""Seconds after which a write that waits counts as one that is not taken."""
NOT_TAKEN = "nothing can be recorded at present: the database takes no writes, its disk may be full"


class WriteProbe:
    """Writes one small row now and then, and only where somebody asks; used by any number of threads.

    Args:
        database: the database that is asked.
        clock: seconds that only go on.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._writing: threading.Thread | None = None
        self._asked: float | None = None
        self._failed = False

    def why_not(self) -> str | None:
        """Why nothing can be recorded, as of the last seconds; None where it can."""
        with self._lock:
            if self._asked is None or self._clock() - self._asked >= EVERY:
                self._asked = self._clock()
                self._ask()
        return NOT_TAKEN if self._failed else None

    def _ask(self) -> None:
        # One write at a time, in a thread of its own: one that waits holds nobody who asks for longer.
        if self._writing is None or not self._writing.is_alive():
            self._writing = threading.Thread(target=self._write, daemon=True)
            self._writing.start()
        self._writing.join(PATIENCE)
        self._failed = self._failed or self._writing.is_alive()

    def _write(self) -> None:
        try:
            self._database.write(lambda session: operator_settings.set_probe(session, datetime.now(UTC)), about="probe")
        except PodevalError as error:
            _LOG.error("nothing can be recorded: %s", error)
            self._failed = True
        else:
            self._failed = False
