"""`podeval defects`: what went wrong in a recording, and when."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.completion import complete_profile

if TYPE_CHECKING:
    from podeval.metrics.defects import DefectReport


def defects(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a recording")],
    text: Annotated[
        Path | None,
        typer.Option(help="the script, with or without speakers; without it only faults of the audio are found"),
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            help="recording of a speaker's voice, as SPEAKER=FILE (repeatable), or a JSON file that lists them"
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="file to write with the defects, for Audacity (.txt) or players (.vtt)"),
    ] = None,
    music: Annotated[bool, typer.Option("--music", help="do not report music as a defect")] = False,
    profile: Annotated[
        str, typer.Option(help="models to use: embedded or reference", autocompletion=complete_profile)
    ] = "embedded",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """List the defects of a recording with their times.

    Finds omitted, repeated and inserted words, turns in a wrong voice, dropouts, clicks, loops, clipping, unrequested
    music, pauses that are too long and stretches at another pace.

    The exit code is 1 if some checks were not possible; the reason is on standard error, or under `unscored`.

    Example: podeval defects episode.wav --text script.json

    Example: podeval defects episode.wav --text script.json --labels defects.txt
    """
    from podeval.cli.progress_bar import show_progress
    from podeval.measuring.compute import collect_notes
    from podeval.measuring.export import check_label_ending, write_labels
    from podeval.measuring.inputs import MetricInputs, read_voices
    from podeval.metrics.defects import find_defects
    from podeval.models import registry

    if labels:
        check_label_ending(labels)
    registry.require_profile(profile)
    item = MetricInputs({"recording": file, **({"script": text} if text else {})}, profile=profile)
    inputs = item.read() | read_voices(reference or [], {"profile": profile})
    notes = collect_notes(item, inputs)
    with show_progress(file.name):
        report = find_defects(inputs, {"integrity": {"music": "asked" if music else "unasked"}})
    if labels:
        write_labels([(one.start, one.end, f"{one.kind}: {one.detail}") for one in report.defects], labels)
    if as_json:
        rows = [defect.to_json() for defect in report.defects]
        unscored = {name: reason.to_json() for name, reason in report.unscored.items()}
        record = {"file": str(file), "defects": rows, "unscored": unscored, "notes": notes}
        print(json.dumps(record, ensure_ascii=False))
    else:
        print("\n".join([_format_table(report), *_format_notes(notes)]))
        for name, unscored_metric in report.unscored.items():
            print(f"podeval: {name} could not run: {unscored_metric.reason}", file=sys.stderr)
    raise typer.Exit(int(bool(report.unscored)))


def _format_notes(notes: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"Note ({name}): {sentence}" for name, sentences in notes.items() for sentence in sentences]


def _format_table(report: "DefectReport") -> str:
    from podeval.text.labels import format_moment

    if not report.defects:
        return "no defects are heard"
    rows: list[Sequence[str]] = [("start", "end", "kind", "severity", "what")]
    rows += [
        (format_moment(each.start), format_moment(each.end), each.kind, each.severity, each.detail)
        for each in report.defects
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows
    )
