"""The sandbox for untrusted programs: no network, no secrets, one writable folder, limits on all resources.

Isolation is by bubblewrap (new namespaces, a bare file system, no privileges, a user of its own) and by a filter of
system calls; limits of a process are prlimit's, memory is limited by a cgroup where one can be made. What none of them
limits (memory without a cgroup, output of all processes together, time, the host's disk) is watched from outside. The
sandbox dies with the thread that opened it, however that ends.
"""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from podeval.submissions.sandbox import cgroup, command, seccomp
from podeval.submissions.sandbox.command import ExitInfo, NoIsolation, SandboxLimits, SandboxSpec
from podeval.submissions.sandbox.running import TICK, Running

__all__ = [
    "ADVICE",
    "TICK",
    "ExitInfo",
    "NoIsolation",
    "Running",
    "SandboxLimits",
    "SandboxSpec",
    "build_python_command",
    "describe_memory_bound",
    "describe_system_calls",
    "explain_missing_gpu",
    "explain_missing_isolation",
    "open_sandbox",
    "require",
    "run",
]

ADVICE = "install bubblewrap (apt-get install bubblewrap util-linux) on a Linux host that allows namespaces"


@cache
def explain_missing_isolation() -> str | None:
    """Return why nothing can be isolated here, found by one trial; None if it can."""
    absent = [tool for tool in command.PROGRAMS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found; {ADVICE}"
    if unknown := seccomp.explain_missing_filter():
        return unknown
    failure = command.open_trial()
    return f"bubblewrap does not work here ({failure}); {ADVICE}" if failure else None


def explain_missing_gpu(*, trusted: bool) -> str | None:
    """Return why no program in a box can use a GPU here, found by one trial, which takes seconds; None if it can.

    Args:
        trusted: whether programs run without isolation.

    Raises:
        NoIsolation: they do not, and nothing can be isolated here.
    """
    if not command.list_gpu_devices():
        return "there is none, or its driver is not loaded (no /dev/nvidia*, /dev/kfd or /dev/dri)"
    # Where torch finds no GPU it uses the processor without a word, which would take a hundred times as long.
    with tempfile.TemporaryDirectory(prefix="podeval-gpu-") as folder:
        use = "import torch; print(torch.ones(8, device='cuda').sum().item())"
        ended = run(SandboxSpec([sys.executable, "-c", use], Path(folder), gpu=True, trusted=trusted))
    if ended.failure is None:
        return None
    reason = (ended.log.strip().splitlines() or [ended.failure])[-1]
    return f"torch cannot use it in the sandbox ({reason[:200]})"


def require() -> None:
    """Refuse if nothing can be isolated here.

    Raises:
        NoIsolation: the message says what is missing.
    """
    if (why := explain_missing_isolation()) is not None:
        raise NoIsolation(
            f"untrusted models are not run without isolation: {why}; or, for models you trust, say --trust-models"
        )


def describe_memory_bound() -> str:
    """Describe what bounds the memory of a box here, as a clause."""
    if (tree := cgroup.find_tree()) is not None:
        return f"by a memory cgroup of its own (version {tree.interface.version}, below {tree.group})"
    return "by looking at it ten times a second, as no memory cgroup can be made here (docs/operating.md: how one can)"


def describe_system_calls() -> str:
    """Describe the filter of system calls here, as a clause."""
    return seccomp.explain_missing_filter() or f"{seccomp.count()} are refused or restricted"


def build_python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python, isolated from the folder's and the user's packages."""
    return [sys.executable, "-P", "-s", "-m", module, *arguments]


def run(box: SandboxSpec) -> ExitInfo:
    """Run a program in a sandbox to its end."""
    with open_sandbox(box) as running:
        return running.wait()


@contextlib.contextmanager
def open_sandbox(box: SandboxSpec) -> Iterator[Running]:
    """Start a sandbox; when the block ends, every process in it is dead.

    Raises:
        NoIsolation: it is not trusted, and nothing can be isolated here.
    """
    if not box.trusted:
        require()
    running = Running(box)
    try:
        yield running
    finally:
        running.stop("it was not needed any more")
        running.wait()
