"""`podeval report system`, `export` and `judge`, and `podeval judge check`: reports, exports, what a judge is worth."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.bucket_runs import ReadRuns, fetch_runs
from podeval.cli.completion import complete_benchmark
from podeval.cli.database import RUNS
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.validation.judge_answers import JudgeAnswers
    from podeval.validation.judge_audit import AuditFindings

DATASET, EVERY_EVAL_EVER = "dataset", "every-eval-ever"

CHECKS = {
    "unusable": "first answers that could not be used",
    "unanswered": "questions without a usable answer in the end",
    "order": "the same one preferred in both orders",
    "first": "first place preferred, all answers",
    "swayed": "first place preferred, where the order decided",
    "longer": "longer one preferred",
    "excess": "winners longer than losers by",
}


def system(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN_FOLDER", help="runs: <runs>/<benchmark>/<split>/<system>")
    ],
    out: Annotated[Path, typer.Option(help="the HTML file to write")] = Path("report.html"),
    profile: Annotated[str | None, typer.Option(help="only results of this profile")] = None,
    language: Annotated[str, typer.Option(help="en or zh")] = "en",
) -> None:
    """Write a system's analysis report: one self-contained HTML file that prints well.

    By dimension, against the median of the other systems in the same folder of runs and against recordings of people;
    radar, distributions, drift over the recordings, every item, what was not scored and why, protocols, how to cite.
    Runs of one system become chapters of one report, several systems several reports in the file. The runs are left as
    they are.

    Example: podeval report system .demo/runs/real_pod/demo/espeak_ng --out espeak.html
    """
    from podeval.board.report import report_runs
    from podeval.board.report_page import render_reports
    from podeval.reports.page import write_page

    text = render_reports(report_runs(folders, profile), language)
    write_page(text, out)
    print(f"{out}: {len(text.encode()) / 1024:.0f} kB, self-contained", file=sys.stderr)


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
    from podeval.board import every_eval_ever
    from podeval.board.result_forms import FORMS, write_dataset
    from podeval.runs.run_folder import open_run

    forms = (EVERY_EVAL_EVER, *FORMS, DATASET)
    if form not in forms:
        raise BadInput(f"there is no form {form!r}; choose {', '.join(forms)}")
    if form == DATASET:
        if folders or profile:
            raise BadInput(f"--form {DATASET} exports all results of a folder of runs; give only --runs")
        for config, rows in write_dataset(fetch_runs(runs), out).items():
            print(f"{out / config}: {rows} rows", file=sys.stderr)
        return
    if not folders:
        raise BadInput("give the folder of a run, such as runs/real_pod/demo/espeak_ng")
    for folder in folders:
        run = open_run(folder)
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


def audit(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="records of judges: what --records named")],
    scores: Annotated[
        Path | None,
        typer.Option(help="the judge's scores: what `podeval measure --json` printed, or a CSV with item and score"),
    ] = None,
    human: Annotated[
        Path | None, typer.Option(help="people's scores of the same items: a CSV with item, score and optionally rater")
    ] = None,
    key: Annotated[str | None, typer.Option(help="value of the scores to use, if there are several")] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="show every recorded answer as this version reads it, instead of an audit")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Audit judges from their records: order, position and length bias, consistency, parsing, agreement with people.

    A judge is unfit for publication while the lower 95 % bound of its agreement between orders is at or below one
    half (at least 50 pairs, ties left out), or while it is declared a trial model. Exit code 1 where one is. Each
    folder is audited by itself; two judges, or one in two folders (how it drifted), are compared on the questions that
    both answered.

    Example: podeval report judge records/

    Example: podeval report judge records/ --scores scores.jsonl --human listeners.csv --key script_quality
    """
    from podeval.validation import judge_audit as auditing
    from podeval.validation.human_scores import compute_agreement, read_marks, read_scores
    from podeval.validation.judge_answers import read_answers

    if (scores is None) != (human is None):
        raise BadInput("give --scores (the judge's) and --human (people's, of the same items) together")
    judges = [judge for folder in folders for judge in read_answers(folder)]
    if answers:
        _show_answers(judges, as_json)
        return
    audits = [auditing.audit(judge) for judge in judges]
    alike = auditing.compare_judges(judges)
    people = compute_agreement(read_scores(scores, key), read_marks(human, key)) if scores and human else None
    if as_json:
        places = [{"folder": judge.folder, **asdict(audited)} for judge, audited in zip(judges, audits, strict=True)]
        emit({"judges": places, "between_judges": alike, "people": people}, allow_nan=False)
    else:
        for judge, audited in zip(judges, audits, strict=True):
            _print_audit(f"{judge.id} in {judge.folder}", audited)
        for row in auditing.list_agreement_rows(people) if people else ():
            print(f"With people, {row.name}: {row.figure}, n {row.count}")
        for one in alike:
            print(f"{one.first} and {one.second}, {one.prompt}, {one.measure}: {auditing.describe_likeness(one)}")
    raise typer.Exit(int(any(findings.unfit for findings in audits)))


