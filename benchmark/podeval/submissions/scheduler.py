"""The periodic work of a server: sweeping the queue, repeating the gate's checks, updating the Hub.

APScheduler runs in one process and stores nothing: after a restart everything is due again. The queue alone decides
which worker works on which submission.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from collections.abc import Iterator

Work = Callable[[], Any]


@contextmanager
def run_periodically(works: Mapping[str, tuple[float, Work]], log: Callable[[str], None]) -> "Iterator[None]":
    """Run each piece of work periodically while the block runs, never two of the same at once.

    Args:
        works: seconds and work by name.
        log: called with what went wrong; the work is tried again at its next time.

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
    # Work that takes longer than its pause is not begun twice; that is meant, and nothing to warn of.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1})
    for name, (seconds, work) in works.items():
        scheduler.add_job(_keep_going(name, work, log), "interval", seconds=seconds, id=name, misfire_grace_time=None)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)


def _keep_going(name: str, work: Work, log: Callable[[str], None]) -> Work:
    def try_work() -> None:
        try:
            work()
        except Exception as error:
            message = str(error) if isinstance(error, PodevalError) else f"{type(error).__name__}: {error}"
            log(f"{name}: {message}")

    return try_work
