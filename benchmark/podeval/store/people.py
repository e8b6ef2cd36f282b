"""Persons behind pseudonyms, and how they are forgotten.

A person is known by a keyed hash of who they are, so that they are recognised when they come back. The name under which
their votes stand in the public log is made with a random key of that person alone. Erasing a person deletes that key
with everything they gave: nobody, the operator included, can then tell which pseudonym was theirs.
"""

import base64
import hashlib
import hmac
import secrets
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import CursorResult, delete
from sqlalchemy.orm import Session

from podeval.store.secret import Secret
from podeval.store.tables import (
    Battle,
    Erasure,
    ListeningSession,
    Pseudonym,
    Vote,
)


def pseudonym_of(session: Session, secret: Secret, identity: str, *, now: datetime | None = None) -> str:
    """The pseudonym of a person, made at the first visit; the session has to be a writing one.

    Args:
        session: of the database.
        secret: of the service.
        identity: who it is, such as `hf:alice` or a random cookie; it is not stored.
        now: the time.
    """
    digest = _digest(secret, identity)
    known = session.get(Pseudonym, digest)
    if known is not None:
        return known.pseudonym
    key = secrets.token_bytes(32)
    made = base64.b32encode(hmac.new(key, digest.encode(), hashlib.sha256).digest()[:15]).decode().lower()
    session.add(Pseudonym(identity=digest, key=key, pseudonym=f"p{made}", made_at=now or datetime.now(UTC)))
    session.flush()
    return f"p{made}"


def known_pseudonym(session: Session, secret: Secret, identity: str) -> str | None:
    """The pseudonym of a person who was here before."""
    known = session.get(Pseudonym, _digest(secret, identity))
    return known.pseudonym if known else None


def erase(session: Session, pseudonym: str, *, now: datetime | None = None) -> Erasure:
    """Forget a person: the key of the pseudonym, the votes, battles and listening sessions, with what hangs on them.

    What remains is that this pseudonym was erased, so that no import brings its votes back. Files of the public log
    that were published before hold the votes without comments and without a way to the person; whoever reads them
    leaves out what is erased.
    """
    known = session.get(Erasure, pseudonym)
    votes = _gone(session.execute(delete(Vote).where(Vote.voter == pseudonym)))
    session.execute(delete(Battle).where(Battle.voter == pseudonym, Battle.repeats.is_not(None)))
    session.execute(delete(Battle).where(Battle.voter == pseudonym))
    sessions = _gone(session.execute(delete(ListeningSession).where(ListeningSession.listener == pseudonym)))
    session.execute(delete(Pseudonym).where(Pseudonym.pseudonym == pseudonym))
    if known is None:
        known = Erasure(pseudonym=pseudonym, erased_at=now or datetime.now(UTC), votes=votes, sessions=sessions)
        session.add(known)
    session.flush()
    return known


def _digest(secret: Secret, identity: str) -> str:
    return secret.digest("person", identity).hex()


def _gone(result: Any) -> int:
    return cast("CursorResult[Any]", result).rowcount
