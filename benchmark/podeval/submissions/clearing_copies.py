"""Removal of taken-down content from copies: files that podeval's commands wrote elsewhere, and texts in the tables.

Each copy is a separate step: if one fails, a message says what is left to do, and the others go on.
"""

import html
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy import text as sql
from sqlalchemy.orm import Session

from podeval.audio.decode import hash_file
from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.errors import PodevalError
from podeval.judges.exchange_records import Records
from podeval.store.copies import Copy
from podeval.store.database import Database
from podeval.store.files import write_whole
from podeval.store.tables import ArenaOutput, ListeningAnswer, ListeningTest, Vote
from podeval.submissions.spoken_content import SpokenContent
from podeval.submissions.taken_down import TakenDown, write_beside

EMPTIED = "[taken down]"
"""Text that replaces a deleted text in a listening test."""

SILENT = "/taken-down"
"""Path that replaces that of a deleted recording in a listening test."""

_SHOWN = ("text", "prompt", "criteria", "instructions", "aspect", "consent")
"""Fields of a design with visible text; ids, which answers refer to, stay."""

Words = Callable[[str], str]

_TAG = re.compile(r"<[^<>]*>")


def clear_copies(
    copies: Iterable[Copy], content: SpokenContent, takedown: TakenDown, places: Collection[str]
) -> Iterator[str]:
    """Clear every copy on this machine; yield a message for each that held content or needs a person's attention.

    Args:
        copies: the listed copies.
        content: the taken-down content.
        takedown: the decision.
        places: present or former places of its runs, as `benchmark/split/system`.
    """
    for copy in copies:
        path = Path(copy.place)
        try:
            if not path.exists():
                yield (
                    f"{copy.place} ({copy.kind}, made on {copy.host} at {copy.made_at}) is not there: where it was "
                    "moved, or lies on that machine, delete it there"
                )
            elif copy.kind == "backup":
                write_beside(path, takedown)
                yield (
                    f"{path} is a backup and may hold it: `podeval restore` leaves it out, as {path}.taken-down.jsonl "
                    "says; keep that file beside it, or delete the backup and make another one"
                )
            elif cleared := _clear(copy, path, content, places):
                yield cleared
        except Exception as error:
            yield f"{path} ({copy.kind}) could not be cleared ({error}): look into it, or delete it"


def clear_file(path: Path, content: SpokenContent) -> str:
    """Empty the texts in a file that quote the content, or delete a file that has no other texts to keep.

    Returns:
        What was done, in words; empty where the file holds nothing of the content.
    """
    kind = path.suffix.lower()
    if kind[1:] in AUDIO_ENDINGS:
        return _delete(path) if content.is_heard_in(path) else ""

    def words(text: str) -> str:
        return "" if content.is_quoted_in(text) else text

    if kind == ".parquet":
        return _write_emptied(path, _replace_words_in_parquet(path, words))
    text = path.read_bytes().decode("utf-8", "replace")
    match kind:
        case ".jsonl":
            changed = "".join(_replace_words_in_line(line, words) for line in text.splitlines(True))
        case ".json":
            data = json.loads(text)
            cleared = _replace_words(data, words)
            changed = text if cleared == data else json.dumps(cleared, ensure_ascii=False, indent=1) + "\n"
        case _:
            return _delete(path) if content.is_quoted_in(html.unescape(_TAG.sub("", text))) else ""
    return _write_emptied(path, changed.encode() if changed != text else None)


def empty_quotes(database: Database, content: SpokenContent, board: Path) -> Iterator[str]:
    """Empty texts of listening tests, votes and answers that quote the content; yield messages on what is left.

    Answers and figures stay, and with them the digest of the design under which they were given.
    """
    with database.reading() as session:
        designs = list(session.scalars(select(ListeningTest.design)))
    recordings = {board / name for design in designs for name in _recordings_in(design)}
    same = {path for path in recordings if _holds_recording(path, content)}
    played: list[tuple[Path, str]] = []

    def work(session: Session) -> None:
        played.clear()
        if database.is_sqlite:
            session.execute(sql("PRAGMA secure_delete = ON"))
        for test in session.scalars(select(ListeningTest)):
            design = _clear_design(test.design, content, board, same)
            if design != test.design:
                played.extend((board / name, test.id) for name in _recordings_in(test.design) if board / name in same)
                test.design = design
        for vote in session.scalars(select(Vote).where(Vote.comment != "")):
            vote.comment = "" if content.is_quoted_in(vote.comment) else vote.comment
        for answer in session.scalars(select(ListeningAnswer).where(ListeningAnswer.reason != "")):
            answer.reason = "" if content.is_quoted_in(answer.reason) else answer.reason

    if content.texts or content.marks:
        database.write(work)
        if database.is_sqlite:
            # What was overwritten lies in the log until it is written into the file; who reads just now keeps it there.
            with database.engine.connect() as connection:
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.exec_driver_sql("BEGIN")
    yield from (
        _describe_copy_left(path, f"the test {test}")
        for path, test in dict.fromkeys(played)
        if not _is_inside(path, board)
    )


