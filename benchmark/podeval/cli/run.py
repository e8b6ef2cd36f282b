"""`podeval run`: a system on a benchmark; `podeval init`: the submission document of a run that is finished."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from podeval.cli.completion import (
    complete_benchmark,
    complete_metrics,
    complete_profile,
    complete_split,
    complete_system,
    complete_track,
)
from podeval.cli.measure import Refresh
from podeval.cli.output import say
from podeval.cli.own_systems import (
    Api,
    Name,
    OutputsFolder,
    OwnOptions,
    PerMinute,
    PythonFunction,
    ServedModel,
    Server,
    Stream,
    Timeout,
    Voices,
    open_own_system,
    require_name,
    require_system,
)
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.runs.executor import Executor
    from podeval.runs.multi_gpu import ProcessGroup
    from podeval.runs.own_system import OwnSystem
    from podeval.runs.run import RunProgress, RunRequest, Speaking
    from podeval.runs.run_folder import RunSummary
    from podeval.systems.speech import SpeakingSystem


Where = Literal["local", "ray"]
"""Executors by name."""


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
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.multi_gpu import Shares
    from podeval.runs.run import Voicing

    if where == "ray" and together:
        raise BadInput("use either accelerate launch or --executor ray, not both")
    if where == "ray":
        from podeval.runs.ray_executor import Ray

        # Ray prints what it hears of nodes on standard output, which is the board's.
        with Ray(address, workers=workers, cpus=cpus, gpus=gpus) as cluster, redirect_stdout(sys.stderr):
            yield cluster, Voicing(cluster)
        return
    if address or gpus or cpus != 1:
        raise BadInput("--address, --cpus-per-worker and --gpus-per-worker are for --executor ray")
    with Workers(workers or count_workers(profile)) as processes:
        yield processes, Shares(together) if together else Voicing()


RUNS = Path("runs")

Out = Annotated[Path, typer.Option("--out", help="folder for the runs; finished work in it is not repeated")]


def run(
    system: Annotated[
        str,
        typer.Argument(
            help="a built-in system's name, or the path of a submission.yaml of kind builtin",
            callback=require_system,
            autocompletion=complete_system,
        ),
    ] = "",
    outputs: OutputsFolder = None,
    python: PythonFunction = "",
    server: Server = "",
    api: Api = "",
    model: ServedModel = "",
    voice: Voices = None,
    stream: Stream = False,
    requests_per_minute: PerMinute = 0.0,
    timeout: Timeout = 120.0,
    name: Name = "",
    benchmark: Annotated[str, typer.Option(help="which benchmark", autocompletion=complete_benchmark)] = "real_pod",
    split: Annotated[
        str,
        typer.Option(
            help="split of the benchmark; by default the one that ships with podeval", autocompletion=complete_split
        ),
    ] = "",
    track: Annotated[
        str, typer.Option(help="track of the benchmark; by default the split's first", autocompletion=complete_track)
    ] = "",
    metrics: Annotated[
        str,
        typer.Option(
            help="only these metrics, separated by commas, such as wer,dnsmos", autocompletion=complete_metrics
        ),
    ] = "",
    profile: Annotated[
        str, typer.Option(help="models to use: embedded or reference", autocompletion=complete_profile)
    ] = "embedded",
    seed: Annotated[int, typer.Option(help="random seed of the generation, if the system takes one")] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=64, help="number of seeds, counted from --seed; more than one shows spread and worst case"
        ),
    ] = 1,
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            help="number of processes; 0 means one per core (fewer if GPU memory is small), or all of a Ray cluster",
        ),
    ] = 0,
    executor: Annotated[Where, typer.Option(help="run on this machine (local) or on a Ray cluster (ray)")] = "local",
    address: Annotated[
        str, typer.Option(help="address of the Ray cluster: host:port or auto; a cluster is started by default")
    ] = "",
    cpus_per_worker: Annotated[float, typer.Option(help="CPU cores per Ray process")] = 1.0,
    gpus_per_worker: Annotated[float, typer.Option(help="GPUs per Ray process, such as 0.5")] = 0.0,
    data: Annotated[
        Path | None, typer.Option(help="folder of the dataset, made by `podeval data build`; ./NAME by default")
    ] = None,
    judge: Annotated[str, typer.Option(help="the judge, for metrics that ask one; see docs/judges.md")] = "",
    records: Annotated[Path | None, typer.Option(help="folder for the judge's raw answers")] = None,
    refresh: Refresh = None,
    out: Out = RUNS,
) -> None:
    """Evaluate a system on a benchmark: the system speaks, podeval measures. A run can be resumed at any point.

    The system is one that comes with podeval, or your own: a folder of what it made, a function in a Python file, or a
    server that speaks OpenAI's API (its key in PODEVAL_SERVER_KEY). The run lies in OUT/BENCHMARK/SPLIT/NAME.

    Example: podeval run --outputs ./my_audio --benchmark real_pod --split demo

    Example: podeval run --python my_tts.py:speak --split demo --metrics wer,dnsmos

    Example: podeval run --server http://localhost:8000/v1 --model my-tts --voice alloy --voice onyx --stream

    Example: podeval run hibari_piper --benchmark real_pod --split demo

    Example: podeval run espeak_ng --benchmark lfs_bench --split test --data ./lfs_bench

    Example: podeval run hibari_piper --executor ray --address 10.0.0.1:6379 --gpus-per-worker 0.5
    """
    from podeval import benchmarks as known
    from podeval.benchmarks.benchmark import keep_metrics
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.runs.multi_gpu import group, speak_share
    from podeval.runs.run import RunRequest

    own = OwnOptions(
        outputs=outputs,
        python=python,
        server=server,
        model=model,
        api=api,
        voice=tuple(voice or ()),
        stream=stream,
        per_minute=requests_per_minute,
        timeout=timeout,
    )
    own.require_one(system)
    chosen = known.get(benchmark)
    part = chosen.split(split) if split else chosen.first_split
    track = track or part.tracks[0]
    if metrics:
        chosen = keep_metrics(chosen, [metric.strip() for metric in metrics.split(",")], track)
    bench = JudgeConfig(judge, records, refresh=refresh.value if refresh else "")
    plain = RunRequest(chosen, part.name, track, out, profile, seed, data=data, bench=bench)
    if own.is_own:
        mine = open_own_system(own, name, track)
        with spread(executor, workers, address, cpus_per_worker, gpus_per_worker, profile=profile) as (measuring, _):
            complete = _evaluate_own(mine, replace(plain, executor=measuring), seeds)
        _show(out, profile, complete)
    plain = replace(plain, name=require_name(name) if name and name != system else "")
    together = group()
    if together and together.rank:
        speak_share(_load_system(system)[0], plain, together)
        return
    with spread(executor, workers, address, cpus_per_worker, gpus_per_worker, together, profile) as (
        measuring,
        speaking,
    ):
        complete = evaluate(system, replace(plain, executor=measuring, speaking=speaking), seeds, board=True)
    _show(out, profile, complete)


def _show(out: Path, profile: str, complete: bool) -> NoReturn:
    """Print the board and end, with 1 where something is unscored."""
    from podeval.board.table import print_board

    print_board(out, profile)
    raise typer.Exit(0 if complete else 1)


def _load_system(name: str) -> tuple["SpeakingSystem", str]:
    """A system that can be run here, and its title."""
    from podeval.hub_sources import locate_hub_source
    from podeval.systems import registry
    from podeval.systems.submission import BuiltIn
    from podeval.systems.submission_reading import load

    path = locate_hub_source("submissions") / name if name in registry.NAMES else Path(name)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        registry.get(name)
    submission = load(path)
    if not isinstance(submission.source, BuiltIn):
        kind = submission.source.kind
        what = (
            "holds a paper's figures, of which nothing is run"
            if kind == "reported"
            else f"is of kind {kind}: queue it with `podeval submit {path}`, then `podeval worker --once` works on it"
        )
        raise BadInput(
            f"`podeval run` runs systems that come with podeval ({', '.join(registry.NAMES)}); {path} {what}"
        )
    return registry.get(submission.source.runner), submission.system.name


def evaluate(name: str, request: "RunRequest", seeds: int = 1, *, which: str = "", board: bool = False) -> bool:
    """Run one system; whether every item was scored, and if not, say why.

    Args:
        name: the name of a system that comes with podeval, or the path of its submission.
        request: what to run.
        seeds: how many, from the request's on.
        which: the number of this run among several, as the progress says it.
        board: whether the board's tables are written as soon as it is measured.

    Raises:
        ModelMissing: it cannot speak here; says what helps.
    """
    from podeval.runs.run import run_system

    system, title = _load_system(name)
    return _repeat(title, request, seeds, partial(run_system, system, title), which=which, board=board)


def _evaluate_own(system: "OwnSystem", request: "RunRequest", seeds: int) -> bool:
    """Run a system of the user's own; whether every item was scored, and if not, say why."""
    from podeval.runs.own_system import describe_streaming, list_notes, run_own_system
    from podeval.runs.run_folder import RunFolder

    complete = _repeat(system.title, request, seeds, partial(run_own_system, system), board=True)
    run = RunFolder(request.runs, request.benchmark.name, request.split, system.name)
    if (sentence := describe_streaming(run)) is not None:
        say(f"{system.title}: {sentence}")
    for note in list_notes(run)[:8]:
        say(f"{system.title}: {note}")
    return complete


