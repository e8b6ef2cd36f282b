"""The tables of human judgement: the compared outputs, every battle and vote, and every listening test with its
answers.

A person appears only as a pseudonym. `pseudonyms` is the only table that leads back to a person; once the person's row
in it is deleted, nothing does. Times are in UTC. A change here needs a migration in `store/migrations`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

OUTCOMES = ("a", "b", "tie", "both_bad", "skip")
"""Outcomes of a battle: one side is better, there is no difference, neither side is acceptable, or it is not judged."""

PREFERENCES = ("clear", "slight")
"""Degrees of clarity of a preference."""

PLAYED_AFTER = timedelta(hours=12)
"""Time for which a battle's recordings can still be played after the battle has expired."""

_Number = BigInteger().with_variant(Integer, "sqlite")


class Moment(TypeDecorator[datetime]):
    """A column of times in UTC, even in databases that do not store a time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a time to UTC; a time without a zone is a programming error."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; use datetime.now(UTC)")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored time with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class TableBase(DeclarativeBase):
    """Base class of all tables; constraints are named so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: Moment(), dict[str, Any]: JSON(), list[Any]: JSON()}  # noqa: RUF012


class _InArena:
    """Columns shared by the tables from which battles are made."""

    active: Mapped[bool] = mapped_column(Boolean, default=True)
    """Whether new battles may include this row; its votes count in either case."""
    added_at: Mapped[datetime]


class _Judgement:
    """Columns of rows that may or may not count: a vote, a listener's session."""

    origin: Mapped[str] = mapped_column(String(40), default="")
    """Keyed hash of the origin; it is never published."""
    standing: Mapped[str] = mapped_column(String(10), default="counted")
    standing_reason: Mapped[str] = mapped_column(Text, default="")
    standing_by: Mapped[str] = mapped_column(String(100), default="")
    """The party that last decided whether the row counts: nobody (empty), `rules`, or a person by name; the rules do
    not overrule a person.
    """


class _OnPage:
    """Columns shared by everything that a listener enters on one page."""

    number: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    session: Mapped[str] = mapped_column(ForeignKey("listening_sessions.id", ondelete="CASCADE"))
    page: Mapped[str] = mapped_column(String(100))
    item: Mapped[str] = mapped_column(String(200), default="")
    seconds: Mapped[float | None] = mapped_column(Float)
    """Seconds spent on the page."""
    saved_at: Mapped[datetime]


class ArenaSystem(_InArena, TableBase):
    """A compared system: a model, a human response, or a control."""

    __tablename__ = "systems"

    id: Mapped[str] = mapped_column(String(200), primary_key=True)
    title: Mapped[str] = mapped_column(String(300))
    kind: Mapped[str] = mapped_column(String(20), default="system")

    __table_args__ = (CheckConstraint("kind in ('system', 'human', 'control')", name="kind"),)


class ArenaItem(_InArena, TableBase):
    """The task for the systems: a topic, a text or a dialogue."""

    __tablename__ = "items"

    id: Mapped[str] = mapped_column(String(200), primary_key=True)
    benchmark: Mapped[str] = mapped_column(String(100), default="")
    dimension: Mapped[str] = mapped_column(String(100), index=True)
    """The dimension of its battles."""
    capability: Mapped[str] = mapped_column(String(200), default="")
    language: Mapped[str] = mapped_column(String(20), default="")
    title: Mapped[str] = mapped_column(Text, default="")
    instructions: Mapped[str] = mapped_column(Text, default="")
    """The judging instructions shown to the listener."""
    turns: Mapped[list[Any]] = mapped_column(default=list)
    """The user's turns: `{"text": …, "audio": …}`."""


class ArenaOutput(_InArena, TableBase):
    """One system's output for one item."""

    __tablename__ = "outputs"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    system: Mapped[str] = mapped_column(ForeignKey("systems.id"))
    item: Mapped[str] = mapped_column(ForeignKey("items.id"), index=True)
    audio: Mapped[str] = mapped_column(Text)
    """Path or address of the recording; empty if only its votes are known."""
    sha256: Mapped[str] = mapped_column(String(64), default="")
    seconds: Mapped[float] = mapped_column(Float)
    loudness: Mapped[float | None] = mapped_column(Float)
    """Integrated loudness in LUFS."""
    turns: Mapped[list[Any]] = mapped_column(default=list)
    """The turns' times in the recording, `[start, end]` in seconds."""

    __table_args__ = (UniqueConstraint("system", "item"), CheckConstraint("seconds >= 0", name="seconds"))


