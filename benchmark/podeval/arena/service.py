"""Serve battles, and record votes before they are acknowledged."""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

import pandas as pd
from cachetools import TTLCache, cachedmethod
from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena import vote_review, voting
from podeval.arena.matchmaking import Matchmaker, list_open_dimensions
from podeval.arena.ratings import build_rating_table, list_public_votes
from podeval.arena.refusal import (
    CLOSED,
    EXPIRED,
    FOREIGN,
    FORGED,
    INVALID,
    NOTHING_LEFT,
    REPLAYED,
    UNKNOWN,
    ArenaRefused,
)
from podeval.arena.served_battles import (
    CACHED,
    CACHED_SECONDS,
    AudioTokens,
    BattleView,
    find_unjudged,
    keep_battle,
    make_view,
    reopen_battle,
)
from podeval.arena.settings import PROTOCOLS, ArenaSettings
from podeval.arena.vote_integrity import judge
from podeval.arena.vote_objects import VoteObjects
from podeval.errors import CodedSentence
from podeval.store import Database, operator_settings, pseudonyms
from podeval.store.secret import Secret, is_set
from podeval.store.tables import Battle, Erasure, Flag, Vote
from podeval.store.vote_counts import count_rated
from podeval.texts import write_sentence

Clock = Callable[[], datetime]

_LOG = logging.getLogger("podeval.arena")

_FREEZING_SECONDS = 1.0
"""Maximum number of seconds until a freeze in one process stops votes in every process that uses the database."""


