"""`podeval report …`: tables of results, reports, exports, and the quality of a judge."""

import re
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.completion import complete_benchmark, complete_form
from podeval.cli.database import RUNS
from podeval.cli.output import AsJson, emit, say
from podeval.errors import BadInput
from podeval.models.profiles import CHOICES, PROFILES

if TYPE_CHECKING:
    from podeval.validation.judge_answers import JudgeAnswers

# `--runs hf://buckets/…`: a folder of runs in a Hub bucket, which is read from a copy in the user's cache.

_ADDRESS = re.compile(r"^hf:/+buckets/([\w.-]+/[\w.-]+)((?:/[\w.=-]+)*)/?$", re.ASCII)
_RESULTS = (".json", ".jsonl", ".parquet")

ReadRuns = Annotated[
    Path,
    typer.Option("--runs", help="folder of runs that the leaderboard shows, or hf://buckets/OWNER/NAME/FOLDER"),
]


def fetch_runs(runs: Path) -> Path:
    """Return the folder itself, or a copy of a bucket's folder, after fetching new files except audio.

    Raises:
        BadInput: the address does not name a folder of a bucket, or the folder contains no results or cannot be read.
        HubUnavailable: the Hub does not respond.
    """
    if not str(runs).startswith("hf:"):
        return runs
    from podeval.hub.commits import BucketFolder
    from podeval.recording.cache import open_default_cache

    match = _ADDRESS.match(str(runs))
    if not match or not match[2] or ".." in PurePosixPath(match[2]).parts:
        raise BadInput(f"{runs} is not a folder in a bucket; write hf://buckets/OWNER/NAME/FOLDER")
    bucket, path = match[1], match[2].strip("/")
    folder = BucketFolder(bucket, path)
    copy = open_default_cache().folder.parent / "bucket-runs" / bucket / path
    listed = {name: size for name, size in folder.files().items() if _is_result(name)}
    if not listed:
        raise BadInput(
            f"the folder {path} of the bucket {bucket} contains no results; check the bucket's name and your token"
        )
    for name, size in listed.items():
        target = copy / name
        if not target.is_file() or target.stat().st_size != size:
            folder.fetch(name, size, target)
    for stale in copy.rglob("*"):
        if stale.is_file() and stale.relative_to(copy).as_posix() not in listed:
            stale.unlink()
    return copy


def _is_result(name: str) -> bool:
    """Return whether a file contains results; names that lead outside the copy are refused, because others may write to
    the bucket.
    """
    parts = PurePosixPath(name).parts
    return name.endswith(_RESULTS) and ".." not in parts and not name.startswith("/") and "\\" not in name


report = typer.Typer(
    help="Show and export results; check how far metrics and judges agree with people.\n\n"
    "Example: podeval report show --runs .demo/runs",
    no_args_is_help=True,
)


Protocols = Annotated[
    list[str] | None,
    typer.Option(
        help="protocol to show for a metric that was measured in several ways: its id, or a preset (repeatable)"
    ),
]


@report.command()
def show(
    runs: ReadRuns = RUNS,
    profile: Annotated[
        str, typer.Option(help=f"models of the results: {CHOICES}, or `paper` for reported figures")
    ] = "embedded",
    correction: Annotated[
        str, typer.Option(help="scope of the correction of ranks: each `column`, or all columns of a table (`view`)")
    ] = "column",
    protocol: Protocols = None,
    as_json: AsJson = False,
) -> None:
    """Print the results of a folder of runs: values with intervals, rank ranges, and unscored items with reasons.

    Example: podeval report show --runs .demo/runs

    Example: podeval report show --runs .demo/runs --protocol podeval

    Example: podeval report show --runs .demo/runs --correction view
    """
    from podeval.board.build import build
    from podeval.board.exports.result_forms import require_runs
    from podeval.cli.board import print_board

    runs = fetch_runs(runs)
    if profile not in PROFILES:
        *others, last = PROFILES
        raise BadInput(f"there is no profile {profile!r}; choose {', '.join(others)} or {last}")
    if correction not in (("column",) if as_json else ("column", "view")):
        raise BadInput(f"ranks cannot be corrected for {correction!r}; choose `column` or, without --json, `view`")
    require_runs(runs)
    build(runs)
    if as_json:
        print_rows(runs, profile)
    else:
        print_board(runs, profile, correction, tuple(protocol or ()))


