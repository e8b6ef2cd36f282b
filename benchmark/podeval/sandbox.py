"""Untrusted programs in a box: no network, no secrets, one writable folder, bounds on everything they can use up.

Isolation is bubblewrap's (new namespaces, a bare file system, no privileges, a user of its own), limits of a process
are prlimit's; what neither bounds (memory and output of all processes together, time, the host's disk) is watched
from outside. The box dies with the thread that opened it, however that ends.
"""

import contextlib
import os
import secrets
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from podeval.errors import PodevalError

ADVICE = "install bubblewrap (apt-get install bubblewrap util-linux) on a Linux host that allows namespaces"
TICK = 0.1
"""Seconds between two looks at what the box uses."""

_LOG_BYTES = 16_384
_SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_GPU = ("nvidia*", "dri", "kfd")
_FREE_FLOOR = 512 * 2**20
"""Bytes of the host's disk that no box may take."""
_OWN_USERS = 2_000_000_000
"""Where the numbers of the users begin that boxes opened by root have; nobody else's files are theirs."""


class NoIsolation(PodevalError):
    """Untrusted programs cannot be kept in here; says what is missing."""


@dataclass(frozen=True)
class Limits:
    """What a box may use.

    Attributes:
        wall_seconds: from start to end.
        memory_bytes: resident, of all processes together; address space of each, unless it has a GPU.
        processes: threads count too.
        output_bytes: in the writable folder, of all files together.
        output_files: files and folders in it.
        scratch_bytes: of `/tmp` and of shared memory, each; in memory.
    """

    wall_seconds: float = 3600.0
    memory_bytes: int = 8 * 2**30
    processes: int = 256
    output_bytes: int = 20 * 2**30
    output_files: int = 20_000
    scratch_bytes: int = 256 * 2**20


@dataclass(frozen=True)
class Box:
    """What is run, and what it sees.

    Attributes:
        command: program and arguments.
        writable: the one folder it may change; must exist and hold nothing of value.
        readable: files and folders it may read besides the system, this Python and podeval.
        environment: all of it; nothing is inherited.
        gpu: give it the GPU's devices; memory is then bounded by watching alone.
        trusted: run it without isolation; only for what the operator vouches for.
    """

    command: Sequence[str]
    writable: Path
    readable: Sequence[Path] = ()
    limits: Limits = field(default_factory=Limits)
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: bool = False
    trusted: bool = False


@dataclass(frozen=True)
class Ended:
    """How it ended: `stopped` says why where it was stopped from outside; `log` is the end of what it printed."""

    code: int
    stopped: str | None
    log: str
    seconds: float

    @property
    def failure(self) -> str | None:
        """What went wrong, as a clause; None where it ended by itself and well."""
        if self.stopped:
            return self.stopped
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        if self.code > 128 and self.code - 128 in set(signal.Signals):
            return f"it was ended by {signal.Signals(self.code - 128).name}"
        return f"it ended with exit code {self.code}" if self.code else None


