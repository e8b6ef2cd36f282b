"""Memory cgroups: each sandbox gets its own group, and the kernel limits all kinds of memory that the group uses.

A group can be created if this process may write to the cgroup tree, that is, as root in a container or a virtual
machine, or in a service or scope that systemd delegates (`Delegate=yes`). A group that belongs to someone else is never
changed. Both versions of the interface are supported, because machines with version 1 are still in use.
"""

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NAME, _OPENER = "podeval-", "podeval-worker"
_OVERHEAD = 64 * 2**20
"""Bytes that the kernel may use for a sandbox (tables, stacks, buffers) beyond its memory limit."""
_ENTER = 'echo 0 > "$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Interface:
    """The file names of one cgroup version, and its counters in `memory.stat`."""

    version: int
    limit: str
    usage: str
    swap: str
    events: str
    counters: tuple[str, ...]
    cache: tuple[str, ...]


V1 = Interface(
    1,
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.oom_control",
    ("total_rss", "total_shmem"),
    ("total_inactive_file", "total_active_file"),
)
V2 = Interface(
    2,
    "memory.max",
    "memory.current",
    "memory.swap.max",
    "memory.events",
    ("anon", "shmem"),
    ("inactive_file", "active_file"),
)


@dataclass(frozen=True)
class Tree:
    """The tree of memory cgroups, and the place of this process in it.

    Attributes:
        interface: names of the tree's files.
        top: the highest group that can be seen.
        group: the group of this process.
    """

    interface: Interface
    top: Path
    group: Path


