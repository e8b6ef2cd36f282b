"""The box holds what is hostile: each program here tries something, and is heard to have failed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from podeval import sandbox
from podeval.sandbox import ExitInfo, NoIsolation, SandboxLimits, SandboxSpec, usage
from tests.fakes.sandbox_walls import SECOND, WALLS, stand_up
from tests.fakes.waiting import wait_until

Try = Callable[..., ExitInfo]


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return stand_up(request.param, monkeypatch)


@pytest.fixture
def attempt(tmp_path: Path, wall: str) -> Try:
    """Run a program in a small box; its writable folder is `out`."""
    (tmp_path / "out").mkdir()

    def run(program: str, *, readable: tuple[Path, ...] = (), **limits: float) -> ExitInfo:
        bounds = {"wall_seconds": 60, "processes": 24, "memory_bytes": 600 * 2**20, "output_bytes": 20 * 2**20}
        return sandbox.run(
            SandboxSpec(
                [sys.executable, "-c", program],
                tmp_path / "out",
                readable,
                SandboxLimits(**(bounds | limits)),  # type: ignore[arg-type]
                own=wall == SECOND,
            )
        )

    return run


def test_an_honest_program_does_its_work(attempt: Try, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_text("seven")
    copy = f"open('copy', 'w').write(open({str(tmp_path / 'model/weights')!r}).read()); print('done')"
    ended = attempt(copy, readable=(tmp_path / "model",))
    assert (ended.code, ended.failure, ended.log) == (0, None, "done\n")
    assert (tmp_path / "out/copy").read_text() == "seven"


def test_it_sees_no_secret_no_home_and_no_other_process(
    attempt: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    (tmp_path / "beside").write_text("hf_secret")
    looks = f"""
import os
print(dict(os.environ))
try:
    print([p for p in os.listdir('/proc') if p.isdigit()])
except PermissionError:
    print('no process')
for place in ({str(tmp_path / "beside")!r}, '/root/.ssh', '/home', '/var', '/etc/shadow', '/work/main/.git'):
    try:
        print('SEEN', place, os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError as error:
        print(error.strerror)
print(open('/proc/self/status').read())
"""
    ended = attempt(looks)
    assert ended.code == 0, ended.log
    assert "hf_secret" not in ended.log
    assert "SEEN" not in ended.log
    assert len(ended.log.splitlines()[1].split(",")) <= 5
    assert "CapEff:\t0000000000000000" in ended.log
    assert "NoNewPrivs:\t1" in ended.log


def test_it_writes_nowhere_but_in_its_folder(attempt: Try, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    tries = f"""
import os, sys
for place in ('../escaped', {str(tmp_path / "escaped")!r}, {str(tmp_path / "model/w")!r}, '/etc/passwd', '/usr/x', '/x',
              os.path.join(sys.prefix, 'x')):
    try:
        open(place, 'w').write('x')
        print('WROTE', place)
    except OSError as error:
        print(error.strerror)
os.symlink({str(tmp_path / "escaped")!r}, 'link')
try:
    open('link', 'w').write('x')
    print('WROTE through the link')
except OSError as error:
    print(error.strerror)
"""
    ended = attempt(tries, readable=(tmp_path / "model",))
    assert ended.code == 0, ended.log
    assert "WROTE" not in ended.log
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out"]
    assert not list((tmp_path / "model").iterdir())


def test_it_reaches_no_network_not_even_this_machine(attempt: Try) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = attempt(
            f"""
import socket
for address in (('127.0.0.1', {port}), ('1.1.1.1', 80)):
    try:
        socket.create_connection(address, timeout=2)
        print('REACHED', address)
    except OSError as error:
        print(error.strerror)
"""
        )
    assert "REACHED" not in ended.log
    assert len(ended.log.splitlines()) == 2


def test_a_fork_bomb_stops_at_the_limit_and_leaves_nobody_behind(attempt: Try) -> None:
    bomb = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600.125)
        count += 1
except OSError as error:
    print(count, error.strerror)
"""
    ended = attempt(bomb)
    assert int(ended.log.split()[0]) < 24
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "3600.125" not in running


@pytest.mark.parametrize(
    ("program", "limits", "why"),
    [
        ("import time; time.sleep(60)", {"wall_seconds": 0.5}, "it took longer than 0.5 s"),
        (
            "i = 0\nwhile True:\n    open(f'{i}', 'wb').write(bytes(5_000_000)); i += 1",
            {},
            "it wrote more than 20 MiB",
        ),
        (
            "import os, time\nheld = []\nfor i in range(200):\n    held.append(open(f'{i}', 'wb'))\n"
            "    os.unlink(f'{i}')\n    held[-1].write(bytes(5_000_000)); held[-1].flush()\ntime.sleep(60)",
            {},
            "it wrote more than 20 MiB",
        ),
        ("i = 0\nwhile True:\n    open(f'{i}', 'wb'); i += 1", {"output_files": 100}, "it created more than 100 files"),
        (
            "import os, time\nfor _ in range(4): os.fork()\nx = b'x' * 60_000_000\ntime.sleep(60)",
            {},
            "it used more than 600 MiB of memory",
        ),
    ],
    ids=[
        "hangs",
        "fills the disk",
        "fills it with deleted files",
        "makes files without end",
        "shares the memory out among many",
    ],
)
def test_what_takes_too_much_is_stopped_and_told(
    attempt: Try, wall: str, program: str, limits: dict[str, float], why: str
) -> None:
    began = time.monotonic()
    ended = attempt(program, **limits)
    if wall == SECOND and "fork" in program:
        assert ended.log.rstrip().endswith("[Errno 1] Operation not permitted"), "it has no other processes"
        return
    assert (ended.stopped, ended.failure) == (why, why)
    assert time.monotonic() - began < 50, "before it would have ended"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("x = [bytearray(50_000_000) for _ in range(100)]", "MemoryError"),
        ("open('one', 'wb').write(bytes(50_000_000))", "File too large"),
        ("for i in range(30): open(f'/dev/shm/{i}', 'wb').write(bytes(15_000_000))", "No space left|Permission denied"),
        ("import os; os.kill(os.getpid(), 11)", ""),
    ],
    ids=["memory of one process", "one large file", "memory as files", "a crash"],
)
def test_what_a_single_process_may_not_fails_inside(attempt: Try, program: str, said: str) -> None:
    ended = attempt(program)
    assert ended.code != 0
    assert ended.failure
    assert any(each in ended.log for each in said.split("|"))


