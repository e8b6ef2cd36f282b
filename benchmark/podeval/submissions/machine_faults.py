"""Faults of the machine that works on submissions, as opposed to faults of the submissions.

This process observes a `MachineFault` itself: the submission returns to the queue and is never given up because of it.
A program in a sandbox cannot be trusted as far: what it reports counts as an attempt (`OursFailed`).
"""

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from podeval import benchmarks
from podeval.errors import ModelMissing, PodevalError, StoreUnusable
from podeval.files import DiskFull
from podeval.metrics import catalogue
from podeval.models import registry
from podeval.submissions import sandbox
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.sandbox import ExitInfo, NoIsolation, Running, SandboxSpec
from podeval.submissions.states import MachineFault, OursFailed

LEAST_FREE = 512 * 2**20
"""Free bytes of the disk below which no sandbox works."""

_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM, errno.EAGAIN}
    | {errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ESTALE}
)
_KILLED = (-9, 128 + 9)


def recognise_machine_fault(error: BaseException) -> MachineFault | None:
    """Return an error as a fault of this machine; None if it is not one."""
    match error:
        case MachineFault():
            return error
        case NoIsolation() | ModelMissing():
            return MachineFault(str(error))
        case DiskFull() | StoreUnusable():
            return MachineFault(str(error), everything=True)
        case MemoryError():
            return MachineFault("this machine ran out of memory; end other programs, or give it more", everything=True)
        case OSError() if error.errno in _ERRORS:
            about = f" ({error.filename})" if error.filename else ""
            return MachineFault(f"this machine refuses: {error.strerror}{about}", everything=True)
        case PodevalError() if isinstance(error.__cause__, OSError) and error.__cause__.errno in _ERRORS:
            return MachineFault(str(error), everything=True)
    return None


def require_isolation(what: str) -> None:
    """Refuse if no sandbox can be opened.

    Args:
        what: the work that needs one, as a clause.

    Raises:
        MachineFault: the message says what is missing.
    """
    if (why := sandbox.explain_missing_isolation()) is not None:
        raise MachineFault(f"{what} without isolation: {why}")


def require_disk(folder: Path, held: int = 0) -> None:
    """Refuse if the disk has too little room for any sandbox, for which this sandbox is not the cause.

    Args:
        folder: a folder on the disk.
        held: bytes of it that the sandbox itself holds.

    Raises:
        MachineFault: the message says how little is left.
    """
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE and held < LEAST_FREE:
        raise MachineFault(
            f"the disk of the work folder is full: {free // 2**20} MiB are left, {LEAST_FREE // 2**20} MiB are the "
            "least; free some space",
            everything=True,
        )


def require_no_fault(ended: ExitInfo, folder: Path, kills_before: int) -> None:
    """Check the machine for faults before a program in a sandbox is blamed for how it ended.

    Args:
        ended: how the program ended.
        folder: folder to which the sandbox wrote.
        kills_before: `count_memory_kills()` before it was started.

    Raises:
        MachineFault: the disk is full for other reasons, or sandboxes do not work here any more.
        OursFailed: the machine ran out of memory.
    """
    if ended.failure is None:
        return
    require_disk(folder, measure_disk_use(folder))
    if ended.log.startswith("bwrap: "):
        # Asked anew: what worked when the worker started need not work now.
        tried = getattr(sandbox.explain_missing_isolation, "__wrapped__", sandbox.explain_missing_isolation)
        if (why := tried()) is not None:
            raise MachineFault(f"sandboxes can no longer be opened: {why}")
        raise OursFailed(f"its sandbox could not be opened ({ended.log.splitlines()[0][:200]})")
    killed = ended.stopped is None and ended.code in _KILLED and count_memory_kills() > kills_before
    if killed or "the machine's memory" in (ended.stopped or ""):
        raise OursFailed("the machine ran out of memory while it ran; end other programs, or lower --memory")


def measure_disk_use(folder: Path) -> int:
    """Return the bytes of the files below a folder, without following links; only the first of very many count."""
    size = 0
    for root, _, names in itertools.islice(os.walk(folder), 10_000):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_blocks * 512
    return size


@contextlib.contextmanager
def open_box(box: SandboxSpec) -> Iterator[Running]:
    """Open a sandbox; when the block ends, every process in it is dead.

    Raises:
        MachineFault: it cannot be started here.
    """
    with contextlib.ExitStack() as held:
        try:
            running = held.enter_context(sandbox.open_sandbox(box))
        except OSError as error:
            raise MachineFault(f"no sandbox can be opened on this machine ({error})", everything=True) from error
        yield running


def count_memory_kills() -> int:
    """Count the processes that the kernel has killed because memory ran out; 0 if the kernel does not tell."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def require_weights(entry: RunEntry, profile: str) -> None:
    """Refuse to measure if none of the models that a run's metrics need is installed; some may be missing.

    Raises:
        MachineFault: the message gives the command that helps.
    """
    uses = benchmarks.get(entry.benchmark).metrics(entry.track, entry.split, profile)
    jobs = {job for use in uses for job in catalogue.get(use.name).jobs(use.parameters)}
    missing = [card.missing() for card in registry.list_cards(profile, sorted(jobs))]
    if missing and all(missing):
        raise MachineFault(f"nothing can be measured here: {missing[0]}")
