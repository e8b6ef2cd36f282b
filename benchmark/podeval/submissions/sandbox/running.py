"""A running sandbox: it is started, watched from outside, and killed completely."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from podeval.submissions.sandbox import cgroup, command, seccomp, usage
from podeval.submissions.sandbox.command import ExitInfo, SandboxSpec

TICK = 0.1
"""Seconds between two checks of the resources in use."""

_LOG_BYTES = 16_384
_FREE_DISK = 512 * 2**20
"""Bytes of the host's disk that must stay free."""
_FREE_MEMORY = 512 * 2**20
"""Bytes of the host's memory that must stay free; a sixteenth, where the host has less than 8 GiB."""
_KILL_SECONDS = 10.0
"""Seconds to wait for killed processes to be gone."""
_SPARED = 4
"""How many times as long as it takes, a costly look waits for the next one."""


class Running:
    """A running sandbox that a thread watches."""

    def __init__(self, box: SandboxSpec) -> None:
        self._limits, self._folder = box.limits, box.writable
        self._began = time.monotonic()
        self._stopped: str | None = None
        self._tail = bytearray()
        self._shared, self._disk = usage.read_machine().shared, 0
        with contextlib.suppress(OSError):
            self._disk = usage.free_disk(box.writable)
        self._held, self._next_held = usage.Held(), 0.0
        self._group = None if box.trusted else cgroup.open_group(box.limits)
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
        """Whether any process in it may still write."""
        return self._watcher.is_alive()

    def stop(self, why: str) -> None:
        """Stop the sandbox; the first reason counts."""
        if self._stopped is None:
            self._stopped = why

    def wait(self, seconds: float | None = None) -> ExitInfo:
        """Wait until every process in the sandbox is dead; return how it ended.

        Raises:
            TimeoutError: it has not ended in so many seconds.
        """
        self._watcher.join(seconds)
        if self._watcher.is_alive():
            raise TimeoutError
        return self._ended

    def _start(self, box: SandboxSpec) -> "subprocess.Popen[bytes]":
        with contextlib.ExitStack() as open_files:
            if box.trusted:
                line, settings, inherited = command.build_trusted_command(box), command.build_environment(box), []
            else:
                inherited = [open_files.enter_context(seccomp.open_filter())]
                enter = [] if self._group is None else self._group.enter
                line = [*enter, *command.build_isolated_command(box, inherited[0])]
                settings = {"PATH": os.environ.get("PATH", "/usr/bin")}
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
        """Watch the sandbox until its end; if watching fails, it is stopped at once."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        try:
            reason = self._watch_until_end()
        except Exception as error:
            reason = f"watching it failed ({type(error).__name__}: {error})"
        seconds = time.monotonic() - self._began
        self._kill()
        # Every process that could print is dead.
        reader.join(_KILL_SECONDS)
        reason = reason or self._killed_by_the_kernel() or self._left_too_much()
        if self._group is not None:
            self._group.close()
        log = bytes(self._tail).decode("utf-8", "replace")
        self._ended = ExitInfo(self._process.returncode, reason, log, seconds)

    def _watch_until_end(self) -> str | None:
        """Return why the sandbox has to be stopped; None once it has ended by itself."""
        while self._process.poll() is None:
            if reason := self._stopped or self._overuse():
                return reason
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(TICK)
        return None

    def _read(self) -> None:
        """Keep the end of what it prints, and read no faster than a program has reason to print."""
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while printed := os.read(pipe.fileno(), 65_536):
                self._tail += printed
                del self._tail[:-_LOG_BYTES]
                time.sleep(TICK / 10)

    def _overuse(self) -> str | None:
        """Return which limit is exceeded, as a clause."""
        limits = self._limits
        if time.monotonic() - self._began > limits.wall_seconds:
            return f"it took longer than {limits.wall_seconds:g} s"
        return self._too_much_memory() or self._left_too_much()

    def _too_much_memory(self) -> str | None:
        """Return why it uses too much memory, as its group counts it, or by adding up if there is no group."""
        machine, began = usage.read_machine(), time.monotonic()
        if began >= self._next_held:
            self._held = usage.find_held(usage.list_views(self._process.pid), self._folder)
            self._next_held = time.monotonic() + _SPARED * (time.monotonic() - began)
        if self._group is not None:
            used = self._group.used
        else:
            used = usage.measure_memory(usage.list_views(self._process.pid), self._held, machine.shared - self._shared)
        if used > self._limits.memory_bytes:
            return self._memory_clause()
        if machine.available < min(_FREE_MEMORY, machine.total // 16):
            return "it left too little of the machine's memory free"
        return self._killed_by_the_kernel()

    def _killed_by_the_kernel(self) -> str | None:
        return self._memory_clause() if self._group is not None and self._group.overrun else None

    def _memory_clause(self) -> str:
        return f"it used more than {_size(self._limits.memory_bytes)} of memory"

    def _left_too_much(self) -> str | None:
        limits = self._limits
        try:
            size, count = usage.weigh_folder(self._folder, limits.output_files)
            free = usage.free_disk(self._folder)
        except OSError as error:
            return f"its output cannot be looked at ({error.strerror})"
        size += sum(self._held.files.values())
        if self._held.unseen_files:
            size = max(size, self._disk - free)
        if count + len(self._held.files) > limits.output_files:
            return f"it made more than {limits.output_files} files"
        if size > limits.output_bytes:
            return f"it wrote more than {_size(limits.output_bytes)}"
        if free < _FREE_DISK:
            return "it left too little of the disk free"
        return None

    def _kill(self) -> None:
        """Kill whatever is left of it, and wait until it is gone."""
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


def _size(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
