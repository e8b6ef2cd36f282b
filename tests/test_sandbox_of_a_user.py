"""The box as somebody without privileges opens it: on a laptop, or a server whose worker is no root."""

import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.sandbox_walls import SECOND, enclosed

OpenBoxes = Callable[..., Any]
ENGINE = Path(__file__).parents[1] / "benchmark"

HOSTILE = """
import json, os, socket, sys
found = {"uid": os.getuid(), "environment": sorted(os.environ)}
found["pids"] = len([name for name in os.listdir("/proc") if name.isdigit()])
def tried(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__
    return "it worked"
found["network"] = tried(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[3])), 2))
found["model"] = tried(lambda: open(sys.argv[1] + "/weights", "w"))
found["beside"] = tried(lambda: open(sys.argv[2]))
found["home"] = tried(lambda: os.listdir("/home"))
found["weights"] = open(sys.argv[1] + "/weights").read()
open("made", "w").write(json.dumps(found))
"""

PROGRAM = """
import json, os, socket, sys
from pathlib import Path
from podeval import sandbox
from podeval.sandbox import SandboxLimits, SandboxSpec
place = Path(sys.argv[1])
if (why := sandbox.explain_missing_isolation()) is not None:
    print(json.dumps({"missing": why}))
    raise SystemExit
listening = socket.create_server(("127.0.0.1", 0))
command = [sys.executable, "-c", (place / "hostile.py").read_text()]
command += [str(place / "model"), str(place / "secret"), str(listening.getsockname()[1])]
limits = SandboxLimits(wall_seconds=20, memory_bytes=2**29, processes=32, output_bytes=2**20)
honest = sandbox.run(SandboxSpec(command, place / "out", [place / "model"], limits))
endless = "import os\\nwhile True: os.fork()"
few = SandboxLimits(wall_seconds=20, processes=32)
forks = sandbox.run(SandboxSpec([sys.executable, "-c", endless], place / "out", [], few))
fills = "f = open('large', 'wb')\\nwhile True: f.write(bytes(2**16)); f.flush()"
full = sandbox.run(SandboxSpec([sys.executable, "-c", fills], place / "out", [], limits))
told = {"code": honest.code, "log": honest.log, "forks": forks.failure, "full": full.failure}
print(json.dumps({**told, "uid": os.getuid(), "made": json.loads((place / "out/made").read_text())}))
"""

WALLS = """
import json, runpy, sys
from pathlib import Path
from podeval import sandbox
from podeval.sandbox import SandboxLimits, SandboxSpec, cgroup, usage
place = Path(sys.argv[1])
own = sys.argv[2] == "the second wall"
if (why := sandbox.explain_missing_second_wall() if own else sandbox.explain_missing_isolation()) is not None:
    print(json.dumps({"missing": why}))
    raise SystemExit
if own:
    sandbox.explain_missing_isolation = lambda: "no bubblewrap here"
programs = runpy.run_path(str(place / "hostile_programs.py"))
cgroup.find_tree = lambda: None
attacks = {name: program for name, (program, _) in programs["REFUSED"].items()}
attacks |= programs["MEMORY"] | programs["OUTPUT"]
attacks |= {name: program for name, (program, _) in programs["OUTSIDE"].items()} if own else {}
attacks |= {"devices": programs["DEVICES"], "an honest program": "import time; time.sleep(0.3)"}
size = {"memory_bytes": 256 * 2**20, "output_bytes": 20 * 2**20, "scratch_bytes": 16 * 2**20}
limits = SandboxLimits(wall_seconds=20, processes=24, **size)
results = {}
for name, program in attacks.items():
    # While a box is at work, somebody uses 400 MiB more of shared memory and 48 MiB of the disk, whoever that is.
    shared, free = iter([0]), iter([2**40])
    usage.read_machine = lambda allowed: usage.Machine(2**34, next(shared, 400 * 2**20), 2**35)
    usage.free_disk = lambda folder: next(free, 2**40 - 48 * 2**20)
    for word, value in {"PORT": 9, "SECRET": place / "secret", "LOCAL": place / "secret"}.items():
        program = program.replace(word, str(value))
    command = [sys.executable, "-c", programs["told"](program)]
    ended = sandbox.run(SandboxSpec(command, place / "out", (), limits, own=own))
    results[name] = [ended.failure, ended.log]
print(json.dumps(results))
"""


