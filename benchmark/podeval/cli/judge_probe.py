"""`podeval judge probe` and `podeval judge drift`: planted cases for a judge, and one version against another."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from podeval.cli.completion import complete_benchmark
from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.leaderboard.judge_anchors import AnchorFinding
    from podeval.leaderboard.judge_probe import ProbeFinding
    from podeval.leaderboard.judge_versions import VersionLink


def probe(
    name: Annotated[str, typer.Option("--judge", help="the judge, as for `podeval measure`")],
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

    Example: podeval judge probe --judge judge.yaml --records probe/

    Example: podeval judge probe --judge judge.yaml --records probe/ --benchmark podbench
    """
    from podeval import benchmarks
    from podeval.benchmarks.anchors import read_anchors
    from podeval.leaderboard.judge_anchors import probe_anchors
    from podeval.leaderboard.judge_probe import plant_cases
    from podeval.leaderboard.judge_probe import probe as ask
    from podeval.metrics.dialogue_judge import COMPARE
    from podeval.metrics.inputs import read_input
    from podeval.metrics.judge_use import JudgeConfig, JudgeUse

    if benchmark:
        if scripts:
            raise BadInput("--benchmark asks about its own anchors; leave out the scripts")
        _show(probe_anchors(JudgeConfig(name, records), read_anchors(benchmarks.get(benchmark))), as_json)
    texts = [read_input("script", path) for path in scripts or []]
    if not texts:
        items = benchmarks.get("real_pod").items("topics")
        texts = [item.script for item in items if item.script is not None][:cases]
    client = JudgeConfig(name, records).judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
    if client is None:
        raise BadInput("choose a judge with --judge")
    _show(ask(client, plant_cases(texts, cases)), as_json)


def _show(findings: "Sequence[ProbeFinding | AnchorFinding]", as_json: bool) -> NoReturn:
    """Print what was found, and end with 1 where the judge is accused."""
    for finding in findings:
        emit(finding) if as_json else print(finding.says)
    raise typer.Exit(int(any(finding.accused for finding in findings)))


def drift(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="records of the old version")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="records of the new version")],
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a judge on the questions that both answered; no judge is asked.

    Example: podeval judge drift judgements-2025/ judgements-2026/
    """
    from podeval.leaderboard.judge_versions import link_versions, pair_versions
    from podeval.metrics.judge_answers import read_answers

    links: list[VersionLink] = []
    reasons: list[str] = []
    for before, after in pair_versions(read_answers([old]), read_answers([new])):
        try:
            links += link_versions(before, after)
        except BadInput as refusal:
            reasons.append(str(refusal))
    if not links:
        raise BadInput("; ".join(reasons))
    for link in links:
        emit(link) if as_json else print(link.says)
