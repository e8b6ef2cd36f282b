"""Run over nodes that share neither network nor disk: one is killed, one is cut off, and nothing may be lost.

    sudo python studies/ray_namespaces.py [--items 16] [--seconds 2]

The four nodes of the Ray cluster each have their own network namespace, joined by a bridge, and a /tmp that the others
cannot see. The first is the head, on which the command runs. While they work, the raylet of the second node is killed
with SIGKILL, and the network link of the third is cut. Everything that the run left is then compared, byte by byte,
with a run in one process. The script needs root, `ip`, `unshare` and `nsenter`, and removes everything that it sets up.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
BRIDGE, NETWORK, PORT = "podeval-br", "10.77.0", 6379
NODES = 4
SETTINGS = {
    "RAY_TMPDIR": "/tmp/ray",
    "PODEVAL_CACHE": "/tmp/cache",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
NOTICE = (
    '{"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_timeout_ms": 5000, '
    '"health_check_failure_threshold": 3}'
)


def ip(*words: str, check: bool = True) -> None:
    """Run the command `ip`."""
    subprocess.run(["ip", *words], check=check, capture_output=not check)


@contextlib.contextmanager
def network() -> Iterator[list[str]]:
    """Create the namespaces, each linked to one bridge; yield their names."""
    names = [f"podeval-{number}" for number in range(1, NODES + 1)]
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(names, 1):
            ip("netns", "add", name)
            ip("link", "add", f"pv{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"pv{number}", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            ip("netns", "del", name, check=False)
        ip("link", "del", BRIDGE, check=False)


@contextlib.contextmanager
def node(name: str, number: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a node with `ray start` in its namespace, with an empty /tmp."""
    address = f"{NETWORK}.{number}"
    where = ["--head", f"--port={PORT}", "--include-dashboard=false", f"--system-config={NOTICE}"]
    where = where if number == 1 else [f"--address={NETWORK}.1:{PORT}"]
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", *where, f"--node-ip-address={address}"]
    ray += ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--block"]
    shell = 'mount -t tmpfs -o size=2g,mode=1777 tmpfs /tmp && exec "$@"'
    with log.open("wb") as told:
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, "unshare", "-m", "sh", "-c", shell, "sh", *ray],
            stdout=told,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | SETTINGS,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        for pid in inside(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def inside(name: str) -> list[int]:
    """List the processes of a namespace."""
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def raylet(name: str) -> int:
    """Return the process of a node's raylet."""
    return next(pid for pid in inside(name) if Path(f"/proc/{pid}/comm").read_text().strip() == "raylet")


def helpers() -> tuple[ModuleType, ModuleType]:
    """Import the tiny benchmark, and the fast tests of Ray that use it."""
    sys.path.insert(0, str(TESTS.parent))
    from tests.fakes import tiny_run
    from tests.runs import test_ray

    return tiny_run, test_ray


def drive(items: int, seconds: float) -> None:
    """Inside the head's namespace, run in one process and over the cluster, and compare the results."""
    from podeval.datasets import items as found
    from podeval.runs import run
    from podeval.runs.ray_executor import Ray
    from podeval.runs.run import Voicing

    tiny, ray_tests = helpers()
    tiny.settle_in()
    benchmark = ray_tests.benchmark_of(tiny)
    three = found.load_items(benchmark, "demo")
    more = tuple(
        item.model_copy(update={"id": f"{item.id}-{number}"})
        for number in range(-(-items // len(three.items)))
        for item in three.items
    )[:items]
    run.read_items = lambda request: found.Items(more, three.revision)
    folder = Path(tempfile.mkdtemp())

    def once(place: str, executor: Any = None) -> Any:
        fields = {"executor": executor, "speaking": Voicing(executor)} if executor else {}
        (folder / "marks").mkdir(exist_ok=True)
        request = run.RunRequest(benchmark, "demo", "voice", folder / place, **fields)
        singer = ray_tests.singer_of(tiny, Path("/tmp"), seconds if executor else 0.0)
        return run.run_system(singer, "The Singer", request)

    from ray import cloudpickle

    for module in (tiny, ray_tests):
        cloudpickle.register_pickle_by_value(module)
    once("here")
    began = time.monotonic()
    with Ray(f"{NETWORK}.1:{PORT}") as cluster:
        print(f"{cluster.workers} processes", flush=True)
        summary = once("there", cluster)
        spent = time.monotonic() - began
        alive = [each["NodeManagerAddress"] for each in cluster._ray.nodes() if each["Alive"]]
    here, there = ray_tests.records(folder / "here"), ray_tests.records(folder / "there")
    assert here == there, sorted(name for name in here if here[name] != there.get(name))
    lost = sum(row.unscored_ours for row in summary.metrics)
    assert lost == 0
    print(
        f"{items} items in {spent:.1f} s, {len(there)} files and records as those of one process, none lost", flush=True
    )
    print(f"nodes alive at the end: {', '.join(sorted(alive))}", flush=True)


def main() -> None:
    """Set up the cluster, run, disturb it, and remove it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--items", type=int, default=16)
    asked.add_argument("--seconds", type=float, default=2.0)
    asked.add_argument("--drive", action="store_true", help="used by this program itself")
    given = asked.parse_args()
    if given.drive:
        drive(given.items, given.seconds)
        return
    logs = Path(tempfile.mkdtemp(prefix="podeval-ray-"))
    with contextlib.ExitStack() as held:
        names = held.enter_context(network())
        head = held.enter_context(node(names[0], 1, logs / "1.log"))
        _wait_for_port(names[0])
        for number, name in enumerate(names[1:], 2):
            held.enter_context(node(name, number, logs / f"{number}.log"))
        for name in names:
            _wait(lambda name=name: any(_comm(pid) == "raylet" for pid in inside(name)), f"the node {name}")
        time.sleep(15)
        command = ["nsenter", f"--net=/proc/{head.pid}/ns/net", f"--mount=/proc/{_root(names[0])}/ns/mnt"]
        command += [sys.executable, __file__, "--drive", "--items", str(given.items), "--seconds", str(given.seconds)]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | SETTINGS)
        assert driver.stdout
        print(driver.stdout.readline(), end="", flush=True)
        victim = raylet(names[1])
        _wait(lambda: _spoke(names[1]) and _spoke(names[2]), "both victims at work")
        os.kill(victim, signal.SIGKILL)
        print("killed the raylet of node 2", flush=True)
        ip("link", "set", "pv3", "down")
        print("pulled the cable of node 3", flush=True)
        print(driver.stdout.read(), end="", flush=True)
        if driver.wait() != 0:
            sys.exit(f"it did not end well; logs are in {logs}")
    shutil.rmtree(logs)


def _spoke(name: str) -> bool:
    """Return whether a node has left a mark in its own /tmp."""
    pid = raylet(name)
    return any(len(found.name) > 60 for found in Path(f"/proc/{pid}/root/tmp").iterdir())


def _root(name: str) -> int:
    return raylet(name)


def _comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _wait(what: Any, told: str, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {told}")
        time.sleep(0.2)


def _wait_for_port(name: str) -> None:
    probe = f"import socket; socket.create_connection(('{NETWORK}.1', {PORT}), 2)"
    asking = ["ip", "netns", "exec", name, sys.executable, "-c", probe]
    _wait(lambda: subprocess.run(asking, capture_output=True, check=False).returncode == 0, "the head")


if __name__ == "__main__":
    main()
