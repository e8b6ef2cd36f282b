"""The system call filter of a sandbox: a classic BPF program. Bubblewrap installs it or, without bubblewrap, the
program itself does (`second_wall`), with a stricter filter.

The filter refuses calls that no model needs and that the namespaces of a sandbox do not cover: sockets that lead past
the network namespace (vsock, netlink, raw packets), new namespaces, memory that does not count towards the resident
size of any process (memfd, System V segments), large and recent parts of the kernel (io_uring, bpf, keys, userfaultfd),
and everything that only an administrator needs. A refused call fails with the error of a kernel that lacks the call, so
libraries fall back to other calls; a call for an architecture other than the sandbox's own kills the calling process.
"""

import contextlib
import errno
import os
import platform
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

# Offsets of `struct seccomp_data`: the number of the call, its architecture, the low half of the first argument.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
# Opcodes of classic BPF (linux/bpf_common.h) and the return values of a filter (linux/seccomp.h).
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _ALLOW, _ERROR = 0x8000_0000, 0x7FFF_0000, 0x0005_0000
_X32 = 0x4000_0000
"""Bit in the call numbers of x86_64's second interface, x32."""

_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
_NAMESPACES = 0x7E02_0000
"""The flags of clone() that request a namespace; CLONE_NEWTIME is not a flag of clone()."""
_THREAD, _SHARED_FILES = 0x0001_0000, 0x0000_0400


class Architecture(NamedTuple):
    """A machine type in the kernel's terms: its audit number, and its column in `REFUSED`."""

    audit: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000_003E, 0), "aarch64": Architecture(0xC000_00B7, 1)}

REFUSED: dict[int, dict[str, tuple[int | None, int | None]]] = {
    errno.ENOSYS: {
        # Memory that belongs to no process; multiprocessing and torch use files in /dev/shm, whose size is limited.
        "memfd_create": (319, 279),
        "memfd_secret": (447, 447),
        "shmget": (29, 194),
        "shmat": (30, 196),
        "shmctl": (31, 195),
        "semget": (64, 190),
        "msgget": (68, 186),
        # io_uring performs other system calls, which the filter does not see.
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        # The flags of clone3 are in memory, which a filter cannot read; the C library falls back to clone.
        "clone3": (435, 435),
    },
    errno.EPERM: {
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        "userfaultfd": (323, 282),
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "fanotify_init": (300, 262),
        # Namespaces and mounts. A thread must not have separate open files either, because they would not be counted.
        "unshare": (272, 97),
        "setns": (308, 268),
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        "open_tree_attr": (467, 467),
        "name_to_handle_at": (303, 264),
        "open_by_handle_at": (304, 265),
        # Other processes.
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "pidfd_getfd": (438, 438),
        "kcmp": (312, 272),
        # The machine itself.
        "kexec_load": (246, 104),
        "kexec_file_load": (320, 294),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "reboot": (169, 142),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "acct": (163, 89),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "syslog": (103, 116),
        "settimeofday": (164, 170),
        "clock_settime": (227, 112),
        "clock_adjtime": (305, 266),
        "vhangup": (153, 58),
        "lookup_dcookie": (212, 18),
        "modify_ldt": (154, None),
        "iopl": (172, None),
        "ioperm": (173, None),
    },
}
"""System calls that always fail, with their numbers on x86_64 and aarch64, by error."""

REFUSED_WITHOUT_NAMESPACES: dict[int, dict[str, tuple[int | None, int | None]]] = {
    errno.ENOSYS: {"mq_open": (240, 180), "mq_unlink": (241, 181)},
    errno.EPERM: {
        # New processes, which could leave the process group.
        "fork": (57, None),
        "vfork": (58, None),
        # Calls that reach other processes of the same user.
        "kill": (62, 129),
        "tkill": (200, 130),
        "tgkill": (234, 131),
        "rt_sigqueueinfo": (129, 138),
        "rt_tgsigqueueinfo": (297, 240),
        "pidfd_open": (434, 434),
        "pidfd_send_signal": (424, 424),
        "process_madvise": (440, 440),
        "process_mrelease": (448, 448),
        "setpriority": (141, 140),
        "ioprio_set": (251, 30),
        "sched_setparam": (142, 118),
        "sched_setscheduler": (144, 119),
        "sched_setattr": (314, 274),
        "migrate_pages": (256, 238),
        "move_pages": (279, 239),
        # Calls on files of the same user, unless Landlock has a rule for them.
        "truncate": (76, 45),
        "chmod": (90, None),
        "fchmod": (91, 52),
        "fchmodat": (268, 53),
        "fchmodat2": (452, 452),
        "chown": (92, None),
        "lchown": (94, None),
        "fchown": (93, 55),
        "fchownat": (260, 54),
        "utime": (132, None),
        "utimes": (235, None),
        "futimesat": (261, None),
        "utimensat": (280, 88),
        "setxattr": (188, 5),
        "lsetxattr": (189, 6),
        "fsetxattr": (190, 7),
        "setxattrat": (463, 463),
        "removexattr": (197, 14),
        "lremovexattr": (198, 15),
        "fremovexattr": (199, 16),
        "removexattrat": (466, 466),
    },
}
"""System calls that the second wall also refuses, because no namespace shields other processes and the network."""