def test_the_log_is_bounded(attempt: Try) -> None:
    assert len(attempt("for i in range(60_000): print('x' * 20)\nprint('the end')").log) < 20_000


@pytest.mark.parametrize(
    "program",
    [
        "import time\nfor _ in range(300): print('x', flush=True); time.sleep(0.001)",
        "import os, time; os.close(1); os.close(2); time.sleep(0.4)",
    ],
    ids=["prints without end", "has closed what it prints to"],
)
def test_it_is_looked_at_by_the_clock_whatever_it_prints(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    weight = usage.weigh_folder
    monkeypatch.setattr(usage, "weigh_folder", lambda *given: (looks.append(given), weight(*given))[1])
    ended = sandbox.run(SandboxSpec([sys.executable, "-c", program], tmp_path, trusted=True))
    assert ended.failure is None
    assert len(looks) <= ended.seconds / sandbox.TICK + 2


def broken(*arguments: object) -> None:
    raise RuntimeError("the host is not as it was")


def unreadable(*arguments: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize(
    ("part", "error", "why"),
    [
        ("measure_memory", broken, "watching it failed (RuntimeError: the host is not as it was)"),
        ("free_disk", unreadable, "its output cannot be inspected (Operation not permitted)"),
    ],
)
def test_what_cannot_be_watched_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, error: Callable[..., None], why: str
) -> None:
    monkeypatch.setattr(f"podeval.sandbox.usage.{part}", error)
    began = time.monotonic()
    ended = sandbox.run(SandboxSpec([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, trusted=True))
    assert (ended.code, ended.failure) == (-signal.SIGKILL, why)
    assert time.monotonic() - began < 50, "before it would have ended"


def test_it_dies_with_the_process_that_opened_it(tmp_path: Path, wall: str) -> None:
    (tmp_path / "out").mkdir()
    program = f"""
import sys
from pathlib import Path
from podeval import sandbox
inside = "import time\\nwhile True:\\n    open('tick', 'a').write('x'); time.sleep(0.02)"
if {wall == SECOND}:
    sandbox.explain_missing_isolation = lambda: "no bubblewrap here"
own = {wall == SECOND}
sandbox.run(sandbox.SandboxSpec([sys.executable, '-c', inside], Path({str(tmp_path / "out")!r}), own=own))
"""
    opener = subprocess.Popen([sys.executable, "-c", program])
    tick, end = tmp_path / "out/tick", time.monotonic() + 60
    wait_until(tick.exists)
    os.kill(opener.pid, signal.SIGKILL)
    opener.wait()
    size = 0
    while size < (size := tick.stat().st_size):
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.3)
    sandbox.run(
        SandboxSpec([sys.executable, "-c", ""], tmp_path / "out", own=wall == SECOND)
    )  # removes the group that it left


def test_without_isolation_nothing_untrusted_runs_and_the_operator_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.explain_missing_isolation.cache_clear()
    try:
        box = SandboxSpec([sys.executable, "-c", "open('ran', 'w')"], tmp_path)
        with pytest.raises(NoIsolation, match=r"bwrap, prlimit, setpriv not found; install bubblewrap.*--trust-models"):
            sandbox.run(box)
        assert not (tmp_path / "ran").exists()
    finally:
        monkeypatch.undo()
        sandbox.explain_missing_isolation.cache_clear()


def test_what_the_operator_trusts_runs_without_isolation_but_without_secrets_and_within_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tells, hangs = "import os; print(os.environ.get('HF_TOKEN'))", "import time; time.sleep(60)"
    assert sandbox.run(SandboxSpec([sys.executable, "-c", tells], tmp_path, trusted=True)).log == "None\n"
    limits = SandboxLimits(wall_seconds=0.5)
    ended = sandbox.run(SandboxSpec([sys.executable, "-c", hangs], tmp_path, limits=limits, trusted=True))
    assert ended.stopped == "it took longer than 0.5 s"
