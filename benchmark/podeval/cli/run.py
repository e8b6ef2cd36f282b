"""`podeval run` and `podeval demo`: systems on benchmarks."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from podeval.cli.completion import (
    complete_benchmark,
    complete_metrics,
    complete_profile,
    complete_split,
    complete_system,
    complete_track,
)
from podeval.cli.database import resolve_database
from podeval.cli.executor_options import Where, spread
from podeval.cli.measure import Refresh
from podeval.cli.own_systems import (
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
from podeval.errors import BadInput, ModelMissing

if TYPE_CHECKING:
    from podeval.runs.own_system import OwnSystem
    from podeval.runs.run import RunProgress, RunRequest
    from podeval.runs.run_folder import RunSummary
    from podeval.systems.speech import SpeakingSystem

DEMO_SYSTEMS = ("hibari_piper", "espeak_ng", "pico", "silence", "repeated_sentence", "shuffled_voices")
MORE_SYSTEMS = {"kokoro": "kokoro", "piper": "piper-kristin"}
"""Systems of `podeval demo --more`, better and slower, with the weights that they need."""
SEEDED, SEEDS, SEEDED_ITEMS = "hibari_piper", 3, 2
"""The demo's system with several seeds, how many it gets, and on how many items."""
FAULTY_SYSTEMS, FAULTY_ITEMS = ("content_faults", "signal_faults"), 1
"""Controls with planted faults, and on how many items the demo runs them, in what looks for faults alone."""
RHYTHM_SYSTEMS, RHYTHM_TOPIC = ("hibari_piper", "drawn_gaps"), "Sports_27"
"""A reader, the control that has the same words with people's gaps, and a script with turns enough for turn-taking."""
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
    executor: Annotated[
        Where, typer.Option(help="run on this machine (local) or on a Ray cluster (ray)")
    ] = Where.LOCAL,
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
    from podeval.benchmarks.chosen_metrics import keep_metrics
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.runs.multi_gpu import group, speak_share
    from podeval.runs.run import RunRequest
    from podeval.store.copies import register

    own = OwnOptions(outputs, python, server, model, tuple(voice or ()), stream, requests_per_minute, timeout)
    own.require_one(system)
    chosen = known.get(benchmark)
    part = chosen.split(split) if split else chosen.first_split
    track = track or part.tracks[0]
    if metrics:
        chosen = keep_metrics(chosen, [metric.strip() for metric in metrics.split(",")], track)
    if records:
        register("records", [records], out)
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
        complete = _evaluate(system, replace(plain, executor=measuring, speaking=speaking), seeds)
    _show(out, profile, complete)


def _show(out: Path, profile: str, complete: bool) -> NoReturn:
    """Print the board and end, with 1 where something is unscored."""
    from podeval.leaderboard.build import build
    from podeval.leaderboard.terminal_table import print_board

    build(out)
    print_board(out, profile)
    raise typer.Exit(0 if complete else 1)


