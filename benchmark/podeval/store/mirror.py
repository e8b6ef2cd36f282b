"""The public log on the Hub: files that are added and never changed, each record in exactly one of them.

A file gets its name and its records before it is sent. A sender that dies, or does not hear the answer, finds the file
there under its name and sends nothing twice. Each commit says which state it follows (`parent_commit`), so that of two
senders one is refused and looks again. At boot, what the database does not have is read back; a database restored from
an old backup thereby also learns what it had sent. (`huggingface_hub.CommitScheduler` does neither: it sends what lies
in a folder, and never reads back.)
"""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import literal, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput, PodevalError
from podeval.store.database import Database
from podeval.store.export import read_lines, write_lines
from podeval.store.records import Record, erasure_records, name_of, standing_records, vote_records
from podeval.store.tables import Erasure, Flag, Mirrored, MirrorFile, Vote
from podeval.store.taking_in import TakenIn, take_in

FOLDER = "log"
MOST_RECORDS = 2_000
"""Of one file."""

_TRIES = 8
_CARD = """---
tags: [podeval, arena]
configs:
- config_name: default
  data_files: log/*.jsonl
---
# Votes of a podeval arena

One JSON record a line: votes, decisions about votes, and pseudonyms whose persons asked to be forgotten. Files are
added and never changed. Leave out the votes of an erased voter; the newest decision about a vote is its standing.
"""


class HubUnreachable(PodevalError):
    """The Hub does not answer; nothing is lost, the next push sends it."""


@dataclass
class Pushed:
    """What a push did."""

    records: int = 0
    files: list[str] = field(default_factory=list)
    others: TakenIn = field(default_factory=TakenIn)
    """What was in the log that this database did not know: of another deployment, or of this one before a restore."""


