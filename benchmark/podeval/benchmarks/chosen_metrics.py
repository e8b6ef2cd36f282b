"""A benchmark of which only some metrics are measured: for a first look, or a gate on one figure."""

from collections.abc import Collection

from podeval.benchmarks.benchmark import Benchmark, Dimension
from podeval.errors import BadInput


def keep_metrics(benchmark: Benchmark, names: Collection[str], track: str) -> Benchmark:
    """Return the benchmark with these metrics alone; figures that are made of others only where those are kept.

    Raises:
        BadInput: a name is of no metric that the benchmark measures on the track; lists those that it does.
    """
    measured = [use.name for use in benchmark.metrics(track)]
    if unknown := [name for name in names if name not in measured]:
        raise BadInput(
            f"{benchmark.title} does not measure {', '.join(unknown)} on the track {track}; choose among "
            f"{', '.join(measured)}"
        )
    dimensions = [_keep(dimension, names) for dimension in benchmark.dimensions]
    columns = {column for dimension in dimensions for column in dimension.columns}
    composites = tuple(composite for composite in benchmark.composites if columns.issuperset(composite.columns))
    kept = tuple(dimension for dimension in dimensions if dimension.metrics)
    return benchmark.model_copy(update={"dimensions": kept, "composites": composites})


def _keep(dimension: Dimension, names: Collection[str]) -> Dimension:
    uses = tuple(use for use in dimension.metrics if use.name in names)
    return dimension.model_copy(update={"metrics": uses})
