"""`podeval data construct`: making material for the benchmarks, step by step, with people in between."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from podeval.models.profiles import CHOICES


def construct(
    benchmark: Annotated[str, typer.Argument(metavar="NAME", help="real_pod, lfs_bench, podbench or mtalk_bench")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="files or folders for steps that import some")
    ] = None,
    step: Annotated[str, typer.Option(help="the step; without it, all steps are described")] = "",
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="working folder; created if missing")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a setting of the step (repeatable); lists with commas"),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            help="language model to ask: MODEL@https://host/v1 (key in the environment as PODEVAL_JUDGE_KEY), "
            "gguf:FILE, transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
        ),
    ] = "",
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="also keep entries that nobody decided on in the review")
    ] = False,
    profile: Annotated[str, typer.Option(help=f"models to use: {CHOICES}")] = "embedded",
    workers: Annotated[int, typer.Option(min=1, help="largest number of questions at a time")] = 4,
    most_tokens: Annotated[
        int | None, typer.Option(min=1, help="stop before more than this number of tokens is used")
    ] = None,
    most_cost: Annotated[
        float | None, typer.Option(help="stop before more than this is spent; needs prices in a YAML file")
    ] = None,
) -> None:
    """Make new material for a benchmark, in steps whose files people review. The exit code is 1 while any row waits.

    A stopped step resumes; questions that were answered are not asked again.

    Example: podeval data construct lfs_bench

    Example: podeval data construct lfs_bench --step write --set each=2 --into my_texts --judge MODEL@https://host/v1

    Example: podeval data construct podbench articles/*.txt --step take --into my_requests

    Example: podeval data construct lfs_bench --step finish --into my_texts && podeval data build lfs_bench --source
    my_texts/finished
    """
    from podeval.cli.progress_bar import show_progress
    from podeval.construction.steps import describe_steps, find_step, read_settings, run_step
    from podeval.construction.workshop import Workshop
    from podeval.datasets.row_rules import BrokenRules
    from podeval.judges.budget import Budget

    if not step:
        print(describe_steps(benchmark))
        return
    if into is None:
        raise typer.BadParameter("name the working folder: --into DIR")
    function = find_step(benchmark, step)
    workshop = Workshop(into)
    try:
        with show_progress(into.name):
            run_step(
                workshop,
                function,
                read_settings(function, settings or ()),
                files=files or (),
                accept_all=accept_all,
                profile=profile,
                judge=judge,
                workers=workers,
                budget=Budget(most_cost, most_tokens),
            )
    except BrokenRules as broken:
        print(f"podeval: {broken}", file=sys.stderr)
        raise typer.Exit(1) from None
    for sentence in workshop.sentences:
        print(sentence)
    waiting = [f"{row.id} waits: {row.reason}" for row in workshop.waiting]
    more = [f"and {len(waiting) - 20} more wait"] if len(waiting) > 20 else []
    for line in (*waiting[:20], *more):
        print(line, file=sys.stderr)
    raise typer.Exit(1 if waiting else 0)
