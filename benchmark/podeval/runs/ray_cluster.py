"""A run reaches a Ray cluster at an address, or starts one on this machine for as long as it is needed."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podeval.errors import BadInput, ModelMissing, PodevalError

LOCAL = "local"
"""The address of a cluster that is started here."""

_ANSWER_SECONDS = 5.0

_STARTS = 2
"""Times that a cluster of one's own is started: Ray gives its parts half a minute, whatever else the machine does."""


class ClusterFailed(PodevalError):
    """A Ray cluster cannot do the work any more, or never could; what was finished is kept."""


def import_ray() -> Any:
    """Import Ray where it is needed, without its reports of usage.

    Raises:
        ModelMissing: it is not installed; says the command.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise ModelMissing("the executor ray needs Ray; run `pip install 'podeval[ray]'`") from None
    return ray


@contextlib.contextmanager
def connect(address: str = "") -> Iterator[Any]:
    """Connect to Ray for as long as the block runs; a connection that is there already is used, and left.

    Args:
        address: `host:port` of the head; `auto` for the cluster that this machine belongs to; `local` for one that is
            started here, on loopback only. By default RAY_ADDRESS, or else `local`.

    Raises:
        ModelMissing: Ray is not installed.
        BadInput: no cluster answers there, it asks for a token, or it runs another version of Ray or Python.
        ClusterFailed: none can be started here.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        # Whoever reaches a cluster can run code on it, and not every Ray asks for a token.
        options |= {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
    elif address != "auto":
        _require_answer(address)
    for tries_left in range(_STARTS if address == LOCAL else 1)[::-1]:
        try:
            ray.init(address=address, **options)
            break
        except Exception as error:  # Ray raises many kinds, among them plain ones
            ray.shutdown()
            if not tries_left:
                raise _refusal(address, error) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def count_workers(nodes: Sequence[Mapping[str, float]], cpus: float, gpus: float) -> int:
    """Count the processes of a size that there is room for on nodes with these resources.

    Raises:
        BadInput: for none.
    """
    need = {name: amount for name, amount in (("CPU", cpus), ("GPU", gpus)) if amount > 0}
    # Parts that are left on two nodes make no whole.
    count = sum(min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in need.items()) for node in nodes)
    if count < 1:
        needs = " and ".join(f"{amount:g} {name}" for name, amount in need.items())
        offers = "; ".join(" and ".join(f"{node.get(name, 0.0):g} {name}" for name in ("CPU", "GPU")) for node in nodes)
        raise BadInput(
            f"one worker needs {needs}, and the Ray cluster's nodes have {offers or 'none'}; add nodes, or ask for "
            "less with --cpus-per-worker and --gpus-per-worker"
        )
    return count


def _require_answer(address: str) -> None:
    """Look whether anything listens, as Ray itself would try for a minute and then end the process.

    Raises:
        BadInput: nothing does, or it is no address.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise BadInput(f"{address!r} is not the address of a Ray cluster; write host:port, auto or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS).close()
    except OSError as error:
        raise BadInput(f"{_no_cluster(address)} ({error.strerror or error})") from None


def _refusal(address: str, error: Exception) -> PodevalError:
    """Describe why a cluster cannot be used."""
    reason = str(error).strip().partition("\n")[0]
    if address == LOCAL:
        return ClusterFailed(
            f"Ray could not be started on this machine ({reason}); is it very busy, or short of memory?"
        )
    if "authentic" in str(error).lower():
        return BadInput(
            f"the Ray cluster at {address} asks for a token: bring its head's ~/.ray/auth_token here, or set "
            "RAY_AUTH_TOKEN, and set RAY_AUTH_MODE=token"
        )
    return BadInput(f"{_no_cluster(address)} ({reason})")


def _no_cluster(address: str) -> str:
    return (
        f"no Ray cluster answers at {address}; start its head with `ray start --head --port 6379` and give the address "
        "that it prints, or leave --address out"
    )
