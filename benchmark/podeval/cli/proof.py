"""`podeval proof`: every sentence of a book beside its recordings, and which to record again."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_profile
from podeval.cli.output import AsJson, emit
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.measuring.proof import BookProof

LIMIT_PASSED = 3
"""Exit code when more sentences are not as written than may be."""


def proof(
    book: Annotated[Path, typer.Argument(metavar="BOOK", help="the book: .epub, .txt, .md, .srt, .vtt or .json")],
    audio: Annotated[list[str], typer.Argument(metavar="AUDIO", help="recordings, or folders with recordings")],
    max_misread: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", help="most sentences that may be not as written; more is exit code 3"),
    ] = None,
    part: Annotated[
        bool, typer.Option("--part", help="only a part of the book is recorded; the rest is not missing")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="file to write: a report (.html), or the sentences (.json, .csv) (repeatable)"
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help=f"models to use: {CHOICES}", autocompletion=complete_profile)
    ] = "embedded",
    language: Annotated[str, typer.Option(help="language of reports: en or zh")] = "en",
    as_csv: Annotated[bool, typer.Option("--csv", help="print the sentences as a table")] = False,
    as_json: AsJson = False,
) -> None:
    """Proof-listen to a book: which sentences are misread, missing, said twice, or have something added before them.

    Recordings are matched with the book by their words, in any order and under any names.

    Example: podeval proof book.epub chapters/ --out report.html --max-misread 0.5

    Example: podeval proof chapter3.txt chapter3.wav --csv > sentences.csv
    """
    from podeval.cli.progress_bar import show_progress
    from podeval.errors import BadInput
    from podeval.measuring.export import check_ending, format_proof_csv, write_proof
    from podeval.measuring.proof import proof_book
    from podeval.recording.source import list_recordings
    from podeval.reports.page import read_report_texts
    from podeval.text.book import read_book

    read_report_texts(language)
    for path in out or ():
        check_ending(path, (".html", ".json", ".csv"))
    if max_misread is not None and not 0 <= max_misread <= 100:
        raise BadInput(f"--max-misread takes a share of the sentences in percent, such as 0.5, not {max_misread}")
    files = [Path(file) for name in audio for file in (list_recordings(name) or [name])]
    sound = any(path.suffix.lower() == ".html" for path in out or ())
    with show_progress(book.name):
        result = proof_book(read_book(book), str(book), files, profile=profile, part=part, sound=sound)
    if as_json:
        emit(result.to_json(), allow_nan=False)
    elif as_csv:
        print(format_proof_csv(result), end="")
    else:
        _print_table(result)
    for path in out or ():
        print(f"wrote {write_proof(result, path, language)}", file=sys.stderr)
    if max_misread is not None and 100 * result.share > max_misread:
        raise typer.Exit(LIMIT_PASSED)
    raise typer.Exit(int(bool(result.unscored)))


def _print_table(result: "BookProof") -> None:
    """Print the sentences that are not as written, what could not be proofed, and a sentence about the book."""
    from podeval.metrics.score import format_clock

    for file in result.recordings:
        print(f"{file}:")
        for one in (one for one in result.faulty if one.recording == file):
            instead = f" | heard: {one.heard}" if one.heard else ""
            text = one.text or "(end of the recording)"
            print(f"  {format_clock(one.start or 0.0):>8}  {one.verdict:<12} {one.confidence:<6}  {text}{instead}")
    absent = Counter(one.section for one in result.faulty if not one.recording)
    for title, count in absent.items():
        print(f"in no recording: {title or 'sentences without a chapter'} ({count} sentences)")
    for file, reason in result.unscored.items():
        print(f"podeval: {file} was not proofed: {reason.reason}", file=sys.stderr)
    print(f"{len(result.faulty)} of {result.spoken} sentences are not as written ({result.share:.2%})")