@report.command()
def system(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN_FOLDER", help="runs: <runs>/<benchmark>/<split>/<system>")
    ],
    out: Annotated[Path, typer.Option(help="the HTML file to write")] = Path("report.html"),
    profile: Annotated[str | None, typer.Option(help="only results of this profile")] = None,
    protocol: Protocols = None,
    language: Annotated[str, typer.Option(help="en or zh")] = "en",
) -> None:
    """Write a system's analysis report: one self-contained HTML file that prints well.

    The report compares each dimension with the median of the other systems in the same folder of runs and with
    recordings of people. It shows a radar, distributions, drift over the recordings, every item, unscored items with
    reasons, protocols, and how to cite. Runs of the same system become chapters of one report, and each system has its
    own report in the file. The runs are not changed.

    Example: podeval report system .demo/runs/real_pod/demo/espeak_ng --out espeak.html
    """
    from podeval.board.exports.report_page import render_reports
    from podeval.board.report import report_runs
    from podeval.reports.page import write_page

    text = render_reports(report_runs(folders, profile, tuple(protocol or ())), language)
    write_page(text, out)
    say(f"{out}: {len(text.encode()) / 1024:.0f} kB, self-contained")


def print_rows(runs: Path, profile: str) -> None:
    """Print the rows of the board under a profile, one JSON object per line."""
    from podeval.runs.board_tables import BOARD, read_table

    board = read_table(runs / BOARD)
    print(board[board.profile == profile].to_json(orient="records", lines=True, force_ascii=False), end="")


@report.command()
def export(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN_FOLDER", help="runs: <runs>/<benchmark>/<split>/<system>")
    ] = None,
    form: Annotated[
        str, typer.Option(help="form to write; see above", autocompletion=complete_form)
    ] = "every-eval-ever",
    out: Annotated[Path, typer.Option(help="folder to write, for forms that are files")] = Path("export"),
    runs: ReadRuns = RUNS,
    profile: Annotated[str | None, typer.Option(help="only results of this profile")] = None,
    push: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME", help="push the site to this Static Space of the Hub, which is free"),
    ] = None,
) -> None:
    """Export results in formats that other tools read, or as a site; the runs are not changed.

    These forms write all results of --runs as files to --out: csv and parquet (every number of the board in one file),
    dataset (Parquet with the protocols, for a dataset repo), open-tts (WER, SIM and RTFx in the columns of the Open TTS
    Leaderboard) and site (the leaderboard as a folder for any static host, with excerpts and badges; --push makes it a
    Static Space). For the named runs, every-eval-ever writes records of schema 0.3.0 to --out, and these forms print
    text: papers-with-code (evaluation tables; all papers' figures without a run), eval-results (the file
    .eval_results/podeval.yaml of a model's repo), model-index (the older form, in the model's card) and bibtex
    (citations).

    Example: podeval report export --form csv --runs .demo/runs --out results

    Example: podeval report export .demo/runs/real_pod/demo/espeak_ng --form bibtex

    Example: podeval report export --form site --runs .demo/runs --out site
    """
    from podeval.board.exports.result_forms import FORMS, Export
    from podeval.hub.commits import push_folder
    from podeval.runs.run_folder import open_run

    if form not in FORMS:
        raise BadInput(f"there is no form {form!r}; choose {', '.join(FORMS)}")
    chosen = FORMS[form]
    if chosen.of_all and (folders or profile):
        raise BadInput(f"--form {form} exports all results of a folder of runs; give only --runs")
    if not chosen.of_all and not folders and not chosen.has_print:
        raise BadInput("give the folder of a run, such as runs/real_pod/demo/espeak_ng")
    if push and form != "site":
        raise BadInput(f"--push works only with --form site, because a Static Space cannot show {form}")
    chosen_runs = tuple(map(open_run, folders or ()))
    for text in chosen.write(Export(fetch_runs(runs) if chosen.of_all else runs, chosen_runs, out, profile)):
        print(text, end="") if chosen.is_text else say(text)
    if push:
        print(push_folder(out, push, "space", "The leaderboard", delete_patterns="*"))


