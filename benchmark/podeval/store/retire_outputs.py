"""Retires outputs that the arena can no longer play: the recording that listeners heard is missing, or was replaced.

Their votes stay. Each retirement is recorded on the trail as made by the rules, not by a person.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.audio.decode import hash_file
from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.operator_settings import note
from podeval.store.tables import ArenaOutput


def retire(session: Session, outputs: Iterable[str], reason: str, now: datetime) -> None:
    """Exclude outputs from new battles. The session must be a writing one."""
    for output in session.scalars(select(ArenaOutput).where(ArenaOutput.id.in_(list(outputs)))):
        if output.active or output.audio:
            note(session, "output retired", f"{output.system} on {output.item}", reason, "rules", now)
            output.active, output.audio = False, ""


def retire_changed(database: Database, places: Collection[Path], reason: str, now: datetime) -> None:
    """Retire the outputs below these folders whose files are missing or changed.

    Args:
        database: the arena's database.
        places: folders of runs.
        reason: recorded with each.
        now: the time.
    """
    folders = tuple(f"{folder.resolve()}/" for folder in places)
    with database.reading(one_state=False) as session:
        outputs = session.execute(
            select(ArenaOutput.id, ArenaOutput.audio, ArenaOutput.sha256).where(ArenaOutput.audio != "")
        ).all()
    gone = [row.id for row in outputs if str(Path(row.audio).resolve()).startswith(folders) and not _is_there(row)]
    if gone:
        database.write(lambda session: retire(session, gone, reason, now))


def _is_there(row: Any) -> bool:
    try:
        return hash_file(Path(row.audio)) == row.sha256 or not row.sha256
    except BadInput:
        return False
