"""The executor `ray` spreads work over the processes of a Ray cluster, across all of its machines.

Ray starts the processes where there is room, restarts processes that died, and transfers files and results. This module
chooses the next item and the number of attempts, because Ray retries a task only on the same process, which may wait
forever for a node with room, and `ActorPool` does not link an error to its task. A task is not done until its result
has arrived: if a node is lost, only the current tasks of its processes are lost, and other processes repeat them.
"""

import contextlib
import itertools
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.runs.ray_actor import RayWorker, pack

T = TypeVar("T")
R = TypeVar("R")

TRIES = 3
"""Number of times that an item's process may die before the item is abandoned; a lost node is seldom the item's fault.
"""

_ROOM_SECONDS = 900.0
"""Time in seconds to wait while no process runs, because a cluster may be adding machines."""

LOCAL = "local"
"""The address that means a cluster started on this machine."""

_ANSWER_SECONDS = 5.0

_LOCAL_STARTS = 2
"""Number of attempts to start a local cluster: Ray allows its components half a minute, however busy the machine is."""

_OWN_NODE = (
    "Ray's node on this machine has stopped; start it again with `ray start`, then run the same command again to resume"
)


@dataclass(eq=False)
class _Line:
    """The tasks of one call to `map`."""

    name: str
    work: Any
    open: int = 0
    done: deque[tuple[Any, Any]] = field(default_factory=deque)

    def take(self) -> Iterator[tuple[Any, Any]]:
        while self.done:
            self.open -= 1
            yield self.done.popleft()


@dataclass(eq=False)
class _Job:
    """One task on its way to its result."""

    line: _Line
    task: Any
    tries: int = 0


