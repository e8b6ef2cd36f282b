"""Keep the public log on the Hub; files are added but never changed, and each record is in exactly one file.

A file's name and records are fixed before the file is sent. After a crash or a missing response, the sender finds the
file on the Hub by its name and does not send it again (`podeval.hub.commits`). At start-up, records that the database
lacks are imported from the log; this also recovers the list of sent records if the database was restored from an old
backup. `huggingface_hub.CommitScheduler` is not used, because it sends the content of a folder and never reads it back.
"""

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import literal, select, true
from sqlalchemy.orm import Session

from podeval.arena.import_votes import TakenIn, take_in
from podeval.arena.vote_records import (
    Record,
    name_of,
    read_erasure_records,
    read_lines,
    read_standing_records,
    read_vote_records,
    write_lines,
)
from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly, Conflict
from podeval.store.database import Database
from podeval.store.tables import Erasure, Flag, Mirrored, MirrorFile, Vote

FOLDER = "log"
MOST_RECORDS = 2_000
"""Maximum number of records in one file."""

_README = "README.md"
_CARD = """---
tags: [podeval, arena]
configs:
- config_name: default
  data_files: log/*.jsonl
---
# Votes of a podeval arena

One JSON record per line: votes, decisions about votes, and pseudonyms of people who asked to be forgotten. Files are
added and never changed. Leave out the votes of an erased voter; the newest decision about a vote applies.
"""


@dataclass
class Pushed:
    """The result of a push."""

    records: int = 0
    files: list[str] = field(default_factory=list)
    others: TakenIn = field(default_factory=TakenIn)
    """Records in the log that this database lacked: from another deployment, or from this one before a restore."""


class PublicLog:
    """A database's public log in a dataset repo.

    Args:
        database: database whose votes are published.
        repo: the repo as `owner/name`; it is created if it does not exist.
        private: whether a new repo is private.
        token: token for the Hub; by default the logged-in user's token.
        clock: function that returns the current time in UTC.
    """

    def __init__(
        self,
        database: Database,
        repo: str,
        *,
        private: bool = False,
        token: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        from huggingface_hub import HfApi

        self._database, self._repo, self._clock = database, repo, clock
        self._log = AppendOnly(repo, api=HfApi(token=token), private=private)

    def read_back(self) -> TakenIn:
        """Import every file of the log that this database lacks.

        Raises:
            BadInput: a file contains an invalid record, or a vote that differs from the local vote.
            HubUnavailable: the Hub does not respond.
        """
        return self._read_back(*self._log.files())

    def push(self) -> Pushed:
        """Import other databases' records, then send the local records that are not in the log yet.

        Raises:
            HubUnavailable: the Hub does not respond; the next push sends the planned files.
            BadInput: the Hub refuses the push; the message gives the remedy.
        """
        head, files = self._log.files()
        if _README not in files:
            self._log.add({_README: _CARD.encode()}, "Describe this log")
        done = Pushed(others=self._read_back(head, files))
        while paths := self._database.write(self._plan):
            for path in paths:
                with self._database.reading() as session:
                    records = self._records_of(session, path)
                commit = self._send(path, records) if records else "erased"
                self._database.write(partial(self._note_arrival, path, commit))
                done.records += len(records)
                done.files += [path] * bool(records)
        return done

    def _read_back(self, head: str, files: set[str]) -> TakenIn:
        with self._database.reading() as session:
            read_before = select(MirrorFile.path).where(MirrorFile.repo == self._repo, MirrorFile.commit.is_not(None))
            new = files.difference(session.scalars(read_before))
        done = TakenIn()
        for path in sorted(new):
            if path.startswith(f"{FOLDER}/") and path.endswith(".jsonl"):
                try:
                    text = self._log.read(path, head).decode()
                except UnicodeDecodeError as error:
                    raise BadInput(
                        f"{self._repo}/{path} is damaged ({error}); remove this file from the repo"
                    ) from None
                records = list(read_lines(text, f"{self._repo}/{path}"))
                done = done + self._database.write(partial(self._take_in, path, records, head))
        return done

    def _send(self, path: str, records: list[Record]) -> str:
        """Add a file to the repo, and return a commit that contains it."""
        added = None
        # A conflict means that another process on this database sent the file first, and that a voter has been erased
        # since.
        with contextlib.suppress(Conflict):
            added = self._log.add({path: write_lines(records).encode()}, f"{len(records)} records")
        return added or self._log.files()[0]

    def _plan(self, session: Session) -> list[str]:
        """List the files to send: the planned files or, if there are none, a new file with the records that no file
        contains.
        """
        pending = select(MirrorFile.path).where(MirrorFile.repo == self._repo, MirrorFile.commit.is_(None))
        if paths := sorted(session.scalars(pending)):
            return paths
        names = self._unmirrored(session)
        if not names:
            return []
        now = self._clock()
        path = f"{FOLDER}/{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}.jsonl"
        session.add(MirrorFile(path=path, repo=self._repo, planned_at=now))
        session.add_all(Mirrored(repo=self._repo, record=name, path=path) for name in names)
        return [path]

    def _unmirrored(self, session: Session) -> list[str]:
        """Return the names of records that no file contains, oldest first, as many as fit into one file."""
        is_decision = Flag.vote.is_not(None) & (Flag.kind != "signal")
        sources: tuple[tuple[Any, Any, Any], ...] = (
            (literal("vote:") + Vote.id, Vote.number, true()),
            (literal("flag:") + Flag.id, Flag.number, is_decision),
            (literal("erasure:") + Erasure.pseudonym, Erasure.erased_at, true()),
        )
        names: list[str] = []
        for name, order, only in sources:
            missing = ~select(Mirrored.record).where(Mirrored.repo == self._repo, Mirrored.record == name).exists()
            query = select(name).where(missing, only).order_by(order)
            names += session.scalars(query.limit(MOST_RECORDS - len(names)))
        return names

    def _records_of(self, session: Session, path: str) -> list[Record]:
        """Return the records of a file, except records erased since the file was planned."""
        query = select(Mirrored.record).where(Mirrored.repo == self._repo, Mirrored.path == path)
        ids: dict[str, list[str]] = {"vote": [], "flag": [], "erasure": []}
        for name in session.scalars(query):
            kind, _, key = name.partition(":")
            ids[kind].append(key)
        return [
            *read_vote_records(session, ids["vote"]),
            *read_standing_records(session, ids["flag"]),
            *read_erasure_records(session, ids["erasure"]),
        ]

    def _note_arrival(self, path: str, commit: str, session: Session) -> None:
        file = session.get(MirrorFile, (path, self._repo))
        file = file or MirrorFile(path=path, repo=self._repo, planned_at=self._clock())
        file.commit = commit
        session.add(file)

    def _take_in(self, path: str, records: list[Record], head: str, session: Session) -> TakenIn:
        """Import the records of a file from another deployment, or of a file whose upload was never confirmed."""
        done = take_in(session, records)
        self._note_arrival(path, head, session)
        # A restored backup may have planned a record under a file name that never arrived; the file that did arrive
        # contains the record.
        for name in {name_of(record) for record in records}:
            session.merge(Mirrored(repo=self._repo, record=name, path=path))
        return done
