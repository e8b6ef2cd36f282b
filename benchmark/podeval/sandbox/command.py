"""The specification of a sandbox, and the command that opens it.

The command combines namespaces and mounts (bubblewrap), a user (setpriv) and process limits (prlimit).
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from podeval.errors import PodevalError
from podeval.sandbox import second_wall


class NoIsolation(PodevalError):
    """Untrusted programs cannot be isolated on this machine; the message names the missing part."""


@dataclass(frozen=True)
class SandboxLimits:
    """The limits of a sandbox.

    Attributes:
        wall_seconds: time from start to end.
        memory_bytes: memory of all processes together, of every kind: private, shared, or files in memory; also the
            limit on each process's address space, unless it has a GPU.
        processes: number of processes and threads.
        output_bytes: total size of the files in the writable folder, including deleted files that are still open.
        output_files: number of files and folders in the writable folder.
        scratch_bytes: size of `/tmp`, and also of the folder for shared memory; both are in memory.
    """

    wall_seconds: float = 3600.0
    memory_bytes: int = 8 * 2**30
    processes: int = 256
    output_bytes: int = 20 * 2**30
    output_files: int = 20_000
    scratch_bytes: int = 256 * 2**20


@dataclass(frozen=True)
class SandboxSpec:
    """The program to run in a sandbox, and what it can access.

    Attributes:
        command: program and arguments.
        writable: the only folder that the program may change; it must exist and contain nothing of value.
        readable: files and folders that the program may read in addition to the system, this Python and podeval.
        environment: all environment variables; none are inherited except, with a GPU, the variables that select the
            GPU.
        gpu: whether the program can access the GPU's devices and `/sys` (read-only), which describes them; the
            address space of a process is then not limited.
        trusted: whether the program runs without isolation; only for programs that the operator vouches for.
        own: whether the program is podeval's own and only its input comes from a stranger; if such a program runs
            without isolation, the second wall protects it if possible.
    """

    command: Sequence[str]
    writable: Path
    readable: Sequence[Path] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: bool = False
    trusted: bool = False
    own: bool = False


@dataclass(frozen=True)
class ExitInfo:
    """How a sandbox ended: `stopped` is the reason if it was stopped from outside; `log` is the end of the output."""

    code: int
    stopped: str | None
    log: str
    seconds: float

    @property
    def failure(self) -> str | None:
        """The failure, as a clause; None if the program ended successfully by itself."""
        if self.stopped:
            return self.stopped
        number = -self.code if self.code < 0 else self.code - 128
        if number in set(signal.Signals):
            return f"it was ended by {signal.Signals(number).name}"
        return f"it ended with exit code {self.code}" if self.code else None


PROGRAMS = ("bwrap", "prlimit", "setpriv")
OWN_PROCESSES = 2
"""Number of bubblewrap's own processes, in addition to the program's processes."""
SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108 - inside the box, where nobody else is
"""The writable in-memory file systems of the sandbox, each with a fixed size."""

_SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_GPU = ("nvidia*", "dri", "kfd")
_GPU_FACTS = "/sys"
"""Read-only folder with CUDA's list of GPUs, for sandboxes with a GPU; without it, CUDA fails with error 304."""
_GPU_SETTINGS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Variables that select a worker's GPU; the driver libraries read these."""
_SEAL = ("--remount-ro", "/dev", "--remount-ro", "/")
"""Options that make `/dev` and `/` read-only once bubblewrap has filled them: both are in memory, without a fixed size.
"""
_ENGINE = Path(__file__).parents[2]
_OWN_USERS = 2_000_000_000
"""First user id for sandboxes opened by root; these users do not own any other files."""


def open_trial(system_calls: int) -> str | None:
    """Open a sandbox that does nothing; return bubblewrap's message if it fails."""
    options = [*list_namespace_options(SandboxLimits(), system_calls), *_SEAL]
    return _refusal([*options, "--", "/usr/bin/env", "true"], system_calls)


def build_isolated_command(box: SandboxSpec, system_calls: int) -> list[str]:
    """Return the command that runs a program in a sandbox; its system call filter is an open file."""
    folder = os.fspath(box.writable.resolve())
    seen = _visible_paths(box)
    # Parent folders that bubblewrap creates would be readable only by bubblewrap itself.
    above = sorted({str(parent) for path in (*seen, folder) for parent in Path(path).parents} - {"/", "/tmp"})  # noqa: S108
    ways = [part for path in above for part in ("--perms", "0755", "--dir", path)]
    places = [*ways, *(part for path in seen for part in ("--ro-bind", path, path))]
    devices = [part for path in list_gpu_devices() for part in ("--dev-bind", path, path)] if box.gpu else []
    devices += ["--ro-bind", _GPU_FACTS, _GPU_FACTS] if box.gpu else []
    settings = [part for name, value in build_environment(box).items() for part in ("--setenv", name, value)]
    bound = ["--bind", folder, folder]
    enclosed = [*list_namespace_options(box.limits, system_calls), *devices, *places, *bound, *settings]
    # bubblewrap itself may be unable to enter a folder that belongs only to the sandbox's user.
    entered = ["env", f"--chdir={folder}"]
    return [*enclosed, *_SEAL, "--", *_own_user(box.writable), *entered, *_process_limits(box), *box.command]


