"""Loads models with transformers from a local folder: nothing is downloaded, and no code of the folder is run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podeval.models.device import choose_device


def load_pretrained(kind: str, folder: Path, **options: Any) -> Any:
    """Load a model of class `kind` from its folder, in evaluation mode, on the device that models run on.

    Weights are read from `model.safetensors`, or from a `pytorch_model.bin` that holds nothing but tensors.
    """
    return _load(kind, folder, **options).to(choose_device()).eval()


def load_preprocessor(kind: str, folder: Path) -> Any:
    """Load a tokenizer or feature extractor of class `kind` from its folder."""
    return _load(kind, folder)


def _load(kind: str, folder: Path, **options: Any) -> Any:
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
