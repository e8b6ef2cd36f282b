"""A run spread over a Ray cluster gives what one process gives, whoever dies on the way."""

import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.runs.ray_executor import connect, count_workers
from podeval.runs.run import RunRequest, Voicing, run_system
from podeval.runs.run_folder import RunSummary
from podeval.systems.speech import Speech, SpeechFailed
from tests.runs import ray_nodes


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of a head and a node."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed; `pip install 'podeval[ray]'`")
    try:
        held = ray_nodes.cluster(nodes=1)
        cluster = held.__enter__()
    except ray_nodes.TooBusy as reason:
        pytest.skip(str(reason))
    yield cluster
    held.__exit__(None, None, None)


class Unfit:
    """A process of the cluster that cannot start, as where podeval is not installed."""

    def __init__(self, threads: int) -> None:
        raise ModuleNotFoundError("No module named 'podeval'")

    def meet(self) -> None:
        """Nobody is met."""


@pytest.mark.long
def test_a_cluster_on_which_no_process_starts_is_told(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray import cloudpickle

    from podeval.runs import ray_executor

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(ray_executor, "RayWorker", Unfit)
    sentence = (
        r"processes cannot be started on the Ray cluster; check that podeval is installed on its nodes\. .*No module"
    )
    with (
        ray_executor.Ray(nodes.address, workers=1) as executor,
        pytest.raises(ray_executor.ClusterFailed, match=sentence),
    ):
        list(executor.map(_twice, [1]))
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def spread(nodes: Any) -> Iterator[Any]:
    """The executor with a process on each node."""
    from podeval.runs.ray_executor import Ray

    with Ray(nodes.address) as executor:
        assert executor.workers == 2
        yield executor


@pytest.fixture
def elsewhere(tiny: ModuleType) -> Iterator[ModuleType]:
    """The tiny benchmark with metrics that other processes know; its system travels as code, not by name."""
    from ray import cloudpickle

    this = sys.modules[__name__]
    for module in (tiny, this):
        cloudpickle.register_pickle_by_value(module)
    yield tiny
    for module in (tiny, this):
        cloudpickle.unregister_pickle_by_value(module)


def singer_of(tiny: ModuleType, marks: Path, seconds: float = 0.0) -> Any:
    """A singer that fails on one item, is silent on another, says where it sang, and ends no song on a doomed node."""
    marked = str(marks)

    class Troubled(tiny.Singer):  # type: ignore[name-defined, misc]
        def speak(self, script: Any, *, seed: int = 0) -> Speech:
            import ray

            if ray.is_initialized() and ray.get_runtime_context().get_actor_id():
                place = ray.get_runtime_context().get_node_id()
                doomed = [path.name.removeprefix("doomed-") for path in Path(marked).glob("doomed-*")]
                # Nobody sings before the doomed one has begun, however late its processes come.
                while doomed and place not in doomed and not list(Path(marked).glob(f"{doomed[0]}-*")):
                    time.sleep(0.05)
                Path(marked, f"{place}-{os.getpid()}-{time.monotonic_ns()}").touch()
                if place in doomed:
                    time.sleep(300)
            time.sleep(seconds)
            if "three" in script.text:
                raise SpeechFailed("the singer has lost its voice")
            speech = super().speak(script, seed=seed)
            quiet = 0 if "two" in script.text else 1
            details = {"voice": "sine"}
            return Speech(speech.samples * np.float32(quiet), speech.rate, speech.turns, 0.01, details=details)

    return Troubled()


def benchmark_of(tiny: ModuleType) -> Any:
    """The tiny benchmark with metrics that are part of podeval."""
    (audio,) = tiny.BENCHMARK.dimensions
    metrics = [{"name": "loudness", "keys": ["integrated"]}, {"name": "rtf", "keys": ["rtf"]}]
    dimension = audio.model_dump() | {"metrics": metrics}
    return tiny.BENCHMARK.model_validate(tiny.BENCHMARK.model_dump() | {"dimensions": [dimension]})


def records(runs: Path) -> dict[str, Any]:
    """All that a run left, without the time and the machine it was made on."""
    folder = runs / "tiny/demo/singer"
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        if name == "embedded/results.jsonl":
            found[name] = sorted(path.read_bytes().replace(str(runs).encode(), b"RUNS").splitlines())
        elif name == "embedded/summary.json":
            whole = json.loads(path.read_text().replace(str(runs), "RUNS"))
            found[name] = {key: value for key, value in whole.items() if key not in ("created", "provenance")}
        elif name != ".lock":
            found[name] = path.read_bytes()
    return found


Run = Callable[..., RunSummary]


@pytest.fixture
def run(elsewhere: ModuleType, tmp_path: Path) -> Run:
    (tmp_path / "marks").mkdir()

    def once(folder: str, executor: Any = None, seconds: float = 0.0) -> RunSummary:
        fields = {"executor": executor, "speaking": Voicing(executor)} if executor else {}
        request = RunRequest(benchmark_of(elsewhere), "demo", "voice", tmp_path / folder, **fields)
        return run_system(singer_of(elsewhere, tmp_path / "marks", seconds), "The Singer", request)

    return once


@pytest.mark.long
def test_a_spread_run_leaves_byte_by_byte_what_a_local_one_leaves(run: Run, spread: Any, tmp_path: Path) -> None:
    run("here")
    summary = run("there", spread, seconds=0.3)
    here, there = records(tmp_path / "here"), records(tmp_path / "there")
    assert here == there
    assert {"outputs/one.flac", "outputs/one.json", "outputs/three.json", "embedded/results.jsonl"} <= set(there)
    loudness = next(row for row in summary.metrics if row.metric == "loudness")
    assert (loudness.scored, loudness.unscored_system, loudness.unscored_ours) == (1, 2, 0)
    places = {mark.name.split("-")[0] for mark in (tmp_path / "marks").iterdir()}
    assert len(places) == 2, "both nodes spoke"


def _twice(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


@pytest.mark.long
def test_an_item_whose_process_dies_is_done_again_and_one_that_always_kills_is_given_up(
    elsewhere: ModuleType, spread: Any, tmp_path: Path
) -> None:
    flag = str(tmp_path / "flag")

    def risky(number: int) -> tuple[int, int]:
        if number == 3 or (number == 1 and not os.path.exists(flag)):
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _twice(number)

    found = dict(spread.map(risky, range(6)))
    assert {number: result and result[0] for number, result in found.items()} == {
        0: 0,
        1: 2,
        2: 4,
        3: None,
        4: 8,
        5: 10,
    }
    assert len({result[1] for result in found.values() if result}) >= 2


@pytest.mark.long
def test_what_the_work_raises_comes_home_as_it_was_raised(elsewhere: ModuleType, spread: Any) -> None:
    def refusing(number: int) -> int:
        raise ModelMissing(f"number {number} is not installed")

    with pytest.raises(ModelMissing, match=r"^number 7 is not installed$"):
        list(spread.map(refusing, [7]))
    assert [result[0] for _, result in spread.map(_twice, [1])] == [2], "and the processes are still there"


@pytest.mark.long
def test_a_line_of_work_that_feeds_another_shares_the_processes(elsewhere: ModuleType, spread: Any) -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    first = (result[0] for _, result in spread.map(_twice, numbers()))
    second = spread.map(_twice, first)
    assert next(second)[1]
    assert len(taken) <= 12, "tasks are taken as processes become free, not all at once"
    assert len(list(second)) == 19
    assert taken == list(range(20))


def test_a_node_that_is_killed_in_mid_run_loses_nothing(run: Run, nodes: Any, spread: Any, tmp_path: Path) -> None:
    run("here")
    (node,) = nodes.others
    marks = tmp_path / "marks"
    (marks / f"doomed-{node}").touch()

    def kill_once_it_speaks() -> None:
        while not any(mark.name.startswith(node) for mark in marks.iterdir()):
            time.sleep(0.02)
        nodes.kill(node)

    killer = threading.Thread(target=kill_once_it_speaks)
    killer.start()
    run("there", spread, seconds=0.2)
    killer.join()
    assert records(tmp_path / "here") == records(tmp_path / "there")
    places = [mark.name.split("-")[0] for mark in marks.iterdir()]
    assert places.count(nodes.head) == 3, "what the dead node was at was spoken again"
    assert places.count(node) == 1
    assert [result[0] for _, result in spread.map(_twice, range(2))] == [0, 2], "one node is left"


def test_files_travel_by_their_content_and_are_called_by_their_own_names(tmp_path: Path) -> None:
    from podeval.runs.ray_actor import pack, unpack

    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, here / "sub", there):
        folder.mkdir()
    (here / "one.flac").write_bytes(b"one")
    (here / "sub" / "one.flac").write_bytes(b"another")

    class Reading:
        files = (here / "one.flac", here / "sub" / "one.flac", here / "absent.flac")

        def moved(self, folders: Any) -> Any:
            raise NotImplementedError

    parcels, contents = pack(Reading())
    folders = unpack(parcels, contents, there)
    assert {path: (to / "one.flac").read_bytes() for path, to in folders.items()} == {
        here: b"one",
        here / "sub": b"another",
    }
    with pytest.raises(OSError, match=r"one.flac arrived damaged"):
        unpack(parcels, [contents[1], contents[0]], tmp_path)


def test_without_ray_the_command_that_helps_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModelMissing, match=r"needs Ray; run `pip install 'podeval\[ray\]'`"), connect():
        pass


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:1", r"no Ray cluster answers at 127.0.0.1:1; start its head with .*Connection refused"),
        ("ray://127.0.0.1:1", r"no Ray cluster answers at ray://127.0.0.1:1"),
        ("here", r"'here' is not the address of a Ray cluster; write host:port, auto or local"),
        ("a:99999", r"'a:99999' is not the address of a Ray cluster"),
    ],
)
def test_an_address_that_does_not_answer_is_told_at_once(
    address: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    began = time.monotonic()
    with pytest.raises(BadInput, match=told), connect(address):
        pass
    assert time.monotonic() - began < 30


def test_a_loopback_address_whose_head_listens_on_loopback_alone_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray would dial the outer address for minutes; here that is another loopback address."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "127.0.0.2")
    with socket.create_server(("127.0.0.1", 0)) as head:
        port, began = head.getsockname()[1], time.monotonic()
        sentence = rf"^Ray connects to 127.0.0.2:{port} instead of 127.0.0.1:{port}, but no Ray cluster answers at"
        with pytest.raises(BadInput, match=sentence), connect(f"127.0.0.1:{port}"):
            pass
    assert time.monotonic() - began < 30


def test_an_end_of_the_program_by_ray_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: sys.exit(15))
    with pytest.raises(BadInput, match=r"no Ray cluster answers at auto; start its head"), connect("auto"):
        pass


