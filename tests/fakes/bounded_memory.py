"""Bounds the memory of the test's own process: what takes more meets a MemoryError, as where there is no more."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """While the block runs, this process may have so many bytes of addresses more than it has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
