"""Open third-party weights (pickled checkpoints, and folders for transformers) without running any code in them.

torch's restricted reader (`weights_only`) refuses a file that contains objects of unknown classes, such as a trainer's
state next to the weights. Here, every such class is read as an empty dictionary instead: no code of the checkpoint or
of the class is imported or called, and everything but the weights is ignored. Folders are local: nothing is downloaded,
and no code from them runs.
"""

import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from podeval.errors import ModelMissing
from podeval.models.device import choose_device

if TYPE_CHECKING:
    from torch import Tensor

Weights: TypeAlias = "dict[str, Tensor]"
"""Tensors by name."""


class _Ignored:
    """A placeholder for an object of a class that contains no weights."""

    def __new__(cls, *_: Any) -> Any:
        # The only type on which the restricted reader sets both items and attributes.
        return OrderedDict()


class _IgnoredArray:
    """A placeholder for a NumPy array or number, whose state is a tuple."""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def read_tensors(path: Path, entry: str | None, prefix: str = "", device: str = "cpu") -> Weights:
    """Read the tensors whose names begin with `prefix`; return them by name, without the prefix.

    Args:
        path: a file written by `torch.save`.
        entry: the key of the checkpoint that contains the weights; None if the checkpoint consists of the weights
            alone.
        prefix: beginning of the names, such as `model.`.
        device: the device of the tensors; on the CPU, they are read from the file as they are used.

    Raises:
        ModelMissing: the file is not a checkpoint, cannot be read without running its code, or has no such entry.
    """
    import torch
    from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

    try:
        # Files written by torch before version 1.6 are not archives; they are read as a whole, and only if all their
        # classes are known.
        archive = zipfile.is_zipfile(path)
        unknown = get_unsafe_globals_in_checkpoint(path) if archive else []
        ignored = [(_IgnoredArray if name.startswith("numpy.") else _Ignored, name) for name in unknown]
        with safe_globals(ignored):  # type: ignore[arg-type]
            checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=archive)
    except (OSError, RuntimeError, ValueError, TypeError, LookupError, EOFError, pickle.UnpicklingError) as error:
        raise ModelMissing(
            f"{path} is damaged, or contains code in addition to its weights, so it was not opened; "
            "delete it and install the model again"
        ) from error
    state = checkpoint.get(entry) if isinstance(checkpoint, dict) and entry is not None else checkpoint
    if not isinstance(state, dict):
        raise ModelMissing(f"{path.name} contains no weights{f' under {entry!r}' if entry else ''}; please report it")
    tensors = {str(n): value.detach().to(device) for n, value in state.items() if isinstance(value, torch.Tensor)}
    return select_part(tensors, prefix)


def select_part(weights: Weights, prefix: str) -> Weights:
    """Return the weights whose names begin with `prefix`, by name, without the prefix."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def rename_weights(weights: Weights, patterns: Iterable[tuple[str, str]]) -> Weights:
    """Return the weights under other names, with the replacements of regular expressions applied in order."""
    renamed = {}
    for original, value in weights.items():
        name = original
        for pattern, replacement in patterns:
            name = re.sub(pattern, replacement, name)
        renamed[name] = value
    return renamed


def build_recurrent(weights: Weights) -> Any:
    """Build torch's bidirectional LSTM from these weights, which determine its size, depth and device."""
    import torch

    layers = sum(name.startswith("weight_ih") and not name.endswith("reverse") for name in weights)
    inputs, hidden = weights["weight_ih_l0"].shape[1], weights["weight_hh_l0"].shape[1]
    network: Any = torch.nn.LSTM(inputs, hidden, layers, batch_first=True, bidirectional=True)
    network.load_state_dict(weights)
    return network.to(weights["weight_ih_l0"].device).eval()


def load_pretrained(kind: str, folder: Path, device: str | None = None, **options: Any) -> Any:
    """Load a model of class `kind` from its folder, in evaluation mode, on a device or on the one that all models use.

    Weights are read from `model.safetensors`, or from a `pytorch_model.bin` that contains only tensors.
    """
    return load_from_folder(kind, folder, **options).to(choose_device(device)).eval()


def load_from_folder(kind: str, folder: Path, **options: Any) -> Any:
    """Load a model, tokenizer or feature extractor of class `kind` from its folder."""
    import transformers

    with silence_transformers():
        return getattr(transformers, kind).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **options
        )


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and advice on standard error while the block runs."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
