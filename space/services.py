"""What the site serves from: the folder of runs, the database, and the services over it."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import TTLCache
from job_worker import Evaluation

from podeval.arena import Arena, ArenaSettings
from podeval.arena.service import loses_its_disk
from podeval.arena.vote_objects import VoteObjects
from podeval.errors import BadInput, CodedSentence, StoreUnusable
from podeval.listening import Listening
from podeval.store import operator_settings
from podeval.store.database import Database, find_damage
from podeval.store.secret import Secret
from podeval.submissions.gate import Gate
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
        self._reports: TTLCache[str, bytes] = TTLCache(MOST_REPORTS, REPORT_SECONDS, timer=clock)
        self._lock = threading.Lock()

    def keep(self, report: bytes) -> str:
        """Keep a report, and return its name; empty where it is too large to be kept."""
        if not report or len(report) > MOST_BYTES:
            return ""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._reports[name] = report
        return name

    def read(self, name: str) -> bytes | None:
        """Return a report; None where there is none of this name any more."""
        with self._lock:
            return self._reports.get(name)


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
    """

    runs: Path
    database: Database
    arena: Arena
    listening: Listening
    closed: str | None = None
    desk: SubmissionService | None = None
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
    return Services(runs, opened, arena, listening, shut, desk, only_votes, Evaluation(desk, runs))
