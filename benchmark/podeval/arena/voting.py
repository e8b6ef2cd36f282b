"""Accept a vote: run all checks in order, then record the vote in a single step."""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.orm import Session, aliased

from podeval.arena.excerpt_choice import Span, compute_played_seconds, count_heard_seconds, read_spans
from podeval.arena.refusal import (
    EXPIRED,
    FOREIGN,
    INVALID,
    NO_COMMENT,
    NOT_FETCHED,
    NOT_HEARD,
    REPLAYED,
    TOO_SOON,
    UNKNOWN,
    ArenaRefused,
)
from podeval.arena.settings import ArenaSettings
from podeval.store.tables import OUTCOMES, PREFERENCES, ArenaOutput, ArenaSystem, Battle, Vote
from podeval.store.vote_counts import count_votes
from podeval.texts import write_sentence

_VOTE_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_MOST_STRETCHES = 5_000
_LONGEST_COMMENT = 100_000
_BEYOND = 1.0
"""Number of seconds by which a reported span may exceed the excerpt."""

_LONGEST_PLAYING = 86_400.0
_HAIR = 1e-6
"""Rounding tolerance in the comparison of shares."""

_BYTES_A_SECOND = 0.5
"""Lowest possible ratio of a part's share of the file's bytes to its share of the seconds; FLAC uses fewer bytes for
quiet parts.
"""


@dataclass(frozen=True)
class Ballot:
    """The ballot that a voter submits.

    `id`: a random id chosen by the sender, so that a ballot can safely be sent again. `played_a`, `played_b`: the spans
        of each excerpt that were played, `(begin, end)` in seconds of the excerpt. `seconds_a`, `seconds_b`: how long
        each side was playing, in seconds. `preference`: if one side is better, how clear the difference is, `clear` or
        `slight`; empty if the voter did not say. `origin`: keyed hash of the network address.
    """

    id: str
    token: str
    outcome: str
    comment: str = ""
    played_a: Sequence[Span] = ()
    played_b: Sequence[Span] = ()
    seconds_a: float = 0.0
    seconds_b: float = 0.0
    preference: str = ""
    origin: str = field(default="", repr=False)


@dataclass(frozen=True)
class Acknowledgement:
    """The acknowledgement of a recorded vote; if the vote is sent again, the acknowledgement is the same."""

    vote: str
    number: int
    outcome: str
    recorded_at: datetime
    comment_cut: bool
    system_a: str | None
    """Title of the system, if the arena may reveal it; the same applies to `system_b`."""
    system_b: str | None


def validate_ballot(ballot: Ballot) -> Ballot:
    """Check that every value of a ballot is possible, and return the ballot.

    Raises:
        ArenaRefused: a value is impossible; the message names the value.
    """
    outcome, preference, comment = ballot.outcome, ballot.preference, ballot.comment
    no_preference = preference not in ("", *PREFERENCES) or (preference and outcome not in ("a", "b"))
    faults: tuple[tuple[object, str, dict[str, str]], ...] = (
        (not isinstance(ballot.id, str) or not _VOTE_ID.fullmatch(ballot.id), "vote-id-form", {}),
        (outcome not in OUTCOMES, "no-such-outcome", {"value": f"{outcome!r:.40}", "choices": ", ".join(OUTCOMES)}),
        (no_preference, "no-such-preference", {"value": f"{preference!r:.40}", "choices": " or ".join(PREFERENCES)}),
        (not isinstance(comment, str) or len(comment) > _LONGEST_COMMENT, "comment-unreadable", {}),
        *(
            (
                not _is_number(seconds) or not 0 <= seconds <= _LONGEST_PLAYING,
                "cannot-have-played",
                {"side": name, "seconds": f"{seconds!r:.40}"},
            )
            for name, seconds in (("A", ballot.seconds_a), ("B", ballot.seconds_b))
        ),
    )
    for is_there, code, values in faults:
        if is_there:
            raise ArenaRefused(INVALID, write_sentence(code, **values))
    return ballot


