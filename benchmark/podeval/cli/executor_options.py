"""Where `podeval run` does its work, by its options."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podeval.runs.executor import Executor
    from podeval.runs.multi_gpu import ProcessGroup
    from podeval.runs.run import Speaking


class Where(StrEnum):
    """Executors by name."""

    LOCAL = "local"
    RAY = "ray"


@contextmanager
def spread(
    where: Where,
    workers: int,
    address: str,
    cpus: float,
    gpus: float,
    together: "ProcessGroup | None" = None,
    profile: str = "embedded",
) -> Iterator[tuple["Executor", "Speaking"]]:
    """Who measures and who makes built-in systems speak, for as long as the block runs.

    Args:
        where: on this machine, or on a Ray cluster.
        workers: processes; 0 for as many as there is room for.
        address: the address of the cluster.
        cpus: processors that each of its processes takes.
        gpus: the same.
        profile: the profile of the models that measure; a GPU has room for so many processes of them.
        together: the processes that `accelerate launch` started; each speaks its share.

    Raises:
        BadInput: the cluster does not answer, or options do not go together.
        ModelMissing: Ray is not installed.
    """
    from podeval.errors import BadInput
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.multi_gpu import Shares
    from podeval.runs.run import Voicing

    if where == Where.RAY and together:
        raise BadInput("use either accelerate launch or --executor ray, not both")
    if where == Where.RAY:
        from podeval.runs.ray_executor import Ray

        # Ray prints what it hears of nodes on standard output, which is the board's.
        with Ray(address, workers=workers, cpus=cpus, gpus=gpus) as cluster, redirect_stdout(sys.stderr):
            yield cluster, Voicing(cluster)
        return
    if address or gpus or cpus != 1:
        raise BadInput("--address, --cpus-per-worker and --gpus-per-worker are for --executor ray")
    with Workers(workers or count_workers(profile)) as processes:
        yield processes, Shares(together) if together else Voicing()
