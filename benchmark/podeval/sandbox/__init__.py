"""The sandbox for untrusted programs: no network, no secrets, one writable folder, limits on all resources.

Programs are isolated by bubblewrap (new namespaces, a bare file system, no privileges, a separate user) and by a system
call filter; prlimit limits each process, and a cgroup limits memory if one can be created. Everything that these do not
limit (memory without a cgroup, output of all processes together, time, the host's disk) is monitored from outside. When
the thread that opened a sandbox ends, for whatever reason, the sandbox is killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from podeval.sandbox import cgroup, command, seccomp, second_wall, usage
from podeval.sandbox.cgroup import count_memory_kills
from podeval.sandbox.command import ExitInfo, NoIsolation, SandboxLimits, SandboxSpec

__all__ = [
    "ADVICE",
    "ONE_THREAD",
    "TICK",
    "ExitInfo",
    "NoIsolation",
    "Running",
    "SandboxLimits",
    "SandboxSpec",
    "build_python_command",
    "count_memory_kills",
    "describe_decoding",
    "describe_memory_bound",
    "describe_system_calls",
    "explain_missing_gpu",
    "explain_missing_isolation",
    "explain_missing_second_wall",
    "format_size",
    "open_sandbox",
    "require",
    "run",
    "transcode",
]

ADVICE = "install bubblewrap (apt-get install bubblewrap util-linux) on a Linux host that allows namespaces"

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment for programs that decode; decoding does not benefit from more threads."""

TICK = 0.1
"""Seconds between two checks of the resources in use."""

_LOG_BYTES = 16_384
_FREE_DISK = 512 * 2**20
"""Bytes of the host's disk that must stay free."""
_FREE_MEMORY = 512 * 2**20
"""Bytes of the host's memory that must stay free; for a host with less than 8 GiB, 1/16 of its memory."""
_KILL_SECONDS = 10.0
"""Seconds to wait for killed processes to disappear."""
_SPARED = 4
"""Pause between two costly checks, as a multiple of a check's duration."""