_SAME_BATTLE_OR_ID = select(Vote).where(or_(Vote.battle == bindparam("battle"), Vote.id == bindparam("vote")))
_OUTPUT_A, _OUTPUT_B, _A, _B = aliased(ArenaOutput), aliased(ArenaOutput), aliased(ArenaSystem), aliased(ArenaSystem)
_JUDGED_BEFORE = (
    # Ignore times in the future, which were recorded while the clock was ahead.
    select(func.max(Vote.recorded_at))
    .where(Vote.voter == bindparam("voter"), Vote.outcome != "skip", Vote.recorded_at <= bindparam("now"))
    .scalar_subquery()
)
_BATTLE_AND_TITLES = (
    select(Battle, _A.title, _B.title, _JUDGED_BEFORE)
    .join(_OUTPUT_A, Battle.output_a == _OUTPUT_A.id)
    .join(_OUTPUT_B, Battle.output_b == _OUTPUT_B.id)
    .join(_A, _OUTPUT_A.system == _A.id)
    .join(_B, _OUTPUT_B.system == _B.id)
    .where(Battle.id == bindparam("battle"))
)


def record(
    session: Session,
    ballot: Ballot,
    battle_id: str,
    voter: str,
    settings: ArenaSettings,
    now: datetime,
    unkept: tuple[float, float] = (0.0, 0.0),
) -> Acknowledgement:
    """Record a checked ballot in the session; the caller must commit before acknowledging the vote.

    `unkept`: the shares of both sides that were fetched but have not yet been saved with the battle.

    Raises:
        ArenaRefused: the battle belongs to another voter, was already judged or has expired, or too little of it was
            fetched or heard.
    """
    row = session.execute(_BATTLE_AND_TITLES, {"battle": battle_id, "voter": voter, "now": now}).one_or_none()
    if row is None:
        raise ArenaRefused(UNKNOWN, write_sentence("battle-unknown"))
    battle, *titles, judged_before = row
    if battle.voter != voter:
        raise ArenaRefused(FOREIGN, write_sentence("battle-of-another"))
    earlier = session.scalars(_SAME_BATTLE_OR_ID, {"battle": battle.id, "vote": ballot.id}).all()
    before = next((vote for vote in earlier if vote.battle == battle.id), None)
    if before is not None and before.id == ballot.id:
        return _acknowledge(before, *titles if may_tell(session, before, battle, settings) else (None, None))
    if before is not None:
        raise ArenaRefused(REPLAYED, write_sentence("battle-judged"))
    if earlier:
        raise ArenaRefused(REPLAYED, write_sentence("vote-id-taken"))
    if now > battle.expires_at:
        raise ArenaRefused(EXPIRED, write_sentence("battle-lapsed"))
    comment, was_cut = clean_comment(ballot.comment)
    lengths = [end - begin for begin, end in read_spans(battle)]
    amounts = _measure_both(ballot, lengths, battle.protocol)
    # If the clock was set back, it is unknown how long the voter took.
    elapsed = (now - battle.served_at).total_seconds() if now >= battle.served_at else None
    _refuse_unfetched(amounts, lengths, (battle.fetched_a, battle.fetched_b), unkept)
    if ballot.outcome != "skip":
        free = elapsed
        if free is not None and judged_before is not None:
            # Battles that are open at the same time can only be heard one after another.
            free = min(free, (now - judged_before).total_seconds())
        _refuse_unheard(amounts, lengths, free, battle.protocol, settings)
        if settings.comment_required and not comment:
            raise ArenaRefused(NO_COMMENT, write_sentence("comment-needed"))
    vote = Vote(
        id=ballot.id,
        battle=battle.id,
        voter=voter,
        outcome=ballot.outcome,
        comment=comment,
        comment_cut=was_cut,
        preference=ballot.preference,
        heard_a=_compute_share(amounts[0], lengths[0]),
        heard_b=_compute_share(amounts[1], lengths[1]),
        heard_seconds_a=amounts[0],
        heard_seconds_b=amounts[1],
        seconds_a=float(ballot.seconds_a),
        seconds_b=float(ballot.seconds_b),
        elapsed=elapsed,
        origin=ballot.origin,
        recorded_at=now,
    )
    session.add(vote)
    session.flush()
    count_votes(session, Vote.number == vote.number)
    return _acknowledge(vote, *titles if may_tell(session, vote, battle, settings) else (None, None))


