"""The resources that a sandbox uses: its folder, deleted files that it holds, memory, and what the machine has left.

Resident sizes do not show all memory: shared memory stays when no process maps it any more, and files may lie in
memory. They are found by their inodes, each counted once. Where the kernel does not show an unprivileged user the size
of a mapped inode, the machine's loss of memory since the sandbox began is counted in its place.
"""

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from podeval.submissions.sandbox import cgroup
from podeval.submissions.sandbox.command import SCRATCH
from podeval.submissions.sandbox.processes import read_resident, read_shared


@dataclass
class Held:
    """Files and memory without a name that the processes of a sandbox hold, by inode.

    Attributes:
        files: bytes of files on the disk of its folder that were deleted, and are open or mapped.
        segments: bytes of shared memory, and of files in memory without a name.
        unseen_files: whether some hold files whose size cannot be seen.
        unseen_segments: whether some hold shared memory whose size cannot be seen.
    """

    files: dict[int, int] = field(default_factory=dict)
    segments: dict[int, int] = field(default_factory=dict)
    unseen_files: bool = False
    unseen_segments: bool = False


@dataclass(frozen=True)
class Machine:
    """The memory of a machine in bytes: available for new programs, shared or in files, and total."""

    available: int
    shared: int
    total: int


def read_machine() -> Machine:
    """Return the memory that is available now; the limit of a container or a service counts as its machine's."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # no Linux: only trusted programs run here
        return Machine(sys.maxsize, 0, 0)
    sizes = {name: 1024 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    total, available = sizes["MemTotal"], sizes.get("MemAvailable", sizes["MemFree"])
    if (allowed := cgroup.read_memory_room()) is not None:
        total, available = min(total, allowed[0]), min(available, allowed[1])
    return Machine(available, sizes.get("Shmem", 0), total)


def free_disk(folder: Path) -> int:
    """Return the bytes that are free on the disk of a folder."""
    return shutil.disk_usage(folder).free


def weigh_folder(folder: Path, most_files: int) -> tuple[int, int]:
    """Return the bytes and number of everything below a folder, without following links; stop after `most_files`."""
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


def find_held(processes: Sequence[Path], folder: Path) -> Held:
    """Find what processes, by their folders of /proc, hold of a folder's disk and of memory without a name."""
    holding, disk = Held(), folder.stat().st_dev
    for number, process in enumerate(processes):
        # The first two are bubblewrap's own; others may have made themselves unreadable.
        hides = number > 1
        try:
            _look_at_open_files(process, disk, holding)
        except PermissionError:
            holding.unseen_files |= hides
        except OSError:
            continue  # it has ended
        try:
            _look_at_mappings(process, disk, os.fsencode(folder.resolve()), holding)
        except PermissionError:
            holding.unseen_files |= hides
            holding.unseen_segments |= hides
        except OSError:
            continue
    return holding


def measure_memory(processes: Sequence[Path], holding: Held, grown: int) -> int:
    """Return the bytes of memory that processes use, whatever holds it.

    Shared memory counts for each process that maps it, and once where none does. `grown` is how much more shared memory
    the machine has than before; it counts where the sandbox holds some whose size cannot be seen.
    """
    in_tables = sum(read_resident(process) for process in processes)
    in_files = sum(holding.segments.values()) + _scratch(processes)
    if holding.unseen_segments:
        in_files = max(in_files, grown)
    return in_tables + max(0, in_files - sum(read_shared(process) for process in processes))


def _look_at_open_files(process: Path, disk: int, holding: Held) -> None:
    """Count deleted files that are open, and notice whether some are on their way through a socket."""
    for number in os.listdir(process / "fd"):
        with contextlib.suppress(FileNotFoundError):
            about = os.stat(process / "fd" / number)
            if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
                _count(about, disk, holding)
            elif stat.S_ISSOCK(about.st_mode) and _carries_files(process / "fdinfo" / number):
                holding.unseen_files = True


def _carries_files(socket: Path) -> bool:
    lines = socket.read_text(encoding="ascii").splitlines()
    return any(line.startswith("scm_fds:") and line.split()[1] != "0" for line in lines)


def _look_at_mappings(process: Path, disk: int, folder: bytes, holding: Held) -> None:
    """Count deleted files that are mapped, and shared memory, which is also a file without a name."""
    lines = (process / "maps").read_bytes().splitlines()
    looked_at = set()
    anonymous = _anonymous_device()
    for line in lines:
        if not line.endswith(b"(deleted)") and anonymous not in line:
            continue
        addresses, _, _, device, inode, *name = line.split(maxsplit=5)
        if inode == b"0" or (device, inode) in looked_at:
            continue
        looked_at.add((device, inode))
        start, end = (int(part, 16) for part in addresses.split(b"-"))
        try:
            _count(os.stat(f"{process}/map_files/{start:x}-{end:x}"), disk, holding)
        except OSError:
            if device == anonymous.strip():
                holding.unseen_segments |= int(inode) not in holding.segments
            elif name and name[0].startswith(folder):
                holding.unseen_files |= int(inode) not in holding.files


def _count(about: os.stat_result, disk: int, holding: Held) -> None:
    if about.st_nlink == 0 and about.st_dev == disk:
        holding.files[about.st_ino] = about.st_blocks * 512
    elif about.st_dev == _anonymous():
        holding.segments[about.st_ino] = about.st_blocks * 512


@cache
def _anonymous() -> int:
    """Return the device of memory that is shared without a name, which only a call of memfd_create shows."""
    descriptor = os.memfd_create("podeval")
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


@cache
def _anonymous_device() -> bytes:
    """Return that device as a list of mappings writes it."""
    return b" %02x:%02x " % (os.major(_anonymous()), os.minor(_anonymous()))


def _scratch(processes: Sequence[Path]) -> int:
    """Return the bytes in a sandbox's in-memory file systems, as the first process in it sees them."""
    for process in processes:
        sizes = [_in_use(process / "root" / folder.lstrip("/"), folder) for folder in SCRATCH]
        if all(size is not None for size in sizes):
            return sum(size or 0 for size in sizes)
    return 0


def _in_use(folder: Path, outside: str) -> int | None:
    """Return the bytes in use in a file system; None if it is this process's own, as before the sandbox is made."""
    with contextlib.suppress(OSError):
        if not os.path.exists(outside) or folder.stat().st_dev != os.stat(outside).st_dev:
            about = os.statvfs(folder)
            return (about.f_blocks - about.f_bfree) * about.f_frsize
    return None
