"""The second wall, for machines on which bubblewrap does not work: a process confines itself and then becomes the
program.

`python second_wall.py JOB -- COMMAND` gives up all privileges and keeps access only to the job's files (by Landlock)
and to the system calls that a filter allows; this requires neither a namespace nor a privilege. The script does not
import anything from podeval, because it is started before each program. Landlock hides everything that may not be read,
including the environment of other processes; on a kernel without Landlock, only the filter protects other data. Source:
https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import json
import os
import stat
import struct
import sys
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_FILE, _MAKE_LINK, _MOVE, _TRUNCATE = (1 << bit for bit in (7, 8, 12, 13, 14))
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_WRITING = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _MAKE_DIR | _MAKE_FILE | _MAKE_LINK
_WRITING |= _MOVE | _REMOVE_DIR | _REMOVE_FILE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file access rights, by the Landlock version that introduced them."""
_SET_DUMPABLE, _SET_SECCOMP, _FILTER, _SET_NO_NEW_PRIVILEGES = 4, 22, 2, 38
_CAPSET, _CAPABILITIES = {"x86_64": 126, "aarch64": 91}, 0x2008_0522
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/sys/devices/system/cpu", "/dev/urandom", "/dev/random")
"""Files about the machine and about the process itself that libraries read."""


def find_version() -> int:
    """Return this kernel's version of Landlock; 0 if the kernel lacks Landlock."""
    try:
        return max(0, int(_load_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))
    except (OSError, AttributeError):
        return 0


def hide_memory() -> None:
    """Make the memory and the environment of this process unreadable to other processes of the same user."""
    _load_libc().prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def enclose(readable: Sequence[str], writable: str, system_calls: bytes) -> None:
    """Confine this process permanently.

    Args:
        readable: files and folders that the process may read and run.
        writable: the folder to which the process may write.
        system_calls: the filter, an array of `struct sock_filter`.

    Raises:
        OSError: the kernel refuses the confinement.
    """
    libc = _load_libc()
    _check(libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(libc.syscall(_CAPSET[os.uname().machine], struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)))
    if version := find_version():
        _restrict_files(libc, version, readable, writable)
    program = ctypes.create_string_buffer(system_calls, len(system_calls))
    described = struct.pack("@HP", len(system_calls) // 8, ctypes.addressof(program))
    _check(libc.prctl(_SET_SECCOMP, _FILTER, described, 0, 0))


def _restrict_files(libc: ctypes.CDLL, version: int, readable: Sequence[str], writable: str) -> None:
    rights = _RIGHTS[max(since for since in _RIGHTS if since <= version)]
    # Version 4 added TCP; version 6 added abstract sockets and signals, which could reach other processes.
    attributes = struct.pack("=QQQ", rights, 3, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = _check(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    places = [(path, _READING) for path in (*readable, *_FACTS)]
    for path, allowed in (*places, *((path, _OF_FILES) for path in _DEVICES), (writable, _WRITING)):
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # The path does not exist on this machine, or this user cannot see it.
        is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
        rule = struct.pack("=Qi", allowed & rights & (-1 if is_folder else _OF_FILES), place)
        _check(libc.syscall(_ADD_RULE, rules, _BENEATH, rule, 0))
        os.close(place)
    _check(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main() -> None:
    """Confine this process, and become the program."""
    job, command = json.loads(sys.argv[1]), sys.argv[3:]
    with open(job["filter"], "rb") as file:
        system_calls = file.read()
    enclose(job["readable"], job["writable"], system_calls)
    os.execvp(command[0], command)  # noqa: S606 - the program itself


if __name__ == "__main__":
    main()
