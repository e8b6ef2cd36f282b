"""The data that the site serves: the folder of runs, the database, and the services that use it."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from anyio import CancelScope
from cachetools import TTLCache
from job_worker import Evaluation
from rate_limit import ThreadPool

from podeval.arena import Arena, ArenaSettings
from podeval.arena.ranking import Rankings
from podeval.arena.served_battles import AudioTokens
from podeval.arena.service import loses_its_disk
from podeval.arena.vote_objects import VoteObjects
from podeval.errors import BadInput, CodedSentence, PodevalError, StoreReadOnly, StoreUnusable
from podeval.listening import Listening
from podeval.recording.playback import Playback
from podeval.store import operator_settings
from podeval.store.database import BUSY_SECONDS, Database, find_damage
from podeval.store.secret import Secret
from podeval.submissions.gate import Gate
from podeval.submissions.queue import Queue
from podeval.submissions.service import SubmissionService
from podeval.submissions.uploads import Uploads

REPORT_SECONDS = 3600.0
MOST_BYTES, MOST_REPORTS = 8 * 2**20, 20


class ScoreReports:
    """Visitors' measurements, kept only in memory, for an hour, under names that cannot be guessed; the oldest report
    is removed first.

    Args:
        clock: function that returns seconds; time.monotonic outside tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._reports: TTLCache[str, bytes] = TTLCache(MOST_REPORTS, REPORT_SECONDS, timer=clock)
        self._lock = threading.Lock()

    def keep(self, report: bytes) -> str:
        """Keep a report, and return its name; empty if the report is too large to keep."""
        if not report or len(report) > MOST_BYTES:
            return ""
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._reports[name] = report
        return name

    def read(self, name: str) -> bytes | None:
        """Return a report; None if it no longer exists."""
        with self._lock:
            return self._reports.get(name)


_LOG = logging.getLogger("podeval.site")

EVERY = 10.0
"""Number of seconds for which a result is reused, so more frequent requests cause no further writes."""
PATIENCE = 3.0
"""Number of seconds after which a write that is still waiting counts as refused."""
NOT_TAKEN = "nothing can be recorded at present: the database accepts no writes; its disk may be full"


