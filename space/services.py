"""What the site serves from: the folder of runs, the database, and the services over it."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from job_worker import Evaluation

from podeval.arena import Arena, ArenaSettings
from podeval.arena.moderation import ArenaModeration
from podeval.arena.service import loses_its_disk
from podeval.arena.vote_objects import VoteObjects
from podeval.board.build import build
from podeval.errors import BadInput, CodedSentence, StoreUnusable
from podeval.listening import Listening
from podeval.operations.moderation import BoardModeration
from podeval.store import operator_settings
from podeval.store.database import Database, find_damage
from podeval.store.secret import Secret
from podeval.submissions.gate import Gate
from podeval.submissions.moderation import SubmissionModeration
from podeval.submissions.queue import Queue
from podeval.submissions.service import SubmissionService
from podeval.submissions.uploads import Uploads

REPORT_SECONDS = 3600.0
MOST_BYTES, MOST_REPORTS = 8 * 2**20, 20


class ScoreReports:
    """What visitors measured, in memory alone, for an hour, under names that nobody guesses; the oldest goes first.

    Args:
        clock: gives seconds; time.monotonic outside of tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[str, tuple[bytes, float]] = {}
        self._lock = threading.Lock()

    def keep(self, report: bytes) -> str:
        """Keep a report, and return its name; empty where it is too large to be kept."""
        if not report or len(report) > MOST_BYTES:
            return ""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._reports[name] = (report, self._clock() + REPORT_SECONDS)
            while len(self._reports) > MOST_REPORTS:
                del self._reports[next(iter(self._reports))]
        return name

    def read(self, name: str) -> bytes | None:
        """Return a report; None where there is none of this name any more."""
        with self._lock:
            report, expiry = self._reports.get(name, (b"", 0.0))
            if expiry > self._clock():
                return report
            self._reports.pop(name, None)
            return None


Clock = Callable[[], datetime]

_LOG = logging.getLogger("podeval.site")

NOWHERE = CodedSentence(
    "visitors cannot be identified: this board is reachable from other machines and has no sign-in. Its operator sets "
    "OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET (docs/operating.md), or serves it on 127.0.0.1",
    code="no-sign-in",
)


ONLY_VOTES = CodedSentence(
    "only votes are taken here, because this Space would lose everything else at its next restart; its owner can set "
    "DATABASE_URL",
    code="only-votes",
)


@dataclass(frozen=True)
class Decisions:
    """What operators can decide, by what it is about; a listener's session is decided on by `Listening.count_session`.

    Attributes:
        board: what is frozen; and the trail of all decisions.
        arena: votes, dimensions, systems and the goal.
        submissions: in the queue and on the board.
    """

    board: BoardModeration
    arena: ArenaModeration
    submissions: SubmissionModeration

    @classmethod
    def assemble(
        cls,
        arena: Arena,
        queue: Queue,
        runs: Path,
        rebuild: Callable[[Path], None],
        clock: Clock = lambda: datetime.now(UTC),
    ) -> Decisions:
        """Put together what can be decided about an arena and the submissions of the same database."""
        return cls(
            BoardModeration(arena.database, arena.changed, clock),
            ArenaModeration(arena, clock),
            SubmissionModeration(queue, runs, rebuild, arena.changed, clock),
        )


@dataclass(frozen=True)
class Services:
    """Everything the pages call.

    Attributes:
        runs: the folder that the board reads.
        database: judgements and submissions.
        arena: battles and votes.
        listening: listening tests.
        closed: why nothing is taken from anybody; None where things are.
        only_votes: why nothing but votes is taken; None where the rest is, too.
        evaluation: who works on submissions.
        score_reports: of what visitors measured.
        desk: takes submissions in; its queue is theirs.
        decisions: what operators can decide.
    """

    runs: Path
    database: Database
    arena: Arena
    listening: Listening
    closed: str | None = None
    desk: SubmissionService | None = None
    decisions: Decisions | None = None
    only_votes: str | None = None
    evaluation: Evaluation | None = None
    score_reports: ScoreReports = field(default_factory=ScoreReports)

    def frozen(self) -> dict[str, str]:
        """What operators take none of at the moment (`votes`, `submissions`), with their sentence on why."""
        with self.database.reading(one_state=False) as session:
            return operator_settings.read_frozen(session)


def open_desk(database: Database, runs: Path, closed: str | None = None) -> SubmissionService:
    """Takes submissions of strangers in: outputs come from the Hub, which is asked without anybody's token, or from
    what was uploaded here.
    """
    from huggingface_hub import HfApi

    gate = Gate(api=HfApi(token=False), local=False, uploads=Uploads(runs).folder)
    return SubmissionService(Queue(database), gate, closed or "", runs)


def _bucket(database: Database) -> VoteObjects | None:
    """The second place of every vote, if there is one: what the database lost is taken in from it."""
    folder = os.environ.get("PODEVAL_BUCKET")
    if not folder:
        return None
    objects = VoteObjects(Path(folder))
    back = objects.read_back(database)
    if back.votes:
        _LOG.warning("%d votes missing from the database were imported from %s", back.votes, folder)
    return objects


def open_services(runs: Path, database: str | None = None, *, closed: str | None = None) -> Services:
    """The services over one database.

    Args:
        runs: the folder of runs.
        database: a file of SQLite or an address; `DATABASE_URL`, else `podeval.db` in the folder of runs.
        closed: why nothing is taken.

    Raises:
        BadInput: the address cannot be understood, or the service's secret is not set.
        SecretLost: the people in the database are known by another secret.
        StoreUnusable: the database cannot be opened, or is damaged.
    """
    runs.mkdir(parents=True, exist_ok=True)
    opened = Database(database or os.environ.get("DATABASE_URL") or runs / "podeval.db")
    if (wrong := find_damage(opened)) is not None:
        opened.close()
        raise StoreUnusable(
            f"the database {opened.name} is damaged ({wrong}); restore the last backup with `podeval restore`, then "
            "read back the public log"
        )
    objects = _bucket(opened)
    try:
        # Before anybody is served: with another secret all of them would be new voters.
        Secret.of(opened)
    except BadInput:
        opened.close()
        raise
    arena = Arena(opened, ArenaSettings(), objects=objects)
    shut = closed or arena.why_closed()
    only_votes = ONLY_VOTES if loses_its_disk(opened) else None
    desk, listening = open_desk(opened, runs, shut or only_votes), Listening(opened)
    decisions = Decisions.assemble(arena, desk.queue, runs, build)
    return Services(runs, opened, arena, listening, shut, desk, decisions, only_votes, Evaluation(desk, runs))
