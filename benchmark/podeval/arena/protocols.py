"""The two ways of comparing long recordings, whose votes are never rated together.

`excerpts`: 20 to 30 s of both, the same part of the script where there is one; a vote from 10 s heard of each side.
`whole`: both recordings whole; a vote from 90 % heard of each side. A benchmark whose outputs make sense
only as a whole (`Benchmark.whole_battles`) is compared by the second alone.
"""

from functools import cache

from podeval import benchmarks

EXCERPTS, WHOLE = "excerpts", "whole"
PROTOCOLS = (EXCERPTS, WHOLE)
"""In the order in which a voter without a wish is given them."""


@cache
def _benchmarks_heard_whole() -> frozenset[str]:
    return frozenset(name for name in benchmarks.list_benchmarks() if benchmarks.get(name).whole_battles)


def list_protocols(benchmark: str) -> tuple[str, ...]:
    """List the protocols by which outputs of a benchmark are compared.

    Args:
        benchmark: its name; empty, or of none of ours, for recordings from elsewhere.
    """
    return (WHOLE,) if benchmark in _benchmarks_heard_whole() else PROTOCOLS
