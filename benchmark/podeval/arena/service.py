"""The arena: battles are served once, votes are recorded before they are acknowledged."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import pandas as pd
from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import Session, aliased

from podeval.arena import refusal, review, voting
from podeval.arena.matchmaking import Matchmaker, spans
from podeval.arena.refusal import Refused
from podeval.arena.results import dimensions_of, rating_table
from podeval.arena.settings import Settings
from podeval.arena.voting import Acknowledgement, Ballot
from podeval.store import moderation, people
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import Battle, Erasure, Flag, Item, Output, Vote
from podeval.store.vote_objects import VoteObjects

Clock = Callable[[], datetime]

_SEEN_SECONDS = 30.0
_MOST_SEEN = 10_000
_AUDIO_AFTER = timedelta(hours=12)
"""How long a battle's audio can be played after it lapsed."""


@cache
def _sounds_of_battle() -> Select[Any]:
    """Both recordings of the battle `battle`. Asked for four times a battle and more: made once, and of columns."""
    a, b = aliased(Output), aliased(Output)
    return (
        select(Battle.item, Battle.excerpt, Battle.expires_at)
        .add_columns(a.audio.label("audio_a"), a.sha256.label("sha256_a"), a.seconds.label("seconds_a"))
        .add_columns(b.audio.label("audio_b"), b.sha256.label("sha256_b"), b.seconds.label("seconds_b"))
        .join(a, Battle.output_a == a.id)
        .join(b, Battle.output_b == b.id)
        .where(Battle.id == bindparam("battle"))
    )


@dataclass(frozen=True)
class Side:
    """One side as a listener sees it: two opaque names of audio, and how long they are in seconds."""

    excerpt: str
    whole: str
    seconds: float
    whole_seconds: float


@dataclass(frozen=True)
class BattleView:
    """All that leaves the service about a battle: nothing in it tells which systems meet."""

    token: str
    dimension: str
    capability: str
    title: str
    instructions: str
    language: str
    turns: list[Any]
    """What was asked: `{"text": …, "audio": …}`, audio by an opaque name, empty where there is none."""
    a: Side
    b: Side
    rule: str
    """How the excerpts were chosen."""
    served_at: datetime
    expires_at: datetime
    heard_share: float
    comment_required: bool
    loudness: float | None
    """LUFS to which both sides are brought; None where they are played as they are."""


@dataclass(frozen=True)
class Audio:
    """Where the sound behind an opaque name is; `end` is None for what is played to its end."""

    path: str
    start: float
    end: float | None
    sha256: str = ""
    compared: "tuple[Audio, Audio] | None" = None
    """Of a side: its own excerpt and the other side's, whose loudness is compared."""