@cache
def explain_missing_isolation() -> str | None:
    """Return the reason why isolation is impossible on this machine, determined by one trial; None if it works."""
    absent = [tool for tool in command.PROGRAMS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found; {ADVICE}"
    if unknown := seccomp.explain_missing_filter():
        return unknown
    with seccomp.open_filter() as system_calls:
        failure = command.open_trial(system_calls)
    return f"bubblewrap does not work here ({failure}); {ADVICE}" if failure else None


def explain_missing_gpu(*, trusted: bool) -> str | None:
    """Return the reason why sandboxed programs cannot use a GPU on this machine, determined by one trial that takes
    seconds; None if they can.

    Args:
        trusted: whether programs run without isolation.

    Raises:
        NoIsolation: the programs are not trusted, and isolation is impossible on this machine.
    """
    if not command.list_gpu_devices():
        return "there is no GPU, or its driver is not loaded (no /dev/nvidia*, /dev/kfd or /dev/dri)"
    # If torch does not find a GPU, it silently uses the CPU, which takes about a hundred times as long.
    with tempfile.TemporaryDirectory(prefix="podeval-gpu-") as folder:
        use = "import torch; print(torch.ones(8, device='cuda').sum().item())"
        ended = run(SandboxSpec([sys.executable, "-c", use], Path(folder), gpu=True, trusted=trusted))
    if ended.failure is None:
        return None
    reason = (ended.log.strip().splitlines() or [ended.failure])[-1]
    return f"torch cannot use it in the sandbox ({reason[:200]})"


def require() -> None:
    """Raise an error if isolation is impossible on this machine.

    Raises:
        NoIsolation: isolation is impossible; the message names the missing part.
    """
    if (why := explain_missing_isolation()) is not None:
        raise NoIsolation(
            f"untrusted models are not run without isolation: {why}; add --trust-models only for models that you trust"
        )


def describe_memory_bound() -> str:
    """Describe the memory limit of sandboxes on this machine, as a clause."""
    if (tree := cgroup.find_tree()) is not None:
        return f"by its own memory cgroup (version {tree.interface.version}, below {tree.group})"
    return "by checks ten times per second, because no memory cgroup can be created here (see docs/operating.md)"


def describe_system_calls() -> str:
    """Describe the system call filter around untrusted content, as a clause."""
    isolated = explain_missing_isolation() is None
    if not isolated and (why := explain_missing_second_wall()) is not None:
        return f"none is refused ({why})"
    return f"{seccomp.count(namespaces=isolated)} are refused or restricted"


@cache
def explain_missing_second_wall() -> str | None:
    """Return the reason why programs cannot isolate themselves on this machine, determined by one trial; None if they
    can.
    """
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has neither Landlock nor a filter of system calls"
    if unknown := seccomp.explain_missing_filter():
        return unknown
    with seccomp.open_filter(namespaces=False) as system_calls:
        return command.try_second_wall(system_calls)


def describe_decoding() -> str:
    """Describe the protection around decoding and measuring untrusted recordings on this machine, as a clause."""
    if explain_missing_isolation() is None:
        return "in the sandbox"
    if (why := explain_missing_second_wall()) is not None:
        return f"without isolation, in a process with its own limits ({why})"
    if version := second_wall.find_version():
        return f"behind Landlock (version {version}) and a filter of system calls, without namespaces"
    return "behind a filter of system calls only, because this kernel has no Landlock: such a program can read files"


def build_python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python, without the folder's and the user's own packages."""
    return [sys.executable, "-P", "-s", "-m", module, *arguments]


class Running:
    """A running sandbox and the thread that watches it."""

    def __init__(self, box: SandboxSpec) -> None:
        self._limits, self._folder = box.limits, box.writable
        self._before = 0 if box.trusted else command.OWN_PROCESSES
        self._began = time.monotonic()
        self._stopped: str | None = None
        self._tail = bytearray()
        self._shared, self._disk = usage.read_machine(cgroup.read_memory_room()).shared, 0
        with contextlib.suppress(OSError):
            self._disk = usage.free_disk(box.writable)
        # The process cannot be inspected before it has executed the program.
        self._held, self._next_held = usage.Held(), self._began + TICK
        self._group = (
            None if box.trusted and not box.own else cgroup.open_group(box.limits.memory_bytes, box.limits.processes)
        )
        try:
            self._process = self._start(box)
        except BaseException:
            if self._group is not None:
                self._group.close()
            raise
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def alive(self) -> bool:
        """Whether any process of the sandbox may still be writing."""
        return self._watcher.is_alive()

    def stop(self, why: str) -> None:
        """Stop the sandbox; only the first reason is kept."""
        if self._stopped is None:
            self._stopped = why

    def wait(self) -> ExitInfo:
        """Wait until every process in the sandbox is dead; return how the sandbox ended."""
        self._watcher.join()
        return self._ended

    def _start(self, box: SandboxSpec) -> "subprocess.Popen[bytes]":
        with contextlib.ExitStack() as open_files:
            inherited: list[int] = []
            if not box.trusted or (box.own and explain_missing_second_wall() is None):
                inherited = [open_files.enter_context(seccomp.open_filter(namespaces=not box.trusted))]
            if box.trusted:
                if inherited:
                    second_wall.hide_memory()
                line, settings = command.build_trusted_command(box, *inherited), command.build_environment(box)
            else:
                line = command.build_isolated_command(box, *inherited)
                settings = {"PATH": os.environ.get("PATH", "/usr/bin")}
            line = [*([] if self._group is None else self._group.enter), *line]
            return subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=settings,
                cwd=box.writable,
                start_new_session=True,
                pass_fds=inherited,
            )

    def _watch(self) -> None:
        """Watch the sandbox until it ends; if watching fails, stop the sandbox at once."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        try:
            reason = self._watch_until_end()
        except Exception as error:
            reason = f"watching it failed ({type(error).__name__}: {error})"
        seconds = time.monotonic() - self._began
        self._kill()
        # By now, every process that could print is dead.
        reader.join(_KILL_SECONDS)
        reason = reason or self._killed_by_the_kernel() or self._left_too_much()
        if self._group is not None:
            self._group.close()
        log = bytes(self._tail).decode("utf-8", "replace")
        self._ended = ExitInfo(self._process.returncode, reason, log, seconds)

    def _watch_until_end(self) -> str | None:
        """Return why the sandbox must be stopped; None once it has ended by itself."""
        while self._process.poll() is None:
            if reason := self._stopped or self._overuse():
                return reason
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(TICK)
        return None

    def _read(self) -> None:
        """Keep the end of the output, and do not read faster than a well-behaved program prints."""
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while printed := os.read(pipe.fileno(), 65_536):
                self._tail += printed
                del self._tail[:-_LOG_BYTES]
                time.sleep(TICK / 10)

    def _overuse(self) -> str | None:
        """Return the exceeded limit, as a clause."""
        limits = self._limits
        if time.monotonic() - self._began > limits.wall_seconds:
            return f"it took longer than {limits.wall_seconds:g} s"
        return self._too_much_memory() or self._left_too_much()

    def _too_much_memory(self) -> str | None:
        """Return why the sandbox uses too much memory, according to its cgroup or, without one, to its processes."""
        machine, began = usage.read_machine(cgroup.read_memory_room()), time.monotonic()
        if began >= self._next_held:
            self._held = usage.find_held(usage.list_views(self._process.pid)[self._before :], self._folder)
            self._next_held = time.monotonic() + _SPARED * (time.monotonic() - began)
        if self._group is not None:
            used = self._group.used
        else:
            used = usage.measure_memory(usage.list_views(self._process.pid), self._held, machine.shared - self._shared)
        if used > self._limits.memory_bytes:
            return self._memory_clause()
        if machine.available < min(_FREE_MEMORY, machine.total // 16):
            return "it left too little memory free on the machine"
        return self._killed_by_the_kernel()

    def _killed_by_the_kernel(self) -> str | None:
        return self._memory_clause() if self._group is not None and self._group.overrun else None

    def _memory_clause(self) -> str:
        return f"it used more than {format_size(self._limits.memory_bytes)} of memory"

    def _left_too_much(self) -> str | None:
        limits = self._limits
        try:
            size, count = usage.weigh_folder(self._folder, limits.output_files)
            free = usage.free_disk(self._folder)
        except OSError as error:
            return f"its output cannot be inspected ({error.strerror})"
        size += sum(self._held.files.values())
        if self._held.unseen_files:
            size = max(size, self._disk - free)
        if count + len(self._held.files) > limits.output_files:
            return f"it created more than {limits.output_files} files"
        if size > limits.output_bytes:
            return f"it wrote more than {format_size(limits.output_bytes)}"
        if free < _FREE_DISK:
            return "it left too little space free on the disk"
        return None

    def _kill(self) -> None:
        """Kill all remaining processes of the sandbox, and wait until they are gone."""
        left = list(usage.list_descendants(self._process.pid))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + _KILL_SECONDS
        while any(cgroup.is_alive(pid) for pid in left) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self._held = usage.Held()


def run(box: SandboxSpec) -> ExitInfo:
    """Run a program in a sandbox until it ends."""
    with open_sandbox(box) as running:
        return running.wait()


@contextlib.contextmanager
def open_sandbox(box: SandboxSpec) -> Iterator[Running]:
    """Start a sandbox; when the block ends, every process in it is dead.

    Raises:
        NoIsolation: the program is neither trusted nor podeval's own, and isolation is impossible on this machine.
    """
    if box.own and explain_missing_isolation() is not None:
        box = replace(box, trusted=True)
    if not box.trusted:
        require()
    running = Running(box)
    try:
        yield running
    finally:
        running.stop("it was no longer needed")
        running.wait()


def format_size(count: int) -> str:
    """Format a number of bytes, in GiB or MiB."""
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