def _repeat(
    title: str,
    request: "RunRequest",
    seeds: int,
    run: "Callable[[RunRequest, RunProgress], RunSummary]",
    *,
    which: str = "",
    board: bool = False,
) -> bool:
    """Run a system with each seed, and say what is unscored; whether nothing is."""
    from podeval.cli.progress_bar import Steps
    from podeval.runs.reliability import write_reliability

    complete = True
    for number in range(seeds):
        name = f"{title}, seed {request.seed + number}" if seeds > 1 else title
        with Steps(f"{which}{name}") as steps:
            more = request.repeats or number > 0
            summary = run(replace(request, seed=request.seed + number, repeats=more), steps)
            if number == seeds - 1:
                if seeds > 1:
                    write_reliability(request, summary.plan.system)
                if board:
                    from podeval.board.build import build

                    build(request.runs)
        complete = _tell_unscored(name, summary) and complete
    return complete


def _tell_unscored(title: str, summary: "RunSummary") -> bool:
    """Say why items are unscored, each reason once with the metrics that have it; whether there is none."""
    whole = [row for row in summary.metrics if not row.slice]
    metrics: dict[tuple[str, int, int], list[str]] = {}
    for row in whole:
        total = row.scored + row.unscored_system + row.unscored_ours
        for reason, count in row.reasons.items():
            metrics.setdefault((reason, count, total), []).append(row.metric)
    every = len({row.metric for row in whole})
    for (reason, count, total), names in metrics.items():
        distinct = list(dict.fromkeys(names))
        of_what = "every metric" if len(distinct) == every > 1 else ", ".join(distinct)
        say(f"{title}: {of_what} unscored on {count} of {total} items: {reason}")
    return not any(row.unscored_system or row.unscored_ours for row in whole)


def init(
    name: Annotated[
        str, typer.Argument(help="name of the system: lower-case letters, digits and underscores; it never changes")
    ],
    run: Annotated[Path, typer.Option("--from", help="folder of the run, such as runs/real_pod/topics/my_tts")],
    title: Annotated[str, typer.Option(help="title shown on the leaderboard; the run's by default")] = "",
    folder: Annotated[Path | None, typer.Option(help="folder to write to; ./NAME by default")] = None,
) -> None:
    """Write the submission document of a finished run and place its outputs beside it, ready for `podeval submit`.

    Example: podeval init my_tts --from runs/real_pod/topics/my_tts
    """
    from podeval.runs.submission_draft import draft_submission

    draft = draft_submission(run, folder or Path(name), name, title)
    print(draft.document)
    target = draft.document.parent
    say(f"{draft.outputs} outputs are beside it; describe the system, then run: podeval submit {target} --check")
    for note in draft.notes:
        say(f"Not ready to be submitted: {note}.")