def may_tell(session: Session, vote: Vote, battle: Battle, settings: ArenaSettings) -> bool:
    """Return whether a vote's battle may be revealed to its voter; after a skip, only if the voter has listened enough.

    Otherwise a voter could learn the systems of every battle by skipping without listening, and then recognise their
    voices.

    Args:
        session: a database session.
        vote: the recorded vote.
        battle: its battle.
        settings: settings of the arena.
    """
    if vote.outcome != "skip":
        return True
    lengths = [end - begin for begin, end in read_spans(battle)]
    for seconds, length in zip((vote.heard_seconds_a, vote.heard_seconds_b), lengths, strict=True):
        if seconds + _HAIR < settings.asked_seconds(length, battle.protocol):
            return False
    # Battles that were open at the same time can only have been heard one after another.
    before = session.scalar(
        select(func.max(Vote.recorded_at)).where(
            Vote.voter == vote.voter, Vote.number < vote.number, Vote.recorded_at <= vote.recorded_at
        )
    )
    free = [vote.elapsed] if before is None else [vote.elapsed, (vote.recorded_at - before).total_seconds()]
    needed = settings.needed_seconds(lengths[0], lengths[1], battle.protocol)
    return all(seconds is None or seconds >= needed for seconds in free)


def _acknowledge(vote: Vote, title_a: str | None, title_b: str | None) -> Acknowledgement:
    return Acknowledgement(vote.id, vote.number, vote.outcome, vote.recorded_at, vote.comment_cut, title_a, title_b)


def _refuse_unheard(
    amounts: list[float], lengths: list[float], free: float | None, protocol: str, settings: ArenaSettings
) -> None:
    for name, seconds, length in zip("AB", amounts, lengths, strict=True):
        least = settings.asked_seconds(length, protocol)
        if seconds + _HAIR < least:
            raise ArenaRefused(
                NOT_HEARD,
                write_sentence(
                    "listen-to-more", side=name, seconds=f"{seconds:.0f}", needed=math.ceil(round(least, 3))
                ),
            )
    needed = settings.needed_seconds(lengths[0], lengths[1], protocol)
    if free is not None and free < needed:
        raise ArenaRefused(
            TOO_SOON,
            write_sentence("heard-too-soon", seconds=f"{free:.0f}", needed=f"{needed:.0f}"),
        )


def _refuse_unfetched(
    amounts: list[float], lengths: list[float], kept: tuple[float | None, float | None], unkept: tuple[float, float]
) -> None:
    """Refuse a ballot that reports more of a side as played than the site sent."""
    for side, seconds, length, share, more in zip("AB", amounts, lengths, kept, unkept, strict=True):
        heard = _compute_share(seconds, length) if seconds else 0.0
        if share is not None and share + more + _HAIR < _BYTES_A_SECOND * heard:
            raise ArenaRefused(NOT_FETCHED, write_sentence("never-fetched", side=side, heard=f"{100 * heard:.0f}"))


def _measure_both(ballot: Ballot, lengths: list[float], protocol: str) -> list[float]:
    """Return how many seconds of each side were played at least once; raise the same errors as `_measure_heard`."""
    played, others = (ballot.played_a, ballot.played_b), reversed(lengths)
    return [
        _measure_heard(side, spans, length, compute_played_seconds(length, other, protocol))
        for side, spans, length, other in zip("AB", played, lengths, others, strict=True)
    ]


def _measure_heard(side: str, played: Sequence[Span], length: float, container: float) -> float:
    """Check the played spans, and return how many seconds of a side were played at least once.

    Args:
        side: name of the side, for the error message.
        played: the spans.
        length: length of the side's sound, in seconds.
        container: length of the sound including the silence after it, in seconds.
    """
    if len(played) > _MOST_STRETCHES:
        raise ArenaRefused(INVALID, write_sentence("too-many-stretches", side=side, count=len(played)))
    for stretch in played:
        possible = isinstance(stretch, Sequence) and len(stretch) == 2 and all(_is_number(value) for value in stretch)
        if not possible or not -_BEYOND <= stretch[0] <= stretch[1] <= container + _BEYOND:
            raise ArenaRefused(
                INVALID,
                write_sentence("stretch-impossible", side=side, length=f"{container:.0f}", stretch=f"{stretch!r:.60}"),
            )
    return count_heard_seconds([(float(begin), float(end)) for begin, end in played], length)


def _compute_share(seconds: float, length: float) -> float:
    """Return the share of a side that was heard; 1 for an empty side."""
    return min(1.0, seconds / length) if length > 0 else 1.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


LONGEST = 2_000
"""Maximum length of a stored comment, in characters."""

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def clean_comment(text: str) -> tuple[str, bool]:
    """Return a comment without control characters, and whether it was truncated to the maximum length.

    Markup is kept as typed; pages show a comment as plain text.
    """
    text = text.encode("utf-8", errors="replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text))
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cn"))
    kept = kept.strip()
    return kept[:LONGEST], len(kept) > LONGEST
