"""The device that torch models of the reference profile run on: the GPU when there is one, else the processor."""

import os

from podeval.errors import BadInput


def device() -> str:
    """`PODEVAL_DEVICE` (such as `cpu` or `cuda:1`), else `cuda` where there is a usable GPU, else `cpu`.

    Raises:
        BadInput: the variable names a device that this machine or this build of torch does not have.
    """
    import torch

    chosen = os.environ.get("PODEVAL_DEVICE")
    if not chosen:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"PODEVAL_DEVICE={chosen} cannot be used here ({reason}); unset it or name another") from None
    return chosen