class Mirror:
    """The public log of a database in one dataset repo.

    Args:
        database: whose votes are published.
        repo: `owner/name`; made where it is not there.
        private: make it private.
        token: to the Hub; the one that is logged in by default.
        wait: seconds before the second attempt, doubled before each further one.
        clock: the time in UTC.
    """

    def __init__(
        self,
        database: Database,
        repo: str,
        *,
        private: bool = False,
        token: str | None = None,
        wait: float = 0.5,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        from huggingface_hub import HfApi

        self._database, self._repo, self._private, self._wait, self._clock = database, repo, private, wait, clock
        self._api = HfApi(token=token)

    def read_back(self) -> TakenIn:
        """Take in every file of the log that this database does not know.

        Raises:
            BadInput: a file holds what is no record, or a vote that differs from the one here.
            HubUnreachable: the Hub does not answer.
        """
        head = self._head()
        if head is None:
            return TakenIn()
        with self._database.reading() as session:
            known = select(MirrorFile.path).where(MirrorFile.repo == self._repo, MirrorFile.commit.is_not(None))
            there = set(session.scalars(known))
        done = TakenIn()
        for path in sorted(self._files(head) - there):
            records = list(read_lines(self._content(path, head), f"{self._repo}/{path}"))
            done = done + self._database.write(partial(self._taken_in, path, records, head))
        return done

    def push(self) -> Pushed:
        """Send what is not in the log yet; first, take in what others sent.

        Raises:
            HubUnreachable: the Hub does not answer; what was planned is sent by the next push.
            BadInput: the Hub refuses; says what to do.
        """
        self._make_sure_of_repo()
        done = Pushed(others=self.read_back())
        while paths := self._database.write(self._planned):
            for path in paths:
                with self._database.reading() as session:
                    records = self._records_of(session, path)
                commit = self._put(path, write_lines(records)) if records else "erased"
                self._database.write(partial(self._arrived, path, commit))
                done.records += len(records)
                done.files += [path] * bool(records)
        return done

    def backlog(self) -> int:
        """How many records are not known to be in the log."""
        with self._database.reading() as session:
            pending = select(Mirrored).join(
                MirrorFile, (MirrorFile.path == Mirrored.path) & (MirrorFile.repo == Mirrored.repo)
            )
            waiting = pending.where(Mirrored.repo == self._repo, MirrorFile.commit.is_(None))
            return len(session.scalars(waiting).all()) + len(self._unmirrored(session, None))

    def _planned(self, session: Session) -> list[str]:
        """Files to send: those planned before; else one with what is in none."""
        pending = select(MirrorFile.path).where(MirrorFile.repo == self._repo, MirrorFile.commit.is_(None))
        if paths := sorted(session.scalars(pending)):
            return paths
        names = self._unmirrored(session, MOST_RECORDS)
        if not names:
            return []
        now = self._clock()
        path = f"{FOLDER}/{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}.jsonl"
        session.add(MirrorFile(path=path, repo=self._repo, planned_at=now))
        session.add_all(Mirrored(repo=self._repo, record=name, path=path) for name in names)
        return [path]

    def _unmirrored(self, session: Session, most: int | None) -> list[str]:
        """Names of records that are in no file, oldest first."""
        sources: list[tuple[Any, Any, Any]] = [
            (literal("vote:") + Vote.id, Vote.number, None),
            (literal("flag:") + Flag.id, Flag.number, Flag.vote.is_not(None) & (Flag.kind != "signal")),
            (literal("erasure:") + Erasure.pseudonym, Erasure.erased_at, None),
        ]
        names: list[str] = []
        for name, order, only in sources:
            missing = ~select(Mirrored.record).where(Mirrored.repo == self._repo, Mirrored.record == name).exists()
            query = select(name).where(missing).order_by(order)
            if only is not None:
                query = query.where(only)
            if most is not None:
                query = query.limit(most - len(names))
            names += session.scalars(query)
        return names

    def _records_of(self, session: Session, path: str) -> list[Record]:
        """What a file holds; without what was erased since it was planned."""
        query = select(Mirrored.record).where(Mirrored.repo == self._repo, Mirrored.path == path)
        ids: dict[str, list[str]] = {"vote": [], "flag": [], "erasure": []}
        for name in session.scalars(query):
            kind, _, key = name.partition(":")
            ids[kind].append(key)
        return [
            *vote_records(session, ids["vote"]),
            *standing_records(session, ids["flag"]),
            *erasure_records(session, ids["erasure"]),
        ]

    def _arrived(self, path: str, commit: str, session: Session) -> None:
        session.get_one(MirrorFile, (path, self._repo)).commit = commit

    def _taken_in(self, path: str, records: list[Record], head: str, session: Session) -> TakenIn:
        """Records of a file that came from elsewhere, or that was sent without the answer being heard."""
        done = take_in(session, records)
        file = session.get(MirrorFile, (path, self._repo))
        if file is None:
            session.add(MirrorFile(path=path, repo=self._repo, planned_at=self._clock(), commit=head))
        else:
            file.commit = head
        for name in {name_of(record) for record in records}:
            there = session.get(Mirrored, (self._repo, name))
            if there is None:
                session.add(Mirrored(repo=self._repo, record=name, path=path))
            elif there.path != path:
                # A backup was restored that had planned it under a name that never arrived.
                there.path = path
        return done

    def _put(self, path: str, text: str) -> str:
        """Add a file in one commit; the commit in which it is."""
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError

        for attempt in range(_TRIES):
            head = self._head()
            try:
                if head is not None and path in self._files(head):
                    return head
                done = self._api.create_commit(
                    self._repo,
                    [CommitOperationAdd(path, text.encode())],
                    commit_message=f"{text.count(chr(10))} records",
                    repo_type="dataset",
                    parent_commit=head,
                )
                return str(done.oid)
            except HfHubHTTPError as error:
                status = error.response.status_code
                if status not in (408, 409, 412, 429) and status < 500:
                    raise BadInput(
                        f"the Hub refused the log of {self._repo} ({error}); check that your token may write there"
                    ) from None
                last: Exception = error
            except HubUnreachable as error:
                last = error
            except _no_answer() as error:
                last = error
            time.sleep(self._wait * 2**attempt * random.uniform(0.5, 1))  # noqa: S311 - spreads senders out
        raise HubUnreachable(f"{path} could not be sent to {self._repo} ({last}); the next push sends it") from last

    def _make_sure_of_repo(self) -> None:
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

        if self._head() is not None:
            return
        try:
            self._api.create_repo(self._repo, repo_type="dataset", private=self._private or None, exist_ok=True)
            self._api.upload_file(
                path_or_fileobj=_CARD.encode(), path_in_repo="README.md", repo_id=self._repo, repo_type="dataset"
            )
        except LocalTokenNotFoundError:
            raise BadInput("the Hub does not know you; run `hf auth login` with a token that may write") from None
        except HfHubHTTPError as error:
            raise BadInput(f"the Hub refused {self._repo} ({error}); check that your token may write there") from None
        except _no_answer() as error:
            raise HubUnreachable(f"the Hub does not answer ({error}); try again later") from error

    def _head(self) -> str | None:
        """The newest commit of the repo; None where there is no repo."""
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            return str(self._api.repo_info(self._repo, repo_type="dataset").sha)
        except RepositoryNotFoundError:
            return None
        except _no_answer() as error:
            raise HubUnreachable(f"the Hub does not answer about {self._repo} ({error}); try again later") from error

    def _files(self, head: str) -> set[str]:
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import EntryNotFoundError

        try:
            found = self._api.list_repo_tree(self._repo, FOLDER, repo_type="dataset", revision=head, recursive=True)
            return {entry.path for entry in found if isinstance(entry, RepoFile) and entry.path.endswith(".jsonl")}
        except EntryNotFoundError:
            return set()
        except _no_answer() as error:
            raise HubUnreachable(f"the files of {self._repo} cannot be listed ({error}); try again later") from error

    def _content(self, path: str, head: str) -> str:

        try:
            file = self._api.hf_hub_download(self._repo, path, repo_type="dataset", revision=head)
            return Path(file).read_text(encoding="utf-8")
        except _no_answer() as error:
            raise HubUnreachable(f"{self._repo}/{path} cannot be read ({error}); try again later") from error


def _no_answer() -> tuple[type[Exception], ...]:
    """What the client raises where a connection fails: its HTTP library's error (httpx or httpx2), or the system's."""
    from huggingface_hub.errors import HfHubHTTPError

    return OSError, *(kind for kind in HfHubHTTPError.__bases__ if issubclass(kind, Exception))
