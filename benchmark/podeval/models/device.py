"""The device that torch models of the reference profile run on: the GPU if there is one, otherwise the CPU."""

import os

from podeval.errors import BadInput


def device() -> str:
    """Return `PODEVAL_DEVICE` (such as `cpu` or `cuda:1`), otherwise `cuda` if there is a usable GPU, otherwise `cpu`.

    Raises:
        BadInput: the variable names a device that this machine or this build of torch does not have.
    """
    import torch

    chosen = os.environ.get("PODEVAL_DEVICE")
    if not chosen:
        return "cuda" if torch.cuda.is_available() else "cpu"
    return require_device(chosen, f"PODEVAL_DEVICE={chosen}", "unset it")


def require_device(name: str, title: str, remedy: str) -> str:
    """Return a device that this machine and this build of torch have.

    Args:
        name: as torch has it, such as `cuda:1`.
        title: what a refusal calls it.
        remedy: what can be done instead of naming another.

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
