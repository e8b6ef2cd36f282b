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
    try:
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"PODEVAL_DEVICE={chosen} cannot be used here ({reason}); unset it or name another") from None
    return chosen
