"""Run the periodic work of a server, and wake workers on many machines.

APScheduler runs in one process and stores nothing, so everything is due again after a restart. Procrastinate wakes
workers on PostgreSQL and stores nothing about submissions: a job only means "check the queue", and there is exactly one
for each waiting submission. A woken worker claims the next submission, which may differ from the submission for which
it was woken; if a job is lost, the next `announce` replaces it. Only the queue assigns submissions to workers.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import inspect

from podeval.errors import BadInput, PodevalError
from podeval.submissions.queue import Queue

Work = Callable[[], Any]


@contextmanager
def run_periodically(works: Mapping[str, tuple[float, Work]], log: Callable[[str], None]) -> Iterator[None]:
    """Run each task periodically while the block runs; no task runs twice at the same time.

    Failed tasks are logged, and run again at their next scheduled time.

    Raises:
        BadInput: APScheduler is not installed.
    """
    if not works:
        yield
        return
    try:
        from apscheduler.schedulers.background import BackgroundScheduler
    except ModuleNotFoundError:
        raise BadInput("the scheduler needs APScheduler; run `pip install 'podeval[space]'`") from None
    # A task that takes longer than its interval is not started a second time; this is intended and needs no warning.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1})
    for name, (seconds, work) in works.items():
        tried = partial(_try_work, name, work, log)
        scheduler.add_job(tried, "interval", seconds=seconds, id=name, misfire_grace_time=None)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)


def _try_work(name: str, work: Work, log: Callable[[str], None]) -> None:
    try:
        work()
    except Exception as error:
        message = str(error) if isinstance(error, PodevalError) else f"{type(error).__name__}: {error}"
        log(f"{name}: {message}")


CHANNEL = "podeval"
TASK = "podeval.look"

LOOK_SECONDS = 1.0
"""Seconds between a worker's checks for announcements."""


class Dispatch:
    """The dispatcher that wakes workers for submissions waiting in a queue on PostgreSQL.

    Args:
        queue: a queue on PostgreSQL; procrastinate's tables are created in its database if they are missing.

    Raises:
        BadInput: the queue is on SQLite, or procrastinate is not installed.
    """

    def __init__(self, queue: Queue) -> None:
        if queue.database.is_sqlite:
            raise BadInput("procrastinate needs PostgreSQL; with SQLite, let workers watch the queue (--watch)")
        try:
            import procrastinate
        except ModuleNotFoundError:
            raise BadInput("dispatching needs procrastinate; run `pip install 'podeval[postgres]'`") from None
        self._queue = queue
        self._conninfo = queue.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._sender = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=self._conninfo))
        # If workers start together, one worker creates the tables while the others wait.
        with queue.database.writing() as session:
            if not inspect(session.connection()).has_table("procrastinate_jobs"):
                with self._sender.open():
                    self._sender.schema_manager.apply_schema()

    def announce(self) -> int:
        """Wake a worker for every waiting submission that has not been announced; return the number of these
        submissions.
        """
        from procrastinate.exceptions import AlreadyEnqueued

        count = 0
        standings = self._queue.standings()
        with self._sender.open():
            for id in standings:
                task = self._sender.configure_task(
                    TASK, queue=CHANNEL, queueing_lock=id, schedule_at=self._queue.get(id).not_before
                )
                try:
                    task.defer()
                    count += 1
                except AlreadyEnqueued:
                    continue
        return count

    def work(self, once: Work, *, wait: bool = True) -> None:
        """Run a worker whenever it is woken, on one submission at a time.

        Args:
            once: function that lets a worker on the same queue process one submission.
            wait: whether to wait for further submissions until a signal arrives, instead of returning when nothing is
                announced.
        """
        import procrastinate

        app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=self._conninfo))

        @app.task(name=TASK, queue=CHANNEL)
        def look() -> None:
            once()

        # The worker polls instead of listening, because procrastinate ends a worker whose listener loses its connection
        # to the server.
        app.run_worker(
            queues=[CHANNEL],
            concurrency=1,
            wait=wait,
            delete_jobs="always",
            listen_notify=False,
            fetch_job_polling_interval=LOOK_SECONDS,
        )
