"""`podeval worker`: process submissions on this machine or as jobs on the Hub."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, open_queue, resolve_database
from podeval.cli.output import configure_logging
from podeval.cli.submissions import Data, Flavor, Image, Timeout, require_gpu
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.runs.hf_jobs import HfJobs
    from podeval.store.database import Database
    from podeval.submissions.hub_generation import OnTheHub
    from podeval.submissions.worker import Worker

EXECUTORS = ("local", "hf-jobs")

_LOG = logging.getLogger("podeval.worker")

_FINISHES = "the worker finishes {}, then stops"


def worker(
    once: Annotated[bool, typer.Option("--once", help="process one submission, then stop")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="process submissions until stopped")] = False,
    database: Place = DEFAULT,
    board: Runs = RUNS,
    work: Annotated[Path, typer.Option(help="working folder, on a local disk")] = Path("work"),
    workers: Annotated[int, typer.Option(help="number of measuring processes; 0 means the worker's own process")] = 0,
    gpu: Annotated[bool, typer.Option("--gpu", help="let models use the GPU")] = False,
    memory: Annotated[float, typer.Option(help="memory limit for a model, in GiB")] = 16.0,
    item_minutes: Annotated[float, typer.Option(help="minutes after which an item counts as failed")] = 30.0,
    trust_models: Annotated[
        bool, typer.Option("--trust-models", help="run models without isolation; only for models that you trust")
    ] = False,
    voices: Annotated[
        Path | None,
        typer.Option(
            envvar="PODEVAL_VOICES",
            help="folder of reference voices, for benchmarks whose settings supply models with voices",
        ),
    ] = None,
    data: Data = None,
    pause: Annotated[float, typer.Option(help="seconds between checks of an empty queue")] = 10.0,
    dispatch: Annotated[
        bool, typer.Option("--dispatch", help="with --watch on PostgreSQL: let procrastinate wake the worker")
    ] = False,
    executor: Annotated[
        str,
        typer.Option(
            envvar="PODEVAL_EXECUTOR", help="run models on this machine (local) or as jobs on the Hub (hf-jobs)"
        ),
    ] = "local",
    image: Image = "",
    flavor: Flavor = "a10g-large",
    timeout: Timeout = "2h",
    budget: Annotated[
        float, typer.Option(envvar="PODEVAL_JOBS_BUDGET", help="for hf-jobs: total budget of all jobs, in USD")
    ] = 0.0,
    namespace: Annotated[
        str, typer.Option(envvar="PODEVAL_JOBS_NAMESPACE", help="for hf-jobs: account that pays")
    ] = "",
) -> None:
    """Process submissions: models speak in a sandbox or as jobs on the Hub, and podeval measures and publishes.

    A worker can be killed at any time; the next one resumes its work. Several workers can share a queue. The first
    Ctrl-C or SIGTERM lets --watch finish its current submission; the second stops it immediately. If this machine is at
    fault (no isolation, a full disk), the submission is queued again and the operator gets a message; --once then ends
    with exit code 1.

    Example: podeval worker --once

    Example: podeval worker --watch --executor hf-jobs --image ghcr.io/me/podeval@sha256:… --namespace me --budget 50
    """
    from huggingface_hub import HfApi

    from podeval import sandbox
    from podeval.board.build import build
    from podeval.runs.executor import InProcess, Workers
    from podeval.runs.hf_jobs import HfJobs, parse_minutes
    from podeval.submissions import gate, generation, hub_record, service
    from podeval.submissions.worker import Worker
    from podeval.systems.adapters.presets import require_voices

    configure_logging()
    if once == watch:
        raise BadInput("give either --once or --watch")
    if executor not in EXECUTORS:
        raise BadInput(f"there is no executor {executor!r}; choose from {', '.join(EXECUTORS)}")
    if gpu:
        if executor != "local":
            raise BadInput("--gpu is for models on this machine; jobs on the Hub get the GPU of their --flavor")
        require_gpu(trusted=trust_models)
    limits = sandbox.SandboxLimits(wall_seconds=7 * 86_400.0, memory_bytes=int(memory * 2**30), output_bytes=50 * 2**30)
    voices_folder = None if voices is None else require_voices(voices)
    making = generation.GenerationSettings(
        limits=limits, item_seconds=60 * item_minutes, trusted=trust_models, gpu=gpu, voices=voices_folder
    )
    measured_by = Workers(workers) if workers else nullcontext(InProcess())
    with open_queue(resolve_database(database, board)) as queue, measured_by as measuring:
        hub = None
        if executor == "hf-jobs":
            jobs = HfJobs(image, flavor, namespace, parse_minutes(timeout))
            hub = _on_the_hub(queue.database, jobs, budget)
        this_worker = Worker(
            queue,
            work,
            board,
            build,
            making,
            measuring,
            data=data,
            log=lambda line: _LOG.info("%s", line, extra={"submission": this_worker.at_work}),
            look_over=service.SubmissionService(queue, gate.Gate(api=HfApi(token=False), data=data)).look_over_all,
            hub=hub,
            proposals=hub_record.Proposals(queue, board),
        )
        if once:
            this_worker.look_over()
            this_worker.catch_up()
            done = _work_once(this_worker)
            this_worker.clear()
            this_worker.catch_up()
            if not done:
                raise typer.Exit(1)
            return
        if not trust_models and (why := sandbox.explain_missing_isolation()) is not None:
            _LOG.info(f"models and recordings from the Hub must wait for a machine with isolation: {why}")
        _watch(this_worker, pause, dispatch)


def _watch(worker: "Worker", pause: float, dispatch: bool) -> None:
    """Work until a signal stops the worker; if procrastinate wakes the worker, its chores run on a timer."""
    from podeval.operations.retention import schedule_housekeeping
    from podeval.submissions.scheduler import Dispatch, run_periodically

    works = schedule_housekeeping(worker.queue.database, worker.board, _LOG.info)
    if not dispatch:
        _LOG.info(f"{worker.name} is waiting for submissions in {worker.queue.database.name}; Ctrl-C stops the worker")
        with run_periodically(works, _LOG.warning), stop_by_signals(worker) as stopped:
            worker.watch(pause, stopped)
        return
    waking = Dispatch(worker.queue)
    # The timer also announces, and two announcements at once would close each other's connection.
    waking.announce()
    with run_periodically(works | worker.list_chores() | {"announce": (pause, waking.announce)}, _LOG.warning):
        _LOG.info(f"procrastinate wakes {worker.name} for new submissions; Ctrl-C stops the worker")
        _report_stops(worker)
        waking.work(worker.once)


def _work_once(worker: "Worker") -> bool:
    """Work on one submission; return False if submissions were waiting but this machine could not run any of them."""
    faults = []
    # Treat the signal like Ctrl-C: the worker returns its submission to the queue, so its claim does not have to expire
    # first.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while (id := worker.once()) is not None and worker.fault is not None:
            faults.append(id)
            if worker.fault.everything:
                id = None
                break
    finally:
        signal.signal(signal.SIGTERM, before)
    for waiting in faults:
        print(f"{waiting}: {worker.queue.get(waiting).state}, waiting until this machine is repaired")
    if id is not None:
        print(f"{id}: {worker.queue.get(id).state}")
    elif not faults:
        print("nothing to do")
    return id is not None or not faults


@contextmanager
def stop_by_signals(worker: "Worker") -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether to stop; the first signal lets the worker finish its submission, and a
    second signal ends the worker.
    """
    stops: list[int] = []

    def stop(number: int, frame: object) -> None:
        stops.append(number)
        if len(stops) > 1:
            raise KeyboardInterrupt
        if worker.at_work is None:
            _LOG.info("the worker stops")
        else:
            _LOG.info(
                f"{_FINISHES.format(worker.at_work)}; a second Ctrl-C or SIGTERM stops the worker immediately and "
                f"requeues the submission"
            )

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(stops)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_the_hub(database: "Database", jobs: "HfJobs", budget: float) -> "OnTheHub":
    """Return the executor that runs models on the Hub; print the amount spent, and the maximum cost of a job.

    Raises:
        BadInput: a setting is missing or invalid.
    """
    from podeval.hub.retry import HubUnavailable
    from podeval.submissions.hub_generation import OnTheHub
    from podeval.submissions.job_budget import Ledger

    hub = OnTheHub(jobs, Ledger(database, budget), log=_LOG.info)
    try:
        message = f"a job costs at most {jobs.at_most(jobs.per_minute()):.2f} USD on {jobs.flavour}"
    except HubUnavailable as error:
        message = (
            f"the price of a job on {jobs.flavour} is not known yet; it will be requested before the job starts "
            f"({error})"
        )
    _LOG.info(f"{message}; {hub.ledger.committed():.2f} of {budget:.2f} USD have been spent")
    return hub


def _report_stops(worker: "Worker") -> None:
    """When procrastinate, which handles the signals, stops, print what work the worker still finishes."""

    class Stops(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if getattr(record, "action", "") == "stopping_worker":
                message = (
                    "another SIGTERM stops this worker immediately; another worker continues when its claim expires"
                )
                _LOG.info(f"{_FINISHES.format(worker.at_work)}; {message}" if worker.at_work else "the worker stops")

    logger = logging.getLogger("procrastinate.worker")
    logger.setLevel(logging.INFO)
    logger.addHandler(Stops())
    logger.propagate = False