class ControlGroup:
    """The group of one sandbox."""

    def __init__(self, folder: Path, interface: Interface) -> None:
        self.folder, self._interface = folder, interface

    @property
    def enter(self) -> list[str]:
        """The prefix for a command, so that the command and everything that it starts run in the group."""
        return ["/bin/sh", "-c", _ENTER, os.fspath(self.folder)]

    @property
    def used(self) -> int:
        """Bytes of the group's memory that the kernel cannot reclaim; files cached from a disk are not included."""
        return sum(read_numbers(self.folder / "memory.stat").get(name, 0) for name in self._interface.counters)

    @property
    def overrun(self) -> bool:
        """Whether the kernel killed a process of the group because the group exceeded its limit."""
        return read_numbers(self.folder / self._interface.events).get("oom_kill", 0) > 0

    def bound(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the group.

        Raises:
            OSError: this process lacks the permission.
        """
        most = str(memory_bytes + _OVERHEAD)
        (self.folder / self._interface.limit).write_text(most)
        swap = self.folder / self._interface.swap
        if swap.exists():
            swap.write_text(most if self._interface is V1 else "0")
        if self._interface is V2:
            (self.folder / "memory.oom.group").write_text("1")
            if (self.folder / "pids.max").exists():
                # The group also contains bubblewrap's own two processes and the shell that enters the group.
                (self.folder / "pids.max").write_text(str(processes + 4))

    def close(self) -> None:
        """Kill all remaining processes in the group, and remove it."""
        end = time.monotonic() + 10
        while self.folder.exists() and time.monotonic() < end:
            self._kill()
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.01)

    def _kill(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
                os.kill(int(pid), signal.SIGKILL)


def open_group(memory_bytes: int, processes: int) -> ControlGroup | None:
    """Open a new group for a sandbox; return None if that is impossible."""
    tree = find_tree()
    with contextlib.suppress(OSError):
        return None if tree is None else _make_group(tree, memory_bytes, processes)
    return None


@cache
def find_tree() -> Tree | None:
    """Return the tree, with the group in which this process can create groups that limit memory; None if there is none.

    The group is found by trial. If this process is alone in its group, it moves to a new group below that, as version 2
    requires.
    """
    if (tree := _read_own_tree()) is None:
        return None
    for candidate in list_candidates(tree):
        with contextlib.suppress(OSError):
            at = Tree(tree.interface, tree.top, candidate)
            _make_group(at, 2**30, 64).close()
            return at
    return None


def read_memory_room() -> tuple[int, int] | None:
    """Return how many bytes of memory the groups above this process allow and how many are left; None if unlimited."""
    if (tree := _read_own_tree()) is None:
        return None
    rooms = []
    for folder in (tree.group, *tree.group.parents):
        with contextlib.suppress(OSError, ValueError):
            limit = int((folder / tree.interface.limit).read_text(encoding="ascii"))
            usage = int((folder / tree.interface.usage).read_text(encoding="ascii"))
            counters = read_numbers(folder / "memory.stat")
            cached = sum(counters.get(name, 0) for name in tree.interface.cache)
            rooms.append((limit, limit - usage + cached))
        if folder == tree.top:
            break
    return min(rooms, key=lambda each: each[1], default=None)


def _make_group(tree: Tree, memory_bytes: int, processes: int) -> ControlGroup:
    _sweep(tree.group)
    folder = tree.group / f"{_NAME}{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir()
    group = ControlGroup(folder, tree.interface)
    try:
        group.bound(memory_bytes, processes)
    except OSError:
        group.close()
        raise
    return group


def _sweep(parent: Path) -> None:
    """Remove groups whose creators were killed before removing them; groups that contain a process are kept."""
    for folder in parent.glob(f"{_NAME}[0-9]*-*"):
        if not is_alive(int(folder.name.split("-")[1])):
            with contextlib.suppress(OSError):
                folder.rmdir()


def list_candidates(tree: Tree) -> list[Path]:
    """List the groups in which a group might be created, nearest first; version 2 may require the group above.

    In version 2, a group that limits the groups below it must not contain processes, unless it is the top group.
    """
    if tree.interface is V1 or "memory" in _words(tree.group / "cgroup.subtree_control"):
        return [tree.group]
    above = tree.group.parent
    if "memory" in _words(above / "cgroup.subtree_control") and (
        tree.group.name == _OPENER or is_delegated(tree, above)
    ):
        return [above]
    return [tree.group] if is_delegated(tree, tree.group) and _move_out(tree.group) else []


def is_delegated(tree: Tree, folder: Path) -> bool:
    """Return whether this process may divide a group: one from systemd, the user's own, or a container's top."""
    if folder == tree.top:
        return folder == tree.group
    with contextlib.suppress(OSError):
        if os.geteuid() != 0:
            return folder.stat().st_uid == os.geteuid()
        return os.getxattr(folder, "trusted.delegate") == b"1"
    return False


def _move_out(group: Path) -> bool:
    """Move this process out of a group in which it is alone, so that the group can limit the groups below it."""
    inside, controllers = group / _OPENER, _words(group / "cgroup.controllers")
    if _words(group / "cgroup.procs") != {str(os.getpid())} or "memory" not in controllers:
        return False
    try:
        inside.mkdir(exist_ok=True)
        (inside / "cgroup.procs").write_text("0")
        divided = " ".join(f"+{name}" for name in ("memory", "pids") if name in controllers)
        (group / "cgroup.subtree_control").write_text(divided)
    except OSError:
        # Move back to the original group.
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text("0")
            inside.rmdir()
        return False
    return True


@cache
def _read_own_tree() -> Tree | None:
    try:
        mounts, groups = (Path(f"/proc/self/{name}").read_text(encoding="utf-8") for name in ("mountinfo", "cgroup"))
    except OSError:
        return None
    return parse_tree(mounts, groups)


def parse_tree(mounts: str, groups: str) -> Tree | None:
    """Find the place of this process in the tree from its mounts and groups in /proc."""
    paths = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        paths[controllers] = path
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, *_, options = after.split()  # The mount source may lack a name.
        if kind == "cgroup" and "memory" in options.split(","):
            group = next((path for names, path in paths.items() if "memory" in names.split(",")), None)
            return _place_in_mount(V1, Path(mount), root, group)
        if kind == "cgroup2" and "memory" in _words(Path(mount) / "cgroup.controllers"):
            return _place_in_mount(V2, Path(mount), root, paths.get(""))
    return None


def _place_in_mount(interface: Interface, mount: Path, root: str, path: str | None) -> Tree | None:
    """Locate a group in a mount; return None if the mount shows only a part of the tree without the group."""
    inside = ".." if path is None else os.path.relpath(path, root)
    if ".." in inside.split("/"):
        return None
    group = mount / inside
    return Tree(interface, mount, group) if group.is_dir() else None


def _words(path: Path) -> set[str]:
    with contextlib.suppress(OSError):
        return set(path.read_text(encoding="ascii").split())
    return set()


def read_numbers(path: Path) -> dict[str, int]:
    """Read a file of names and numbers, one pair per line."""
    with contextlib.suppress(OSError, ValueError):
        pairs = (line.split() for line in path.read_text(encoding="ascii").splitlines())
        return {name: int(number) for name, number in pairs}
    return {}


def count_memory_kills() -> int:
    """Count the processes that the kernel killed because memory ran out; return 0 if the kernel reports nothing."""
    return read_numbers(Path("/proc/vmstat")).get("oom_kill", 0)


def is_alive(pid: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False
