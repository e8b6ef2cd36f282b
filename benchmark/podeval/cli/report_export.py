"""`podeval report export`: results in the forms by which they travel."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.bucket_runs import ReadRuns, fetch_runs
from podeval.cli.database import RUNS
from podeval.errors import BadInput

DATASET, EVERY_EVAL_EVER = "dataset", "every-eval-ever"


def export(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN_FOLDER", help="runs: <runs>/<benchmark>/<split>/<system>")
    ] = None,
    form: Annotated[
        str, typer.Option(help="every-eval-ever, eval-results, model-index, bibtex, or dataset: all results of --runs")
    ] = EVERY_EVAL_EVER,
    out: Annotated[Path, typer.Option(help="folder to write: data/ of Every Eval Ever, or the dataset")] = Path(
        "export"
    ),
    runs: ReadRuns = RUNS,
    profile: Annotated[str | None, typer.Option(help="only results of this profile")] = None,
) -> None:
    """Export results in formats that other tools read; the runs are not changed.

    every-eval-ever: a record per run with a line for each measured item, schema 0.3.0, in --out. dataset: Parquet of
    all
    results with their protocols, for a dataset repo. The others are one text on standard output: eval-results is the
    file .eval_results/podeval.yaml of a model's repo, model-index the older form in its card, bibtex what to cite.

    Example: podeval report export .demo/runs/real_pod/demo/espeak_ng --out eee

    Example: podeval report export .demo/runs/real_pod/demo/espeak_ng --form bibtex

    Example: podeval report export --form dataset --runs .demo/runs --out results
    """
    from podeval.board import every_eval_ever, results_dataset
    from podeval.board.report_runs import find_run
    from podeval.board.result_forms import FORMS

    forms = (EVERY_EVAL_EVER, *FORMS, DATASET)
    if form not in forms:
        raise BadInput(f"there is no form {form!r}; choose {', '.join(forms)}")
    if form == DATASET:
        if folders or profile:
            raise BadInput(f"--form {DATASET} exports all results of a folder of runs; give only --runs")
        for config, rows in results_dataset.write_dataset(fetch_runs(runs), out).items():
            print(f"{out / config}: {rows} rows", file=sys.stderr)
        return
    if not folders:
        raise BadInput("give the folder of a run, such as runs/real_pod/demo/espeak_ng")
    for folder in folders:
        run = find_run(folder)
        if form in FORMS:
            print(FORMS[form](run, profile), end="")
            continue
        for record in every_eval_ever.write_records(run, out, profile=profile):
            print(f"{record.path}: {record.results} results, {record.rows} lines of single items", file=sys.stderr)
            if record.left_out:
                columns = ", ".join(record.left_out)
                print(
                    f"left out, because the format requires a direction and they have none: {columns}", file=sys.stderr
                )