class WriteProbe:
    """Checks whether the database accepts writes, because a database on a full disk still answers every query.

    The probe writes one small row occasionally, and only on request; any number of threads may use it.

    Args:
        database: the database to check.
        clock: function that returns monotonic seconds.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._writing: threading.Thread | None = None
        self._asked: float | None = None
        self._failed = False

    def why_not(self) -> str | None:
        """Return the reason why nothing could be recorded in the last seconds; None if recording works."""
        with self._lock:
            if self._asked is None or self._clock() - self._asked >= EVERY:
                self._asked = self._clock()
                self._ask()
        return NOT_TAKEN if self._failed else None

    def _ask(self) -> None:
        # Only one write runs at a time, in a separate thread, so that a slow write does not delay the visitor any
        # longer.
        if self._writing is None or not self._writing.is_alive():
            self._writing = threading.Thread(target=self._write, daemon=True)
            self._writing.start()
        self._writing.join(PATIENCE)
        self._failed = self._failed or self._writing.is_alive()

    def _write(self) -> None:
        try:
            self._database.write(lambda session: operator_settings.set_probe(session, datetime.now(UTC)), about="probe")
        except PodevalError as error:
            _LOG.error("nothing can be recorded: %s", error)
            self._failed = True
        else:
            self._failed = False


SWEEP = "PODEVAL_SWEEP"
"""The setting for the number of hours between two applications of the integrity rules; 0 for never."""
LOOK_SECONDS = 600.0
"""Seconds between two checks of whether the integrity rules are due."""

NOWHERE = CodedSentence(
    "visitors cannot be identified: this board is reachable from other machines and has no sign-in. Its operator can "
    "set OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET (docs/operating.md), or serve it on 127.0.0.1",
    code="no-sign-in",
)


FULL = CodedSentence(
    "nothing is accepted here: the disk of this board was full or read-only when it started; its operator must make "
    "the disk writable and start the board again",
    code="disk-full",
)


ONLY_VOTES = CodedSentence(
    "only votes are accepted here, because this Space would lose everything else at its next restart; its owner can "
    "set DATABASE_URL",
    code="only-votes",
)


class FetchKeeper:
    """Saves the fetched shares of battles' recordings, in one thread for all requests; while a save is waiting, it also
    covers later requests.

    Args:
        tokens: the battles' recordings.
    """

    def __init__(self, tokens: AudioTokens) -> None:
        self._waiting = False
        self._tokens = tokens
        self._in_turn = ThreadPool(1)(self._write)

    async def keep(self) -> None:
        """Save the counts; if the database refuses, they are saved with the next recording."""
        if not self._waiting:
            self._waiting = True
            try:
                # A client that has received the last byte may disconnect, which would also end this task.
                with CancelScope(shield=True):
                    await self._in_turn()
            finally:
                self._waiting = False

    def _write(self) -> None:
        # Counts from now on belong to the next write.
        self._waiting = False
        try:
            self._tokens.keep_fetched()
        except PodevalError as error:
            _LOG.warning("the counts of the audio that voters fetched could not be saved yet: %s", error)


@dataclass(frozen=True)
class Services:
    """All services that the pages call.

    Attributes:
        runs: the folder that the board reads.
        database: judgements and submissions.
        arena: battles and votes.
        closed: the reason why nothing is accepted from anyone; None if the site accepts input.
        only_votes: the reason why only votes are accepted; None if everything is accepted.
        score_reports: reports on visitors' measurements.
    """

    runs: Path
    database: Database
    arena: Arena
    closed: str | None = None
    only_votes: str | None = None
    score_reports: ScoreReports = field(default_factory=ScoreReports)

    @cached_property
    def listening(self) -> Listening:
        """The listening tests."""
        return Listening(self.database)

    @cached_property
    def desk(self) -> SubmissionService:
        """The desk for strangers' submissions, whose outputs come from the Hub (without a token) or from uploads."""
        from huggingface_hub import HfApi

        gate = Gate(api=HfApi(token=False), local=False, uploads=Uploads(self.runs).folder)
        return SubmissionService(Queue(self.database), gate, self.closed or self.only_votes or "", self.runs)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The worker for submissions."""
        return Evaluation(self.desk, self.runs)

    @cached_property
    def rankings(self) -> Rankings:
        """The ranking of the arena, shared by all pages."""
        return Rankings(self.arena, runs=self.runs)

    @cached_property
    def playback(self) -> Playback:
        """The copies of recordings that pages play."""
        return Playback.default()

    @cached_property
    def fetches(self) -> FetchKeeper:
        """The service that saves the fetched shares of battles' recordings."""
        return FetchKeeper(self.arena.sounds)

    @cached_property
    def probe(self) -> WriteProbe:
        """The probe that checks whether the database accepts writes."""
        return WriteProbe(self.database)

    def list_chores(self) -> dict[str, tuple[float, Callable[[], object]]]:
        """List the site's periodic tasks, for `run_periodically`: the integrity rules, every `PODEVAL_SWEEP` hours.

        Raises:
            BadInput: the setting is not a number.
        """
        setting = os.environ.get(SWEEP) or "24"
        try:
            hours = float(setting)
        except ValueError:
            raise BadInput(f"{SWEEP} must be a number of hours, such as 24, or 0 for never, not {setting!r}") from None
        return {"integrity": (LOOK_SECONDS, partial(self.arena.sweep_if_due, hours))} if hours > 0 else {}

    def frozen(self) -> dict[str, str]:
        """Return the activities that operators currently refuse (`votes`, `submissions`), with the reasons."""
        with self.database.reading(one_state=False) as session:
            return operator_settings.read_frozen(session)


def open_bucket(database: Database) -> VoteObjects | None:
    """Return the second store of every vote, if there is one; records that the database has lost are imported from this
    store.
    """
    folder = os.environ.get("PODEVAL_BUCKET")
    if not folder:
        return None
    objects = VoteObjects(Path(folder))
    if votes := objects.read_back(database).votes:
        _LOG.warning("%d votes missing from the database were imported from %s", votes, folder)
    return objects


def open_services(runs: Path, database: str | None = None, *, closed: str | None = None) -> Services:
    """Open the services that use one database.

    Args:
        runs: the folder of runs.
        database: an SQLite file or an address; by default `DATABASE_URL`, otherwise `podeval.db` in the folder of runs.
        closed: the reason why nothing is accepted.

    Raises:
        BadInput: the address cannot be parsed, the service's secret is not set, or the arena's settings are wrong.
        SecretLost: the people in the database are identified by a different secret.
        StoreUnusable: the database cannot be opened, or is damaged.
    """
    settings = ArenaSettings.read(os.environ)
    runs.mkdir(parents=True, exist_ok=True)
    address = database or os.environ.get("DATABASE_URL") or runs / "podeval.db"
    try:
        # Most proxies wait for a minute and most visitors for less, so a request is refused with a sentence before that
        # time.
        opened = Database(address, patience=BUSY_SECONDS)
    except StoreReadOnly as error:
        _LOG.error("%s; until then, the board can only be read", error)
        opened, closed = Database(address, read_only=True), FULL
    if (wrong := find_damage(opened)) is not None:
        opened.close()
        raise StoreUnusable(
            f"the database {opened.name} is damaged ({wrong}); restore the last backup with `podeval restore`, then "
            "read back the public log"
        )
    objects = None if closed is FULL else open_bucket(opened)
    try:
        # Check the secret before anyone is served, because with a different secret everyone would be a new voter.
        Secret.of(opened)
    except BadInput:
        opened.close()
        raise
    arena = Arena(opened, settings, objects=objects)
    only_votes = ONLY_VOTES if loses_its_disk(opened) else None
    return Services(runs, opened, arena, closed or arena.why_closed(), only_votes)
