"""The secret of a service; it makes the service's tokens unforgeable and its hashes of identities useless to anyone
else.

The database stores a check value, a keyed hash of a constant, which reveals nothing about the secret. With a different
secret, everyone would silently become a new voter and their votes would count again. A different secret is therefore
refused unless an operator allows it (`podeval admin new-secret`).
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path

from itsdangerous import BadSignature, Signer
from sqlalchemy import URL, func, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.files import explain_write_errors, sync_folder
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.tables import Pseudonym

VARIABLE = "PODEVAL_SECRET"
FILE_VARIABLE = "PODEVAL_SECRET_FILE"
SHORTEST = 32
"""Minimum length of a secret that is set by hand, in characters."""
_CHECK = "check value"
_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")


class SecretLost(BadInput):
    """The people in the database are identified by a secret other than the current one."""


class Secret:
    """A key for keyed hashes, with a separate kind of hash for each purpose.

    Args:
        key: the secret bytes, at least 16.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise BadInput(f"a secret of {len(key)} bytes can be guessed; use at least 16 bytes")
        self._key = key

    @classmethod
    def of(cls, database: Database) -> "Secret":
        """Read the secret from the environment, or from a file that the environment names.

        Otherwise, for an SQLite database, the secret is read from a file next to it, which is created if necessary.

        Raises:
            BadInput: the secret is too short, or no secret is set and the database is on a server.
            SecretLost: the people in the database are identified by a different secret.
        """
        kept = read_secret(database.url)
        with database.reading() as session:
            if lost := explain_loss(session, database, kept):
                raise SecretLost(lost)
            check = operator_settings.read_secret_check(session)
        secret = cls(kept or _make_secret(database))
        if check != secret.mark(_CHECK):
            database.write(lambda session: secret._settle(session, database))
        return secret

    @classmethod
    def where_kept(cls, database: Database) -> "Secret":
        """Return the secret as `of` does; if the secret is lost, return a stand-in that refuses every use, so
        everything else keeps working.

        Raises:
            BadInput: see `of`.
        """
        try:
            return cls.of(database)
        except SecretLost as error:
            return _Lost(error)

    def _settle(self, session: Session, database: Database) -> None:
        """Store the check value, unless people are identified by a different secret."""
        if lost := explain_loss(session, database, self._key):
            raise SecretLost(lost)
        now = datetime.now(UTC)
        operator_settings.keep_setting(session, operator_settings.CHECK_VALUE, self.mark(_CHECK), "podeval", now)

    def digest(self, purpose: str, *parts: str) -> bytes:
        """Return 32 bytes that cannot be computed without the secret."""
        message = b"".join(
            len(part).to_bytes(4, "big") + part for part in (text.encode() for text in (purpose, *parts))
        )
        return hmac.new(self._key, message, hashlib.sha256).digest()

    def mark(self, purpose: str, *parts: str) -> str:
        """Return a digest as 22 URL-safe characters."""
        return base64.urlsafe_b64encode(self.digest(purpose, *parts)[:16]).decode().rstrip("=")

    def sign(self, purpose: str, *parts: str) -> str:
        """Return a token that contains the parts; these must not contain dots."""
        return self._signer(purpose).sign(".".join(parts)).decode()

    def verify(self, purpose: str, token: str) -> tuple[str, ...] | None:
        """Return the parts of a token if this secret signed it for this purpose; otherwise None."""
        # The base64 decoder ignores other characters, so many different texts would pass as the same token.
        if len(token) > 500 or not _TOKEN.fullmatch(token):
            return None
        signer = self._signer(purpose)
        try:
            signed = signer.unsign(token)
        except BadSignature:
            return None
        # The last base64 character has spare bits, so four different characters encode the same signature, but only one
        # was issued.
        return tuple(signed.decode().split(".")) if signer.sign(signed).decode() == token else None

    def _signer(self, purpose: str) -> Signer:
        """Return the signer of tokens for one purpose, with a separate key."""
        return Signer(self.digest("tokens", purpose), salt=purpose, sep=".", digest_method=hashlib.sha256)


class _Lost(Secret):
    """A stand-in for a lost secret that raises the error whenever it is used."""

    def __init__(self, error: SecretLost) -> None:
        super().__init__(secrets.token_bytes(32))
        self._error = error

    def digest(self, purpose: str, *parts: str) -> bytes:
        """Raise the error, because without the secret there is no digest."""
        raise SecretLost(str(self._error))


