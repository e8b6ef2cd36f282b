"""`podeval score --defects`: what went wrong in a recording, and when."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.metrics.defects import DefectReport


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
    """Print the defects of each recording with their times; returns the exit code.

    Args:
        files: the recordings.
        texts: the words: none, one for all recordings, or one for each.
        references: the reference voices, as SPEAKER=FILE.
        labels: file to write with the defects of the one recording.
        profile: the profile of the models.
        music: `asked` where music is no defect, else `unasked`.
        as_json: whether one JSON object per file is printed.
    """
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
                print(json.dumps({"file": file, "error": str(refusal)}, ensure_ascii=False), flush=True)
            continue
        worst = max(worst, int(bool(report.unscored)))
        if labels:
            _write_labels(report, labels)
        if as_json:
            rows = [defect.to_json() for defect in report.defects]
            unscored = {name: reason.to_json() for name, reason in report.unscored.items()}
            record = {"file": file, "defects": rows, "unscored": unscored, "notes": notes}
            print(json.dumps(record, ensure_ascii=False), flush=True)
            continue
        print("\n".join([*([f"{file}:"] if len(files) > 1 else []), _format_table(report), *_format_notes(notes)]))
        for name, unscored_metric in report.unscored.items():
            print(f"podeval: {name} could not run: {unscored_metric.reason}", file=sys.stderr)
    return worst


def _find(
    file: Path, text: str, references: Sequence[str], profile: str, music: str
) -> "tuple[DefectReport, dict[str, list[str]]]":
    """Find the defects of a recording, and what is noted of the file and the text."""
    from podeval.cli.progress_bar import show_progress
    from podeval.measuring.compute import collect_notes
    from podeval.measuring.inputs import MetricInputs, read_voices
    from podeval.metrics.defects import find_defects

    item = MetricInputs({"recording": file, **({"script": Path(text)} if text else {})}, profile=profile)
    inputs = item.read() | read_voices(list(references), {"profile": profile})
    notes = collect_notes(item, inputs)
    with show_progress(file.name):
        return find_defects(inputs, {"integrity": {"music": music}}), notes


def _write_labels(report: "DefectReport", labels: Path) -> None:
    from podeval.measuring.export import write_labels

    write_labels([(one.start, one.end, f"{one.kind}: {one.detail}") for one in report.defects], labels)


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
