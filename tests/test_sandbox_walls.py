"""Attacks on the walls of the sandbox that once succeeded, and what the walls are made of."""

import errno
import os
import platform
import runpy
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from podeval import sandbox
from podeval.sandbox import (
    ExitInfo,
    NoIsolation,
    SandboxLimits,
    SandboxSpec,
    cgroup,
    seccomp,
    second_wall,
    usage,
)
from tests.fakes.sandbox_walls import BUBBLEWRAP, SECOND, WALLS, enclosed, isolated, stand_up
from tests.fakes.waiting import wait_until

programs = runpy.run_path(str(Path(__file__).parent / "fakes" / "hostile_programs.py"))
message = programs["told"]
Attack = Callable[[str], ExitInfo]


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return stand_up(request.param, monkeypatch)


@pytest.fixture
def attack(tmp_path: Path, wall: str) -> Attack:
    """Run a program in a box of 256 MiB of memory and 20 MiB of output."""
    (tmp_path / "out").mkdir()
    limits = SandboxLimits(
        wall_seconds=60, processes=24, memory_bytes=256 * 2**20, output_bytes=20 * 2**20, scratch_bytes=16 * 2**20
    )

    def run(program: str) -> ExitInfo:
        command = [sys.executable, "-c", program]
        return sandbox.run(SandboxSpec(command, tmp_path / "out", (), limits, own=wall == SECOND))

    return run


@pytest.fixture(params=["a cgroup", "a watch"])
def memory_bounded_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "a watch":
        monkeypatch.setattr(cgroup, "find_tree", lambda: None)
    elif cgroup.find_tree() is None:
        pytest.skip("no memory cgroup can be created here")


@pytest.mark.parametrize("name", programs["REFUSED"])
def test_a_system_call_that_leads_past_the_walls_is_refused(attack: Attack, name: str) -> None:
    program, errors = programs["REFUSED"][name]
    ended = attack(message(program))
    assert ended.failure is None, ended.log
    assert ended.log.split() in [["refused", str(error)] for error in errors]


@enclosed
@pytest.mark.parametrize("wall", [SECOND], indirect=True)
@pytest.mark.parametrize("name", programs["OUTSIDE"])
def test_what_no_namespace_hides_cannot_be_reached(attack: Attack, tmp_path: Path, name: str) -> None:
    """Files, the environment and the memory of others of the same user, their sockets, their priority."""
    (tmp_path / "secret").write_text("hf_secret")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "local"))
        local.listen()
        words = {"SECRET": tmp_path / "secret", "PORT": server.getsockname()[1], "LOCAL": tmp_path / "local"}
        program, errors = programs["OUTSIDE"][name]
        for word, value in words.items():
            program = program.replace(word, str(value))
        ended = attack(message(program))
    assert ended.failure is None, ended.log
    assert ended.log.split() in [["refused", str(error)] for error in errors]
    assert ((tmp_path / "secret").read_text(), (tmp_path / "secret").stat().st_mode & 0o777) == ("hf_secret", 0o644)


