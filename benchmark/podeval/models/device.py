"""The device that torch models of the reference profile run on: the GPU if there is one, otherwise the CPU.

On a GPU float32 is float32: TF32, which rounds the factors of products to 10 bits, is turned off, so that a model's
values are those it has on a CPU, but for the order of sums.
"""

import gc
import importlib.util
import os
import sys
from pathlib import Path

from podeval.errors import BadInput

_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Files of the drivers of GPUs."""


def choose_device(requested: str | None = None) -> str:
    """Return the requested device, such as `cuda:1`, otherwise `PODEVAL_DEVICE`, otherwise a usable GPU, or `cpu`.

    A CPU is `cpu` by whatever number it was asked for.

    Raises:
        BadInput: the variable names a device that this machine or this build of torch does not have.
    """
    import torch

    chosen = requested or os.environ.get("PODEVAL_DEVICE")
    if not chosen:
        chosen = "cuda" if torch.cuda.is_available() else "cpu"
    else:
        require_device(chosen, f"PODEVAL_DEVICE={chosen}", "unset it")
    if torch.device(chosen).type == "cpu":
        return "cpu"
    # cuDNN has it on unless told otherwise.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return chosen


def require_device(name: str, title: str, remedy: str) -> str:
    """Return a device that this machine and this build of torch have.

    Args:
        name: name of the device in torch, such as `cuda:1`.
        title: name of the device in a refusal.
        remedy: advice in a refusal, besides naming another device.

    Raises:
        BadInput: the device is not there.
    """
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{title} cannot be used here ({reason}); {remedy} or name another") from None
    return name


def is_gpu_used() -> bool:
    """Tell whether torch models run on a GPU; torch, which takes seconds to import, only where there is a driver.

    Raises:
        BadInput: the variable names a device that this machine or this build of torch does not have.
    """
    usable = any(Path(driver).exists() for driver in _DRIVERS) and importlib.util.find_spec("torch") is not None
    return usable and choose_device() != "cpu"


def count_copies(gigabytes: float) -> int | None:
    """Return how many processes the free memory of the GPU has room for, at least 1; None where models use the CPU.

    Args:
        gigabytes: memory that each copy needs.
    """
    if not is_gpu_used():
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(choose_device())
    return max(1, int(free // (gigabytes * 2**30)))


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an error of Python, torch or CTranslate2 says that memory was too small."""
    # cuDNN says that it does not support what it has no memory for.
    reasons = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "CUDNN_STATUS_NOT_SUPPORTED")
    is_said = isinstance(error, RuntimeError) and any(reason in str(error) for reason in reasons)
    return is_said or isinstance(error, MemoryError)


def free_memory() -> None:
    """Give back to the GPU what torch keeps for later."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
