"""The heartbeat that keeps a worker's claim alive, and the progress that it reports."""

import contextlib
import threading
import time
from collections.abc import Iterator

from podeval.submissions.queue import Claim, LeaseLost, Queue


class Heartbeat:
    """The progress of a claim's work, and whether the claim is still valid.

    Args:
        claim: the claim.
        lease_seconds: time after which a claim that was not renewed may be another worker's.
    """

    def __init__(self, claim: Claim, lease_seconds: float) -> None:
        self.done = 0
        self.total = 0
        self.lost: LeaseLost | None = None
        self.renewed = time.monotonic()
        self.trouble = "no answer"
        self._claim, self._lease_seconds = claim, lease_seconds

    def check(self) -> None:
        """Stop the work if the claim is not valid any more.

        Raises:
            LeaseLost: the claim is not valid, or may not be.
        """
        if self.lost is not None:
            raise self.lost
        # By the clock, not by the beats: one may be waiting for an answer that does not come.
        if time.monotonic() - self.renewed > self._lease_seconds:
            raise LeaseLost(f"{self._claim.id}: the queue could not be reached for too long ({self.trouble})")


@contextlib.contextmanager
def keep_alive(queue: Queue, claim: Claim) -> Iterator[Heartbeat]:
    """Keep a claim alive from another thread while its work is done."""
    pulse, over = Heartbeat(claim, queue.policy.lease_seconds), threading.Event()
    pause = queue.policy.lease_seconds / 4

    def beat() -> None:
        while not over.wait(pause):
            now = time.monotonic()
            try:
                queue.beat(claim, done=pulse.done, total=pulse.total)
                pulse.renewed = now
            except LeaseLost as lost:
                pulse.lost = lost
                return
            except Exception as error:  # whatever it is, the next beat may come through
                pulse.trouble = str(error)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield pulse
    finally:
        over.set()
        thread.join()