class Arena:
    """The service; may be used by any number of threads, and by several processes on one database.

    Args:
        database: where everything is kept.
        settings: what an operator can set.
        secret: what tokens are signed with; by default the one of the database.
        clock: the time in UTC.
        objects: a bucket into which every vote is written before it is acknowledged.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings | None = None,
        *,
        secret: Secret | None = None,
        clock: Clock = lambda: datetime.now(UTC),
        objects: VoteObjects | None = None,
    ) -> None:
        self.database = database
        self.settings = settings or Settings()
        self._secret = secret or Secret.of(database)
        self._clock = clock
        self._objects = objects
        self._matchmaker = Matchmaker(self.settings)
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, float]] = {}
        """Pseudonyms of who was here a moment ago, and until when that is not looked up again."""

    def why_closed(self) -> str | None:
        """Why no vote can be taken: on a Space whose disk is lost at a restart, without a server or a bucket."""
        if os.environ.get("SPACE_ID") and self.database.is_sqlite and self._objects is None:
            return (
                "votes are not taken here, because this Space would lose them at its next restart; "
                "its owner can set DATABASE_URL or mount a bucket"
            )
        return None

    def why_frozen(self) -> str | None:
        """Why no vote is taken at the moment, as an operator said it; None where votes are."""
        with self.database.reading() as session:
            sentence = moderation.frozen(session).get(moderation.VOTES)
        return f"no votes are taken at the moment: {sentence}" if sentence else None

    def voter(self, identity: str) -> str:
        """The pseudonym of a person, made at the first visit.

        Args:
            identity: who it is, such as `hf:alice` or a random cookie; it is not stored.
        """
        with self._lock:
            seen = self._seen.get(identity)
        if seen is not None and time.monotonic() < seen[1]:
            return seen[0]
        with self.database.reading() as session:
            known = people.known_pseudonym(session, self._secret, identity)
        now = self._clock()
        found = known or self.database.write(lambda s: people.pseudonym_of(s, self._secret, identity, now=now))
        with self._lock:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen[identity] = (found, time.monotonic() + _SEEN_SECONDS)
        return found

    def origin(self, address: str) -> str:
        """The keyed hash under which a network address is compared with others; the address is not stored."""
        return self._secret.mark("origin", address) if address else ""

    def serve(self, voter: str, *, dimension: str | None = None, seed: int | None = None) -> BattleView:
        """A new battle for one voter.

        Args:
            voter: a pseudonym.
            dimension: only what is judged on this; one at random by default.
            seed: decides what is left to chance; random by default.

        Raises:
            Refused: nothing is left to judge, the voter had too many battles this hour, or no vote can be taken.
        """
        if reason := self.why_closed() or self.why_frozen():
            raise Refused(refusal.CLOSED, reason)
        now = self._clock()

        while True:
            # Chosen beside the others, so that only the record of it waits for its turn to write.
            with self.database.reading() as session:
                battle = self._matchmaker.new_battle(session, voter, now, dimension=dimension, seed=seed)
                view = self._view(session, battle)
            if self.database.write(partial(self._keep, battle, now)):
                self._matchmaker.count(battle)
                return view

    def show(self, token: str, voter: str) -> BattleView:
        """The battle of a token again, for the same voter, while it is open: after a page was loaded anew.

        Raises:
            Refused: the token is not of this arena or voter, or the battle was judged or has lapsed.
        """
        battle_id = self._battle_of(token)
        with self.database.reading() as session:
            battle = session.get(Battle, battle_id)
            if battle is None:
                raise Refused(refusal.UNKNOWN, "this battle is not known any more; take a new one")
            if battle.voter != voter:
                raise Refused(refusal.FOREIGN, "this battle was made for another voter; take one of your own")
            if session.scalar(select(Vote.number).where(Vote.battle == battle.id)) is not None:
                raise Refused(refusal.REPLAYED, "this battle has been judged; each is judged once")
            if self._clock() > battle.expires_at:
                raise Refused(refusal.EXPIRED, "this battle has lapsed, it was open for too long; take a new one")
            return self._view(session, battle)

    def vote(self, voter: str, ballot: Ballot) -> Acknowledgement:
        """Record a vote; when this returns, it is on the disk (and in the bucket).

        The same ballot sent again gives the same acknowledgement.

        Args:
            voter: the pseudonym of who sends it.
            ballot: what was sent.

        Raises:
            Refused: nothing was recorded; says why.
        """
        if reason := self.why_closed() or self.why_frozen():
            raise Refused(refusal.CLOSED, reason)
        ballot = voting.checked(ballot)
        battle_id = self._battle_of(ballot.token)
        now = self._clock()
        done = self.database.write(lambda s: voting.record(s, ballot, battle_id, voter, self.settings, now))
        if self._objects is not None:
            with self.database.reading() as session:
                self._objects.write(session, done.vote)
        return done

    def audio(self, name: str) -> Audio:
        """What is behind the opaque name of a side's audio.

        Raises:
            Refused: the name is not of this arena, or its battle is long over.
        """
        parts = self._secret.verified("audio", name)
        if parts is None or len(parts) != 3:
            raise Refused(refusal.FORGED, "this is not the name of audio in this arena")
        battle_id, side, extent = parts
        with self.database.reading() as session:
            found = session.execute(_sounds_of_battle(), {"battle": battle_id}).one_or_none()
            if found is None:
                raise Refused(refusal.UNKNOWN, "this battle is not known any more; take a new one")
            if self._clock() > found.expires_at + _AUDIO_AFTER:
                raise Refused(refusal.EXPIRED, "this battle is over and its audio is not played any more")
            if extent == "turn":
                return Audio(str(session.get_one(Item, found.item).turns[int(side)]["audio"]), 0.0, None)
        if not (found.audio_a and found.audio_b):
            raise Refused(refusal.UNKNOWN, "a recording of this battle was taken down; take a new one")
        heard = found.excerpt
        (start_a, end_a), (start_b, end_b) = heard["a"], heard["b"]
        first = Audio(found.audio_a, float(start_a), float(end_a), found.sha256_a)
        second = Audio(found.audio_b, float(start_b), float(end_b), found.sha256_b)
        own, other = (first, second) if side == "a" else (second, first)
        seconds = found.seconds_a if side == "a" else found.seconds_b
        start, end = (own.start, own.end) if extent == "excerpt" else (0.0, seconds)
        return Audio(own.path, start, end, own.sha256, compared=(own, other))

    def votes_goal(self) -> int | None:
        """How many counted votes the operator wants on each dimension; None where nothing is set."""
        with self.database.reading() as session:
            return moderation.votes_goal(session)

    def dimensions(self) -> list[str]:
        """On what there is something to judge: dimensions with an item that two systems at least answered."""
        with self.database.reading() as session:
            return dimensions_of(session)

    def erase(self, identity: str | None = None, *, pseudonym: str | None = None) -> Erasure | None:
        """Forget a person and everything they gave; None where nobody of that identity was here."""

        def work(session: Session) -> Erasure | None:
            name = pseudonym or people.known_pseudonym(session, self._secret, identity or "")
            return people.erase(session, name, now=self._clock()) if name else None

        done = self.database.write(work)
        with self._lock:
            self._seen.clear()
        if done is not None and self._objects is not None:
            self._objects.erase(done.pseudonym)
        self._matchmaker.forget()
        return done

    def sweep(self) -> review.Review:
        """Apply the rules of integrity to all votes."""
        with self.database.reading() as session:
            found = review.look(session, self.settings)
        now = self._clock()
        done = self.database.write(lambda session: review.apply(session, found, self.settings, now))
        self._matchmaker.forget()
        return done

    def exclude(self, vote: str, reason: str, by: str) -> None:
        """Take a vote out of the public rating, by a person's decision; it is kept."""
        self._decide(vote, "excluded", reason, by)

    def restore(self, vote: str, reason: str, by: str) -> None:
        """Let a vote count again, by a person's decision, which the rules do not overrule."""
        self._decide(vote, "counted", reason, by)

    def _decide(self, vote: str, standing: str, reason: str, by: str) -> None:
        now = self._clock()
        self.database.write(lambda s: review.decide_by_hand(s, vote, standing, reason, by, now))
        self.changed()

    def changed(self) -> None:
        """Count anew before the next battle: what is compared, or which votes count, was changed elsewhere."""
        self._matchmaker.forget()

    def flags(self, *, vote: str | None = None, newest: int = 100) -> list[Flag]:
        """The newest signals and decisions."""
        with self.database.reading() as session:
            return review.flags_of(session, vote=vote, newest=newest)

    def status(self) -> review.Status:
        """Counts, and the alarms that stand."""
        with self.database.reading() as session:
            return review.status(session, self.settings)

    def battles(self, *, dimension: str | None = None, excluded: bool = False) -> pd.DataFrame:
        """The votes that ratings are made of; see `results.rating_table`."""
        with self.database.reading() as session:
            return rating_table(session, dimension=dimension, excluded=excluded)

    def _battle_of(self, token: str) -> str:
        parts = self._secret.verified("battle", token) if isinstance(token, str) else None
        if parts is None or len(parts) != 1:
            raise Refused(refusal.FORGED, "this is not a token of this arena; take a new battle")
        return parts[0]

    def _hold_back(self, session: Session, voter: str, now: datetime) -> None:
        """Not too many battles an hour; of too many open ones the oldest lapse."""
        if session.get(Erasure, voter) is not None:
            raise Refused(refusal.UNKNOWN, "this voter asked to be forgotten; come back as a new one")
        # What was served by a clock that was ahead was not served in this hour.
        within = Battle.served_at.between(now - timedelta(hours=1), now)
        hour = select(func.count()).where(Battle.voter == voter, within)
        if (session.scalar(hour) or 0) >= self.settings.most_an_hour:
            raise Refused(refusal.TOO_MANY, "that is a lot of listening for one hour; have a rest and come back later")
        unjudged = (
            select(Battle)
            .outerjoin(Vote, Vote.battle == Battle.id)
            .where(Battle.voter == voter, Battle.expires_at > now, Vote.number.is_(None))
            .order_by(Battle.served_at)
        )
        for battle in list(session.scalars(unjudged))[: -self.settings.most_open + 1 or None]:
            battle.expires_at = now - timedelta(microseconds=1)

    def _keep(self, battle: Battle, now: datetime, session: Session) -> bool:
        """Record a battle; False where the same voter was given the same one meanwhile."""
        self._hold_back(session, battle.voter, now)
        same = (Battle.low == battle.low, Battle.high == battle.high, Battle.item == battle.item)
        given = select(Battle.id).where(Battle.voter == battle.voter, *same, Battle.purpose == battle.purpose)
        if session.scalar(given) is not None:
            return False
        session.add(battle)
        session.flush()
        return True

    def _view(self, session: Session, battle: Battle) -> BattleView:
        item = session.get_one(Item, battle.item)
        lengths = [session.get_one(Output, output).seconds for output in (battle.output_a, battle.output_b)]
        a, b = (
            Side(
                excerpt=self._secret.sign("audio", battle.id, side, "excerpt"),
                whole=self._secret.sign("audio", battle.id, side, "whole"),
                seconds=end - begin,
                whole_seconds=length,
            )
            for side, (begin, end), length in zip("ab", spans(battle), lengths, strict=True)
        )
        return BattleView(
            token=self._secret.sign("battle", battle.id),
            dimension=battle.dimension,
            capability=battle.capability,
            title=item.title,
            instructions=item.instructions,
            language=item.language,
            turns=[self._turn(battle, number, turn) for number, turn in enumerate(item.turns)],
            a=a,
            b=b,
            rule=str(battle.excerpt["rule"]),
            served_at=battle.served_at,
            expires_at=battle.expires_at,
            heard_share=self.settings.heard_share,
            comment_required=self.settings.comment_required,
            loudness=self.settings.loudness,
        )

    def _turn(self, battle: Battle, number: int, turn: dict[str, Any]) -> dict[str, str]:
        here = turn.get("audio") and "://" not in turn["audio"]
        audio = self._secret.sign("audio", battle.id, str(number), "turn") if here else ""
        return {"text": str(turn.get("text") or ""), "audio": audio}
