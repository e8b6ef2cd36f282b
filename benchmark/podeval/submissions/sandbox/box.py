"""The specification of a sandbox: what it runs, what it may use, and how it ended."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podeval.errors import PodevalError


class NoIsolation(PodevalError):
    """Untrusted programs cannot be isolated here; the message says what is missing."""


@dataclass(frozen=True)
class SandboxLimits:
    """The limits of a sandbox.

    Attributes:
        wall_seconds: from start to end.
        memory_bytes: memory of all processes together, whatever holds it: their own, shared, or files in memory; also
            the address space of each process, unless it has a GPU.
        processes: number of processes and threads.
        output_bytes: all files in the writable folder together, also deleted ones that are still open.
        output_files: number of files and folders in it.
        scratch_bytes: size of `/tmp` and of shared memory, each; in memory.
    """

    wall_seconds: float = 3600.0
    memory_bytes: int = 8 * 2**30
    processes: int = 256
    output_bytes: int = 20 * 2**30
    output_files: int = 20_000
    scratch_bytes: int = 256 * 2**20


@dataclass(frozen=True)
class SandboxSpec:
    """The program in a sandbox, and what it can access.

    Attributes:
        command: program and arguments.
        writable: the one folder it may change; must exist and hold nothing of value.
        readable: files and folders it may read besides the system, this Python and podeval.
        environment: all its variables; none are inherited but, with a GPU, those that say which one.
        gpu: give it the GPU's devices, and what the kernel says of them (`/sys`, read-only); the address space of a
            process is then not limited.
        trusted: run it without isolation; only for programs the operator vouches for.
    """

    command: Sequence[str]
    writable: Path
    readable: Sequence[Path] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: bool = False
    trusted: bool = False


@dataclass(frozen=True)
class ExitInfo:
    """The end of a sandbox: `stopped` says why it was stopped from outside; `log` is the end of what it printed."""

    code: int
    stopped: str | None
    log: str
    seconds: float

    @property
    def failure(self) -> str | None:
        """The failure, as a clause; None where it ended by itself and successfully."""
        if self.stopped:
            return self.stopped
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        if self.code > 128 and self.code - 128 in set(signal.Signals):
            return f"it was ended by {signal.Signals(self.code - 128).name}"
        return f"it ended with exit code {self.code}" if self.code else None
