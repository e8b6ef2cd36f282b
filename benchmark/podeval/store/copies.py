"""Keeps a list of operators' copies of submitted content: exports, reports, judges' records, backups.

A command that writes such a copy appends a line to `copies.jsonl` beside the database, or in the user's own cache if
it names no board. A takedown goes through these lists. A copy is made even if it cannot be listed.
"""

import logging
import socket
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from podeval.errors import PodevalError
from podeval.store.files import append_line, find_user_folder, read_lines

FILE = "copies.jsonl"

Kind = Literal["backup", "records", "export", "report", "dialogues", "review"]

_LOG = logging.getLogger("podeval.store")


@dataclass(frozen=True)
class Copy:
    """One copy of submitted content.

    Attributes:
        kind: what made it.
        place: absolute path of a file, or of a folder of records or a backup.
        host: the machine that it was made on.
        made_at: when, UTC, ISO 8601.
        about: the runs that all of it is about, as `benchmark/split/system`; empty if it is about more.
    """

    kind: Kind
    place: str
    host: str
    made_at: str
    about: tuple[str, ...] = ()


def find_list_folder(database: str | Path, runs: Path) -> Path | None:
    """Return the folder of a board's list: beside an SQLite file, otherwise with the runs; None if neither exists."""
    from podeval.store.database import parse_address

    url = parse_address(database)
    file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
    if file is not None and file.is_file():
        return file.parent
    return runs if runs.is_dir() else None


def register(kind: Kind, places: Sequence[Path], folder: Path | None, about: Iterable[str] = ()) -> None:
    """List copies that were made, or will be, each once; errors are logged and not raised.

    Args:
        kind: what makes them.
        places: files, or a folder of records.
        folder: folder of the list; None for this user's own.
        about: see `Copy`.
    """
    try:
        file = (folder or find_user_folder()) / FILE
        keys = {(copy.kind, copy.place, copy.about) for copy in _read_copies(file)}
        runs = tuple(sorted(about))
        for path in places:
            copy = Copy(kind, str(path.absolute()), socket.gethostname(), _now(), runs)
            if (copy.kind, copy.place, copy.about) not in keys:
                append_line(file, asdict(copy))
    except Exception as error:
        _LOG.warning("a takedown will not know of the copy in %s: %s", ", ".join(map(str, places)), error)


def read_copies(folders: Iterable[Path | None]) -> list[Copy]:
    """Read all copies in the lists of some folders and in this user's own list, each once."""
    files = [folder / FILE for folder in folders if folder is not None] + [find_user_folder() / FILE]
    kept: dict[tuple[str, str, tuple[str, ...]], Copy] = {}
    for file in dict.fromkeys(path.resolve() for path in files):
        try:
            for copy in _read_copies(file):
                kept[copy.kind, copy.place, copy.about] = copy
        except (PodevalError, KeyError, TypeError) as error:
            _LOG.warning("some copies of the content taken down are not known: %s", error)
    return list(kept.values())


def read_list(folder: Path | None) -> list[object]:
    """Read the lines of the list in a folder; none if they cannot be read, which is logged."""
    try:
        return [] if folder is None else read_lines(folder / FILE)
    except PodevalError as error:
        _LOG.warning("some copies will not be known to a takedown: %s", error)
        return []


def keep_lines(lines: Iterable[object], folder: Path | None) -> None:
    """Add the lines of another list that are missing from a folder's list; errors are logged."""
    old_lines = read_list(folder)
    try:
        for line in lines:
            if folder is not None and line not in old_lines:
                append_line(folder / FILE, line)
    except PodevalError as error:
        _LOG.warning("some copies will not be known to a takedown: %s", error)


def _read_copies(file: Path) -> list[Copy]:
    return [Copy(**{**line, "about": tuple(line["about"])}) for line in read_lines(file)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
