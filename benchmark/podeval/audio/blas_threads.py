"""Threads of the numerical libraries under numpy and scipy."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """A block in which each product of matrices is made by the thread that asks for it.

    For many small ones: a second thread gains nothing, and beside other work on the cores each product waits for it.
    On two busy cores SRMR took three times the processor, its gammatonegram up to forty times.
    """
    limits: AbstractContextManager[Any] = _find_libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _find_libraries() -> ThreadpoolController:
    """Those of this process; looking for them takes some milliseconds."""
    return ThreadpoolController()
