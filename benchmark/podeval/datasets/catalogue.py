"""The catalogue of all dataset builders, by name."""

from functools import cache
from pathlib import Path

from podeval.datasets.builder import Builder
from podeval.errors import require_known
from podeval.files import import_file, locate_hub_source

NAMES = ("real_pod", "lfs_bench", "podbench", "mtalk_bench")
"""Every dataset, in the order in which the benchmarks are presented."""


def locate_folder(name: str) -> Path:
    """Return the folder of a builder, with its code, its card and its sample.

    Raises:
        BadInput: no dataset has this name.
    """
    require_known("dataset", NAMES, name)
    return locate_hub_source("dataset_builders") / name


@cache
def get(name: str) -> type[Builder]:
    """Return the builder with this name.

    Raises:
        BadInput: no dataset has this name.
    """
    path = locate_folder(name) / "builder.py"
    # `datasets` names a builder's cache after the last part of its module.
    module = import_file(path, f"podeval_dataset_builders.{name}")
    return next(
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Builder) and kind.__module__ == module.__name__
    )
