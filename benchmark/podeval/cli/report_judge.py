"""`podeval report judge`, `podeval judge replay` and `podeval judge install`: records audited, models fetched."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from podeval.cli.output import AsJson, emit
from podeval.errors import BadInput

Folders = Annotated[list[Path], typer.Argument(metavar="FOLDER", help="records of judges: what --records named")]


def audit(
    folders: Folders,
    scores: Annotated[
        Path | None,
        typer.Option(help="the judge's scores: what `podeval measure --json` printed, or a CSV with item and score"),
    ] = None,
    human: Annotated[
        Path | None, typer.Option(help="people's scores of the same items: a CSV with item, score and optionally rater")
    ] = None,
    key: Annotated[str | None, typer.Option(help="value of the scores to use, if there are several")] = None,
    page: Annotated[Path | None, typer.Option(help="write the audit as Markdown to this file too")] = None,
    as_json: AsJson = False,
) -> None:
    """Audit judges from their records: order, position and length bias, consistency, parsing, agreement with people.

    A judge is unfit for publication while the lower 95 % bound of its agreement between orders is at or below one
    half (at least 50 pairs, ties left out), or while it is declared a trial model. Exit code 1 where one is.

    Example: podeval report judge records/

    Example: podeval report judge records/ --scores scores.jsonl --human listeners.csv --key script_quality
    """
    from podeval.leaderboard import judge_audit as auditing
    from podeval.leaderboard.human_scores import compute_agreement, read_people, read_scores
    from podeval.leaderboard.judge_audit_page import convert_to_plain
    from podeval.leaderboard.judge_audit_page import render_audit_page as as_page
    from podeval.metrics.judge_answers import read_answers
    from podeval.store.copies import register

    if (scores is None) != (human is None):
        raise BadInput("give --scores (the judge's) and --human (people's, of the same items) together")
    judges = read_answers(folders)
    audits = [auditing.audit(judge) for judge in judges]
    alike = auditing.compare_judges(judges)
    people = compute_agreement(read_scores(scores, key), read_people(human, key)) if scores and human else None
    if page:
        register("report", [page], None)
        try:
            page.write_text(as_page(audits, alike, people), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot write {page}: {error.strerror}") from None
    if as_json:
        emit(convert_to_plain(audits, alike, people), allow_nan=False)
    else:
        print(as_page(audits, alike, people), end="")
    raise typer.Exit(int(any(findings.unfit for findings in audits)))


def replay(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="records of judges")],
    as_json: AsJson = False,
) -> None:
    """Show every recorded answer as the current version reads it; no judge is asked.

    Example: podeval judge replay records/ --json
    """
    from podeval.metrics.judge_answers import read_answers

    for judge in read_answers([folder]):
        for reply in judge.given:
            line = {"judge": judge.id, "prompt": reply.prompt, "seed": reply.seed, "answer": reply.value.model_dump()}
            if as_json:
                emit(line, allow_nan=False)
            else:
                leaves = "  ".join(f"{path} {value}" for path, value in reply.leaves.items())
                print(f"{reply.prompt}  seed {reply.seed}  {leaves}")
        print(
            f"{judge.id}: {judge.asked} questions, {len(judge.given)} answers, {judge.unanswered} without a usable one",
            file=sys.stderr,
        )


def install(
    judge: Annotated[str, typer.Argument(metavar="JUDGE", help="transformers:OWNER/NAME@COMMIT, or its YAML file")],
) -> None:
    """Download a local judge from the Hub at a fixed commit; safetensors only, no code.

    Example: podeval judge install transformers:RMSnow/SpeechJudge-GRM@0123456789abcdef0123456789abcdef01234567
    """
    from podeval.judges.judge import find_judge
    from podeval.models.chat_transformers import install as fetch

    config = find_judge(judge)
    if config.backend != "transformers":
        raise BadInput(f"{judge} needs nothing from the Hub; only transformers:OWNER/NAME@COMMIT is installed")
    folder = fetch(config.model, str(config.revision), lambda line: print(line, file=sys.stderr))
    print(folder)
