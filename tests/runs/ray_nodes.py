"""Nodes of a Ray cluster, each a raylet of its own on this machine's loopback, that can be killed by their id."""

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

# A lost node is noticed within seconds; by default it takes Ray half a minute. One that is only slow is given time.
_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 700,
    "health_check_timeout_ms": 20_000,
    "health_check_failure_threshold": 3,
}


class Nodes:
    """A running cluster: a head and nodes with one processor each."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._nodes: dict[str, Any] = {}
        self.head: str = cluster.head_node.node_id
        self.address: str = cluster.address

    @property
    def others(self) -> tuple[str, ...]:
        """The nodes that are not the head."""
        return tuple(self._nodes)

    def add(self) -> str:
        """One more node; its id."""
        options = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
        node = _patiently(lambda: self._cluster.add_node(dashboard_agent_listen_port=0, **options))
        self._nodes[node.node_id] = node
        return str(node.node_id)

    def kill(self, node: str) -> None:
        """End a node's raylet as a power cut would; its processes go with it."""
        os.kill(self._nodes.pop(node).all_processes["raylet"][0].process.pid, signal.SIGKILL)


class TooBusy(Exception):
    """Ray gives a node half a minute to start, whatever else the machine does; this one does more."""


def _patiently(start: Callable[[], Any]) -> Any:
    """A started node, at the second try if need be."""
    for _ in range(2):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    raise TooBusy("this machine is too busy for Ray to start a node within its 30 seconds, twice")


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Nodes]:
    """A cluster whose processes listen on 127.0.0.1 only, with a token of its own and no dashboard."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # a socket's path must be short
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
    settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {name: os.environ.get(name) for name in settings}
    os.environ |= settings
    from ray import cluster_utils
    from ray._private import ray_constants

    # Else the driver takes 127.0.0.1 to mean this machine's outer address.
    ray_constants.ENABLE_RAY_CLUSTER = False
    options = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    options |= {"object_store_memory": 80 * 2**20, "_system_config": _NOTICE}
    found = None
    try:
        found = _patiently(lambda: cluster_utils.Cluster(initialize_head=True, head_node_args=options))
        made = Nodes(found)
        for _ in range(nodes):
            made.add()
        yield made
    finally:
        if found is not None:
            found.shutdown()
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}
        shutil.rmtree(folder, ignore_errors=True)