def list_played_in_battles(database: Database, content: SpokenContent, board: Path) -> list[str]:
    """Describe the arena's recordings of the same content that lie outside the folder of runs."""
    query = select(ArenaOutput.audio).where(ArenaOutput.audio != "", ArenaOutput.sha256.in_(content.contents))
    with database.reading() as session:
        paths = [Path(audio) for audio in session.scalars(query)]
    return [_describe_copy_left(path, "the arena") for path in paths if not _is_inside(path, board)]


def delete_other_recordings(folder: Path, content: SpokenContent) -> None:
    """Delete recordings below a folder that hold the content and are no run's output; add their digests to the content.

    Runs' outputs are deleted with their runs.
    """
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "outputs"]
        for path in (Path(root) / name for name in names):
            if path.suffix[1:].lower() in AUDIO_ENDINGS and _holds_recording(path, content):
                content.contents.add(hash_file(path))
                path.unlink()


def _is_inside(path: Path, board: Path) -> bool:
    return path.resolve().is_relative_to(board.resolve())


def _describe_copy_left(path: Path, where: str) -> str:
    return f"{path}, which {where} played, is a copy that podeval did not make: delete it"


def _clear(copy: Copy, path: Path, content: SpokenContent, places: Collection[str]) -> str:
    if copy.kind == "records":
        removed = Records(path).remove(content.is_shown_in)
        return f"{path}: {removed} exchanges with a judge are removed" if removed else ""
    if copy.about and not set(copy.about).isdisjoint(places):
        return _delete(path)
    return clear_file(path, content)


def _clear_design(
    design: dict[str, Any], content: SpokenContent, board: Path, same: Collection[Path]
) -> dict[str, Any]:
    def change(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: change(part, key) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [change(part, name) for part in value]
        if not isinstance(value, str):
            return value
        if name == "audio":
            return SILENT if board / value in same else value
        return EMPTIED if name in _SHOWN and content.is_quoted_in(value) else value

    return {key: change(value, key) for key, value in design.items()}


def _recordings_in(value: Any, name: str = "") -> Iterator[str]:
    """List every recording that a design names."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _recordings_in(part, key)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _recordings_in(part, name)
    elif isinstance(value, str) and name == "audio":
        yield value


def _holds_recording(path: Path, content: SpokenContent) -> bool:
    try:
        return content.is_heard_in(path)
    except (PodevalError, OSError):
        return False


def _replace_words(value: Any, words: Words) -> Any:
    if isinstance(value, str):
        return words(value)
    if isinstance(value, dict):
        return {key: _replace_words(part, words) for key, part in value.items()}
    return [_replace_words(part, words) for part in value] if isinstance(value, list) else value


def _replace_words_in_line(line: str, words: Words) -> str:
    """Return a line of JSON with replaced texts; a line that is not JSON is dropped if it quotes."""
    try:
        data = json.loads(line)
    except ValueError:
        return words(line)
    changed = _replace_words(data, words)
    return line if changed == data else json.dumps(changed, ensure_ascii=False) + "\n"


def _replace_words_in_parquet(path: Path, words: Words) -> bytes | None:
    """Return a table with replaced texts; None if nothing changes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, some = pq.read_table(path), False
    for number, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            values = table.column(number).to_pylist()
            kept = [words(value) if value else value for value in values]
            if kept != values:
                table, some = table.set_column(number, column, pa.array(kept, column.type)), True
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue() if some else None


def _write_emptied(path: Path, data: bytes | None) -> str:
    if data is None:
        return ""
    write_whole(path, data)
    return f"{path}: the words are emptied"


def _delete(path: Path) -> str:
    path.unlink()
    return f"{path} is deleted"