def build_trusted_command(box: SandboxSpec, system_calls: int | None = None) -> list[str]:
    """Return the command that runs a program without isolation; the program is killed when the thread that starts it
    ends.

    With a system call filter, given as an open file, the second wall protects the program.
    """
    tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    enclosed = []
    if system_calls is not None:
        # Python must be able to list the folder of its modules to find them.
        readable = [*_SYSTEM, *_MERGED, os.fspath(_ENGINE), *_visible_paths(box)]
        job = {"readable": readable, "writable": os.fspath(box.writable.resolve()), "filter": system_calls}
        enclosed = [sys.executable, "-I", "-S", second_wall.__file__, json.dumps(job), "--"]
    return [*tied, *_process_limits(box), *enclosed, *box.command]


def try_second_wall(system_calls: int) -> str | None:
    """Isolate a program that does nothing; return its error message if that fails."""
    with tempfile.TemporaryDirectory(prefix="podeval-wall-") as folder:
        box = SandboxSpec(["/usr/bin/env", "true"], Path(folder), trusted=True, own=True)
        return _refusal(build_trusted_command(box, system_calls), system_calls)


def build_environment(box: SandboxSpec) -> dict[str, str]:
    """Return all variables of a sandbox's environment."""
    home = os.fspath(box.writable.resolve())
    plain = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    chosen = {name: os.environ[name] for name in _GPU_SETTINGS if box.gpu and name in os.environ}
    return plain | offline | {"PYTHONPATH": str(_ENGINE)} | chosen | dict(box.environment)


def list_namespace_options(limits: SandboxLimits, system_calls: int) -> list[str]:
    """Return the options for a bare system: separate processes, no network, and one privilege: to change the user."""
    scratch = [
        part
        for folder in SCRATCH
        for part in ("--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", folder)
    ]
    merged = [part for path in _MERGED for part in _mount_as_it_is(Path(path))]
    system = [part for path in _SYSTEM if os.path.exists(path) for part in ("--ro-bind", path, path)]
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    life = ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--seccomp", str(system_calls)]
    bare = [*system, *merged, "--proc", "/proc", "--dev", "/dev", *scratch]
    return ["bwrap", *apart, *life, *_privileges(), *bare]


def _privileges() -> list[str]:
    if os.geteuid() == 0:
        return ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    return ["--unshare-user", *(["--disable-userns"] if _can_disable_namespaces() else [])]


@cache
def _can_disable_namespaces() -> bool:
    """Return whether bubblewrap can forbid namespaces inside a user's sandbox; the filter forbids them in any case."""
    options = ["--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc"]
    return _refusal(["bwrap", *options, "--", "/usr/bin/env", "true"]) is None


def _refusal(command: list[str], *descriptors: int) -> str | None:
    """Return a command's error message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, pass_fds=descriptors)
    return (done.stderr.strip()[:200] or f"exit code {done.returncode}") if done.returncode else None


def _mount_as_it_is(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _visible_paths(box: SandboxSpec) -> list[str]:
    """List the paths visible in a sandbox (this Python, podeval, readable paths), each folder before its contents."""
    prefixes = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1]]
    paths = {os.path.realpath(path) for path in (*prefixes, *box.readable)} | {
        os.path.abspath(path) for path in prefixes
    }
    inside = [path for path in paths if not path.startswith(("/usr/", *(f"{folder}/" for folder in _MERGED)))]
    return sorted(path for path in inside if os.path.exists(path))


def _own_user(writable: Path) -> list[str]:
    """Return the options for the sandbox's user; under root, each sandbox has its own user, who owns the folder."""
    plain = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    if os.geteuid() != 0:
        return ["setpriv", "--no-new-privs", "--"]
    number = _OWN_USERS + secrets.randbelow(100_000_000)
    for folder, folders, files in os.walk(writable):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), number, number, follow_symlinks=False)
    return [*plain, "--reuid", str(number), "--regid", str(number), "--clear-groups", "--"]


def _process_limits(box: SandboxSpec) -> list[str]:
    if shutil.which("prlimit") is None:
        return []
    limits = box.limits
    bounds = [f"--fsize={limits.output_bytes}", "--core=0", "--nofile=4096"]
    bounds += [f"--cpu={int(limits.wall_seconds * (os.cpu_count() or 1)) + 1}"]
    # Without a separate namespace, the limit applies to all processes of the user together.
    bounds += [] if box.trusted else [f"--nproc={limits.processes}"]
    bounds += [] if box.gpu else [f"--as={limits.memory_bytes}"]
    return ["prlimit", *bounds, "--"]


def list_gpu_devices() -> list[str]:
    """List the devices of this machine's GPUs and their drivers."""
    return [str(path) for pattern in _GPU for path in sorted(Path("/dev").glob(pattern))]
