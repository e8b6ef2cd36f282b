"""`podeval score`: score a recording with every metric whose inputs are available, in one table."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_metrics, complete_profile
from podeval.cli.output import AsJson, emit, show_progress
from podeval.errors import BadInput
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from podeval.measuring.engine import Scores
    from podeval.measuring.inputs import ScoreRequest
    from podeval.measuring.proof import BookProof
    from podeval.metrics.defects import DefectReport

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
        bool,
        typer.Option("--defects", help="only list the defects with their times: faults, words left out, wrong voices"),
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
    """Score recordings with every metric whose inputs are available.

    Example: podeval score episode.wav

    Example: podeval score episode.wav --text script.json --out report.html

    Example: podeval score episode.wav --out report.html --language zh

    Example: podeval score episode.wav --text script.json --defects --labels defects.txt

    Example: podeval score outputs/ --metrics dnsmos,loudness --out scores.csv
    """
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
            raise BadInput("--labels accepts only one recording; score one file at a time")
    if len(texts) not in (0, 1, len(names)):
        raise BadInput(f"there are {len(names)} files and {len(texts)} texts; give one text, or one for each file")
    if defects:
        if metrics or out:
            raise BadInput("--defects lists only the defects; leave out --metrics and --out")
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
    """Return the named files, and the recordings in the named folders."""
    from podeval.recording.recording import list_recordings

    names = [str(path) for file in files for path in (list_recordings(file) or [file])]
    return list(dict.fromkeys(names))


def _score_files(
    names: list[str], requests: "list[ScoreRequest]", as_json: bool
) -> "tuple[list[Scores], dict[str, str]]":
    """Score file by file, showing progress; return the scores, and the reasons why files could not be read, by name."""
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
                emit(line, allow_nan=False)
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
    """Show the table, and write the requested files."""
    from podeval.measuring import score_tables
    from podeval.measuring.engine import ScoreTable
    from podeval.measuring.export import list_labels, write_labels, write_scores
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
        why = "there are no turns or defects to write" + (
            "; run the command without --metrics" if one.requested else ""
        )
        print(f"wrote {write_labels(cues, labels)}" + ("" if cues else f", which is empty: {why}"), file=sys.stderr)


# `podeval score --defects`: the defects of recordings with their times.


def list_defects(
    files: Sequence[str],
    texts: Sequence[str],
    references: Sequence[str],
    labels: Path | None,
    *,
    profile: str,
    music: str,
    as_json: bool,
) -> int:
    """Print the defects of each recording with their times, and return the exit code.

    Args:
        files: the recordings.
        texts: files with the words: none, one for all recordings, or one for each recording.
        references: the reference voices, as SPEAKER=FILE.
        labels: file for the defects of a single recording.
        profile: the profile of the models.
        music: `asked` if music was requested and is therefore not a defect, otherwise `unasked`.
        as_json: whether to print one JSON object per file.
    """
    from podeval.measuring.export import write_labels
    from podeval.models import registry

    registry.require_profile(profile)
    worst = 0
    for number, file in enumerate(files):
        text = texts[number % len(texts)] if texts else ""
        try:
            report, notes = _find(Path(file), text, references, profile, music)
        except BadInput as refusal:
            worst = 2
            print(f"podeval: {refusal}", file=sys.stderr, flush=True)
            if as_json:
                emit({"file": file, "error": str(refusal)})
            continue
        worst = max(worst, int(bool(report.unscored)))
        if labels:
            write_labels([(one.start, one.end, f"{one.kind}: {one.detail}") for one in report.defects], labels)
        if as_json:
            rows = [defect.to_json() for defect in report.defects]
            unscored = {name: reason.to_json() for name, reason in report.unscored.items()}
            emit({"file": file, "defects": rows, "unscored": unscored, "notes": notes})
            continue
        noted = [f"Note ({name}): {sentence}" for name, sentences in notes.items() for sentence in sentences]
        print("\n".join([*([f"{file}:"] if len(files) > 1 else []), _format_table(report), *noted]))
        for name, unscored_metric in report.unscored.items():
            print(f"podeval: the metric {name} could not be computed: {unscored_metric.reason}", file=sys.stderr)
    return worst


def _find(
    file: Path, text: str, references: Sequence[str], profile: str, music: str
) -> "tuple[DefectReport, dict[str, list[str]]]":
    """Find the defects of a recording, and the notes about the file and the text."""
    from podeval.measuring.inputs import MetricInputs, collect_notes, read_voices
    from podeval.metrics.defects import find_defects

    item = MetricInputs({"recording": file, **({"script": Path(text)} if text else {})}, profile=profile)
    inputs = item.read() | read_voices(list(references), {"profile": profile})
    notes = collect_notes(item, inputs)
    with show_progress(file.name):
        return find_defects(inputs, {"integrity": {"music": music}}), notes


def _format_table(report: "DefectReport") -> str:
    from podeval.text.subtitles import format_moment

    if not report.defects:
        return "no defects were found"
    rows: list[Sequence[str]] = [("start", "end", "kind", "severity", "what")]
    rows += [
        (format_moment(each.start), format_moment(each.end), each.kind, each.severity, each.detail)
        for each in report.defects
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows
    )


# `podeval proof`: every sentence of a book next to its recordings, and the sentences to record again.

LIMIT_PASSED = 3
"""Exit code if more sentences differ from the text than --max-misread allows."""


def proof(
    book: Annotated[Path, typer.Argument(metavar="BOOK", help="the book: .epub, .txt, .md, .srt, .vtt or .json")],
    audio: Annotated[list[str], typer.Argument(metavar="AUDIO", help="recordings, or folders with recordings")],
    max_misread: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="largest share of sentences that may be misread, in percent; exit with code 3 above it",
        ),
    ] = None,
    part: Annotated[
        bool, typer.Option("--part", help="only a part of the book is recorded; do not report the rest as missing")
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
    """Proof-listen to a book: find sentences that are misread, missing, repeated, or preceded by added words.

    Recordings are matched with the book by their words; they can have any order and any names.

    Example: podeval proof book.epub chapters/ --out report.html --max-misread 0.5

    Example: podeval proof chapter3.txt chapter3.wav --csv > sentences.csv
    """
    from podeval.measuring.export import check_ending, format_proof_csv, write_proof
    from podeval.measuring.proof import proof_book
    from podeval.recording.recording import list_recordings
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
    """Print the sentences that differ from the text, the unchecked parts, and a sentence about the book."""
    from podeval.metrics.score import format_clock

    for file in result.recordings:
        print(f"{file}:")
        for one in (one for one in result.faulty if one.recording == file):
            instead = f" | heard: {one.heard}" if one.heard else ""
            text = one.text or "(end of the recording)"
            print(f"  {format_clock(one.start or 0.0):>8}  {one.verdict:<12} {one.confidence:<6}  {text}{instead}")
    absent = Counter(one.section for one in result.faulty if not one.recording)
    for title, count in absent.items():
        print(f"not in any recording: {title or 'sentences without a chapter'} ({count} sentences)")
    for file, reason in result.unscored.items():
        print(f"podeval: {file} was not checked: {reason.reason}", file=sys.stderr)
    print(f"{len(result.faulty)} of {result.spoken} sentences are not as written ({result.share:.2%})")
