"""Limits the threads of the numerical libraries beneath numpy and scipy."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """Return a context manager inside which each matrix product runs in the thread that calls it.

    This pays off for many small products: a second thread gains nothing and, if other work keeps the cores busy, each
    product waits for it. On two busy cores, SRMR took three times the processor time and its gammatonegram up to forty
    times.
    """
    limits: AbstractContextManager[Any] = _find_libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _find_libraries() -> ThreadpoolController:
    """Return a controller of this process's numerical libraries; cached, because the search takes some milliseconds."""
    return ThreadpoolController()
