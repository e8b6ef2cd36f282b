"""The number of CPU cores that models may use."""

import os

from podeval.errors import BadInput


def threads(otherwise: int | None = None) -> int:
    """Return `PODEVAL_THREADS`; without it `otherwise`, or the number of cores this process may run on.

    Raises:
        BadInput: the variable is not a whole number of at least 1.
    """
    chosen = os.environ.get("PODEVAL_THREADS")
    if not chosen:
        return otherwise or len(os.sched_getaffinity(0))
    if not chosen.isdecimal() or int(chosen) < 1:
        raise BadInput(f"PODEVAL_THREADS must be a whole number of at least 1, not {chosen!r}")
    return int(chosen)