@pytest.mark.parametrize("wall", [SECOND], indirect=True)
def test_without_landlock_the_filter_stands_alone_and_nobodys_memory_is_read(
    attack: Attack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a kernel without Landlock, as the program finds it; the environment of the board stays unreadable."""
    code = Path(second_wall.__file__).read_text(encoding="utf-8")
    other = code.replace("_RESTRICT_SELF = 444,", "_RESTRICT_SELF = 4_444,")
    assert other != code
    (tmp_path / "second_wall.py").write_text(other)
    monkeypatch.setattr(second_wall, "__file__", str(tmp_path / "second_wall.py"))
    assert attack(message("open('/etc/passwd').read()")).log == "IT WORKED\n", "Landlock is not there"
    assert attack(message("open(f'/proc/{os.getppid()}/environ').read()")).log.split() == ["refused", "13"]
    assert attack(message("os.kill(os.getppid(), 0)")).log.split() == ["refused", "1"]
    assert attack(message("import socket; socket.socket()")).log.split() == ["refused", "97"]


@pytest.mark.usefixtures("memory_bounded_by")
@pytest.mark.parametrize("name", programs["MEMORY"])
def test_memory_counts_whatever_holds_it(attack: Attack, wall: str, name: str) -> None:
    ended = attack(message(programs["MEMORY"][name]))
    assert "IT WORKED" not in ended.log
    if wall == SECOND and "fork" in programs["MEMORY"][name]:
        assert ended.log.split() == ["refused", str(errno.EPERM)], "there are no processes beside the first"
        return
    assert ended.failure == "it used more than 256 MiB of memory"


def test_the_kernel_bounds_memory_between_two_looks(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    if cgroup.find_tree() is None:
        pytest.skip("no memory cgroup can be created here")
    monkeypatch.setattr(sandbox, "TICK", 5.0)
    ended = attack(message(programs["MEMORY"]["memory that is in nobody's tables"]))
    assert "IT WORKED" not in ended.log
    assert ended.failure == "it used more than 256 MiB of memory"


def test_what_the_machine_needs_is_left_to_it(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    left = usage.Machine(available=100 * 2**20, shared=0, total=2 * 2**30)
    monkeypatch.setattr(usage, "read_machine", lambda allowed: left)
    assert attack("import time; time.sleep(20)").failure == "it left too little memory free on the machine"


@pytest.fixture
def disk_that_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever it is, somebody takes 48 MiB of the disk once the box has begun."""
    free = iter([100 * 2**30])
    monkeypatch.setattr(usage, "free_disk", lambda folder: next(free, 100 * 2**30 - 48 * 2**20))


@pytest.mark.usefixtures("disk_that_fills")
@pytest.mark.parametrize("name", programs["OUTPUT"])
def test_a_file_without_a_name_counts(attack: Attack, wall: str, name: str) -> None:
    ended = attack(message(programs["OUTPUT"][name]))
    assert "IT WORKED" not in ended.log
    if wall == SECOND and "socketpair" in programs["OUTPUT"][name]:
        assert ended.log.split() == ["refused", str(errno.EAFNOSUPPORT)], "there are no sockets"
        return
    assert ended.failure == "it wrote more than 20 MiB"


@pytest.mark.usefixtures("disk_that_fills")
def test_what_others_write_is_nobodys_fault(attack: Attack) -> None:
    """One open file that was deleted, one that is mapped: both are small, and seen to be where the kernel shows it."""
    program = """
import mmap, time
with open("mapped", "w+b") as file:
    file.write(bytes(4096))
    file.flush()
    mapped = mmap.mmap(file.fileno(), 4096)
    os.unlink("mapped")
time.sleep(0.3)
"""
    assert attack(message(program)).log == "IT WORKED\n"


@pytest.mark.parametrize("wall", [BUBBLEWRAP], indirect=True)
@isolated
def test_devices_work_and_nothing_can_be_put_beside_them(attack: Attack) -> None:
    uses = """
open('/dev/null', 'w').write('x')
assert len(open('/dev/urandom', 'rb').read(8)) == 8
open('/dev/shm/x', 'w').write('x')
import multiprocessing
multiprocessing.get_context('spawn').Lock()
"""
    assert attack(message(uses)).log.strip() == "IT WORKED"
    ended = attack(message(programs["DEVICES"]))
    assert ended.log.split() in [["refused", str(error)] for error in (errno.EROFS, errno.EACCES)]
    assert "IT WORKED" not in attack(message("os.mkdir('/dev/shm/../x')")).log


def test_a_group_of_a_worker_that_was_killed_is_removed_by_the_next(attack: Attack, tmp_path: Path) -> None:
    if (path := cgroup.find_tree()) is None:
        pytest.skip("no memory cgroup can be created here")
    (tmp_path / "other").mkdir()
    program = f"""
import sys
from pathlib import Path
from podeval.sandbox import SandboxSpec, run
inside = "import time; open('began', 'w'); time.sleep(60)"
run(SandboxSpec([sys.executable, '-c', inside], Path({str(tmp_path / "other")!r})))
"""
    opener = subprocess.Popen([sys.executable, "-c", program])
    group, end = f"podeval-{opener.pid}-*", time.monotonic() + 60
    wait_until((tmp_path / "other/began").exists)
    assert list(path.group.glob(group))
    os.kill(opener.pid, signal.SIGKILL)
    opener.wait()
    while list(path.group.glob(group)) and time.monotonic() < end:
        assert attack("pass").failure is None
    assert not list(path.group.glob(f"podeval-{opener.pid}-*"))
    assert not list(path.group.glob(f"podeval-{os.getpid()}-*"))


class Killed(Exception):
    """The filter ends the process."""


def answer(machine: str, number: int, *arguments: int, audit: int | None = None, namespaces: bool = True) -> int:
    """What the kernel would do with a system call: 0 where it is let through, or the error. A BPF machine in small."""
    architecture = seccomp.ARCHITECTURES[machine].audit if audit is None else audit
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(*arguments, *(0,) * (6 - len(arguments))))
    program = seccomp.build_filter(machine, namespaces=namespaces)
    assert len(program) % 8 == 0
    path = value = 0
    while True:
        opcode, then, otherwise, operand = struct.unpack_from("=HBBI", program, 8 * path)
        path += 1
        if opcode == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif opcode == 0x54:
            value &= operand
        elif opcode in (0x15, 0x35, 0x45):
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[opcode]
            path += then if holds else otherwise
        else:
            assert opcode == 0x06
            action = operand & 0xFFFF_0000
            if action == 0x8000_0000:
                raise Killed
            assert action in (0x7FFF_0000, 0x0005_0000)
            return 0 if action == 0x7FFF_0000 else operand & 0xFFFF


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_the_filter_of_the_second_wall_refuses_processes_and_sockets_too(machine: str, column: int) -> None:
    ask = partial(answer, machine, namespaces=False)
    for table in (seccomp.REFUSED, seccomp.REFUSED_WITHOUT_NAMESPACES):
        for error, calls in table.items():
            assert {ask(call[column]) for call in calls.values() if call[column] is not None} == {error}
    socket, socketpair, clone, prlimit = ((41, 198), (53, 199), (56, 220), (302, 261))
    kinds = {ask(call[column], family) for call in (socket, socketpair) for family in range(50)}
    assert kinds == {errno.EAFNOSUPPORT}
    assert (ask(clone[column], 0x003D_0F00), ask(clone[column], 0x0120_0011)) == (0, errno.EPERM)
    assert (ask(prlimit[column], 0), ask(prlimit[column], 1)) == (0, errno.EPERM)
    openat, execve, exit_group = ((257, 56), (59, 221), (231, 94))
    assert ask(openat[column]) == ask(execve[column]) == ask(exit_group[column]) == 0


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_the_filter_says_of_each_call_what_its_list_says(machine: str, column: int) -> None:
    numbers = {}
    for error, calls in seccomp.REFUSED.items():
        for call in calls.values():
            if (number := call[column]) is not None:
                assert answer(machine, number) == error
                numbers[number] = error
    socket, clone, execve, openat = ((41, 198), (56, 220), (59, 221), (257, 56))
    assert {socket[column], clone[column]}.isdisjoint(numbers)
    assert [number for number in range(470) if number not in numbers and answer(machine, number, 2)] == []
    assert answer(machine, execve[column]) == answer(machine, openat[column]) == 0
    families = {family: answer(machine, socket[column], family) for family in range(50)}
    assert [family for family, error in families.items() if not error] == [1, 2, 10]
    assert {error for error in families.values() if error} == {errno.EAFNOSUPPORT}
    assert answer(machine, socket[column], 40 + (1 << 32)) == errno.EAFNOSUPPORT
    process, thread = 0x0120_0011, 0x003D_0F00
    assert answer(machine, clone[column], process) == answer(machine, clone[column], thread) == 0
    for namespace in (0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000):
        assert answer(machine, clone[column], process | namespace) == errno.EPERM
    assert answer(machine, clone[column], thread & ~0x400) == errno.EPERM