class Ray(contextlib.AbstractContextManager["Ray"]):
    """Processes on a Ray cluster, started when the block is entered and kept, with their models, until it ends.

    Several calls to `map` may run at the same time, and the results of one call may be the tasks of another; they share
    the processes.
    """

    def __init__(self, address: str = "", *, workers: int = 0, cpus: float = 1.0, gpus: float = 0.0) -> None:
        """Store the settings without contacting the cluster.

        Args:
            address: the address of the cluster, see `connect`.
            workers: number of processes; 0 for as many as fit at the start. Processes that do not fit wait for new
                nodes.
            cpus: CPUs per process, which uses the same number of threads.
            gpus: GPUs per process; with a fraction such as 0.5, several processes share a GPU.
        """
        if workers < 0 or cpus <= 0 or gpus < 0:
            raise BadInput("give a Ray worker more than 0 CPUs and at least 0 GPUs")
        self._address, self._requested, self._cpus, self._gpus = address, workers, cpus, gpus
        self._resources = contextlib.ExitStack()
        self._names = map(str, itertools.count())
        self._queue: deque[_Job] = deque()
        self._actors: list[Any] = []
        self._free: deque[Any] = deque()
        self._flights: dict[Any, tuple[Any, _Job | None]] = {}
        self._last_sign = time.monotonic()

    def __enter__(self) -> "Ray":
        self._ray = self._resources.enter_context(connect(self._address))
        try:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            fit = count_workers(nodes, self._cpus, self._gpus)
        except BaseException:
            self._resources.close()
            raise
        self.workers = self._requested or fit
        options = {"num_cpus": self._cpus, "num_gpus": self._gpus, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
        worker = self._ray.remote(RayWorker).options(**options)
        self._actors = [worker.remote(max(1, int(self._cpus))) for _ in range(self.workers)]
        for actor in self._actors:
            self._await_start(actor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from ray.exceptions import RayError

        for actor in self._actors:
            with contextlib.suppress(RayError, ValueError):
                self._ray.kill(actor)
        self._resources.close()

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[tuple[T, R | None]]:
        """Yield each task with its result, in the order of completion; None if its process repeatedly died.

        At most one more task than there are processes is taken at a time.

        Raises:
            ClusterFailed: no process can be started, or no process is left and there is no room for a new process. Any
                error that the function raises, with its own type.
        """
        line = _Line(next(self._names), self._ray.put(work))
        try:
            for task in tasks:
                self._queue.append(_Job(line, task))
                line.open += 1
                self._gather(0)
                while line.open - len(line.done) > self.workers:
                    self._gather()
                yield from line.take()
            while line.open:
                if not line.done:
                    self._gather()
                yield from line.take()
        finally:
            self._queue = deque(job for job in self._queue if job.line is not line)

    def _gather(self, seconds: float = 10.0) -> None:
        """Send pending items and receive results; wait for at most `seconds` for a result."""
        self._send()
        if not self._flights:
            return
        try:
            ready, _ = self._ray.wait(list(self._flights), num_returns=1, timeout=seconds)
        except SystemExit:
            # Ray ends a program whose own node is gone; here, this is reported as an error.
            raise ClusterFailed(_OWN_NODE) from None
        for flight in ready:
            actor, job = self._flights.pop(flight)
            if job is None:
                self._receive_start(actor, flight)
            else:
                self._receive_result(actor, job, flight)
        if ready or any(job for _, job in self._flights.values()):
            self._last_sign = time.monotonic()
        elif time.monotonic() - self._last_sign > _ROOM_SECONDS:
            raise ClusterFailed(
                f"for {_ROOM_SECONDS / 60:.0f} minutes no process ran on the Ray cluster and none could be started; "
                f"check `ray status`, then run the same command again to resume"
            )
        self._send()

    def _send(self) -> None:
        while self._queue and self._free:
            actor, job = self._free.popleft(), self._queue.popleft()
            parcels, contents = pack(job.task)
            # The data is put into Ray again at every attempt, because the node that stored it may be the one that
            # failed.
            held = [self._ray.put(content) for content in contents]
            self._flights[actor.do.remote(job.line.name, [job.line.work], job.task, parcels, *held)] = (actor, job)

    def _receive_result(self, actor: Any, job: _Job, flight: Any) -> None:
        from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError

        try:
            result = self._ray.get(flight)
        except RayTaskError as raised:
            if not isinstance(raised.cause, RayError):
                self._free.append(actor)
                raise raised.cause from raised
            self._take_back(actor, job)
        except LocalRayletDiedError:
            raise ClusterFailed(_OWN_NODE) from None
        except RayError:
            self._take_back(actor, job)
        else:
            self._free.append(actor)
            job.line.done.append((job.task, result))

    def _take_back(self, actor: Any, job: _Job) -> None:
        """Give a task to the next free process if its previous process or its result is lost."""
        job.tries += 1
        if job.tries >= TRIES:
            job.line.done.append((job.task, None))
        else:
            self._queue.appendleft(job)
        self._await_start(actor)

    def _await_start(self, actor: Any) -> None:
        """Use a process once Ray has started or restarted it, if there is room for it."""
        self._flights[actor.meet.options(max_task_retries=-1).remote()] = (actor, None)

    def _receive_start(self, actor: Any, flight: Any) -> None:
        from ray.exceptions import RayError

        from podeval.version import __version__

        try:
            version, machine = self._ray.get(flight)
        except RayError as error:
            raise ClusterFailed(
                "processes cannot be started on the Ray cluster; check that podeval is installed on its nodes. The "
                "last error: "
                f"{str(error).strip().splitlines()[-1].strip()}"
            ) from None
        if version != __version__:
            raise ClusterFailed(
                f"{machine} has podeval {version}, but this machine has {__version__}; results may differ between "
                "versions, so install the same version everywhere"
            )
        self._free.append(actor)


class ClusterFailed(PodevalError):
    """A Ray cluster can no longer do the work, or never could; finished work is kept."""


@contextlib.contextmanager
def connect(address: str = "") -> Iterator[Any]:
    """Connect to Ray for the duration of the block; an existing connection is used, and stays open.

    Args:
        address: `host:port` of the head; `auto` for the cluster of this machine; `local` for a new cluster on this
            machine, on loopback only. The default is RAY_ADDRESS, otherwise `local`.

    Raises:
        ModelMissing: Ray is not installed.
        BadInput: no cluster answers at the address, or the cluster asks for a token or runs a different version of Ray
            or Python.
        ClusterFailed: no cluster can be started on this machine.
    """
    # Turn off Ray's usage reports.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from podeval.datasets.http import is_loopback

    try:
        import ray
    except ModuleNotFoundError:
        raise ModelMissing("the executor ray needs Ray; run `pip install 'podeval[ray]'`") from None
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        # Anyone who reaches a cluster can run code on it, and not every version of Ray asks for a token.
        options |= {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
    elif address != "auto":
        _require_answer(address)
        if is_loopback(f"//{address}"):
            _require_outer_answer(address)
    for tries_left in range(_LOCAL_STARTS if address == LOCAL else 1)[::-1]:
        try:
            ray.init(address=address, **options)
            break
        except (Exception, SystemExit) as error:  # Ray raises many errors, even plain exceptions, and may exit
            ray.shutdown()
            if not tries_left:
                raise _refusal(address, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def count_workers(nodes: Sequence[Mapping[str, float]], cpus: float, gpus: float) -> int:
    """Count the processes of this size that fit on nodes with these resources.

    Raises:
        BadInput: there is no room for any process.
    """
    need = {name: amount for name, amount in (("CPU", cpus), ("GPU", gpus)) if amount > 0}
    # Free fractions of a GPU on two nodes do not add up to a whole GPU.
    count = sum(min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in need.items()) for node in nodes)
    if count < 1:
        needs = " and ".join(f"{amount:g} {name}" for name, amount in need.items())
        offers = "; ".join(" and ".join(f"{node.get(name, 0.0):g} {name}" for name in ("CPU", "GPU")) for node in nodes)
        raise BadInput(
            f"one worker needs {needs}, but the Ray cluster's nodes have {offers or 'none'}; add nodes, or request "
            f"less with --cpus-per-worker and --gpus-per-worker"
        )
    return count


def _require_answer(address: str) -> None:
    """Check whether anything listens at the address, because Ray itself would try for a minute and then end the
    process.

    Raises:
        BadInput: there is no answer, or the text is not an address.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise BadInput(f"{address!r} is not the address of a Ray cluster; write host:port, auto or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS).close()
    except OSError as error:
        raise BadInput(f"{_no_cluster(address)} ({error.strerror or error})") from None


def _require_outer_answer(address: str) -> None:
    """Check whether the head also listens on this machine's outer address, which Ray uses instead of a loopback
    address.

    Raises:
        BadInput: the head does not listen there, and Ray would try to connect for minutes.
    """
    from ray.util import get_node_ip_address

    outer = f"{get_node_ip_address()}:{address.rpartition(':')[2]}"
    try:
        _require_answer(outer)
    except BadInput as error:
        raise BadInput(f"Ray connects to {outer} instead of {address}, but {error}") from None


def _refusal(address: str, error: BaseException) -> PodevalError:
    """Describe why a cluster cannot be used."""
    reason = str(error).strip().partition("\n")[0]
    if address == LOCAL:
        return ClusterFailed(
            f"Ray could not be started on this machine ({reason}); check whether the machine is very busy or short "
            f"of memory"
        )
    if "authentic" in str(error).lower():
        return BadInput(
            f"the Ray cluster at {address} asks for a token: copy its head's ~/.ray/auth_token here, or set "
            "RAY_AUTH_TOKEN, and set RAY_AUTH_MODE=token"
        )
    return BadInput(f"{_no_cluster(address)} ({reason})")


def _no_cluster(address: str) -> str:
    return (
        f"no Ray cluster answers at {address}; start its head with `ray start --head --port 6379` and give the address "
        "that it prints, or leave --address out"
    )