_CLONE, _SOCKET, _SOCKETPAIR, _PRLIMIT = (56, 220), (41, 198), (53, 199), (302, 261)


def explain_missing_filter() -> str | None:
    """Return why system calls cannot be filtered on this machine, as a clause; None if they can be."""
    machine = platform.machine()
    if machine in ARCHITECTURES:
        return None
    known = ", ".join(ARCHITECTURES)
    return f"it cannot filter the system calls of {machine or 'this processor'}, only those of {known}"


def build_filter(machine: str | None = None, *, namespaces: bool = True) -> bytes:
    """Build the filter for a machine type (by default, this machine's) as an array of `struct sock_filter`.

    Without namespaces around the program, the filter also refuses new processes, sockets, and calls that reach other
    processes.

    Raises:
        KeyError: the machine's call numbers are unknown; `explain_missing_filter` reports this beforehand.
    """
    architecture = ARCHITECTURES[platform.machine() if machine is None else machine]
    column = architecture.column
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture.audit, otherwise=0, then=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if architecture is ARCHITECTURES["x86_64"]:
        code += [_step(_AT_LEAST, _X32, otherwise=1), _step(_RETURN, _ERROR | errno.ENOSYS)]
    for error, number in _list_refused(column, namespaces):
        code += [_step(_EQUAL, number, otherwise=1), _step(_RETURN, _ERROR | error)]
    families = list(_FAMILIES.values()) if namespaces else []
    for call in (_SOCKET, _SOCKETPAIR):
        code += _only_for(call[column], _only_values(families, errno.EAFNOSUPPORT))
    code += _only_for(_CLONE[column], _clone(namespaces))
    code += [] if namespaces else _only_for(_PRLIMIT[column], _only_values([0], errno.EPERM))
    return b"".join([*code, _step(_RETURN, _ALLOW)])


@contextlib.contextmanager
def open_filter(*, namespaces: bool = True) -> Iterator[int]:
    """Open a file that contains the filter in the format that bubblewrap expects."""
    reading, writing = os.pipe()
    try:
        with open(writing, "wb") as pipe:
            pipe.write(build_filter(namespaces=namespaces))
        yield reading
    finally:
        os.close(reading)


@cache
def count(*, namespaces: bool = True) -> int:
    """Count the system calls that the filter refuses or restricts on this machine."""
    restricted = 3 if namespaces else 4
    return len(_list_refused(ARCHITECTURES[platform.machine()].column, namespaces)) + restricted


def _list_refused(column: int, namespaces: bool) -> list[tuple[int, int]]:
    """List the errors and numbers of the calls that fail regardless of their arguments."""
    tables = (REFUSED,) if namespaces else (REFUSED, REFUSED_WITHOUT_NAMESPACES)
    pairs = ((error, numbers[column]) for table in tables for error in table for numbers in table[error].values())
    return [(error, number) for error, number in pairs if number is not None]


def _only_values(values: list[int], error: int) -> list[bytes]:
    """Allow some values of the first argument, such as kinds of sockets; other values fail as if they did not exist."""
    tests = [_step(_EQUAL, value, then=len(values) - index) for index, value in enumerate(values)]
    return [_step(_LOAD, _FIRST_ARGUMENT), *tests, _step(_RETURN, _ERROR | error), _step(_RETURN, _ALLOW)]


def _clone(namespaces: bool) -> list[bytes]:
    """Allow threads, and processes if a namespace contains them, but no new namespaces and no separate files."""
    with_processes = _step(_EQUAL, _THREAD, otherwise=1)
    threads_alone = _step(_EQUAL, _THREAD | _SHARED_FILES, then=1)
    return [
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _NAMESPACES, then=2),
        _step(_AND, _THREAD | _SHARED_FILES),
        with_processes if namespaces else threads_alone,
        _step(_RETURN, _ERROR | errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]


def _only_for(number: int, steps: list[bytes]) -> list[bytes]:
    return [_step(_EQUAL, number, otherwise=len(steps)), *steps]


def _step(opcode: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Encode one instruction; `then` and `otherwise` are how many instructions to skip if a test succeeds or fails."""
    return struct.pack("=HBBI", opcode, then, otherwise, value)
