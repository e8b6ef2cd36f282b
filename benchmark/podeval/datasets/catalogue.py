"""The catalogue of all dataset builders, by name."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

from podeval.datasets.builder import Builder
from podeval.errors import BadInput, PodevalError
from podeval.hub_sources import locate_hub_source

NAMES = ("real_pod", "lfs_bench", "podbench", "mtalk_bench")
"""Every dataset, in the order of DESIGN."""


def locate_folder(name: str) -> Path:
    """Return the folder of a builder, with its code, its card and its sample.

    Raises:
        BadInput: there is no dataset of this name.
    """
    if name not in NAMES:
        raise BadInput(f"there is no dataset {name!r}; `podeval data list` shows {', '.join(NAMES)}")
    return locate_hub_source("dataset_builders") / name


@cache
def get(name: str) -> type[Builder]:
    """Return the builder of this name.

    Raises:
        BadInput: there is no dataset of this name.
    """
    path = locate_folder(name) / "builder.py"
    # `datasets` names a builder's cache by the last part of its module.
    module_name = f"podeval_dataset_builders.{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PodevalError(f"{path} cannot be imported; reinstall podeval")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return next(
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Builder) and kind.__module__ == module_name
    )
