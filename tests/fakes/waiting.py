"""Wait for what another thread or process does."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Return as soon as a condition is met; fail if it is not met in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