@report.command("judge")
def audit(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER|BATTLES|JUDGE...",
            help="records of judges, or a log of battles. With --probe: a judge, as for `podeval measure`, and scripts "
            "to modify, Real-Pod's by default",
        ),
    ],
    scores: Annotated[
        Path | None,
        typer.Option(help="the judge's scores: what `podeval measure --json` printed, or a CSV with item and score"),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(help="scores by people for the same items: a CSV with item, score and optionally rater"),
    ] = None,
    key: Annotated[str | None, typer.Option(help="value of the scores to use, if there are several")] = None,
    answers: Annotated[
        bool,
        typer.Option("--answers", help="show every recorded answer as this version parses it, instead of an audit"),
    ] = False,
    probe: Annotated[bool, typer.Option("--probe", help="ask the judge, instead of reading its records")] = False,
    records: Annotated[Path | None, typer.Option(help="with --probe: folder for the judge's answers")] = None,
    cases: Annotated[
        int | None,
        typer.Option(min=1, help="with --probe: number of planted cases of each kind; 20 if scripts are named"),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            help="with --probe: ask about this benchmark's anchors, which a judge must rank in the right order",
            autocompletion=complete_benchmark,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Audit judges from their records: order, position and length bias, consistency, parsing, agreement with people.

    A judge is unfit for publication if it is declared a trial model or has no usable answer. A judge that was asked to
    compare is also unfit unless the lower 95 % bound of its agreement between orders is above one half, over at least
    50 pairs without ties. The exit code is 1 if any judge is unfit. Each folder is audited separately; two judges, or
    one judge in two folders (to show drift), are compared on the questions that both answered.

    With --probe, ask a judge one question about a text and one about a recording, and print the working features and
    their price. With --cases or scripts as well, test whether ties, padding, injected instructions and the name of its
    own model mislead it. With --benchmark, test whether it distinguishes good anchors from bad ones.

    Example: podeval report judge records/

    Example: podeval report judge records/ --scores scores.jsonl --human listeners.csv --key script_quality

    Example: podeval report judge gemini-2.5-pro@https://generativelanguage.googleapis.com/v1beta --probe

    Example: podeval report judge judge.yaml --probe --cases 20 --records check/

    Example: podeval report judge judge.yaml --probe --records check/ --benchmark podbench
    """
    if probe:
        if scores or human or key or answers:
            raise BadInput(
                "--scores, --human, --key and --answers apply to records; leave out these options, or leave out --probe"
            )
        judge, *scripts = sources
        raise typer.Exit(
            int(not _probe(judge, [Path(script) for script in scripts], records, cases, benchmark, as_json))
        )
    if records or cases or benchmark:
        raise BadInput("--records, --cases and --benchmark can only be used with --probe; add --probe")
    if (scores is None) != (human is None):
        raise BadInput("give --scores (by the judge) together with --human (by people, for the same items)")
    raise typer.Exit(int(not _audit([Path(folder) for folder in sources], scores, human, key, answers, as_json)))


def _audit(
    folders: list[Path], scores: Path | None, human: Path | None, key: str | None, answers: bool, as_json: bool
) -> bool:
    """Print the audit of the judges whose records or answers are in these folders; return whether no judge is unfit."""
    from podeval.stats.agreement import format_estimate
    from podeval.validation import judge_audit as auditing
    from podeval.validation.human_scores import compute_agreement, read_marks, read_scores
    from podeval.validation.judge_answers import read_answers
    from podeval.validation.judge_report import describe_audit

    judges = [judge for folder in folders for judge in read_answers(folder)]
    if answers:
        _show_answers(judges, as_json)
        return True
    audits = [auditing.audit(judge) for judge in judges]
    alike = auditing.compare_judges(judges)
    people = compute_agreement(read_scores(scores, key), read_marks(human, key)) if scores and human else None
    if as_json:
        places = [{"folder": judge.folder, **asdict(one)} for judge, one in zip(judges, audits, strict=True)]
        emit({"judges": places, "between_judges": alike, "people": people}, allow_nan=False)
    else:
        for judge, audited in zip(judges, audits, strict=True):
            print("\n".join(describe_audit(f"{judge.id} in {judge.folder}", audited)))
        for measure, figure in people.figures.items() if people else ():
            print(f"Agreement with people, {measure}: {format_estimate(figure, 3)}, n {figure.count}")
        for one in alike:
            figures = "; ".join(f"{name} {format_estimate(figure, 3)}" for name, figure in one.figures.items())
            about = f"{one.first} and {one.second}, {one.prompt}, {one.measure}"
            print(f"{about}: {figures}; n {one.figures['identical'].count}")
    return not any(findings.unfit for findings in audits)


def _show_answers(judges: "list[JudgeAnswers]", as_json: bool) -> None:
    for judge in judges:
        for reply in judge.replies:
            line: dict[str, Any] = {"judge": judge.id, "prompt": reply.prompt, "seed": reply.seed}
            if as_json:
                emit(line | {"answer": reply.value}, allow_nan=False)
            else:
                leaves = "  ".join(f"{path} {value}" for path, value in reply.leaves.items())
                print(f"{reply.prompt}  seed {reply.seed}  {leaves}")
        counts = f"{judge.asked} questions, {len(judge.replies)} answers, {judge.unanswered} without a usable answer"
        say(f"{judge.id}: {counts}")


def _probe(
    name: str, scripts: list[Path], records: Path | None, cases: int | None, benchmark: str | None, as_json: bool
) -> bool:
    """Ask a judge questions with known answers, and print the results; return whether it passed."""
    from podeval import benchmarks
    from podeval.judges.judge import find_judge
    from podeval.measuring.inputs import read_input
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.validation.judge_audit import probe
    from podeval.validation.planted_cases import plant_anchors, plant_weaknesses, read_anchors

    if benchmark and scripts:
        raise BadInput("--benchmark uses the benchmark's own anchors; leave out the scripts")
    if not benchmark and not scripts and cases is None:
        if records:
            raise BadInput("the two trial questions are not recorded; leave out --records, or add --cases 20")
        return _try_judge(name, as_json)
    cases = cases or 20
    if benchmark:
        planted = plant_anchors(read_anchors(benchmarks.get(benchmark)))
    else:
        items = () if scripts else benchmarks.get("real_pod").items("topics")
        texts = [read_input("script", path) for path in scripts] or [item.script for item in items if item.script]
        planted = plant_weaknesses(texts[:cases], cases, find_judge(name).model)
    probes = probe(JudgeConfig(name, records), planted)
    for finding in probes:
        emit(finding) if as_json else print(finding.sentence)
    return not any(finding.failed for finding in probes)


def _try_judge(name: str, as_json: bool) -> bool:
    """Print a judge's abilities; return whether all tests passed."""
    from podeval.judges.judge import find_judge
    from podeval.judges.trial_questions import make_trial_client, try_judge

    judge = find_judge(name)
    client = make_trial_client(judge)
    provider = judge.served_by if judge.backend == "endpoint" else None
    if provider and not as_json:
        print(f"{judge.model} at {judge.endpoint}: {provider.title} (provider: {provider.name})")
    works = True
    for trial in try_judge(client):
        works = works and trial.works is not False
        unsent, form = sorted(client.unsent), client.records.form(judge.id)
        if as_json:
            facts = {"judge": judge.id, "provider": provider and provider.name, "schema": form, "unsent": unsent}
            emit({**facts, **vars(trial), "used": vars(trial.used)})
            continue
        verdict = {True: "works", False: "does not work", None: "not asked"}[trial.works]
        print(f"{trial.question}: {verdict}: {trial.detail}")
        if trial.used.calls:
            priced = (
                "" if judge.price or trial.used.cost else "; no price is known (set price: in the judge's YAML file)"
            )
            thousand = f"; a thousand such questions cost {trial.used.cost * 1000:.4g}" if trial.used.cost else ""
            print(f"  {trial.used.sentence().partition(';')[0]}{thousand}{priced}")
    if not as_json and client.account.calls:
        print(
            f"schema: sent as {form}"
            + (f"; fields omitted because the judge refuses them: {', '.join(unsent)}" if unsent else "")
        )
        print(f"To check this judge for biases, run: podeval report judge {name} --probe --cases 20")
    return works
