"""`podeval run` and `podeval demo`: systems on benchmarks."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.errors import BadInput, ModelMissing

if TYPE_CHECKING:
    from podeval.runs.run import Request

DEMO_SYSTEMS = ("hibari_piper", "espeak_ng", "silence", "repeated_sentence", "shuffled_voices")
RUNS = Path("runs")

Out = Annotated[Path, typer.Option("--out", help="folder of runs; finished work in it is not repeated")]


def run(
    system: Annotated[str, typer.Argument(help="a built-in system's name, or the path of a submission.yaml")],
    benchmark: Annotated[str, typer.Option(help="which benchmark")] = "real_pod",
    split: Annotated[str, typer.Option(help="which of its splits")] = "demo",
    track: Annotated[str, typer.Option(help="which of its tracks")] = "voice",
    profile: Annotated[str, typer.Option(help="whose models: embedded or reference")] = "embedded",
    seed: Annotated[int, typer.Option(help="of the generation, where the system has one")] = 0,
    workers: Annotated[int, typer.Option(help="measuring processes; 0 is one a core")] = 0,
    out: Out = RUNS,
) -> None:
    """Evaluate a system on a benchmark: it speaks, podeval measures; resumable at any point.

    Example: podeval run hibari_piper --benchmark real_pod --split demo
    """
    from podeval import benchmarks as known
    from podeval.leaderboard.build import build
    from podeval.leaderboard.text import print_board
    from podeval.runs.executor import Workers
    from podeval.runs.run import Request

    with Workers(workers or _cores()) as executor:
        request = Request(known.get(benchmark), split, track, out, profile, seed, executor)
        complete = _evaluate(system, request)
    build(out)
    print_board(out, profile)
    raise typer.Exit(0 if complete else 1)


def demo(
    out: Annotated[Path, typer.Option("--out", help="folder of runs; a second call resumes")] = Path(".demo/runs"),
    serve: Annotated[bool, typer.Option(help="serve the board when done")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="of the board on 127.0.0.1")] = 7860,
    workers: Annotated[int, typer.Option(help="measuring processes; 0 is one a core")] = 0,
) -> None:
    """Evaluate two baseline voices and three controls on six short podcasts, then show the board.

    Example: podeval demo --no-serve
    """
    from podeval import benchmarks as known
    from podeval.cli.board import open_board, require_board
    from podeval.leaderboard.build import build
    from podeval.leaderboard.text import print_board
    from podeval.runs.executor import Workers
    from podeval.runs.run import Request

    if serve:
        require_board("127.0.0.1", port)
    benchmark = known.get("real_pod")
    _say(f"Evaluating {len(DEMO_SYSTEMS)} systems on {len(benchmark.items('demo'))} podcasts of about 50 s.")
    _say("The first time takes about 5 minutes on 2 cores; what is finished is kept, a second call resumes.")
    complete = True
    with Workers(workers or _cores()) as executor:
        request = Request(benchmark, "demo", "voice", out, executor=executor)
        for system in DEMO_SYSTEMS:
            try:
                complete = _evaluate(system, request) and complete
            except ModelMissing as absence:
                complete = False
                _say(f"{system}: left out: {absence}")
    build(out)
    print_board(out)
    if serve:
        open_board(out, "127.0.0.1", port)
    elif not complete:
        _say("Some scores are missing, above it says why; `podeval doctor` says what can be installed.")


def _evaluate(name: str, request: "Request") -> bool:
    """Run one system; whether every item was scored, and if not, say why."""
    from podeval.cli.console import Steps
    from podeval.hub_sources import hub_source
    from podeval.runs.run import run_system
    from podeval.submissions import load
    from podeval.submissions.document import BuiltIn
    from podeval.systems import registry

    path = hub_source("submissions") / name if name in registry.NAMES else Path(name)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        registry.get(name)
    submission = load(path)
    if not isinstance(submission.source, BuiltIn):
        raise BadInput(f"{path}: this version runs built-in systems; it cannot run kind {submission.source.kind} yet")
    with Steps(submission.system.name) as steps:
        summary = run_system(registry.get(submission.source.runner), submission.system.name, request, steps)
    whole = [row for row in summary.metrics if not row.slice]
    for row in whole:
        total = row.scored + row.unscored_system + row.unscored_ours
        for reason, count in row.reasons.items():
            _say(f"{submission.system.name}: {row.metric} unscored on {count} of {total} items: {reason}")
    return not any(row.unscored_system or row.unscored_ours for row in whole)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