@pytest.fixture
def user() -> Iterator[pwd.struct_passwd]:
    """Somebody without privileges: whoever runs the tests, or, where that is root, one who is made for it."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    if shutil.which("useradd") is None or shutil.which("userdel") is None:
        pytest.skip("the tests run as root, and no user can be made here (no useradd)")
    name = f"podeval-{secrets.token_hex(4)}"
    done = subprocess.run(
        ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"the tests run as root, and no user can be made here ({done.stderr.strip()})")
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)


@pytest.fixture
def open_boxes(user: pwd.struct_passwd) -> Iterator[OpenBoxes]:
    """Have the user run a program on a folder of theirs with these files in it; what it printed last."""
    python = next((each for each in (sys.executable, "/usr/bin/python3") if can_run(user, each)), None)
    if python is None:
        pytest.skip("the user may run no Python here; the one of the tests is in a folder of root's")
    with tempfile.TemporaryDirectory(prefix="podeval-user-") as folder:

        def run(program: str, files: dict[str, str], *arguments: str, **environment: str) -> Any:
            for name in ("out", "model"):
                (Path(folder) / name).mkdir()
            for name, text in files.items():
                (Path(folder) / name).write_text(text)
            for path in (Path(folder), *Path(folder).rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid)
            done = run_as(user, [python, "-c", program, folder, *arguments], **environment)
            assert done.returncode == 0, done.stderr[-3_000:]
            document = json.loads(done.stdout.splitlines()[-1])
            if "missing" in document:
                pytest.skip(f"users have no namespaces here: {document['missing']}")
            return document

        yield run


def test_the_box_holds_for_a_user_without_privileges(user: pwd.struct_passwd, open_boxes: OpenBoxes) -> None:
    files = {"model/weights": "seven", "secret": "hf_secret", "hostile.py": HOSTILE}
    document = open_boxes(PROGRAM, files, HF_TOKEN="hf_secret")
    assert document["uid"] == user.pw_uid != 0
    assert document["code"] == 0, document["log"]
    output = document["made"]
    assert output["uid"] != 0
    assert output["weights"] == "seven"
    assert "HF_TOKEN" not in output["environment"]
    assert output["pids"] <= 5
    refused = {"network", "model", "beside", "home"}
    assert {name: output[name] for name in refused if output[name] == "it worked"} == {}
    assert document["forks"], "forking without end ends"
    assert "it wrote more than" in document["full"]
    until = time.monotonic() + 60
    while (left := left_of(user)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, "nothing of it is left running"


@pytest.mark.parametrize("wall", ["bubblewrap", pytest.param(SECOND, marks=enclosed)])
def test_the_walls_hold_for_a_user_without_privileges(open_boxes: OpenBoxes, wall: str) -> None:
    """Without a cgroup, and with a kernel that does not show a user how large a mapped file is."""
    hostile = Path(__file__).parent / "fakes" / "hostile_programs.py"
    files = {"hostile_programs.py": hostile.read_text(), "secret": "hf_secret"}
    results = open_boxes(WALLS, files, wall)
    assert results.pop("an honest program") == [None, "IT WORKED\n"]
    assert len(results) == (17 if wall == "bubblewrap" else 37)
    assert {name: result for name, result in results.items() if "IT WORKED" in result[1]} == {}
    stopped = {name: failure for name, (failure, _) in results.items() if failure}
    memory, output = "it used more than 256 MiB of memory", "it wrote more than 20 MiB"
    # What such a process holds cannot be looked into: memory or output, whichever is counted first.
    assert stopped.pop("deleted files of a process that cannot be looked into") in (memory, output)
    if wall == "bubblewrap":
        assert stopped.pop("memory of processes whose first thread has ended") in (memory, output)
        assert stopped.pop("deleted files on their way through a socket") == output
    assert stopped == {
        "memory that is in nobody's tables": memory,
        "deleted files that are mapped": output,
    }


def can_run(user: pwd.struct_passwd, python: str) -> bool:
    """Whether a user may run a Python that is new enough for podeval."""
    if not Path(python).exists():
        return False
    try:
        done = run_as(user, [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"])
    except PermissionError:
        return False
    return done.returncode == 0


def run_as(user: pwd.struct_passwd, command: list[str], **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as a user, whose home is not there."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ENGINE), "PYTHONDONTWRITEBYTECODE": "1", **more}
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd="/", env=environment, **who
    )


def left_of(user: pwd.struct_passwd) -> list[str]:
    """Processes of a user that was made for a test."""
    if os.geteuid() != 0:
        return []
    result = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            about = (path / "stat").read_text().rpartition(")")[2].split()
            if path.stat().st_uid == user.pw_uid and about[0] != "Z":
                result.append(f"{path.name} {about[0]} {(path / 'cmdline').read_bytes()[:200]!r}")
        except OSError:
            continue
    return result
