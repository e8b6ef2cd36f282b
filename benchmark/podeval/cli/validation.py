"""Check how trustworthy numbers are: `podeval report agreement`, `papers` and `certificate`."""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podeval.cli.completion import complete_key, complete_metrics, complete_profile
from podeval.cli.database import DEFAULT, RUNS, Runs, is_there, open_database, require_database, resolve_database
from podeval.cli.output import AsJson, emit, say, show_progress
from podeval.errors import BadInput
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.stats.mushra_scores import Mark
    from podeval.validation.agreement import Validity
    from podeval.validation.raters import AnalysisLine
    from podeval.validation.rating_files import RatingFile

TURNED = {"higher": "", "lower": " (turned: lower is better)", "in range": " (folded: a range is best)"}


def agreement(
    runs: Runs = RUNS,
    ratings: Annotated[
        list[Path] | None,
        typer.Option(
            help="file of scores (CSV with system, item, score and optionally measure and rater), of votes (CSV or "
            "JSON lines with first, second, outcome and optionally voter and group of voters, the output of "
            "`podeval judge battles`, or the model_a, model_b and winner of a different arena), or of a public "
            "corpus (repeatable)"
        ),
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            envvar="DATABASE_URL",
            help="database with more votes and listening tests; without files, podeval.db in the folder of runs",
        ),
    ] = DEFAULT,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="show published evidence instead of runs: public clips and figures of the papers"
        ),
    ] = False,
    figures: Annotated[
        Literal["mtalk"] | None,
        typer.Option(help="also print what MTalk-Bench's figures 4 to 12 show for the runs and the votes in --ratings"),
    ] = None,
    values: Annotated[
        list[Path] | None,
        typer.Option(
            help="values of metrics, instead of runs: a table that `podeval score --out` wrote, or CSV or Parquet with "
            "the columns system and item, or file, and one column for each metric (repeatable)"
        ),
    ] = None,
    audio: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder with the rated recordings, which are measured here")
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="only these metrics, or metric.key", autocompletion=complete_metrics)
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METRIC.PARAMETER=VALUE", help="with --audio, set a parameter (repeatable)"),
    ] = None,
    profile: Annotated[
        str, typer.Option(help=f"with --audio, models to use: {CHOICES}", autocompletion=complete_profile)
    ] = "embedded",
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="also measure recordings whose rate is below the model's")
    ] = False,
    by_system: Annotated[
        bool, typer.Option("--by-system", help="also show the mean, SRCC and PLCC of each key within each system")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how well metrics and judges agree with people (SRCC, PLCC, KRCC with intervals) and how well raters agree
    with each other: pairs that votes distinguish, groups of voters, and every rater compared with the mean of the
    others.

    With --audio or --values, metrics are compared on ratings in any layout that `podeval data fetch ratings` lists.

    Example: podeval report agreement --runs runs --ratings listeners.csv

    Example: podeval report agreement --ratings NISQA_corpus_file.csv --audio NISQA_Corpus --metrics dnsmos,distillmos

    Example: podeval report agreement --ratings order.csv --values scores.csv

    Example: podeval report agreement --runs runs --ratings battles.jsonl --ratings people.csv --figures mtalk

    Example: podeval report agreement --published
    """
    if published:
        _print_published(as_json)
        return
    from podeval.validation.agreement import group_by_measure
    from podeval.validation.human_scores import describe_marks
    from podeval.validation.raters import analyse_marks
    from podeval.validation.rating_files import read_rating_files

    if not ratings and not is_there(resolve_database(database, runs)):
        raise BadInput(
            "there are no ratings: give --ratings FILE, or a --database with votes or listening tests, because "
            f"{resolve_database(database, runs)} does not exist (--published shows the papers' figures)"
        )
    if values or audio:
        options = {"profile": profile, "allow_upsampling": allow_upsampling}
        _print_benchmark(ratings or [], values or [], audio, metrics, settings or [], options, by_system, as_json)
        return
    tests: dict[str, list[Mark]] = {}
    files = [file for path in ratings or [] for file in read_rating_files(path)]
    lines = _read_ratings(files, tests)
    if database or not ratings:
        lines += _read_database(require_database(database, runs), tests)
    measures = group_by_measure(tests)
    lines += describe_marks(measures)
    lines += [line for measure, marks in measures.items() for line in analyse_marks(measure, marks)]
    lines += _draw_figures(runs, files, tests) if figures else []
    agreements = _compare_metrics(runs, measures) if measures else []
    if as_json:
        for finding in (*agreements, *lines):
            emit(finding)
    else:
        _print_agreements(agreements, lines)
    if not agreements and not lines:
        print("there are no votes or marks to analyse", file=sys.stderr)
        raise typer.Exit(1)


def _read_ratings(files: "Sequence[RatingFile]", tests: "dict[str, list[Mark]]") -> "list[AnalysisLine]":
    """Add the marks from files, and return the findings about their votes."""
    from podeval.validation.raters import analyse_votes

    lines = []
    for file in files:
        if file.marks:
            tests.setdefault(file.name, []).extend(file.marks)
        lines += analyse_votes(file.name, file.votes) if file.votes else []
        for note in file.notes:
            say(f"{file.name}: {note}")
    return lines


def _print_benchmark(
    ratings: list[Path],
    tables: list[Path],
    audio: Path | None,
    metrics: str,
    settings: list[str],
    options: dict[str, Any],
    by_system: bool,
    as_json: bool,
) -> None:
    """Print how well metrics agree with the ratings in files, with values from tables and a folder of recordings."""
    from podeval.validation import metric_benchmark as benchmark
    from podeval.validation.rating_files import read_rating_files

    files = [file for path in ratings for file in read_rating_files(path)]
    if not files:
        raise BadInput("--audio and --values need ratings by people to compare with: add --ratings FILE")
    with show_progress("agreement"):
        names = [name.strip() for name in metrics.split(",") if name.strip()]
        report = benchmark.compare_with_ratings(files, tables, audio, names, settings, options)
    for note in report.notes:
        say(note)
    if as_json:
        for finding in (*report.agreements, *report.pairs, *report.lines):
            emit(finding)
    else:
        _print_search(report.agreements)
        print("\n".join(line.says for line in report.lines))
        print("\n".join(benchmark.tabulate_agreements(report.agreements, report.pairs)))
        print("\n".join(benchmark.tabulate_systems(report.agreements) if by_system else ()))
    if not report.agreements and not report.pairs:
        say("no metric has values for at least five outputs that people rated")
        raise typer.Exit(1)


def _draw_figures(runs: Path, files: "Sequence[RatingFile]", tests: "dict[str, list[Mark]]") -> "list[AnalysisLine]":
    from podeval.validation.mtalk_figures import collect_people_marks, draw_figures, read_rubric_marks

    votes = {file.name: file.votes for file in files if file.votes}
    rubrics = read_rubric_marks(runs)
    if not rubrics:
        print(
            f"figures 5, 7, 8, 9 and 11 need MTalk-Bench rubrics scored by a judge, but no run in {runs} has any",
            file=sys.stderr,
        )
    return draw_figures(votes, [*rubrics, *collect_people_marks(tests, rubrics)])


def _read_database(location: str, tests: "dict[str, list[Mark]]") -> "list[AnalysisLine]":
    """Add the marks from a database's listening tests, and return the findings about its votes."""
    from podeval.arena.ratings import build_rating_table
    from podeval.listening.session_results import read_marks_by_test
    from podeval.validation.raters import analyse_votes

    lines: list[AnalysisLine] = []
    with open_database(location) as opened:
        with opened.reading() as session:
            table = build_rating_table(session)
        for (protocol, dimension), part in table.groupby(["protocol", "dimension"]) if len(table) else ():
            rows = [{str(name): str(v) for name, v in row.items()} for row in part.to_dict("records")]
            lines += analyse_votes(f"{dimension} ({protocol})", rows)
        for test, marks in read_marks_by_test(opened).items():
            tests.setdefault(test, []).extend(marks)
    return lines


def _compare_metrics(runs: Path, measures: "Mapping[str, list[Mark]]") -> "list[Validity]":
    """Compare the metrics of a folder of runs with people; print a message if there are no runs."""
    from podeval.board.build import build
    from podeval.runs.board_tables import ITEMS, read_table
    from podeval.runs.run_folder import run_folders
    from podeval.validation.agreement import FEWEST, compute_validity

    if not run_folders(runs):
        print(f"there are no runs in {runs}, so no metric is compared with people; set --runs", file=sys.stderr)
        return []
    build(runs)
    agreements = compute_validity(read_table(runs / ITEMS), measures)
    if not agreements:
        print(f"no metric has {FEWEST} outputs (system and item) in common with a human measure", file=sys.stderr)
    return agreements


def _print_published(as_json: bool) -> None:
    from podeval.validation.paper_runs import THIN, list_printed_agreements, recompute_agreement

    rows, printed = recompute_agreement(), list_printed_agreements()
    if as_json:
        for entry in (*rows, *printed):
            emit(entry)
        return
    print(THIN)
    _print_agreements(rows)
    print("\nAgreement with people, as printed in the papers:")
    for one in printed:
        count = f", n {one['count']}" if one["count"] else ""
        print("{paper} {table}: {who}, {about}: {statistic} {value}".format_map(one) + count)


def _print_agreements(agreements: "list[Validity]", lines: "Sequence[AnalysisLine]" = ()) -> None:
    """Print each measure with its number of compared keys and the result by chance, each agreement, and other lines."""
    from podeval.stats.agreement import format_estimate

    _print_search(agreements)
    for row in agreements:
        without = ", {:.2f} to {:.2f} without one of them".format(*row.without_one) if row.without_one else ""
        chance = "" if row.chance is None else f", by chance in {100 * row.chance:.1f} % of orders"
        within = f"; within a category {format_estimate(row.within)}" if row.within else ""
        print(
            f"{row.metric}.{row.key}{TURNED[row.better]} with {row.human}: SRCC {format_estimate(row.srcc)}, "
            f"PLCC {format_estimate(row.plcc)}, KRCC {format_estimate(row.krcc)}, {row.srcc.count} outputs; of "
            f"{row.systems.count} systems {format_estimate(row.systems)}{without}{chance}{within}"
        )
    for line in lines:
        print(line.says)


def _print_search(agreements: "Sequence[Validity]") -> None:
    """Print the number of keys compared with each measure, and the best chance result."""
    from podeval.validation.agreement import ENOUGH_SYSTEMS

    for row in {row.human: row for row in agreements}.values():
        if row.thin:
            print(
                f"{row.human}: the evidence is thin, with {row.systems.count} systems; with fewer than "
                f"{ENOUGH_SYSTEMS}, any correlation is only a hint"
            )
        chance = (
            ""
            if row.by_chance is None
            else (
                f"; by chance alone the best of them has an SRCC of {row.by_chance:.2f} or more over "
                f"{row.systems.count} systems in at most one case in twenty"
            )
        )
        print(f"{row.human}: {row.keys} keys were compared{chance}")


def papers(
    runs: Annotated[
        Path | None, typer.Option(help="compare the runs in this folder with the papers' figures for the same systems")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute figures in the papers from other printed figures, or compare your own runs with the printed figures
    (--runs).

    A run belongs to a paper's system if it has the system's name, as in `--name indextts2`. For each figure whose
    material and protocol match those of the run, the printed value, ours, the difference and a verdict are shown; the
    other figures are counted with the reason.

    Example: podeval report papers

    Example: podeval report papers --runs .demo/runs

    Example: podeval report papers --json
    """
    from podeval.validation.papers import PaperFigure, recompute

    if runs:
        _compare_with_print(runs, as_json)
        return
    tables: dict[tuple[str, str], list[PaperFigure]] = defaultdict(list)
    for figure in recompute():
        tables[figure.paper, figure.table].append(figure)
        if as_json:
            emit(asdict(figure) | {"difference": figure.difference, "follows": figure.follows})
    for (paper, table), figures in tables.items() if not as_json else ():
        tried = [figure for figure in figures if figure.recomputed is not None]
        same = [figure for figure in tried if not figure.material]
        if not tried:
            print(f"{paper} {table}: {figures[0].figure} cannot be recomputed: {figures[0].why_not}")
            continue
        if same:
            follow = sum(figure.follows for figure in same)
            print(f"{paper} {table}: {follow} of {len(same)} figures agree to the printed digits")
        for material in dict.fromkeys(figure.material for figure in tried if figure.material):
            count = sum(figure.material == material for figure in tried)
            print(f"{paper} {table}: {count} figures are not compared: measured on {material} (see --json)")
        for figure in same:
            if not figure.follows:
                print(
                    f"  {figure.figure}: printed {figure.printed:g}, recomputed {figure.recomputed:.4g}, "
                    f"difference {figure.difference:+.4f}"
                )
        for why in dict.fromkeys(figure.why_not for figure in figures if figure.why_not):
            count = sum(figure.count for figure in figures if figure.why_not == why)
            print(f"  {count} cannot be recomputed: {why}")


def _compare_with_print(runs: Path, as_json: bool) -> None:
    """Print each figure of a paper next to the run's, and count the figures that are not comparable, by reason."""
    from podeval.validation.paper_runs import RunFigure, compare_with_print

    tables: dict[tuple[str, str], list[RunFigure]] = defaultdict(list)
    for figure in compare_with_print(runs):
        tables[figure.paper, figure.table].append(figure)
        if as_json:
            emit(asdict(figure) | {"difference": figure.difference}, allow_nan=False)
    for (paper, table), figures in tables.items() if not as_json else ():
        print(f"{paper} {table}:")
        for figure in figures:
            if figure.ours is not None:
                interval = "" if figure.low is None else f" [{figure.low:.4g}, {figure.high:.4g}]"
                verdict = {True: "inside the interval", False: "outside the interval", None: "no interval"}
                print(
                    f"  {figure.figure}: printed {figure.printed:g}, ours {figure.ours:.4g}{interval}, difference "
                    f"{figure.difference:+.4f}: {verdict[figure.inside]} ({figure.run})"
                )
        for why in dict.fromkeys(figure.why_not for figure in figures if figure.why_not):
            print(f"  {sum(figure.why_not == why for figure in figures)} figures are not compared: {why}")
    if not tables:
        print(f"no run in {runs} is named like a system in a paper; see --name of `podeval run`", file=sys.stderr)
        raise typer.Exit(1)


def certificate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run: RUNS/BENCHMARK/SPLIT/SYSTEM")],
    key: Annotated[str, typer.Option(help="figure to examine, as metric.key", autocompletion=complete_key)] = "wer.wer",
    printed: Annotated[
        float | None, typer.Option(help="figure to compare with, as printed in a paper (error rates in percent)")
    ] = None,
    against: Annotated[
        list[Path] | None, typer.Option(help="run of another system, to look for rank flips (repeatable)")
    ] = None,
    people: Annotated[Path | None, typer.Option(help="run of recordings of people, for the recogniser's floor")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how seeds, recogniser, normaliser and averaging change a run's figure, and whether a printed figure is
    within this range.

    Error rates are recomputed from the transcripts in the run; the audio is not needed.

    Example: podeval report certificate runs/real_pod/demo/hibari_piper --printed 1.30
    """
    from podeval.runs.run_folder import open_run
    from podeval.validation.certificate import ERROR_RATES, certify, explain

    unit = 100.0 if key in ERROR_RATES else 1.0
    certified = certify(
        open_run(run),
        key,
        others=[open_run(path) for path in against or []],
        people=open_run(people) if people else None,
        printed=None if printed is None else printed / unit,
    )
    if as_json:
        more = {"extent": certified.extent, "inside": certified.is_inside, "inside_interval": certified.is_in_interval}
        emit(asdict(certified) | more)
    else:
        print("\n".join(explain(certified, unit)))
