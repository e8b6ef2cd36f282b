"""The resources that a sandbox uses (disk space in its folder, deleted files that are still open, memory), and the
machine's remaining resources.

Resident sizes do not show all memory, because shared memory remains after the last process has unmapped it. While a
process maps shared memory, the growth of the machine's shared memory since the sandbox began is counted. Deleted files
are identified by their inodes, so each is counted once; if a process hides its files, the decrease in free disk space
is counted instead.
"""

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Held:
    """Deleted files and shared memory that the processes of a sandbox use.

    Attributes:
        files: bytes of the deleted files that are still open or mapped, on the disk of the sandbox's folder, by inode.
        unseen_files: whether some processes have files of unknown size.
        shared: whether some processes map shared memory, or hide their mappings.
    """

    files: dict[int, int] = field(default_factory=dict)
    unseen_files: bool = False
    shared: bool = False


@dataclass(frozen=True)
class Machine:
    """The memory of a machine in bytes: available for new programs, shared or in files, and total."""

    available: int
    shared: int
    total: int


def read_machine(allowed: tuple[int, int] | None) -> Machine:
    """Return the memory that is available now.

    Args:
        allowed: bytes that a container or a service may use, and bytes that are left; if given, these count as the
            machine's memory.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # This is not Linux, so only trusted programs run.
        return Machine(sys.maxsize, 0, 0)
    sizes = {name: 1024 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    total, available = sizes["MemTotal"], sizes.get("MemAvailable", sizes["MemFree"])
    if allowed is not None:
        total, available = min(total, allowed[0]), min(available, allowed[1])
    return Machine(available, sizes.get("Shmem", 0), total)


def free_disk(folder: Path) -> int:
    """Return the number of free bytes on the disk of a folder."""
    return shutil.disk_usage(folder).free


def weigh_folder(folder: Path, most_files: int) -> tuple[int, int]:
    """Return the total bytes and number of files below a folder, without following links; stop after `most_files`."""
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
    """Find the deleted files and the shared memory that processes use, from the processes' folders in /proc.

    Processes may have made themselves unreadable, so that their files and shared memory are hidden.
    """
    holding, disk = Held(), folder.stat().st_dev
    for process in processes:
        try:
            _look_at_open_files(process, disk, holding)
        except PermissionError:
            if not read_resident(process):
                continue  # The process is about to exit.
            holding.unseen_files = True
        except OSError:
            continue  # The process has ended.
        try:
            _look_at_mappings(process, disk, os.fsencode(folder.resolve()), holding)
        except PermissionError:
            holding.unseen_files = holding.shared = True
        except OSError:
            continue
    return holding


def measure_memory(processes: Sequence[Path], holding: Held, grown: int) -> int:
    """Return how many bytes of memory processes use, from their folders in /proc and the deleted files that they use.

    `grown` is the growth of the machine's shared memory, in bytes, since the sandbox began.
    """
    in_tables = sum(map(read_resident, processes))
    private = in_tables - sum(map(read_shared, processes))
    return max(in_tables, private + grown) if holding.shared else in_tables


def _look_at_open_files(process: Path, disk: int, holding: Held) -> None:
    """Count the deleted files that are open, and note whether files may be in transit through a socket."""
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
    """Count the deleted files that are mapped, and note shared memory, mapped as a deleted file outside `folder`."""
    for line in set((process / "maps").read_bytes().splitlines()):
        if not line.endswith(b"(deleted)"):
            continue
        addresses, _, _, _, inode, name = line.split(maxsplit=5)
        if not name.startswith(folder):
            holding.shared = True
            continue
        start, end = (int(part, 16) for part in addresses.split(b"-"))
        try:
            _count(os.stat(f"{process}/map_files/{start:x}-{end:x}"), disk, holding)
        except OSError:
            holding.unseen_files |= int(inode) not in holding.files


def _count(about: os.stat_result, disk: int, holding: Held) -> None:
    if about.st_nlink == 0 and about.st_dev == disk:
        holding.files[about.st_ino] = about.st_blocks * 512


def list_descendants(pid: int) -> Iterator[int]:
    """List all descendants of a process."""
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
        yield from list_descendants(child)


def list_views(pid: int) -> list[Path]:
    """List the /proc folders of a process and all its descendants, one for each.

    If the first thread of a process has ended, nothing appears under the process's own id, so another thread's folder
    is used.
    """
    folders = (find_view(each) for each in (pid, *list_descendants(pid)))
    return [folder for folder in folders if folder is not None]


def find_view(pid: int) -> Path | None:
    """Return the /proc folder of a process, through its first living thread; None if no thread is alive."""
    folder = Path(f"/proc/{pid}")
    if read_resident(folder):
        return folder
    with contextlib.suppress(OSError):
        return next((task for task in (folder / "task").iterdir() if read_resident(task)), None)
    return None


def read_resident(folder: Path) -> int:
    """Return the resident bytes of the process that a folder of /proc describes; 0 if the process is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * int((folder / "statm").read_text(encoding="ascii").split()[1])
    return 0


def read_shared(folder: Path) -> int:
    """Return the bytes of resident memory that are shared between processes or belong to files in memory."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("RssShmem:"):
                return 1024 * int(line.split()[1])
    return 0
