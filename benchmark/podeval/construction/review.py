"""Let people review rows in a spreadsheet table: people decide whether to keep each row, and can correct it.

A row passes only if `keep` contains `yes`. Columns whose names end in "(edit)" may be changed, and `remark` is
free text. When the table is written again, a person's entries in a row are kept unless the row has changed.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from podeval.construction.workshop import LeftOut, S, Sifted, WaitingRow
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.text.table_files import mark_formulas, unmark_formulas

ID, KEEP, REMARK, SEEN, EDIT = "id", "keep", "remark", "row", " (edit)"
YES = frozenset(("yes", "y", "1", "true", "keep", "x"))
NO = frozenset(("no", "n", "0", "false", "drop"))

T = TypeVar("T")


@dataclass(frozen=True)
class ReviewRow:
    """A row as a reviewer sees it.

    Args:
        id: the id of the row.
        context: columns that help the reviewer decide.
        editable: columns that may be corrected.
    """

    id: str
    context: Mapping[str, str]
    editable: Mapping[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> str:
        """A short hash of the row's content; a verdict is valid only for this content."""
        content = json.dumps([self.id, dict(self.context), dict(self.editable)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:10]


@dataclass
class ReviewDecisions:
    """People's decisions; `kept` and `refused` contain the current values of the editable columns, by row id."""

    kept: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


def lay_out(path: Path, entries: Sequence[ReviewRow]) -> str:
    """Write the table, keeping earlier decisions about rows that did not change.

    Returns:
        The number of rows that still await a decision, and a description of their location.

    Raises:
        BadInput: the existing table cannot be read.
    """
    before = {line[ID]: line for line in read_table(path, {ID, KEEP, SEEN})} if path.is_file() else {}
    context = list(dict.fromkeys(name for entry in entries for name in entry.context))
    editable = list(dict.fromkeys(name + EDIT for entry in entries for name in entry.editable))
    lines = []
    for entry in entries:
        line = {ID: entry.id, SEEN: entry.seen, **entry.context}
        line |= {name + EDIT: value for name, value in entry.editable.items()}
        old = before.get(entry.id, {})
        if old.get(SEEN) == entry.seen:
            line |= {name: old[name] for name in (KEEP, REMARK, *editable) if name in old}
        lines.append(line)
    write_table(path, [ID, KEEP, *context, *editable, REMARK, SEEN], lines)
    undecided = sum(not line.get(KEEP, "").strip() for line in lines)
    return f"{undecided} of {len(lines)} rows await a decision in {path}"


def read_decisions(path: Path, entries: Sequence[ReviewRow], step: str, *, accept_all: bool = False) -> ReviewDecisions:
    """Read people's decisions about the given rows.

    Args:
        path: the path of the table.
        entries: the rows in the table.
        step: the name of the step that removes refused rows.
        accept_all: whether to keep rows without a decision.

    Raises:
        BadInput: the table does not exist or cannot be read, or a value of `keep` is neither yes nor no.
    """
    if not path.is_file():
        raise BadInput(f"{path} is missing; run the previous step first, which writes this file")
    lines: dict[str, dict[str, str]] = {}
    for number, line in enumerate(read_table(path, {ID, KEEP, SEEN}), 2):
        name = line[ID].strip()
        if name in lines:
            raise BadInput(f"{path}, line {number}: {name} appears twice; keep one of the two")
        lines[name] = line
        word = line[KEEP].strip().casefold()
        if word and word not in YES | NO:
            raise BadInput(
                f"{path}, line {number} ({name}): the column `keep` contains {word!r}; write yes or no, "
                f"or leave it empty"
            )
    result = ReviewDecisions()
    for entry in entries:
        _decide(result, entry, lines.get(entry.id, {}), step, path, accept_all)
    return result


def apply_review(
    path: Path,
    rows: Sequence[T],
    make_entry: Callable[[T], ReviewRow],
    revise: Callable[[T, dict[str, str]], S],
    step: str,
    accept_all: bool,
) -> Sifted[S]:
    """Return the rows that people kept, with their corrections; a row with unusable corrections waits.

    Args:
        path: the path of the table.
        rows: the original rows.
        make_entry: function that makes the row of the table.
        revise: function that applies the corrections by column; the function raises `BadInput` if the corrections
            cannot be used.
        step: the name of the step that removes refused rows.
        accept_all: whether to keep rows without a decision.

    Raises:
        BadInput: the table cannot be used.
    """
    entries = [make_entry(row) for row in rows]
    review = read_decisions(path, entries, step, accept_all=accept_all)
    result: Sifted[S] = Sifted(left_out=review.left_out, waiting=review.waiting)
    for entry, row in zip(entries, rows, strict=True):
        try:
            if entry.id in review.kept:
                result.kept.append(revise(row, review.kept[entry.id]))
        except BadInput as refusal:
            result.waiting.append(WaitingRow(entry.id, f"its row in {path.name} cannot be used: {refusal}"))
    return result


def _decide(
    result: ReviewDecisions, entry: ReviewRow, line: Mapping[str, str], step: str, path: Path, accept_all: bool
) -> None:
    stale = bool(line) and line[SEEN] != entry.seen
    word = "" if stale else line.get(KEEP, "").strip().casefold()
    edited = {name: line.get(name + EDIT, value) for name, value in entry.editable.items()}
    if word in NO:
        remark = line.get(REMARK, "").strip()
        reason = f"refused by a reviewer{': ' + remark if remark else ''}"
        result.left_out.append(LeftOut(id=entry.id, step=step, reason=reason))
        result.refused[entry.id] = edited
    elif word in YES or accept_all:
        result.kept[entry.id] = dict(entry.editable) if stale else edited
    else:
        changed = f"the row changed after {path.name} was written; write the table again"
        unwritten = f"the column `keep` of {path.name} contains neither yes nor no"
        result.waiting.append(WaitingRow(entry.id, changed if stale else unwritten))


def write_table(path: Path, columns: Sequence[str], lines: Iterable[Mapping[str, str]]) -> None:
    """Write lines as CSV in a form that prevents spreadsheets from reading cells as formulas."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, restval="")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: mark_formulas(value) for name, value in line.items()})
    # The file begins with a byte order mark, without which spreadsheets do not recognise UTF-8.
    write_whole(path, file.getvalue().encode("utf-8-sig"))


def read_table(path: Path, columns: set[str]) -> list[dict[str, str]]:
    """Read the lines of a table, without the characters that prevent spreadsheets from reading cells as formulas.

    Raises:
        BadInput: the table cannot be read, or lacks one of the columns.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not in UTF-8; save it as 'CSV UTF-8'") from None
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="", strict=True)
        lines = list(reader)
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read as a table ({error}); save it as CSV") from None
    if missing := columns - set(reader.fieldnames or ()):
        raise BadInput(f"{path} lacks the column {' and '.join(sorted(missing))}; keep all original columns")
    return [{name: unmark_formulas(v) for name, v in line.items() if isinstance(v, str)} for line in lines]
