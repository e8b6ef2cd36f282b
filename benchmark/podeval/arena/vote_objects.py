"""Keep a second copy of every vote in a bucket: one object per vote, written before the vote is acknowledged.

A Space loses its disk at a restart. SQLite is not safe on a mounted bucket, but files that are written once and never
changed are safe. Each voter has a folder of objects, including people's decisions on the voter's votes, so a person is
erased by deleting the folder; erased people are listed under `erased`. An incomplete object is skipped, because its
vote was never acknowledged.
"""

import base64
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.import_votes import TakenIn, take_in
from podeval.arena.vote_records import (
    ErasureRecord,
    StandingRecord,
    VoteRecord,
    read_erasure_records,
    read_record,
    read_standing_records,
    read_vote_records,
    to_line,
)
from podeval.errors import BadInput
from podeval.files import explain_write_errors, sync_folder
from podeval.store.database import Database
from podeval.store.tables import Erasure, Flag, Pseudonym, Vote

Kind = TypeVar("Kind", VoteRecord, StandingRecord, ErasureRecord)


class VoteObjects:
    """The objects in one folder, such as a mounted bucket; the folder is created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, session: Session, vote: str) -> None:
        """Write a recorded vote and the key of its voter to the bucket, so that both survive a restart."""
        (record,) = read_vote_records(session, [vote], private=True)
        folder = self._of(record.voter)
        person = session.scalar(select(Pseudonym).where(Pseudonym.pseudonym == record.voter))
        if person is not None:
            key = base64.b64encode(person.key).decode()
            content = {"identity": person.identity, "key": key, "made_at": person.made_at.isoformat()}
            self._once(folder / "person.json", json.dumps(content, ensure_ascii=False))
        self._once(folder / f"{vote}.json", to_line(record))

    def write_standings(self, session: Session, votes: Iterable[str]) -> None:
        """Write people's decisions next to the votes that they concern; the next sweep repeats the rules' decisions."""
        rows = session.execute(select(Vote.id, Vote.voter).where(Vote.id.in_(list(votes))))
        voters = {vote: voter for vote, voter in rows}
        decided = select(Flag.id).where(Flag.vote.in_(list(voters)))
        for record in read_standing_records(session, session.scalars(decided)):
            if record.by == "a person":
                self._once(self._of(voters[record.vote]) / f"standing-{record.id}.json", to_line(record))

    def erase(self, pseudonym: str, at: datetime) -> None:
        """Delete a voter's contributions and record the erasure, so that the contributions are never restored from a
        log.
        """
        record = ErasureRecord.model_validate({"voter": pseudonym, "at": at})
        self._of(pseudonym)
        self._once(self.folder / "erased" / f"{pseudonym}.json", to_line(record))
        with explain_write_errors(self.folder):
            shutil.rmtree(self._of(pseudonym), ignore_errors=True)
            if self._of(pseudonym).exists():
                raise BadInput(f"cannot delete the folder {self._of(pseudonym)}; delete it by hand")

    def read_back(self, database: Database) -> TakenIn:
        """Import every vote that the database lacks, and delete the objects of votes that were erased in the database.

        The bucket is read before anything is written, so other writers do not wait for a slow mount.
        """
        erased = {record.voter: record for record in self._read("erased/*.json", ErasureRecord)}
        erased |= {record.voter: record for record in database.read(lambda s: list(read_erasure_records(s)))}
        for erasure in erased.values():
            self.erase(erasure.voter, erasure.at)
        # Read each voter's folder and the data stored about the person.
        people = {file.parent.name: _whole(file) for file in sorted(self.folder.glob("voters/*/person.json"))}
        votes = sorted(self._read("voters/*/*.json", VoteRecord), key=lambda each: (each.number, each.recorded_at))
        standings = list(self._read("voters/*/standing-*.json", StandingRecord))

        def work(session: Session) -> TakenIn:
            for pseudonym, person in people.items():
                # A voter may have been erased while the bucket was read.
                if person is None or session.get(Erasure, pseudonym) is not None:
                    continue
                if session.get(Pseudonym, person["identity"]) is None:
                    key, made_at = base64.b64decode(person["key"]), datetime.fromisoformat(person["made_at"])
                    session.add(Pseudonym(identity=person["identity"], key=key, pseudonym=pseudonym, made_at=made_at))
            session.flush()
            return take_in(session, [*erased.values(), *votes, *standings])

        return database.write(work)

    def _read(self, pattern: str, kind: type[Kind]) -> Iterator[Kind]:
        for file in sorted(self.folder.glob(pattern)):
            if file.name != "person.json" and (data := _whole(file)) is not None:
                record = read_record(data, str(file))
                if isinstance(record, kind):
                    yield record

    def _of(self, pseudonym: str) -> Path:
        if not pseudonym.isalnum():
            raise BadInput(f"{pseudonym!r} is not a valid pseudonym of a voter")
        return self.folder / "voters" / pseudonym

    def _once(self, file: Path, line: str) -> None:
        """Write an object unless a complete one exists; no file is renamed, because a bucket may not support that."""
        if file.exists() and _whole(file) is not None:
            return
        with explain_write_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as stream:
                stream.write(f"{line}\n".encode())
                stream.flush()
                os.fsync(stream.fileno())
            sync_folder(file.parent)


def _whole(file: Path) -> Any:
    """Return the content of an object; None if the object is incomplete or its voter was just erased."""
    try:
        text = file.read_bytes()
        return json.loads(text) if text.endswith(b"\n") else None
    except (FileNotFoundError, ValueError):
        return None
