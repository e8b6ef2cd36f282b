"""The benchmarks, each declared in one file: the tasks for systems, the metrics and the aggregation.

To add a benchmark, add a module here that ends in `BENCHMARK = Benchmark(...)`; it is discovered automatically. If its
items are rows of a dataset, the module also defines `item(row) -> Item`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import require_known

__all__ = [
    "Benchmark",
    "benchmark",
    "find_item_maker",
    "get",
    "item",
    "lfs_bench",
    "list_benchmarks",
    "order_slices",
    "presets",
    "real_pod",
    "real_pod_splits",
    "records",
]


def list_benchmarks() -> tuple[str, ...]:
    """Return the names of all benchmarks in alphabetical order."""
    return tuple(sorted(find_all()))


def get(name: str) -> Benchmark:
    """Return the benchmark of that name.

    Raises:
        BadInput: no benchmark has that name; the message suggests the closest one.
    """
    require_known("benchmark", list_benchmarks(), name)
    return find_all()[name]


def find_item_maker(name: str) -> Callable[[Mapping[str, Any]], Item]:
    """Return the function that turns a row of the benchmark's dataset into an item."""
    maker: Callable[[Mapping[str, Any]], Item] = importlib.import_module(f"{__name__}.{get(name).name}").item
    return maker


@cache
def find_all() -> dict[str, Benchmark]:
    """Return all benchmarks that modules of this package declare, by name."""
    benchmarks = {}
    for module in pkgutil.iter_modules(__path__):
        declared = getattr(importlib.import_module(f"{__name__}.{module.name}"), "BENCHMARK", None)
        if isinstance(declared, Benchmark):
            benchmarks[declared.name] = declared
    return benchmarks


def order_slices(benchmark: str) -> Callable[[str], tuple[Any, ...]]:
    """Return a sort key for slices: the benchmark's breakdowns and groups come first, in declared order, then others by
    name.
    """
    record = find_all().get(benchmark)
    breakdowns = enumerate(record.breakdowns if record else ())
    declared = {part.name: (number, list(part.groups)) for number, part in breakdowns}

    def order(name: str) -> tuple[Any, ...]:
        breakdown, _, group = name.partition("=")
        number, groups = declared.get(breakdown, (len(declared), []))
        return (bool(name), number, breakdown, groups.index(group) if group in groups else len(groups), group)

    return order