@cache
def missing() -> str | None:
    """Why nothing can be isolated here; None where it can. Found by trying once."""
    absent = [tool for tool in ("bwrap", "prlimit", "setpriv") if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not found; {ADVICE}"
    trial = [*_namespaces(Limits()), "--", "/usr/bin/env", "true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=30)
    return f"bubblewrap does not work here ({done.stderr.strip()[:200]}); {ADVICE}" if done.returncode else None


def require() -> None:
    """Refuse where nothing can be isolated.

    Raises:
        NoIsolation: says what is missing.
    """
    if (why := missing()) is not None:
        raise NoIsolation(
            f"untrusted models are not run without isolation: {why}; or, for models you trust, say --trust-models"
        )


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this Python, without what a folder or the user would add to it."""
    return [sys.executable, "-P", "-s", "-m", module, *arguments]


def run(box: Box) -> Ended:
    """Run to the end."""
    with opened(box) as running:
        return running.wait()


@contextlib.contextmanager
def opened(box: Box) -> Iterator["Running"]:
    """Start it; when the block ends, everything in it is dead.

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


class Running:
    """A box at work, watched by a thread."""

    def __init__(self, box: Box) -> None:
        self._limits, self._folder = box.limits, box.writable
        self._began = time.monotonic()
        self._stopped: str | None = None
        self._tail = bytearray()
        self._process = subprocess.Popen(
            _command(box),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(box) if box.trusted else {"PATH": os.environ.get("PATH", "/usr/bin")},
            cwd=box.writable,
            start_new_session=True,
        )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def alive(self) -> bool:
        """Whether anything in it may still write."""
        return self._watcher.is_alive()

    def stop(self, why: str) -> None:
        """Have it killed; the first reason counts."""
        if self._stopped is None:
            self._stopped = why

    def wait(self, seconds: float | None = None) -> Ended:
        """How it ended, once everything in it is dead.

        Raises:
            TimeoutError: it has not in so many seconds.
        """
        self._watcher.join(seconds)
        if self._watcher.is_alive():
            raise TimeoutError
        return self._ended

    def _watch(self) -> None:
        """See it to its end, which comes at once where watching fails."""
        pipe = self._process.stdout
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        try:
            wanted = self._watched(pipe.fileno())
        except Exception as error:
            wanted = f"watching it failed ({type(error).__name__}: {error})"
        seconds = time.monotonic() - self._began
        self._kill()
        self._read(pipe.fileno())
        wanted = wanted or self._left_too_much()
        pipe.close()
        log = bytes(self._tail).decode("utf-8", "replace")
        self._ended = Ended(self._process.returncode, wanted, log, seconds)

    def _watched(self, pipe: int) -> str | None:
        """Why it has to be stopped; None once it has ended by itself."""
        with selectors.DefaultSelector() as reading:
            reading.register(pipe, selectors.EVENT_READ)
            while self._process.poll() is None:
                if wanted := self._stopped or self._overuse():
                    return wanted
                self._listen(reading, pipe)
        return None

    def _listen(self, reading: selectors.BaseSelector, pipe: int) -> None:
        """Take in what it prints until the next look, or its end."""
        look = time.monotonic() + TICK
        while self._process.poll() is None and (left := look - time.monotonic()) > 0:
            if not reading.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(left)
            elif reading.select(left):
                if not self._read(pipe):
                    reading.unregister(pipe)
                time.sleep(TICK / 10)

    def _read(self, pipe: int) -> bool:
        """Whether it may print more."""
        with contextlib.suppress(BlockingIOError):
            printed = os.read(pipe, 65_536)
            self._tail += printed
            del self._tail[:-_LOG_BYTES]
            return bool(printed)
        return True

    def _overuse(self) -> str | None:
        """Which limit is passed, as a clause."""
        limits = self._limits
        if time.monotonic() - self._began > limits.wall_seconds:
            return f"it took longer than {limits.wall_seconds:g} s"
        if resident(self._process.pid) > limits.memory_bytes:
            return f"it used more than {_size(limits.memory_bytes)} of memory"
        return self._left_too_much()

    def _left_too_much(self) -> str | None:
        limits = self._limits
        try:
            size, count = weight(self._folder, limits.output_files)
            size += nameless(self._process.pid, self._folder)
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            return f"its output cannot be looked at ({error.strerror})"
        if count > limits.output_files:
            return f"it made more than {limits.output_files} files"
        if size > limits.output_bytes:
            return f"it wrote more than {_size(limits.output_bytes)}"
        if free < _FREE_FLOOR:
            return "it left too little of the disk free"
        return None

    def _kill(self) -> None:
        """Kill whatever is left of it, and wait until it is gone."""
        left = list(_descendants(self._process.pid))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + 10
        while any(_alive(pid) for pid in left) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def weight(folder: Path, most_files: int) -> tuple[int, int]:
    """Bytes and number of everything below a folder, links not followed; looking ends after `most_files`."""
    size = count = 0
    folders = [os.fspath(folder)]
    while folders and count <= most_files:
        try:
            entries = list(os.scandir(folders.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            count += 1
            with contextlib.suppress(FileNotFoundError):
                about = entry.stat(follow_symlinks=False)
                size += about.st_blocks * 512
                if stat.S_ISDIR(about.st_mode):
                    folders.append(entry.path)
            if count > most_files:
                break
    return size, count


def nameless(pid: int, folder: Path) -> int:
    """Bytes of files on a folder's disk that a process and all below it hold open after deleting them."""
    disk, held = folder.stat().st_dev, dict[int, int]()
    for each in (pid, *_descendants(pid)):
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{each}/fd"):
                with contextlib.suppress(OSError):
                    about = os.stat(f"/proc/{each}/fd/{number}")
                    if about.st_nlink == 0 and about.st_dev == disk and stat.S_ISREG(about.st_mode):
                        held[about.st_ino] = about.st_blocks * 512
    return sum(held.values())


def resident(pid: int) -> int:
    """Bytes of memory that a process and all below it hold; shared pages count for each."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for each in (pid, *_descendants(pid)):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += page * int(Path(f"/proc/{each}/statm").read_text(encoding="ascii").split()[1])
    return total


def _descendants(pid: int) -> Iterator[int]:
    try:
        children = [
            int(child)
            for tasks in Path(f"/proc/{pid}/task").iterdir()
            for child in (tasks / "children").read_text(encoding="ascii").split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from _descendants(child)


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def _command(box: Box) -> list[str]:
    limits = _process_limits(box)
    if box.trusted:
        tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        return [*tied, *limits, *box.command]
    folder = os.fspath(box.writable.resolve())
    seen = _seen(box)
    # Folders that bubblewrap makes on the way to a place would be its own alone.
    above = sorted({str(parent) for path in (*seen, folder) for parent in Path(path).parents} - {"/", "/tmp"})  # noqa: S108
    ways = [part for path in above for part in ("--perms", "0755", "--dir", path)]
    places = [*ways, *(part for path in seen for part in ("--ro-bind", path, path))]
    devices = [d for path in _devices() for d in ("--dev-bind", path, path)] if box.gpu else []
    settings = [part for name, value in _environment(box).items() for part in ("--setenv", name, value)]
    enclosed = [*_namespaces(box.limits), *devices, *places, "--bind", folder, folder, *settings]
    # bubblewrap itself may not enter a folder that belongs to the box's user alone.
    entered = ["env", f"--chdir={folder}"]
    return [*enclosed, "--remount-ro", "/", "--", *_own_user(box.writable), *entered, *limits, *box.command]


def _namespaces(limits: Limits) -> list[str]:
    """A bare system: its own processes, no network, no privileges but to become the user it is to run as."""
    scratch = [
        part
        for place in ("/tmp", "/dev/shm")  # noqa: S108 - inside the box, where nobody else is
        for part in ("--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", place)
    ]
    merged = [part for path in _MERGED for part in _as_it_is(Path(path))]
    system = [part for path in _SYSTEM if os.path.exists(path) for part in ("--ro-bind", path, path)]
    user = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    user = user if os.geteuid() == 0 else ["--unshare-user"]
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    life = ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    return ["bwrap", *apart, *life, *user, *system, *merged, "--proc", "/proc", "--dev", "/dev", *scratch]


def _as_it_is(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _seen(box: Box) -> list[str]:
    """This Python, podeval, and what the box was given; a folder before what lies in it."""
    own = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parent]
    paths = {os.path.realpath(path) for path in (*own, *box.readable)} | {os.path.abspath(path) for path in own}
    inside = [path for path in paths if not path.startswith(("/usr/", *(f"{place}/" for place in _MERGED)))]
    return sorted(path for path in inside if os.path.exists(path))


def _own_user(writable: Path) -> list[str]:
    """Root opens boxes under a user of their own, which the writable folder then belongs to."""
    plain = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    if os.geteuid() != 0:
        return ["setpriv", "--no-new-privs", "--"]
    number = _OWN_USERS + secrets.randbelow(100_000_000)
    for folder, folders, files in os.walk(writable):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), number, number, follow_symlinks=False)
    return [*plain, "--reuid", str(number), "--regid", str(number), "--clear-groups", "--"]


def _process_limits(box: Box) -> list[str]:
    if shutil.which("prlimit") is None:
        return []
    limits = box.limits
    bounds = [f"--fsize={limits.output_bytes}", "--core=0", "--nofile=4096"]
    bounds += [f"--cpu={int(limits.wall_seconds * (os.cpu_count() or 1)) + 1}"]
    # Without a namespace of its own, the limit counts what the whole user runs.
    bounds += [] if box.trusted else [f"--nproc={limits.processes}"]
    bounds += [] if box.gpu else [f"--as={limits.memory_bytes}"]
    return ["prlimit", *bounds, "--"]


def _environment(box: Box) -> dict[str, str]:
    home = os.fspath(box.writable.resolve())
    plain = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return plain | offline | {"PYTHONPATH": str(Path(__file__).parents[1])} | dict(box.environment)


def _devices() -> list[str]:
    return [str(path) for pattern in _GPU for path in sorted(Path("/dev").glob(pattern))]


def _size(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
