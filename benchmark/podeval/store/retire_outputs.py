"""Retires outputs that the arena can no longer play: the recording that listeners heard is gone, or was replaced.

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

RETIRED = "output retired"
"""The action recorded on the trail."""

_RULES = "rules"


def retire(session: Session, outputs: Iterable[str], reason: str, now: datetime) -> int:
    """Exclude outputs from new battles; return how many were playable until now. The session must be a writing one."""
    retired = 0
    for output in session.scalars(select(ArenaOutput).where(ArenaOutput.id.in_(list(outputs)))):
        if output.active or output.audio:
            note(session, RETIRED, f"{output.system} on {output.item}", reason, _RULES, now)
            output.active, output.audio = False, ""
            retired += 1
    return retired


def retire_changed(database: Database, places: Collection[Path], reason: str, now: datetime) -> int:
    """Retire the outputs below these folders whose files are missing or changed; return how many.

    Args:
        database: the arena's database.
        places: folders of runs.
        reason: recorded with each.
        now: the time.
    """
    folders = tuple(f"{folder.resolve()}/" for folder in places)
    if not folders:
        return 0
    with database.reading(one_state=False) as session:
        outputs = session.execute(
            select(ArenaOutput.id, ArenaOutput.audio, ArenaOutput.sha256).where(ArenaOutput.audio != "")
        ).all()
    gone = [row.id for row in outputs if str(Path(row.audio).resolve()).startswith(folders) and not _is_there(row)]
    return database.write(lambda session: retire(session, gone, reason, now)) if gone else 0


def _is_there(row: Any) -> bool:
    try:
        return hash_file(Path(row.audio)) == row.sha256 or not row.sha256
    except BadInput:
        return False
