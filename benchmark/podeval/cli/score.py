"""`podeval score`: every metric of a recording whose inputs are there, in one table."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_metrics, complete_profile
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.measuring.inputs import ScoreRequest
    from podeval.measuring.scores import Scores

Recordings = Annotated[list[str], typer.Argument(metavar="FILE", help="recordings, or folders with recordings")]


def score(
    files: Recordings,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "file with the spoken words, as plain text or a script; one for all "
                "recordings or one for each (repeatable)"
            )
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="[SPEAKER=]FILE", help="recording of the voice that a speaker should have (repeatable)"),
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="only these metrics", autocompletion=complete_metrics)
    ] = "",
    defects: Annotated[
        bool, typer.Option("--defects", help="only list what is wrong and when: faults, words left out, wrong voices")
    ] = False,
    speakers: Annotated[int | None, typer.Option(help="number of speakers, if known")] = None,
    profile: Annotated[
        str, typer.Option(help=f"models to use: {CHOICES}", autocompletion=complete_profile)
    ] = "embedded",
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="file to write: a report (.html) or the values (.json, .csv, .parquet) (repeatable)"
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="file to write with turns and defects, for Audacity (.txt) or players (.vtt)"
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="show every value instead of about ten")] = False,
    no_music: Annotated[bool, typer.Option("--no-music", help="count music as a defect")] = False,
    allow_upsampling: Annotated[
        bool, typer.Option("--allow-upsampling", help="also score recordings whose sample rate is below the model's")
    ] = False,
    language: Annotated[str, typer.Option(help="language of reports: en or zh")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object per file")] = False,
) -> None:
    """Score recordings with every metric whose inputs are given.

    Example: podeval score episode.wav

    Example: podeval score episode.wav --text script.json --out report.html

    Example: podeval score episode.wav --out report.html --language zh

    Example: podeval score episode.wav --text script.json --defects --labels defects.txt

    Example: podeval score outputs/ --metrics dnsmos,loudness --out scores.csv
    """
    from podeval.errors import BadInput
    from podeval.measuring import export
    from podeval.measuring.inputs import read_request
    from podeval.reports.page import read_report_texts

    names = _expand(files)
    texts = text or []
    read_report_texts(language)
    for path in out or ():
        export.check_ending(path)
    if labels:
        export.check_label_ending(labels)
        if len(names) > 1:
            raise BadInput("--labels takes one recording; score one file at a time")
    if len(texts) not in (0, 1, len(names)):
        raise BadInput(f"there are {len(names)} files and {len(texts)} texts; give one text, or one for each file")
    if defects:
        from podeval.cli.defects import list_defects

        if metrics or out:
            raise BadInput("--defects lists the defects alone; leave out --metrics and --out")
        music = "unasked" if no_music else "asked"
        sources = (names, texts, reference or [], labels)
        raise typer.Exit(list_defects(*sources, profile=profile, music=music, as_json=as_json))
    requests = [
        read_request(
            text=Path(words) if words else None,
            references=reference,
            metrics=metrics or None,
            profile=profile,
            speakers=speakers,
            allow_upsampling=allow_upsampling,
            parameters={"integrity": {"music": "unasked"}} if no_music else {},
        )
        for words in texts or [""]
    ]
    scored, errors = _score_files(names, requests * len(names) if len(requests) == 1 else requests, as_json)
    if scored:
        _write(scored, errors, out or [], labels, quiet=as_json, whole=show_all, language=language)
    raise typer.Exit(2 if errors else int(any(one.failed or not one.values for one in scored)))


def _expand(files: list[str]) -> list[str]:
    """The files that are named, and the recordings in the folders that are."""
    from podeval.recording.source import list_recordings

    names = [str(path) for file in files for path in (list_recordings(file) or [file])]
    return list(dict.fromkeys(names))


def _score_files(
    names: list[str], requests: "list[ScoreRequest]", as_json: bool
) -> "tuple[list[Scores], dict[str, str]]":
    """Score file by file, with the progress; the scores, and by name why a file could not be read."""
    from podeval.cli.progress_bar import show_progress
    from podeval.errors import BadInput
    from podeval.measuring.engine import score_source

    scored: list[Scores] = []
    errors: dict[str, str] = {}
    with show_progress("score" if len(names) > 1 else Path(names[0]).name) as steps:
        for number, (name, request) in enumerate(zip(names, requests, strict=True)):
            if len(names) > 1:
                steps.step("recordings", number, len(names))
            try:
                scored.append(score_source(name, request))
                line = scored[-1].to_json()
            except BadInput as refusal:
                errors[name] = str(refusal)
                line = {"file": name, "error": str(refusal)}
                print(f"podeval: {refusal}", file=sys.stderr, flush=True)
            if as_json:
                print(json.dumps(line, ensure_ascii=False, allow_nan=False), flush=True)
    return scored, errors


def _write(
    scored: "list[Scores]",
    errors: dict[str, str],
    out: list[Path],
    labels: Path | None,
    *,
    quiet: bool,
    whole: bool,
    language: str,
) -> None:
    """Show the table, and write the files that were asked for."""
    from podeval.measuring import score_tables
    from podeval.measuring.export import list_labels, write_labels, write_scores
    from podeval.measuring.scores import ScoreTable
    from podeval.text.terminal_safe import make_console

    result = ScoreTable(tuple(scored), errors) if len(scored) + len(errors) > 1 else scored[0]
    if not quiet:
        console = make_console(sys.stdout)
        if console.is_terminal:
            console.print(score_tables.build_table(result, whole=whole))
        else:
            print(score_tables.render_text(result, whole=whole))
    for path in out:
        print(f"wrote {write_scores(result, path, language)}", file=sys.stderr)
    if labels:
        one, cues = scored[0], list_labels(scored[0])
        why = "no turns and no defects are known" + (", try it without --metrics" if one.requested else "")
        print(f"wrote {write_labels(cues, labels)}" + ("" if cues else f", which is empty: {why}"), file=sys.stderr)
