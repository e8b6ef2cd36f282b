"""Pseudonyms of people, and their erasure on request.

A person is identified by a keyed hash of their identity, so the service recognises a person who returns. The name under
which their votes appear in the public log is derived from a random key that belongs only to that person. Erasing a
person deletes this key together with all their contributions; after that nobody, including the operator, can link the
pseudonym to the person.

The sign-in name is not stored either; a keyed hash of it next to the pseudonym lets an operator erase a person by name.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete, select
from sqlalchemy.orm import Session

from podeval.store.secret import Secret
from podeval.store.tables import (
    Battle,
    Erasure,
    ListeningSession,
    Pseudonym,
    Vote,
)
from podeval.store.vote_counts import count_battles, count_votes

_NAMED = "="
"""Prefix of the pseudonym in a row that links a name to a person; the person's own row has no prefix."""


def make_pseudonym(session: Session, secret: Secret, identity: str, *, now: datetime | None = None) -> str:
    """Return the pseudonym of a person, creating it on the first visit; the session must be a write session.

    Args:
        session: an open session of the database.
        secret: the service's secret.
        identity: the person, such as `hf:5e67bdd61009063689407479` or a random cookie; it is not stored.
        now: the time.
    """
    digest = _digest(secret, identity)
    row = session.get(Pseudonym, digest)
    if row is not None:
        return row.pseudonym
    key = secrets.token_bytes(32)
    pseudonym = base64.b32encode(hmac.new(key, digest.encode(), hashlib.sha256).digest()[:15]).decode().lower()
    session.add(Pseudonym(identity=digest, key=key, pseudonym=f"p{pseudonym}", made_at=now or datetime.now(UTC)))
    session.flush()
    return f"p{pseudonym}"


def find_pseudonym(session: Session, secret: Secret, identity: str) -> str | None:
    """Return the pseudonym of a person who has visited before; None for anyone else."""
    row = session.get(Pseudonym, _digest(secret, identity))
    return row.pseudonym if row else None


def remember_name(session: Session, secret: Secret, identity: str, name: str, *, now: datetime | None = None) -> None:
    """Store only the keyed hash of the name that a person signs in with, replacing an earlier one.

    Args:
        session: a write session of the database.
        secret: the service's secret.
        identity: the identity of the person, `issuer:subject`; an identity without an issuer has no name.
        name: the person's current name at the issuer.
        now: the time.
    """
    issuer, _, _ = identity.rpartition(":")
    pseudonym = find_pseudonym(session, secret, identity)
    if not issuer or not name or pseudonym is None:
        return
    digest, setting = _name_digest(secret, issuer, name), _NAMED + pseudonym
    row = session.get(Pseudonym, digest)
    if row is not None and row.pseudonym == setting:
        return
    # A name that someone no longer uses may now belong to another person.
    session.execute(delete(Pseudonym).where((Pseudonym.pseudonym == setting) | (Pseudonym.identity == digest)))
    session.add(Pseudonym(identity=digest, key=b"", pseudonym=setting, made_at=now or datetime.now(UTC)))
    session.flush()


def find_pseudonym_by_name(session: Session, secret: Secret, issuer: str, name: str) -> str | None:
    """Return the pseudonym of the last person who signed in with this name; None if nobody did or they were erased."""
    row = session.get(Pseudonym, _name_digest(secret, issuer, name))
    return row.pseudonym.removeprefix(_NAMED) if row else None


def erase(session: Session, pseudonym: str, *, now: datetime | None = None) -> Erasure:
    """Erase a person: the pseudonym's key, and all votes, battles and listening sessions with their dependent rows.

    Only the record that this pseudonym was erased remains, so that an import cannot restore its votes. Earlier files of
    the public log contain the votes without comments and without a link to the person; readers of the log skip erased
    votes.
    """
    erasure = session.get(Erasure, pseudonym)
    # Subtract the person's contributions from the counts.
    count_votes(session, Vote.voter == pseudonym, -1)
    count_battles(session, session.scalars(select(Battle).where(Battle.voter == pseudonym)), -1)
    # First delete the battles that repeat an earlier battle, because they refer to it.
    votes = _count_rows(session.execute(delete(Vote).where(Vote.voter == pseudonym)))
    session.execute(delete(Battle).where(Battle.voter == pseudonym, Battle.repeats.is_not(None)))
    session.execute(delete(Battle).where(Battle.voter == pseudonym))
    sessions = _count_rows(session.execute(delete(ListeningSession).where(ListeningSession.listener == pseudonym)))
    session.execute(delete(Pseudonym).where(Pseudonym.pseudonym.in_((pseudonym, _NAMED + pseudonym))))
    # Record the erasure.
    if erasure is None:
        erasure = Erasure(pseudonym=pseudonym, erased_at=now or datetime.now(UTC), votes=votes, sessions=sessions)
        session.add(erasure)
    session.flush()
    return erasure


def _digest(secret: Secret, identity: str) -> str:
    return secret.digest("person", identity).hex()


def _name_digest(secret: Secret, issuer: str, name: str) -> str:
    return secret.digest("name of a person", issuer, name).hex()


def _count_rows(result: Any) -> int:
    return cast("CursorResult[Any]", result).rowcount
