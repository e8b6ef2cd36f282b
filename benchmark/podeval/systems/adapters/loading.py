"""A folder of files is opened with transformers: without a network or code of the folder, and from safetensors only.

A copy of a model lies on one device where it fits; where it does not, accelerate spreads it over all GPUs.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.models.device import choose_device as usual_device
from podeval.models.device import require_device
from podeval.models.pretrained import silence_transformers
from podeval.systems.adapters.snapshot import count_weight_bytes

_SHARE = 0.8
"""Of a GPU's free memory that weights may fill; the rest is for what is computed."""


def choose_device(requested: str | None) -> str:
    """Choose where one copy runs: what the job asks for, else this process's GPU, else the processor.

    Raises:
        BadInput: the device is not there.
    """
    if requested is not None:
        return require_device(requested, f"the device {requested}", "leave it out")
    chosen = usual_device()
    rank = os.environ.get("LOCAL_RANK")
    return f"cuda:{rank}" if chosen == "cuda" and rank is not None else chosen


def count_gpus_to_share(folder: Path, requested: str | None) -> int:
    """Count the GPUs that could each hold a copy of the model; 0 where there is none, or where it fits on none."""
    import torch

    if requested is not None or os.environ.get("PODEVAL_DEVICE") or not torch.cuda.is_available():
        return 0
    count = torch.cuda.device_count()
    return count if all(_fits(folder, number) for number in range(count)) else 0


def load_model(kind: str, folder: Path, device: str, **options: Any) -> Any:
    """Load a model of class `kind` of transformers, ready to be used.

    Raises:
        BadInput: it cannot be loaded; with the library's reason.
    """
    import torch

    on_gpu = device.startswith("cuda")
    options.setdefault("dtype", "auto" if on_gpu else torch.float32)
    if on_gpu and not _fits(folder, torch.device(device).index or 0):
        options["device_map"] = "auto"
    with translate_errors(folder):
        network = _class(kind).from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, **options
        )
        return network.eval() if "device_map" in options else network.to(device).eval()


def load_reader(kind: str, folder: Path, **options: Any) -> Any:
    """Load a tokenizer or processor of class `kind` of transformers.

    Raises:
        BadInput: it cannot be loaded; with the library's reason.
    """
    with translate_errors(folder):
        return _class(kind).from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Turn what a library says against a model's files into a sentence.

    Raises:
        BadInput: anything went wrong but want of memory.
    """
    from accelerate.utils.memory import should_reduce_batch_size

    advice = logging.getLogger("transformers")
    level = advice.level
    try:
        with silence_transformers():
            yield
    except (BadInput, MemoryError):
        raise
    except Exception as error:
        if should_reduce_batch_size(error):
            raise
        reason = " ".join(str(error).split())[:500] or type(error).__name__
        raise BadInput(f"the model in {folder.name} cannot be loaded: {reason}") from error
    finally:
        advice.setLevel(level)


def _class(kind: str) -> Any:
    import transformers

    return getattr(transformers, kind)


def _fits(folder: Path, gpu: int) -> bool:
    import torch

    free, _ = torch.cuda.mem_get_info(gpu)
    return count_weight_bytes(folder) <= _SHARE * free
