"""`podeval data construct`: making material for the benchmarks, step by step, with people in between."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from podeval.construction.staged_rows import StepReport, Workshop
    from podeval.judges.client import JudgeClient

construct = typer.Typer(
    help="Make material of one's own for a benchmark: steps with files between them, and people who review.\n\n"
    "Example: podeval data construct lfs_bench write --into my_texts --each 2 --judge MODEL@https://host/v1",
    no_args_is_help=True,
)

Into = Annotated[Path, typer.Option(metavar="DIR", help="the folder of the construction; made where it is not there")]
JudgeName = Annotated[
    str,
    typer.Option(
        help="who is asked: MODEL@https://host/v1 (key in the environment as PODEVAL_JUDGE_KEY), gguf:FILE, "
        "transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="questions at a time, at most")]
MostTokens = Annotated[int | None, typer.Option(min=1, help="stop asking before so many tokens are used")]
MostCost = Annotated[float | None, typer.Option(help="stop asking before this is spent; needs prices in a YAML file")]
AcceptAll = Annotated[bool, typer.Option("--accept-all", help="keep also what nobody decided about in the review")]
Profile = Annotated[str, typer.Option(help="whose models are used: embedded or reference")]

Work = Callable[["Workshop"], "StepReport"]


def at_work(into: Path, work: Work) -> None:
    """Do a step in its folder, alone; say what came of it. Exit code 1 where something waits.

    Rows that break a dataset's rules are a failure of rows, and named: exit code 1 as well.
    """
    from podeval.cli.progress_bar import listening
    from podeval.construction.staged_rows import Workshop
    from podeval.datasets.row_rules import BrokenRules

    workshop = Workshop(into)
    try:
        with workshop.alone(), listening(into.name):
            report = work(workshop)
    except BrokenRules as broken:
        print(f"podeval: {broken}", file=sys.stderr)
        raise typer.Exit(1) from None
    for sentence in report.sentences:
        print(sentence)
    for waiting in report.waiting[:20]:
        print(f"{waiting.id} waits: {waiting.reason}", file=sys.stderr)
    if len(report.waiting) > 20:
        print(f"and {len(report.waiting) - 20} more wait", file=sys.stderr)
    raise typer.Exit(1 if report.waiting else 0)


@contextmanager
def asking(
    workshop: "Workshop", judge: str, workers: int, tokens: int | None = None, cost: float | None = None
) -> Iterator["JudgeClient"]:
    """A judge at work, with its records in the folder; at the end it says what was used.

    What was answered is not asked again, what was never answered so that it can be used is: the same command goes on
    after a judge was mended.
    """
    from podeval.judges.budget import Budget
    from podeval.judges.client import JudgeClient
    from podeval.judges.judge import judge_named

    named = judge_named(judge)
    folder = None if named.replays else workshop.records
    judging = JudgeClient(named, folder, workers=workers, budget=Budget(cost, tokens), refresh="failed")
    try:
        yield judging
    finally:
        print(f"judge: {judging.account.sentence()}", file=sys.stderr)


def encoder(profile: str) -> Callable[..., Any]:
    """English sentences to vectors, by the profile's sentence encoder."""
    from podeval.models import registry

    registry.require_profile(profile)

    def encode(texts: Any) -> Any:
        return registry.load("sentence_encoder", profile).encode(texts, "en")

    return encode