def demo(
    out: Annotated[Path, typer.Option("--out", help="folder for the runs; a second call resumes")] = Path(".demo/runs"),
    more: Annotated[
        bool,
        typer.Option("--more", help="also evaluate Kokoro and Piper: downloads of 130 MB and minutes more"),
    ] = False,
    serve: Annotated[bool, typer.Option(help="serve the leaderboard when done")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the leaderboard on 127.0.0.1")] = 7860,
    workers: Annotated[int, typer.Option(help="number of measuring processes; 0 means one per core")] = 0,
) -> None:
    """Evaluate baseline voices and controls on six short podcasts, then open the leaderboard.

    There are three baselines, or five with --more; one of them speaks two of the podcasts with several seeds.
    Turn-taking needs more turns than those have: a baseline and a control of rhythm speak one longer dialogue for it.

    Example: podeval demo --no-serve
    """
    from podeval import benchmarks as known
    from podeval.cli.board import open_board, require_board
    from podeval.leaderboard.build import build
    from podeval.leaderboard.terminal_table import print_board
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.run import RunRequest

    if serve:
        require_board("127.0.0.1", port)
    benchmark = known.get("real_pod")
    systems = (*DEMO_SYSTEMS, *(_install_more() if more else ()))
    _say(f"Evaluating {len(systems)} systems on {len(benchmark.items('demo'))} podcasts of about 50 s.")
    _say("The first time takes about 5 minutes on 2 cores; what is finished is kept, a second call resumes.")
    complete = True
    with Workers(workers or count_workers("embedded")) as executor:
        request = RunRequest(benchmark, "demo", "voice", out, executor=executor)
        for system in systems:
            try:
                complete = _evaluate(system, request) and complete
                if system == SEEDED:
                    _show_seeds(request)
            except ModelMissing as absence:
                complete = False
                _say(f"{system}: left out: {absence}")
        complete = all([_show_faults(request), _show_rhythm(request), complete])
    build(out)
    print_board(out)
    _add_to_arena(out)
    if serve:
        open_board(out, "127.0.0.1", port)
    elif not complete:
        _say("Some scores are missing, above it says why; `podeval doctor` says what can be installed.")


def _install_more() -> tuple[str, ...]:
    """Download what the better systems of the demo need; returns those that can be had, and names the others."""
    from podeval.models import weights

    missing = weights.install(MORE_SYSTEMS.values(), _say)
    for name, needed in MORE_SYSTEMS.items():
        if needed in missing:
            _say(f"{name}: left out: {missing[needed]}")
    return tuple(name for name, needed in MORE_SYSTEMS.items() if needed not in missing)


def _show_seeds(request: "RunRequest") -> None:
    """Run the demo's seeded system with further seeds on a few items, in what is quickly measured."""
    from podeval.benchmarks.chosen_metrics import keep_metrics
    from podeval.runs.reliability import write_reliability

    some = tuple(item.id for item in request.benchmark.items("demo")[:SEEDED_ITEMS])
    quick = keep_metrics(request.benchmark, ["wer", "dnsmos", "timbre_consistency"], request.track)
    for seed in range(1, SEEDS):
        _evaluate(SEEDED, replace(request, benchmark=quick, seed=seed, repeats=True, only=some))
    write_reliability(request, SEEDED)


def _show_faults(request: "RunRequest") -> bool:
    """Run the controls with planted faults on a few items, in what looks for faults; whether all was scored."""
    some = tuple(item.id for item in request.benchmark.items("demo")[:FAULTY_ITEMS])
    metrics = ("content_errors", "speaker_attribution", "integrity")
    return _show_some(replace(request, only=some), metrics, FAULTY_SYSTEMS, "Planted faults")


def _show_rhythm(request: "RunRequest") -> bool:
    """Run a baseline and a control of rhythm on one longer dialogue, in turn-taking alone; whether both were scored."""
    longer = replace(request, split="topics", only=(RHYTHM_TOPIC,))
    return _show_some(longer, ("turn_taking",), RHYTHM_SYSTEMS, "Rhythm")


def _show_some(request: "RunRequest", metrics: Sequence[str], systems: Sequence[str], title: str) -> bool:
    """Run systems in a few metrics alone; whether all was scored."""
    from podeval.benchmarks.chosen_metrics import keep_metrics

    chosen = keep_metrics(request.benchmark, list(metrics), request.track)
    try:
        return all([_evaluate(system, replace(request, benchmark=chosen)) for system in systems])
    except ModelMissing as absence:
        _say(f"{title}: left out: {absence}")
        return False


def _add_to_arena(runs: Path) -> None:
    """Let the demo's systems meet in the arena of the board that is served next."""
    from podeval.arena.from_runs import make_manifest
    from podeval.arena.manifest import add
    from podeval.store.database import Database

    manifest = make_manifest(runs, benchmark="real_pod", split="demo")
    if not manifest.outputs:
        return
    try:
        with Database(resolve_database(os.environ.get("DATABASE_URL", ""), runs)) as opened:
            for sentence in add(opened, manifest, strict=False).left_out:
                _say(f"Not in the arena: {sentence}")
    except BadInput as refusal:
        _say(f"Not in the arena: {refusal}")


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


def _evaluate(name: str, request: "RunRequest", seeds: int = 1) -> bool:
    """Run one system; whether every item was scored, and if not, say why."""
    from podeval.runs.run import run_system

    system, title = _load_system(name)
    return _repeat(title, request, seeds, partial(run_system, system, title))


def _evaluate_own(system: "OwnSystem", request: "RunRequest", seeds: int) -> bool:
    """Run a system of the user's own; whether every item was scored, and if not, say why."""
    from podeval.runs.own_system import describe_streaming, run_own_system
    from podeval.runs.run_folder import RunFolder

    complete = _repeat(system.title, request, seeds, partial(run_own_system, system))
    run = RunFolder(request.runs, request.benchmark.name, request.split, system.name)
    if (sentence := describe_streaming(run)) is not None:
        _say(f"{system.title}: {sentence}")
    return complete


def _repeat(
    title: str, request: "RunRequest", seeds: int, run: "Callable[[RunRequest, RunProgress], RunSummary]"
) -> bool:
    """Run a system with each seed, and say what is unscored; whether nothing is."""
    from podeval.cli.progress_bar import show_run_progress
    from podeval.runs.reliability import write_reliability

    complete = True
    for number in range(seeds):
        name = f"{title}, seed {request.seed + number}" if seeds > 1 else title
        with show_run_progress(name, request) as steps:
            more = request.repeats or number > 0
            summary = run(replace(request, seed=request.seed + number, repeats=more), steps)
        complete = _tell_unscored(name, summary) and complete
    if seeds > 1:
        write_reliability(request, summary.plan.system)
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
        _say(f"{title}: {of_what} unscored on {count} of {total} items: {reason}")
    return not any(row.unscored_system or row.unscored_ours for row in whole)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
