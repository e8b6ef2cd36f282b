"""`podeval run`: evaluate a system on a benchmark; `podeval prepare-submission`: prepare the submission of a finished
run.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from podeval.cli import judge_limits
from podeval.cli.completion import (
    complete_benchmark,
    complete_metrics,
    complete_profile,
    complete_split,
    complete_system,
    complete_track,
)
from podeval.cli.evaluation import (
    Api,
    AtOnce,
    Clone,
    Dialogue,
    Fields,
    InterruptAfter,
    Name,
    OutputsFolder,
    OwnOptions,
    Pace,
    PerMinute,
    PythonFunction,
    ServedModel,
    Server,
    ServerKindName,
    Stream,
    Timeout,
    Voices,
    evaluate,
    evaluate_own,
    load_system,
    open_own_system,
    require_name,
    require_system,
)
from podeval.cli.measure import Refresh, Wordings
from podeval.cli.output import say
from podeval.errors import BadInput
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.runs.executor import Executor
    from podeval.runs.multi_gpu import ProcessGroup
    from podeval.runs.run import RunRequest, Voicing


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
) -> Iterator[tuple["Executor", "Voicing"]]:
    """Yield the executor that measures and the `Voicing` that makes built-in systems speak, for the duration of the
    block.

    Args:
        where: location of the work: this machine or a Ray cluster.
        workers: number of processes; 0 for as many as fit.
        address: the address of the cluster.
        cpus: number of processors per process on the cluster.
        gpus: number of GPUs per process on the cluster.
        profile: the profile of the measuring models; it determines the number of processes on a GPU.
        together: the processes that `accelerate launch` started, each of which speaks its share.

    Raises:
        BadInput: the cluster does not respond, or options cannot be combined.
        ModelMissing: Ray is not installed.
    """
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.multi_gpu import Shares
    from podeval.runs.run import Voicing

    if where == "ray" and together:
        raise BadInput("use either accelerate launch or --executor ray, not both")
    if where == "ray":
        from podeval.runs.ray_executor import Ray

        # Ray prints messages about nodes on standard output, which is reserved for the board.
        with Ray(address, workers=workers, cpus=cpus, gpus=gpus) as cluster, redirect_stdout(sys.stderr):
            yield cluster, Voicing(cluster)
        return
    if address or gpus or cpus != 1:
        raise BadInput("--address, --cpus-per-worker and --gpus-per-worker can only be used with --executor ray")
    with Workers(workers or count_workers(profile)) as processes:
        yield processes, Shares(group=together) if together else Voicing()


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
    server_kind: ServerKindName = "",
    api: Api = "",
    model: ServedModel = "",
    voice: Voices = None,
    clone: Clone = False,
    dialogue: Dialogue = None,
    field: Fields = None,
    stream: Stream = False,
    pace: Pace = 1.0,
    interrupt_after: InterruptAfter = 0.0,
    requests_per_minute: PerMinute = 0.0,
    at_once: AtOnce = 1,
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
        str,
        typer.Option(help="track of the benchmark; by default the split's first track", autocompletion=complete_track),
    ] = "",
    metrics: Annotated[
        str,
        typer.Option(
            help="only these metrics, separated by commas, such as wer,dnsmos", autocompletion=complete_metrics
        ),
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METRIC.PARAMETER=VALUE",
            help="set a parameter of a metric, which makes a separate protocol (repeatable)",
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="use the settings that a paper fixes: podeval, lfs, podbench, mtalk or pam; see docs/presets.md"
        ),
    ] = "",
    profile: Annotated[
        str,
        typer.Option(
            help=f"models to use: {CHOICES}; by default the preset's, or embedded", autocompletion=complete_profile
        ),
    ] = "",
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
            help="number of processes; 0 means one per core (fewer if GPU memory is small), or all cores of a Ray "
            "cluster",
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
    limit: judge_limits.Limit = None,
    pilot: judge_limits.Pilot = False,
    max_cost: judge_limits.MaxCost = None,
    max_calls: judge_limits.MaxCalls = None,
    judge_workers: judge_limits.JudgeWorkers = 4,
    prompts: Wordings = None,
    retry: Annotated[
        Literal["failed"] | None,
        typer.Option(
            help="generate and measure failed items again, including the system's own failures; keep the others"
        ),
    ] = None,
    allow_upsampling: Annotated[
        bool,
        typer.Option("--allow-upsampling", help="also measure recordings whose sample rate is below the model's"),
    ] = False,
    out: Out = RUNS,
) -> None:
    """Evaluate a system on a benchmark: the system speaks, and podeval measures. A run can be resumed at any point.

    The system is one that comes with podeval or your own: a folder of its outputs, a function in a Python file, or a
    server of one of the kinds below (with its key in PODEVAL_SERVER_KEY). The run is stored in
    OUT/BENCHMARK/SPLIT/NAME.

    Example: podeval run --outputs ./my_audio --benchmark real_pod --split demo

    Example: podeval run --outputs ./my_podcasts --track podcast --split demo

    Example: podeval run --python my_tts.py:speak --split demo --metrics wer,dnsmos

    Example: podeval run --server http://localhost:8000/v1 --model my-tts --voice alloy --voice onyx --stream

    Example: podeval run --server http://localhost:8000/v1 --model my-ttsd --split topics --clone --dialogue whole

    Example: podeval run --server http://localhost:8000/v1 --model my-omni --api realtime --benchmark mtalk_bench

    Example: podeval run hibari_piper --benchmark real_pod --split demo

    Example: podeval run espeak_ng --benchmark lfs_bench --split test --data ./lfs_bench

    Example: podeval run espeak_ng --split demo --set wer.variant=podeval --set dnsmos.windows=upstream

    Example: podeval run espeak_ng --benchmark lfs_bench --preset lfs

    Example: podeval run --outputs ./my_scripts --benchmark podbench --judge judge.yaml --pilot --max-cost 2

    Example: podeval run hibari_piper --executor ray --address 10.0.0.1:6379 --gpus-per-worker 0.5
    """
    from podeval import benchmarks as known
    from podeval.runs.multi_gpu import group, speak_share
    from podeval.runs.run import RunRequest
    from podeval.runs.settings import apply_choices

    own = OwnOptions(
        outputs=outputs,
        python=python,
        server=server,
        model=model,
        api=api,
        voice=tuple(voice or ()),
        stream=stream,
        server_kind=server_kind,
        clone=clone,
        dialogue=dialogue or "",
        field=tuple(field or ()),
        pace=pace,
        interrupt_after=interrupt_after,
        per_minute=requests_per_minute,
        at_once=at_once,
        timeout=timeout,
        preset=preset,
    )
    own.require_one(system)
    chosen = known.get(benchmark)
    part = chosen.split(split) if split else chosen.first_split
    track = track or part.tracks[0]
    chosen, profile = apply_choices(chosen, track, metrics, settings or (), preset, profile)
    limits = (judge_workers, max_cost, max_calls, prompts)
    bench = judge_limits.make_bench(judge, records, refresh or "", *limits)
    plain = RunRequest(chosen, part.name, track, out, profile, seed, data=data, bench=bench, retry=retry is not None)
    plain = replace(plain, limit=limit, pilot=pilot, allow_upsampling=allow_upsampling)
    if not system:
        mine = open_own_system(own, name, track)
        with spread(executor, workers, address, cpus_per_worker, gpus_per_worker, profile=profile) as (measuring, _):
            complete = evaluate_own(mine, replace(plain, executor=measuring), seeds)
        _show(plain, complete)
    plain = replace(plain, name=require_name(name) if name and name != system else "")
    together = group()
    if together and retry:
        raise BadInput("--retry works only in a single process; run the command without accelerate launch")
    if together and together.rank:
        speak_share(load_system(system)[0], plain, together)
        return
    with spread(executor, workers, address, cpus_per_worker, gpus_per_worker, together, profile) as (
        measuring,
        speaking,
    ):
        complete = evaluate(system, replace(plain, executor=measuring, speaking=speaking), seeds, board=True)
    _show(plain, complete)


def _show(request: "RunRequest", complete: bool) -> NoReturn:
    """Print the board under the protocols of this run, and exit, with code 1 if anything is unscored."""
    from podeval.cli.board import print_board
    from podeval.runs.settings import list_protocols

    profile = request.profile.partition(",")[0]
    print_board(
        request.runs, profile, protocols=list_protocols(request.runs, request.benchmark, request.track, request.profile)
    )
    raise typer.Exit(0 if complete else 1)


def prepare_submission(
    name: Annotated[
        str, typer.Argument(help="name of the system: lower-case letters, digits and underscores; it never changes")
    ],
    run: Annotated[Path, typer.Option("--from", help="folder of the run, such as runs/real_pod/topics/my_tts")],
    title: Annotated[str, typer.Option(help="title shown on the leaderboard; the run's title by default")] = "",
    folder: Annotated[Path | None, typer.Option(help="folder to write to; ./NAME by default")] = None,
    description: Annotated[str, typer.Option(help="a few sentences about the system")] = "",
    licence: Annotated[
        str, typer.Option(help="licence of the system: its SPDX id, `proprietary` or `unknown`")
    ] = "unknown",
    push: Annotated[
        str,
        typer.Option(
            metavar="OWNER/NAME", help="push the outputs to this dataset repo on the Hub, and name it as their source"
        ),
    ] = "",
) -> None:
    """Write the submission document of a finished run, and place its outputs next to it, ready for `podeval submit`.

    Other people's boards fetch outputs from the Hub; --push uploads them there, with a card.

    Example: podeval prepare-submission my_tts --from runs/real_pod/topics/my_tts
    """
    from podeval.runs.submission_draft import draft_submission

    draft = draft_submission(
        run, folder or Path(name), name, title, description=description, licence=licence, push=push
    )
    print(draft.document)
    target = draft.document.parent
    say(f"the folder contains {draft.outputs} outputs; describe the system, then run: podeval submit {target} --check")
    for note in draft.notes:
        say(f"The submission is not ready yet, but you can try --check: {note}.")
