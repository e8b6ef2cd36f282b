"""Programs that try to get past the walls of the sandbox; each prints IT WORKED where it does, and takes little."""

import errno

CALL = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(x86_64, aarch64, *arguments):
    number = {"x86_64": x86_64, "aarch64": aarch64}[platform.machine()]
    whole = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    result = libc.syscall(ctypes.c_long(number), *whole)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

REFUSED: dict[str, tuple[str, tuple[int, ...]]] = {
    "memory of a memfd": (
        "for _ in range(20):\n    f = os.memfd_create('x')\n    for _ in range(15): os.write(f, bytes(2**20))",
        (errno.ENOSYS,),
    ),
    "System V segments": (
        """
libc.shmat.restype = ctypes.c_void_p
for _ in range(6):
    number = call(29, 194, 0, 50 * 2**20, 0o1600)
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 50 * 2**20)
    libc.shmdt(ctypes.c_void_p(place))
""",
        (errno.ENOSYS,),
    ),
    "vsock": ("import socket; socket.socket(socket.AF_VSOCK)", (errno.EAFNOSUPPORT,)),
    "netlink": ("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", (errno.EAFNOSUPPORT,)),
    "a user namespace": (
        "if libc.unshare(0x10000000) < 0: raise OSError(ctypes.get_errno(), 'unshare')",
        (errno.EPERM,),
    ),
    "a user namespace by clone": (
        """
if call(56, 220, 0x10000000 | 17, 0, 0, 0, 0) == 0: os._exit(0)
os.wait()
""",
        (errno.EPERM,),
    ),
    "a user namespace by clone3": (
        """
import struct
asked = ctypes.create_string_buffer(struct.pack("=8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
if call(435, 435, asked, 64) == 0: os._exit(0)
os.wait()
""",
        (errno.ENOSYS,),
    ),
    "io_uring": ("call(425, 425, 8, ctypes.create_string_buffer(120))", (errno.ENOSYS,)),
    "the keyring of a session": ("call(250, 219, 0, -3, 1)", (errno.EPERM,)),
    "a key": ("call(248, 217, b'user', b'x', b'y', 1, -2)", (errno.EPERM,)),
    "a thread's own open files": (
        """
import threading, time
threading.Thread(target=time.sleep, args=(0.05,)).start()
if libc.unshare(0x400) < 0: raise OSError(ctypes.get_errno(), 'unshare')
""",
        (errno.EPERM,),
    ),
}
"""What the filter of system calls refuses, and with what."""

OUTSIDE: dict[str, tuple[str, tuple[int, ...]]] = {
    "a file": ("open('SECRET').read()", (errno.EACCES,)),
    "a file's length": ("os.truncate('SECRET', 2)", (errno.EPERM, errno.EACCES)),
    "a file's mode": ("os.chmod('SECRET', 0)", (errno.EPERM,)),
    "a file's time": ("os.utime('SECRET', (0, 0))", (errno.EPERM,)),
    "a file's name": ("os.rename('SECRET', 'mine')", (errno.EACCES, errno.EXDEV)),
    "a link to a file": ("os.link('SECRET', 'mine')", (errno.EACCES, errno.EXDEV)),
    "a file through a link": ("os.symlink('SECRET', 'link'); open('link').read()", (errno.EACCES,)),
    "the list of processes": ("os.listdir('/proc')", (errno.EACCES,)),
    "the environment of who opened it": ("open(f'/proc/{os.getppid()}/environ').read()", (errno.EACCES,)),
    "the files of who opened it": ("os.listdir(f'/proc/{os.getppid()}/fd')", (errno.EACCES,)),
    "a signal": ("os.kill(os.getppid(), 0)", (errno.EPERM,)),
    "the priority of another": ("os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)", (errno.EPERM,)),
    "the limits of another": ("import resource; resource.prlimit(os.getppid(), 7, (9, 9))", (errno.EPERM,)),
    "a process": ("os.fork()", (errno.EPERM,)),
    "a program": ("import subprocess; subprocess.run(['true'])", (errno.EPERM,)),
    "this machine's network": (
        "import socket; socket.create_connection(('127.0.0.1', PORT), 2)",
        (errno.EAFNOSUPPORT,),
    ),
    "a local socket": ("import socket; socket.socket(socket.AF_UNIX).connect('LOCAL')", (errno.EAFNOSUPPORT,)),
    "a local socket by a pair": ("import socket; socket.socketpair(socket.AF_UNIX, 2)", (errno.EAFNOSUPPORT,)),
    "memory as a file": ("open('/dev/shm/x', 'w')", (errno.EACCES,)),
    "a device": ("os.mknod('device', 0o20666, os.makedev(1, 3))", (errno.EPERM, errno.EACCES)),
}
"""What lies outside of a wall without namespaces, and with what errors it is kept there."""

MEMORY = {
    "memory that is in nobody's tables": """
import mmap, time
held = []
for _ in range(12):
    shared = mmap.mmap(-1, 2**25)
    shared.write(bytes(2**25))
    shared.resize(4096)
    held.append(shared)
time.sleep(2)
""",
    "memory of processes whose first thread has ended": """
import threading, time
def hold():
    while open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "Z": pass
    held = b"x" * (90 * 2**20)
    time.sleep(2)
    os._exit(0)
for _ in range(4):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        call(60, 93, 0)
for _ in range(4): os.wait()
""",
}
"""380 MiB that resident sizes do not show; held for 2 s, or until somebody sees it."""

OUTPUT = {
    "deleted files that are mapped": """
import time
for number in range(12):
    with open(str(number), "w+b") as file:
        file.write(bytes(4 * 2**20))
        file.flush()
        libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file.fileno(), ctypes.c_long(0))
        os.unlink(str(number))
time.sleep(2)
""",
    "deleted files on their way through a socket": """
import socket, time
here, there = socket.socketpair()
for number in range(12):
    with open(str(number), "w+b") as file:
        file.write(bytes(4 * 2**20))
        file.flush()
        socket.send_fds(here, [b"x"], [file.fileno()])
        os.unlink(str(number))
time.sleep(2)
""",
}
OUTPUT["deleted files of a process that cannot be looked into"] = """
import time
libc.prctl(4, 0, 0, 0, 0)
held = []
for number in range(12):
    held.append(open(str(number), "w+b"))
    held[-1].write(bytes(4 * 2**20))
    held[-1].flush()
    os.unlink(str(number))
time.sleep(2)
"""
"""48 MiB in files without a name; held for 2 s, or until somebody sees it."""

DEVICES = """
for number in range(7):
    with open(f"/dev/f{number}", "wb") as file:
        for _ in range(15): file.write(bytes(2**20))
"""
"""105 MiB in the file system of the devices, which is of no fixed size."""


def told(program: str) -> str:
    """The program, which says IT WORKED, or by which number of an error it failed."""
    body = "\n".join(f"    {line}" for line in program.strip("\n").splitlines())
    outcome = "    print('IT WORKED', flush=True)\nexcept OSError as error:\n    print('refused', error.errno)\n"
    return f"{CALL}\ntry:\n{body}\n{outcome}"
