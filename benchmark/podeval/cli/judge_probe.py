"""`podeval judge probe` and `podeval judge drift`: planted cases for a judge, and one version against another."""

from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput


def probe(
    name: Annotated[str, typer.Option("--judge", help="the judge, as for `podeval measure`")],
    scripts: Annotated[
        list[Path] | None, typer.Argument(metavar="[SCRIPT]...", help="scripts to modify; Real-Pod's by default")
    ] = None,
    records: Annotated[Path | None, typer.Option(help="folder for the judge's answers")] = None,
    cases: Annotated[int, typer.Option(min=1, help="number of cases of each kind")] = 20,
    as_json: AsJson = False,
) -> None:
    """Test whether ties, padding and injected instructions mislead a judge. The exit code is 1 if they do.

    Example: podeval judge probe --judge judge.yaml --records probe/
    """
    from podeval import benchmarks
    from podeval.leaderboard.judge_probe import plant_cases
    from podeval.leaderboard.judge_probe import probe as ask
    from podeval.metrics.dialogue_judge import COMPARE
    from podeval.metrics.inputs import read_input
    from podeval.metrics.judge_use import JudgeConfig, JudgeUse

    texts = [read_input("script", path) for path in scripts or []]
    if not texts:
        items = benchmarks.get("real_pod").items("topics")
        texts = [item.script for item in items if item.script is not None][:cases]
    client = JudgeConfig(name, records).judging(JudgeUse(prompts=lambda _: (COMPARE,)), {})
    if client is None:
        raise BadInput("choose a judge with --judge")
    findings = ask(client, plant_cases(texts, cases))
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
    from podeval.leaderboard.judge_versions import link_versions
    from podeval.metrics.judge_answers import JudgeAnswers, read_answers

    def single(folder: Path) -> JudgeAnswers:
        judges = read_answers([folder])
        if len(judges) != 1:
            raise BadInput(f"{folder} contains records of {len(judges)} judges; give the folder of one")
        return judges[0]

    for link in link_versions(single(old), single(new)):
        emit(link) if as_json else print(link.says)
