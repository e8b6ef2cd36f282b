"""The device that torch models of the reference profile run on: the GPU if there is one, otherwise the CPU.

On a GPU, computations use full float32 precision: TF32, which rounds the factors of products to 10 bits, is turned off,
so a model's values equal those on a CPU except for the order of sums.
"""

import gc
import importlib.util
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import TypeVar

from podeval.errors import BadInput

_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Files of GPU drivers."""


def choose_device(requested: str | None = None) -> str:
    """Return the requested device, such as `cuda:1`, or `PODEVAL_DEVICE`, or a usable GPU, or `cpu`, in this order.

    A CPU is always `cpu`, even if a number was requested.

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
    # cuDNN enables it by default.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return chosen


def require_device(name: str, title: str, remedy: str) -> str:
    """Return a device, after checking that this machine and this build of torch have it.

    Args:
        name: name of the device in torch, such as `cuda:1`.
        title: name of the device in the error message.
        remedy: advice in the error message, in addition to the advice to name a different device.

    Raises:
        BadInput: the device does not exist.
    """
    import torch

    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{title} cannot be used here ({reason}); {remedy} or choose another device") from None
    return name


def is_gpu_used() -> bool:
    """Return whether torch models run on a GPU; import torch, which takes seconds, only if there is a driver.

    Raises:
        BadInput: the variable names a device that this machine or this build of torch does not have.
    """
    usable = any(Path(driver).exists() for driver in _DRIVERS) and importlib.util.find_spec("torch") is not None
    return usable and choose_device() != "cpu"


def count_copies(gigabytes: float) -> int | None:
    """Return the number of processes for which the GPU has enough free memory, at least 1; None if models use the CPU.

    Args:
        gigabytes: memory that each process needs.
    """
    if not is_gpu_used():
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(choose_device())
    return max(1, int(free // (gigabytes * 2**30)))


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error from Python, torch or CTranslate2 reports insufficient memory."""
    # cuDNN reports insufficient memory as missing support.
    reasons = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "CUDNN_STATUS_NOT_SUPPORTED")
    is_said = isinstance(error, RuntimeError) and any(reason in str(error) for reason in reasons)
    return is_said or isinstance(error, MemoryError)


def free_memory() -> None:
    """Release the GPU memory that torch keeps for later."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


# The number of CPU cores that models may use, and a function that spreads work over them in order.

S = TypeVar("S")
T = TypeVar("T")

_torch_lock = Lock()
_torch_users: list[int] = []
"""The number of torch threads before the first use of this context limited it to one."""


@contextmanager
def limit_torch_to_one_thread() -> Iterator[None]:
    """Limit each torch operation inside the block to one thread.

    For small networks, a second thread costs more time than it saves, because it busy-waits between operations.
    Detecting music, finding overlaps and separating took two to three times the processor time with two threads, and
    the results were identical.
    """
    import torch

    with _torch_lock:
        _torch_users.append(_torch_users[0] if _torch_users else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _torch_lock:
            torch.set_num_threads(_torch_users.pop())


def count_threads(otherwise: int | None = None) -> int:
    """Return `PODEVAL_THREADS` or, if it is not set, `otherwise` or the number of cores that this process may run on.

    Raises:
        BadInput: the variable is not a whole number of at least 1.
    """
    chosen = os.environ.get("PODEVAL_THREADS")
    if not chosen:
        return otherwise or len(os.sched_getaffinity(0))
    if not chosen.isdecimal() or int(chosen) < 1:
        raise BadInput(f"PODEVAL_THREADS must be a whole number of at least 1, not {chosen!r}")
    return int(chosen)


def run_ahead(work: Callable[[S], T], items: Iterable[S], pool: ThreadPoolExecutor | None = None) -> Iterator[T]:
    """Yield results in order, with one more piece of work in progress than there are threads, so that memory use is
    bounded.

    Args:
        work: function to run in threads.
        items: the items; the next is taken whenever a thread becomes free.
        pool: a pool of as many threads as the process has; by default a new pool.
    """
    most = count_threads()
    waiting: deque[Future[T]] = deque()
    with nullcontext(pool) if pool else ThreadPoolExecutor(most) as workers:
        for item in items:
            waiting.append(workers.submit(work, item))
            while len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