def renew(database: Database, reason: str, by: str) -> int:
    """Replace the secret, so the people in the database are no longer recognised; return how many people that affects.

    A secret from the environment is used unchanged; a file next to the database is replaced, and the old file is kept
    with a timestamp in its name.

    Args:
        database: the database, which must not be in use by anything else.
        reason: why the secret is replaced; stored in the trail.
        by: the person who decided it, for the trail.

    Raises:
        BadInput: the environment contains the secret that is already in use, or one that is too short.
    """
    now = datetime.now(UTC)
    beside = _beside(database.url)
    # Take the secret from the environment, or rename the old file and make a new one.
    if not is_set() and beside.exists():
        with explain_write_errors(beside):
            beside.rename(beside.with_name(f"{beside.name}.before-{now:%Y%m%dT%H%M%S%f}"))
    check = Secret(read_secret(database.url) or _make_secret(database)).mark(_CHECK)

    # Store the new check value, unless the database already has it.
    def work(session: Session) -> int:
        if operator_settings.read_secret_check(session) == check:
            raise BadInput(f"the database {database.name} already uses this secret; set a different {VARIABLE} first")
        people = _count_people(session)
        operator_settings.keep_setting(session, operator_settings.CHECK_VALUE, check, by, now)
        operator_settings.note(session, "secret renewed", f"{people} people", reason, by, now)
        return people

    return database.write(work)


def is_set() -> bool:
    """Return whether the secret comes from the environment and so outlives the disk of the database."""
    return bool(os.environ.get(VARIABLE) or os.environ.get(FILE_VARIABLE))


def read_secret(url: URL) -> bytes | None:
    """Read the secret of the service that uses a database; return None if there is none yet.

    Raises:
        BadInput: the secret is too short, or cannot be read.
    """
    if value := os.environ.get(VARIABLE):
        if len(value) < SHORTEST:
            raise BadInput(f"{VARIABLE} has {len(value)} characters and can be guessed; use {SHORTEST} or more")
        return value.encode()
    if path := os.environ.get(FILE_VARIABLE):
        return _read(Path(path))
    beside = _beside(url)
    return _read(beside) if url.get_backend_name() == "sqlite" and beside.exists() else None


def _make_secret(database: Database) -> bytes:
    """Create a secret next to an SQLite file if none exists; for a server, the operator must set the secret."""
    if not database.is_sqlite:
        raise BadInput(
            f"set {VARIABLE} to a random text of {SHORTEST} characters or more, the same for all servers of this "
            "database, such as the output of python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return _make_key(_beside(database.url))


def _count_people(session: Session) -> int:
    """Count the people in a database who are identified with a secret."""
    return session.scalar(select(func.count()).select_from(Pseudonym)) or 0


def explain_loss(session: Session, database: Database, kept: bytes | None) -> str:
    """Return why a secret does not identify the people in a database; empty if it does, or if there are no people.

    Args:
        session: an open session of the database.
        database: the database that the service uses.
        kept: the current secret, if there is one.
    """
    if not (people := _count_people(session)):
        return ""
    if kept is not None and operator_settings.read_secret_check(session) in (None, Secret(kept).mark(_CHECK)):
        return ""
    location = f"the file {_beside(database.url)}" if database.is_sqlite else f"{VARIABLE} or {FILE_VARIABLE}"
    how = "not there" if kept is None else "not the secret that is stored there"
    return (
        f"the secret by which {database.name} recognises {people} people is {how}; without it, each of them would be a "
        f"new voter, whose votes count again. Put it back as {location}, from your copy or from a backup made "
        "--with-secret. If the secret is lost for good, accept that all of them become new voters: "
        "podeval admin new-secret --reason WHY"
    )


def _beside(url: URL) -> Path:
    return Path(f"{url.database}.secret")


def _read(file: Path) -> bytes:
    try:
        key = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the secret {file}: {error.strerror}; run as the owner of this file") from error
    if len(key) < 16:
        raise BadInput(f"the secret {file} is damaged; restore it from the backup")
    return key


def _make_key(file: Path) -> bytes:
    """Create a key in a new file that only its owner can read; if another process is faster, return its key."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with explain_write_errors(file):
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(32))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_folder(file.parent)
    return _read(file)
