"""Threads of the numerical libraries under numpy and scipy."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """Make each matrix product in the thread that asks for it, while the block runs.

    This pays for many small products: a second thread gains nothing, and beside other work on the cores each product
    waits for it. On two busy cores SRMR took three times the processor, its gammatonegram up to forty times.
    """
    limits: AbstractContextManager[Any] = _find_libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _find_libraries() -> ThreadpoolController:
    """Find the libraries of this process, once: it takes some milliseconds."""
    return ThreadpoolController()