def test_options_that_do_not_go_together_are_refused() -> None:
    from podeval.cli.run import spread
    from podeval.runs.multi_gpu import ProcessGroup

    with (
        pytest.raises(BadInput, match=r"--gpus-per-worker can only be used with --executor ray"),
        spread("local", 1, "", 1.0, 0.5),
    ):
        pass
    with (
        pytest.raises(BadInput, match=r"use either accelerate launch or --executor ray"),
        spread("ray", 1, "", 1.0, 0.0, ProcessGroup(0, 2, lambda: None)),
    ):
        pass


@pytest.mark.long
def test_a_cluster_that_asks_for_a_token_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    def refuse(**options: Any) -> None:
        raise ray.exceptions.AuthenticationError("InvalidAuthToken: Authentication token is missing")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with (
        pytest.raises(BadInput, match=r"asks for a token: copy its head's ~/.ray/auth_token here.*RAY_AUTH_MODE=token"),
        connect("auto"),
    ):
        pass


@pytest.mark.long
def test_as_many_processes_start_as_whole_nodes_have_room_for() -> None:
    nodes = [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 3.0}, {"CPU": 16.0, "GPU": 1.0}]
    assert count_workers(nodes, 1, 0) == 35
    assert count_workers(nodes, 2, 0) == 17, "half a worker's processors on each of two nodes are no worker"
    assert count_workers(nodes, 1, 0.5) == 6
    with pytest.raises(BadInput, match=r"one worker needs 1 CPU and 4 GPU, .*16 CPU and 2 GPU; 3 CPU and 0 GPU"):
        count_workers(nodes, 1, 4)