class Battle(TableBase):
    """One blind comparison, made for one voter."""

    __tablename__ = "battles"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    voter: Mapped[str] = mapped_column(String(40), index=True)
    item: Mapped[str] = mapped_column(ForeignKey("items.id"))
    output_a: Mapped[str] = mapped_column(ForeignKey("outputs.id"))
    output_b: Mapped[str] = mapped_column(ForeignKey("outputs.id"))
    low: Mapped[str] = mapped_column(ForeignKey("systems.id"))
    """The first system of the pair by name, regardless of sides."""
    high: Mapped[str] = mapped_column(ForeignKey("systems.id"))
    dimension: Mapped[str] = mapped_column(String(100))
    capability: Mapped[str] = mapped_column(String(200), default="")
    purpose: Mapped[str] = mapped_column(String(10), default="rating")
    """`rating`, or `gold`: a repeat of this voter's earlier battle with the sides exchanged, to test consistency."""
    repeats: Mapped[str | None] = mapped_column(ForeignKey("battles.id", ondelete="CASCADE"))
    seed: Mapped[int] = mapped_column(BigInteger)
    """Seed for the choice of pair, item, sides and excerpt."""
    pairing: Mapped[str] = mapped_column(String(40))
    """The rule that chose the pair."""
    excerpt: Mapped[dict[str, Any]] = mapped_column(default=dict)
    protocol: Mapped[str] = mapped_column(String(20), default="excerpts")
    """`excerpts` or `whole`: the material that is played, and how much of it must be heard; votes on the two are never
    rated together.
    """
    served_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    fetched_a: Mapped[float | None] = mapped_column(Float, default=0.0)
    """Share of this side's file that was sent to the voter: above 1 if parts were sent again, null if not counted."""
    fetched_b: Mapped[float | None] = mapped_column(Float, default=0.0)

    __table_args__ = (
        UniqueConstraint("voter", "low", "high", "item", "purpose"),
        Index("ix_battles_dimension_low_high", "dimension", "low", "high"),
        CheckConstraint("purpose in ('rating', 'gold')", name="purpose"),
        CheckConstraint("low < high", name="pair"),
        CheckConstraint("(purpose = 'gold') = (repeats is not null)", name="repeats"),
    )


class Vote(_Judgement, TableBase):
    """The answer to a battle, which can have only one."""

    __tablename__ = "votes"

    number: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    """Number that increases with each vote."""
    id: Mapped[str] = mapped_column(String(64), unique=True)
    """Id chosen by the sender, so that a vote that is sent again is recognised."""
    battle: Mapped[str] = mapped_column(ForeignKey("battles.id"), unique=True)
    voter: Mapped[str] = mapped_column(String(40), index=True)
    outcome: Mapped[str] = mapped_column(String(10))
    comment: Mapped[str] = mapped_column(Text, default="")
    comment_cut: Mapped[bool] = mapped_column(Boolean, default=False)
    heard_a: Mapped[float] = mapped_column(Float, default=0.0)
    """Share of the excerpt that was played at least once, 0 to 1."""
    heard_b: Mapped[float] = mapped_column(Float, default=0.0)
    seconds_a: Mapped[float] = mapped_column(Float, default=0.0)
    """Seconds for which this side was playing."""
    seconds_b: Mapped[float] = mapped_column(Float, default=0.0)
    heard_seconds_a: Mapped[float] = mapped_column(Float, default=0.0)
    """Seconds of this side's sound that were played at least once."""
    heard_seconds_b: Mapped[float] = mapped_column(Float, default=0.0)
    preference: Mapped[str] = mapped_column(String(10), default="")
    """Clarity of the difference in the voter's opinion, `clear` or `slight`; empty if the voter did not say."""
    elapsed: Mapped[float | None] = mapped_column(Float)
    """Seconds between serving the battle and the vote; null if the clock was set back in between."""
    recorded_at: Mapped[datetime]

    __table_args__ = (
        CheckConstraint("outcome in ('a', 'b', 'tie', 'both_bad', 'skip')", name="outcome"),
        CheckConstraint("standing in ('counted', 'excluded')", name="standing"),
        CheckConstraint("heard_a between 0 and 1 and heard_b between 0 and 1", name="heard"),
        CheckConstraint("seconds_a >= 0 and seconds_b >= 0", name="seconds"),
    )


class ListeningTest(TableBase):
    """A listening test with its complete design."""

    __tablename__ = "listening_tests"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    kind: Mapped[str] = mapped_column(String(40))
    design: Mapped[dict[str, Any]]
    """The document that the test was created from."""
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the design; answers are pooled only if their designs are equal."""
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]


class ListeningSession(_Judgement, TableBase):
    """One listener's session in one test."""

    __tablename__ = "listening_sessions"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    test: Mapped[str] = mapped_column(ForeignKey("listening_tests.id"))
    listener: Mapped[str] = mapped_column(String(40), index=True)
    place: Mapped[int] = mapped_column(Integer)
    """Row of the balanced assignment, from 0."""
    pages: Mapped[list[Any]] = mapped_column(default=list)
    """Pages that are shown, in order."""
    seed: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    """Time when a page was last saved."""
    finished_at: Mapped[datetime | None]
    completion_code: Mapped[str | None] = mapped_column(String(64), unique=True)

    __table_args__ = (
        UniqueConstraint("test", "listener"),
        UniqueConstraint("test", "place"),
        CheckConstraint("standing in ('counted', 'excluded')", name="standing"),
    )