class Arena:
    """The arena's service; threads may share it, and several processes may use the same database.

    Args:
        database: database of the arena.
        settings: the settings for battles and votes.
        secret: key for signing tokens; by default the database's key.
        clock: function that returns the current time in UTC.
        objects: a bucket to which every vote is written before it is acknowledged.
    """

    def __init__(
        self,
        database: Database,
        settings: ArenaSettings | None = None,
        *,
        secret: Secret | None = None,
        clock: Clock = lambda: datetime.now(UTC),
        objects: VoteObjects | None = None,
    ) -> None:
        self.database = database
        self.settings = settings or ArenaSettings()
        self._secret = secret or Secret.where_kept(database)
        self._secret_lasts = secret is not None or is_set()
        self._clock = clock
        self._objects = objects
        self._matchmaker = Matchmaker(database, self.settings)
        self.sounds = AudioTokens(database, self._secret, clock)
        """The object that gives sounds opaque names and resolves these names."""
        self._lock = threading.Lock()
        self._voters: TTLCache[Any, str] = TTLCache(CACHED, CACHED_SECONDS)
        """Cached pseudonyms, by identity and name."""
        self._frozen: TTLCache[Any, str | None] = TTLCache(1, _FREEZING_SECONDS)
        """The operator's explanation of why no votes are accepted."""
        self.rated_at: datetime | None = None
        """The time of the last rating in this process."""

    def why_closed(self) -> str | None:
        """Return the reason why votes cannot be accepted; None if they can.

        On a Space that loses its disk at a restart, the arena needs a database server or a bucket. With a bucket, the
        secret must be permanent, because voters would otherwise lose their pseudonyms.
        """
        if not loses_its_disk(self.database):
            return None
        if self._objects is None:
            return CodedSentence(
                "votes are not accepted here, because this Space would lose them at its next restart; "
                "its owner can set DATABASE_URL or mount a bucket",
                code="votes-would-be-lost",
            )
        if not self._secret_lasts:
            return CodedSentence(
                "votes are not accepted here, because this Space would not recognise its voters after a restart; "
                "its owner can set PODEVAL_SECRET",
                code="voters-would-be-lost",
            )
        return None

    @cachedmethod(attrgetter("_frozen"), lock=attrgetter("_lock"))
    def why_frozen(self) -> str | None:
        """Return the operator's explanation, at most a second old, of why votes are frozen; None if they are not."""
        with self.database.reading(one_state=False) as session:
            sentence = operator_settings.read_frozen(session).get(operator_settings.VOTES, "")
        if not sentence:
            return None
        return CodedSentence(f"no votes are accepted at the moment: {sentence}", code="votes-frozen", why=sentence)

    @cachedmethod(attrgetter("_voters"), lock=attrgetter("_lock"))
    def voter(self, identity: str, name: str = "") -> str:
        """Return a person's pseudonym, which is created on the person's first visit.

        Args:
            identity: identity of the person, such as `hf:5e67bdd61009063689407479` or a random cookie; the identity is
                not stored.
            name: name of the account used to sign in; only its keyed hash is stored, for erasure requests.
        """
        issuer, now = identity.rpartition(":")[0], self._clock()
        with self.database.reading(one_state=False) as session:
            pseudonym = pseudonyms.find_pseudonym(session, self._secret, identity)
            # If the account has a new name, store that too.
            if name and issuer and pseudonyms.find_pseudonym_by_name(session, self._secret, issuer, name) != pseudonym:
                pseudonym = None

        def make(session: Session) -> str:
            new = pseudonyms.make_pseudonym(session, self._secret, identity, now=now)
            pseudonyms.remember_name(session, self._secret, identity, name, now=now)
            return new

        return pseudonym or self.database.write(make, about=identity)

    def origin(self, address: str) -> str:
        """Return the keyed hash of a network address for comparing origins; the address itself is not stored."""
        return self._secret.mark("origin", address) if address else ""

    def serve(
        self, voter: str, *, protocol: str | None = None, dimension: str | None = None, seed: int | None = None
    ) -> BattleView:
        """Serve a new battle to a voter or, if none is left, an earlier battle that the voter did not judge.

        Args:
            voter: a pseudonym.
            protocol: `excerpts` or `whole`; by default `excerpts`, or `whole` if no excerpts are left.
            dimension: dimension to judge; a random one by default.
            seed: seed for all random choices; random by default.

        Raises:
            ArenaRefused: nothing is left to judge, the voter was served too many battles in the last hour, or votes
                cannot be accepted.
        """
        if reason := self.why_closed() or self.why_frozen():
            raise ArenaRefused(CLOSED, reason)
        if protocol not in (None, *PROTOCOLS):
            raise ArenaRefused(
                INVALID,
                write_sentence("no-such-protocol", value=f"{protocol!r:.40}", choices=", ".join(PROTOCOLS)),
            )
        now, wish = self._clock(), {"protocol": protocol, "dimension": dimension}

        while True:
            # The battle is chosen outside the transaction, so only recording it waits for a turn to write.
            with self.database.reading() as session:
                try:
                    battle = self._matchmaker.new_battle(session, voter, now, **wish, seed=seed)
                except ArenaRefused as error:
                    if (
                        error.reason != NOTHING_LEFT
                        or (left := find_unjudged(session, voter, **wish, is_playable=self._matchmaker.shows)) is None
                    ):
                        raise
                    break
                view = self._view(session, battle)
            keep = partial(keep_battle, battle=battle, now=now, settings=self.settings)
            if self.database.write(keep, about=voter):
                self._matchmaker.count(battle)
                return view
        reopen = partial(reopen_battle, id=left, now=now, settings=self.settings)
        return self.database.write(lambda session: self._view(session, reopen(session)), about=voter)

    def show(self, token: str, voter: str) -> BattleView:
        """Show the open battle that a token identifies to its voter again, for example after the page has been
        reloaded.

        Raises:
            ArenaRefused: the token is not from this arena or not for this voter, or the battle was judged or has
                expired.
        """
        battle_id = self._battle_of(token)
        with self.database.reading() as session:
            battle = session.get(Battle, battle_id)
            if battle is None:
                raise ArenaRefused(UNKNOWN, write_sentence("battle-unknown"))
            if battle.voter != voter:
                raise ArenaRefused(FOREIGN, write_sentence("battle-of-another"))
            if session.scalar(select(Vote.number).where(Vote.battle == battle.id)) is not None:
                raise ArenaRefused(REPLAYED, write_sentence("battle-judged"))
            if self._clock() > battle.expires_at:
                raise ArenaRefused(EXPIRED, write_sentence("battle-lapsed"))
            return self._view(session, battle)

    def vote(self, voter: str, ballot: voting.Ballot) -> voting.Acknowledgement:
        """Record a vote; when this method returns, the vote is on disk (and in the bucket).

        Sending the same ballot again returns the same acknowledgement.

        Args:
            voter: pseudonym of the voter.
            ballot: the voter's ballot.

        Raises:
            ArenaRefused: nothing was recorded; the message says why.
        """
        if reason := self.why_closed() or self.why_frozen():
            raise ArenaRefused(CLOSED, reason)
        ballot = voting.validate_ballot(ballot)
        battle_id = self._battle_of(ballot.token)
        now = self._clock()
        fetched = self.sounds.read_unkept(battle_id)
        record = partial(
            voting.record, ballot=ballot, battle_id=battle_id, voter=voter, settings=self.settings, now=now,
            unkept=fetched,
        )  # fmt: skip
        done = self.database.write(record, about=voter)
        if self._objects is not None:
            with self.database.reading() as session:
                self._objects.write(session, done.vote)
        return done

    def votes_goal(self) -> int | None:
        """Return the operator's target number of counted votes for each dimension; None if not set."""
        return self.database.read(operator_settings.read_votes_goal)

    def dimensions_by_protocol(self) -> dict[str, list[str]]:
        """Return the open dimensions that can be judged, by protocol; protocols without any dimension are left out."""
        return self.database.read(list_open_dimensions)

    def erase(
        self, identity: str | None = None, *, pseudonym: str | None = None, account: tuple[str, str] | None = None
    ) -> Erasure | None:
        """Erase a person and all their contributions; return None if the person is unknown.

        Args:
            identity: the person's identity, as proven by signing in.
            pseudonym: instead of `identity`, the person's pseudonym in the public log.
            account: instead of `identity`, the sign-in provider (`hf`, or the provider's address) and the account name
                at the person's last sign-in.
        """

        def work(session: Session) -> Erasure | None:
            voter = pseudonym or pseudonyms.find_pseudonym(session, self._secret, identity or "")
            if voter is None and account is not None:
                voter = pseudonyms.find_pseudonym_by_name(session, self._secret, *account)
            return pseudonyms.erase(session, voter, now=self._clock()) if voter else None

        done = self.database.write(work)
        with self._lock:
            self._voters.clear()
        if done is not None and self._objects is not None:
            self._objects.erase(done.pseudonym, done.erased_at)
        self.changed()
        return done

    def retire(self, output: str, reason: str) -> None:
        """Retire an output whose file has changed since it was added; its votes stay."""
        now = self._clock()
        self.database.write(lambda session: operator_settings.retire(session, [output], reason, now))
        self.changed()

    def sweep(self) -> vote_review.VoteReview:
        """Apply the integrity rules to all votes; changes are written in parts, so a voter waits for one part at most.

        Rows written by an interrupted sweep are kept, and the next sweep writes the remaining ones.
        """
        with self.database.reading() as session:
            findings = judge(vote_review.read_evidence(session, self.settings), self.settings.limits)
            plan = vote_review.plan_review(session, findings)
        now = self._clock()
        for part in plan.divide():
            self.database.write(partial(vote_review.apply, part=part, findings=findings, now=now))
        note = partial(operator_settings.note_done, name=operator_settings.SWEPT, now=now)
        self.database.write(note, about=operator_settings.SWEPT)
        return plan.report(self.status().alarms)

    def sweep_if_due(self, hours: float) -> bool:
        """Apply the rules if no process has applied them for the given number of hours; return whether they were
        applied.

        Args:
            hours: minimum number of hours between two sweeps.
        """
        with self.database.reading() as session:
            last = operator_settings.read_done(session, operator_settings.SWEPT)
        # Ignore a time in the future, which was recorded while the clock was ahead.
        if last is not None and timedelta() <= self._clock() - last < timedelta(hours=hours):
            return False
        done = self.sweep()
        _LOG.info(
            "%d votes were reviewed; %d are now excluded, and %d count again",
            done.votes,
            len(done.excluded),
            len(done.restored),
        )
        for alarm in done.alarms:
            _LOG.error("ALARM: %s", alarm)
        return True

    def decide(self, vote: str, standing: str, reason: str, by: str) -> None:
        """Set a vote's standing to `excluded` or `counted` as decided by a person; the rules do not overrule this
        decision.
        """
        now = self._clock()
        self.database.write(lambda s: vote_review.decide_by_hand(s, vote, standing, reason, by, now))
        self.publish_decisions([vote])

    def publish_decisions(self, votes: Iterable[str]) -> None:
        """Write a person's decisions on votes to the bucket; the decisions affect the choice of battles within 30
        seconds.
        """
        if self._objects is not None:
            with self.database.reading() as session:
                self._objects.write_standings(session, votes)

    def changed(self) -> None:
        """Drop caches before the next battle.

        Call this after a change to the compared systems, to their recordings, or to whether votes are accepted.
        """
        self._matchmaker.forget()
        self.sounds.forget()
        with self._lock:
            self._frozen.clear()

    def flags(self, *, vote: str | None = None, newest: int = 100) -> list[Flag]:
        """Return the latest signals and decisions."""
        return self.database.read(partial(vote_review.list_flags, vote=vote, newest=newest))

    def counts(self) -> vote_review.Counts:
        """Return the numbers of battles and votes."""
        return self.database.read(vote_review.count_votes)

    def status(self) -> vote_review.Status:
        """Return the counts and the current alarms."""
        return self.database.read(partial(vote_review.report_status, settings=self.settings))

    def battles(self, dimension: str | None = None) -> pd.DataFrame:
        """Return the votes that ratings are computed from; see `ratings.build_rating_table`."""
        return self.database.read(partial(build_rating_table, dimension=dimension), one_state=False)

    def list_votes(self, *, dimension: str | None = None, **page: int) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of rated votes, and one page of these votes; see `ratings.list_public_votes`."""
        with self.database.reading() as session:
            return count_rated(session, dimension), list_public_votes(session, dimension=dimension, **page)

    def _view(self, session: Session, battle: Battle) -> BattleView:
        return make_view(session, battle, self.sounds, self._secret.sign("battle", battle.id), self.settings)

    def _battle_of(self, token: str) -> str:
        parts = self._secret.verify("battle", token) if isinstance(token, str) else None
        if parts is None or len(parts) != 1:
            raise ArenaRefused(FORGED, write_sentence("not-a-token"))
        return parts[0]


def loses_its_disk(database: Database) -> bool:
    """Return whether a restart would lose the database, because the database is a file on a Space."""
    return bool(os.environ.get("SPACE_ID")) and database.is_sqlite
