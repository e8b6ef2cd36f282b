"""Let people review rows in a table that any spreadsheet opens: each row is kept or not, and may be corrected.

A row passes only with `yes` under `keep`. Columns whose name ends with "(edit)" may be changed; `remark` is free. When
the table is written again, a person's entries on a row are kept as long as the row is still what they saw.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podeval.construction.staged_rows import LeftOut, WaitingRow
from podeval.errors import BadInput
from podeval.store.files import write_whole

ID, KEEP, REMARK, SEEN, EDIT = "id", "keep", "remark", "row", " (edit)"
YES = frozenset(("yes", "y", "1", "true", "keep", "x"))
NO = frozenset(("no", "n", "0", "false", "drop"))

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")


@dataclass(frozen=True)
class ReviewRow:
    """A row as a reviewer sees it.

    Args:
        id: id of the row.
        context: columns that help to decide.
        editable: columns that may be corrected.
    """

    id: str
    context: Mapping[str, str]
    editable: Mapping[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> str:
        """A short hash of the row's content: a verdict holds for this content only."""
        content = json.dumps([self.id, dict(self.context), dict(self.editable)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:10]


@dataclass
class ReviewDecisions:
    """People's decisions; `kept` and `refused` hold the editable columns by id, as they are now."""

    kept: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


def lay_out(path: Path, entries: Sequence[ReviewRow]) -> int:
    """Write the table, with earlier decisions about rows that did not change.

    Returns:
        The number of rows that still wait for a decision.

    Raises:
        BadInput: the existing table cannot be read.
    """
    before = {line.get(ID, ""): line for line in _read_lines(path)} if path.is_file() else {}
    context = list(dict.fromkeys(name for entry in entries for name in entry.context))
    editable = list(dict.fromkeys(name for entry in entries for name in entry.editable))
    file = io.StringIO()
    columns = [ID, KEEP, *context, *(name + EDIT for name in editable), REMARK, SEEN]
    writer = csv.DictWriter(file, columns, restval="")
    writer.writeheader()
    open_rows = 0
    for entry in entries:
        line = {ID: entry.id, SEEN: entry.seen, **entry.context}
        line |= {name + EDIT: value for name, value in entry.editable.items()}
        old = before.get(entry.id, {})
        if old.get(SEEN) == entry.seen:
            line |= {name: old[name] for name in (KEEP, REMARK, *(e + EDIT for e in editable)) if name in old}
        open_rows += not line.get(KEEP, "").strip()
        writer.writerow({name: _escape_formula(value) for name, value in line.items()})
    # With a mark at its beginning, without which spreadsheets take UTF-8 for something else.
    write_whole(path, file.getvalue().encode("utf-8-sig"))
    return open_rows


def read_decisions(path: Path, entries: Sequence[ReviewRow], step: str, *, accept_all: bool = False) -> ReviewDecisions:
    """Read people's decisions about these rows.

    Args:
        path: path of the table.
        entries: the rows as they were laid out.
        step: name of the step by which refused rows are left out.
        accept_all: keep rows that nobody decided on.

    Raises:
        BadInput: there is no table, it cannot be read, or a word under `keep` is neither yes nor no.
    """
    if not path.is_file():
        raise BadInput(f"{path} is not there; the step before writes it")
    lines: dict[str, dict[str, str]] = {}
    for number, line in enumerate(_read_lines(path), 2):
        name = line.get(ID, "").strip()
        if name in lines:
            raise BadInput(f"{path}, line {number}: {name} appears twice; keep one of the two")
        lines[name] = line
        word = line.get(KEEP, "").strip().casefold()
        if word and word not in YES | NO:
            raise BadInput(f"{path}, line {number} ({name}): keep is {word!r}; write yes or no, or leave it empty")
    result = ReviewDecisions()
    for entry in entries:
        _decide(result, entry, lines.get(entry.id), step, path, accept_all)
    return result


def _decide(
    result: ReviewDecisions, entry: ReviewRow, line: Mapping[str, str] | None, step: str, path: Path, accept_all: bool
) -> None:
    unchanged = dict(entry.editable)
    stale = line is not None and line.get(SEEN) != entry.seen
    word = "" if line is None or stale else line.get(KEEP, "").strip().casefold()
    remark = "" if line is None else line.get(REMARK, "").strip()
    if word in NO:
        reason = f"a reviewer left it out{': ' + remark if remark else ''}"
        result.left_out.append(LeftOut(id=entry.id, step=step, reason=reason))
        result.refused[entry.id] = {name: (line or {}).get(name + EDIT, value) for name, value in unchanged.items()}
    elif word in YES or (accept_all and line is not None and not stale):
        assert line is not None
        result.kept[entry.id] = {name: line.get(name + EDIT, value) for name, value in unchanged.items()}
    elif accept_all:
        result.kept[entry.id] = unchanged
    elif stale:
        result.waiting.append(WaitingRow(entry.id, f"it changed after {path.name} was written; write the table again"))
    else:
        result.waiting.append(WaitingRow(entry.id, f"nobody wrote yes or no under keep in {path.name}"))


def _read_lines(path: Path) -> list[dict[str, str]]:
    """Read the table's lines, and remove the marks that keep spreadsheets from reading cells as formulas."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not in UTF-8; save it as 'CSV UTF-8'") from None
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = [{k: v for k, v in line.items() if isinstance(k, str) and isinstance(v, str)} for line in reader]
    except csv.Error as error:
        raise BadInput(f"{path} cannot be read as a table ({error}); save it as CSV") from None
    missing = {ID, KEEP, SEEN} - set(reader.fieldnames or ())
    if missing:
        raise BadInput(f"{path} lacks the column {' and '.join(sorted(missing))}; keep all columns that were there")
    return [{name: _unescape_formula(value) for name, value in line.items()} for line in lines]


def _escape_formula(value: str) -> str:
    return f"'{value}" if _FORMULA.match(value) else value


def _unescape_formula(value: str) -> str:
    return value[1:] if _MARKED.match(value) else value