class ListeningRating(_OnPage, TableBase):
    """One number that a listener gave to one stimulus on one page."""

    __tablename__ = "listening_ratings"

    stimulus: Mapped[str] = mapped_column(String(200))
    """The name of a system, anchor or reference."""
    scale: Mapped[str] = mapped_column(String(100), default="")
    """Scale of the rating, if a page asks for more than one rating."""
    value: Mapped[float] = mapped_column(Float)
    heard: Mapped[float | None] = mapped_column(Float)

    __table_args__ = (
        UniqueConstraint("session", "page", "stimulus", "scale"),
        CheckConstraint("heard is null or heard between 0 and 1", name="heard"),
    )


class ListeningAnswer(_OnPage, TableBase):
    """One answer, as text or as a choice, with its reason."""

    __tablename__ = "listening_answers"

    stimulus: Mapped[str] = mapped_column(String(200), default="")
    question: Mapped[str] = mapped_column(String(100))
    choice: Mapped[str] = mapped_column(String(200), default="")
    reason: Mapped[str] = mapped_column(Text, default="")

    __table_args__ = (UniqueConstraint("session", "page", "stimulus", "question"),)


class Flag(TableBase):
    """An observation or decision about a vote or a listening session; rules never change or remove it."""

    __tablename__ = "flags"

    number: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(32), unique=True)
    vote: Mapped[str | None] = mapped_column(ForeignKey("votes.id", ondelete="CASCADE"), index=True)
    session: Mapped[str | None] = mapped_column(ForeignKey("listening_sessions.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(10))
    """`signal`: a rule noticed something; `excluded` or `counted`: whether the vote or session counts from then on."""
    rule: Mapped[str] = mapped_column(String(40), default="")
    points: Mapped[float] = mapped_column(Float, default=0.0)
    detail: Mapped[str] = mapped_column(Text, default="")
    made_by: Mapped[str] = mapped_column(String(100))
    made_at: Mapped[datetime]

    __table_args__ = (
        CheckConstraint("(vote is null) <> (session is null)", name="about_one"),
        CheckConstraint("kind in ('signal', 'excluded', 'counted')", name="kind"),
    )


class Pseudonym(TableBase):
    """The link from a person to their name in the public log; deleting the row deletes the link."""

    __tablename__ = "pseudonyms"

    identity: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Keyed hash of the person's identity; the key is the service's secret, which is not in the database."""
    key: Mapped[bytes] = mapped_column(LargeBinary(32))
    """A random key for this person only."""
    pseudonym: Mapped[str] = mapped_column(String(40), unique=True)
    made_at: Mapped[datetime]


class Erasure(TableBase):
    """A pseudonym of a person who asked to be forgotten; its records are never imported again."""

    __tablename__ = "erasures"

    pseudonym: Mapped[str] = mapped_column(String(40), primary_key=True)
    erased_at: Mapped[datetime]
    votes: Mapped[int] = mapped_column(Integer, default=0)
    sessions: Mapped[int] = mapped_column(Integer, default=0)


class MirrorFile(TableBase):
    """A file of the public log on the Hub: first planned under its final name, then uploaded."""

    __tablename__ = "mirror_files"

    path: Mapped[str] = mapped_column(String(200), primary_key=True)
    repo: Mapped[str] = mapped_column(String(200), primary_key=True)
    planned_at: Mapped[datetime]
    commit: Mapped[str | None] = mapped_column(String(40))
    """The commit that added the file; null until the file is known to be on the Hub."""


class Mirrored(TableBase):
    """The file of the public log that contains a record; each record is in only one file."""

    __tablename__ = "mirrored"

    repo: Mapped[str] = mapped_column(String(200), primary_key=True)
    record: Mapped[str] = mapped_column(String(120), primary_key=True)
    """`vote:…`, `flag:…` or `erasure:…`."""
    path: Mapped[str] = mapped_column(String(200))


def list_audio(document: Any) -> Iterator[str]:
    """Yield every audio file named in a stored document, such as turns or the design of a listening test."""
    if isinstance(document, dict):
        yield from (part for key, part in document.items() if key == "audio" and isinstance(part, str))
    for part in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from list_audio(part)