def test_calls_of_another_architecture_do_not_get_past_the_filter() -> None:
    with pytest.raises(Killed):
        answer("x86_64", 20, audit=0x4000_0003)
    with pytest.raises(Killed):
        answer("aarch64", 20, audit=0x4000_0028)
    assert answer("x86_64", 0x4000_0000 | 425) == errno.ENOSYS


def test_where_system_calls_cannot_be_filtered_nothing_untrusted_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    sandbox.explain_missing_isolation.cache_clear()
    try:
        with pytest.raises(NoIsolation, match="it cannot filter the system calls of riscv64"):
            sandbox.run(SandboxSpec([sys.executable, "-c", "open('ran', 'w')"], tmp_path))
        assert not (tmp_path / "ran").exists()
    finally:
        monkeypatch.undo()
        sandbox.explain_missing_isolation.cache_clear()


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A folder that looks like a mount of cgroup version 2, with a service in it that holds this process."""
    (tmp_path / "service").mkdir()
    for folder in (tmp_path, tmp_path / "service"):
        (folder / "cgroup.controllers").write_text("cpu memory pids\n")
        (folder / "cgroup.subtree_control").write_text("\n")
        (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return tmp_path


def tree_of(groups: Path, path: str = "/service") -> cgroup.Tree:
    others = "30 24 0:26 / /proc rw - proc proc rw\n36 24 0:9 / /run rw - tmpfs  rw\n"
    mounts = f"{others}31 24 0:27 / {groups} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    tree = cgroup.parse_tree(mounts, f"1:name=systemd:/elsewhere\n0::{path}\n")
    assert tree is not None
    return tree


def test_a_group_is_made_only_where_one_may_be(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tree_of(groups)
    assert (tree.interface, tree.top, tree.group) == (cgroup.V2, groups, groups / "service")
    mine = set[Path]()
    monkeypatch.setattr(cgroup, "is_delegated", lambda tree, folder: folder in mine)
    assert cgroup.list_candidates(tree) == [], "the group of a service that is not this process's to divide"
    mine.add(groups / "service")
    (groups / "service/cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    assert cgroup.list_candidates(tree) == [], "somebody else is in it"
    (groups / "service/cgroup.procs").write_text(f"{os.getpid()}\n")
    (groups / "service/podeval-worker").mkdir()
    assert cgroup.list_candidates(tree) == [groups / "service"]
    assert (groups / "service/podeval-worker/cgroup.procs").read_text() == "0"
    assert (groups / "service/cgroup.subtree_control").read_text() == "+memory +pids"
    (groups / "service/cgroup.subtree_control").write_text("memory pids\n")
    (groups / "service/podeval-worker/cgroup.subtree_control").write_text("\n")
    inside = tree_of(groups, "/service/podeval-worker")
    assert cgroup.list_candidates(inside) == [groups / "service"], "what a worker starts makes its groups beside it"


def test_no_tree_of_groups_that_cannot_be_seen_is_taken_for_ones_own(groups: Path) -> None:
    mount = f"31 24 0:27 /docker/1 {groups} rw - cgroup2 cgroup2 rw\n"
    assert cgroup.parse_tree(mount, "0::/docker/2\n") is None
    assert cgroup.parse_tree(mount, "0::/../2\n") is None
    assert cgroup.parse_tree("30 24 0:26 / /proc rw - proc proc rw\n", "0::/\n") is None
    first = f"32 24 0:28 /docker/1 {groups} rw - cgroup cgroup rw,memory\n"
    assert cgroup.parse_tree(first, "4:memory:/docker/1/service\n0::/\n") == cgroup.Tree(
        cgroup.V1, groups, groups / "service"
    )