def _print_audit(name: str, audited: "AuditFindings") -> None:
    from podeval.validation.judge_audit import describe_repeat, list_rows

    unfit = f"unfit for publication: {'; '.join(audited.unfit)}" if audited.unfit else "fit for publication"
    print(f"{name}: {unfit}")
    for row in list_rows(audited):
        quoted = f" (papers: {row.papers})" if row.papers else ""
        print(f"  {CHECKS[row.name]}: {row.figure} {row.unit}".rstrip() + f"{row.p}, n {row.count}{quoted}")
    if audited.orders:
        print(f"  {audited.orders.ties} pairs with a tie, {audited.orders.single} comparisons in one order only")
    for repeat in audited.steadiness:
        print(f"  repeats of {repeat.prompt}, {repeat.measure}: {describe_repeat(repeat)}")
    counts = f"{audited.failed_calls} calls without an answer; {audited.unknown} answers to unknown prompts"
    print(f"  {counts}; {audited.prompt_tokens} tokens asked, {audited.answer_tokens} answered")


def _show_answers(judges: "list[JudgeAnswers]", as_json: bool) -> None:
    for judge in judges:
        for reply in judge.given:
            line: dict[str, Any] = {"judge": judge.id, "prompt": reply.prompt, "seed": reply.seed}
            if as_json:
                emit(line | {"answer": reply.value}, allow_nan=False)
            else:
                leaves = "  ".join(f"{path} {value}" for path, value in reply.leaves.items())
                print(f"{reply.prompt}  seed {reply.seed}  {leaves}")
        print(
            f"{judge.id}: {judge.asked} questions, {len(judge.given)} answers, {judge.unanswered} without a usable one",
            file=sys.stderr,
        )


def check(
    name: Annotated[str, typer.Argument(metavar="JUDGE", help="the judge, as for `podeval measure`")],
    scripts: Annotated[
        list[Path] | None, typer.Argument(metavar="[SCRIPT]...", help="scripts to modify; Real-Pod's by default")
    ] = None,
    records: Annotated[Path | None, typer.Option(help="folder for the judge's answers")] = None,
    cases: Annotated[int, typer.Option(min=1, help="number of cases of each kind")] = 20,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="ask about this benchmark's anchors, whose order a judge has to get right",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test whether ties, padding and injected instructions mislead a judge, or with --benchmark whether it tells good
    anchors from bad ones. The exit code is 1 if it fails.

    Example: podeval judge check judge.yaml --records check/

    Example: podeval judge check judge.yaml --records check/ --benchmark podbench
    """
    from podeval import benchmarks
    from podeval.measuring.inputs import read_input
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.validation.judge_check import check_anchors, check_weaknesses, read_anchors

    if benchmark and scripts:
        raise BadInput("--benchmark asks about its own anchors; leave out the scripts")
    judge = JudgeConfig(name, records)
    if benchmark:
        findings = check_anchors(judge, read_anchors(benchmarks.get(benchmark)))
    else:
        items = () if scripts else benchmarks.get("real_pod").items("topics")
        texts = [read_input("script", path) for path in scripts or []] or [item.script for item in items if item.script]
        findings = check_weaknesses(judge, texts[:cases], cases)
    for finding in findings:
        emit(finding) if as_json else print(finding.sentence)
    raise typer.Exit(int(any(finding.failed for finding in findings)))
