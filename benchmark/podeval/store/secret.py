"""The secret of a service: what makes its tokens unforgeable and its hashes of persons useless to others.

The database keeps a check value of it, a keyed hash of a constant, which tells nothing of it: with another secret
everybody would be a new voter, without a word and with votes that count again. So another one is refused, unless an
operator says that it may be (`podeval admin new-secret`).
"""

import base64
import hashlib
import hmac
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.store import operator_settings
from podeval.store.files import sync_folder, writing
from podeval.store.tables import Pseudonym

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from podeval.store.database import Database

VARIABLE = "PODEVAL_SECRET"
FILE_VARIABLE = "PODEVAL_SECRET_FILE"
SHORTEST = 32
"""Characters of a secret that is set by hand."""
_CHECK = "check value"


class SecretLost(BadInput):
    """The people in a database are known by another secret than the one that is there."""


class Secret:
    """A key for keyed hashes, one kind of hash for each purpose.

    Args:
        key: at least 16 bytes.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise BadInput(f"a secret of {len(key)} bytes can be guessed; take at least 16")
        self._key = key

    @classmethod
    def of(cls, database: "Database") -> "Secret":
        """From the environment, or a file named there; for a file of SQLite else from one beside it, which is made.

        Raises:
            BadInput: it is too short, or there is none and the database is a server.
            SecretLost: the people in the database are known by another one.
        """
        kept = read_secret(database.url)
        with database.reading() as session:
            if lost := explain_loss(session, database, kept):
                raise SecretLost(lost)
            check = operator_settings.secret_check(session)
        secret = cls(kept or _make_secret(database))
        if check != secret.mark(_CHECK):
            database.write(lambda session: secret._settle(session, database))
        return secret

    @classmethod
    def where_kept(cls, database: "Database") -> "Secret":
        """The same; where it is lost, one of which every use is refused, so that what needs none goes on.

        Raises:
            BadInput: see `of`.
        """
        try:
            return cls.of(database)
        except SecretLost as error:
            return _Lost(error)

    def _settle(self, session: Session, database: "Database") -> None:
        """Keep the check value, unless people are known by another one."""
        if lost := explain_loss(session, database, self._key):
            raise SecretLost(lost)
        operator_settings.set_secret_check(session, self.mark(_CHECK), "podeval", datetime.now(UTC))

    def digest(self, purpose: str, *parts: str) -> bytes:
        """32 bytes that nobody else can compute."""
        message = b"".join(
            len(part).to_bytes(4, "big") + part for part in (text.encode() for text in (purpose, *parts))
        )
        return hmac.new(self._key, message, hashlib.sha256).digest()

    def mark(self, purpose: str, *parts: str) -> str:
        """A digest in 22 characters that stand in an address."""
        return base64.urlsafe_b64encode(self.digest(purpose, *parts)[:16]).decode().rstrip("=")

    def sign(self, purpose: str, *parts: str) -> str:
        """Make a token that carries its parts, none of which may hold a dot."""
        return ".".join((*parts, self.mark(purpose, *parts)))

    def verify(self, purpose: str, token: str) -> tuple[str, ...] | None:
        """Return the parts of a token that this secret signed for this purpose; None where it did not."""
        if len(token) > 500 or not token.isascii():
            return None
        *parts, mark = token.split(".")
        return tuple(parts) if hmac.compare_digest(mark, self.mark(purpose, *parts)) else None


class _Lost(Secret):
    """Stands where the secret is lost, and says so to whoever asks for anything that is made with it."""

    def __init__(self, error: SecretLost) -> None:
        super().__init__(secrets.token_bytes(32))
        self._error = error

    def digest(self, purpose: str, *parts: str) -> bytes:
        """Nothing: it is refused."""
        raise SecretLost(str(self._error))


def renew(database: "Database", reason: str, by: str) -> int:
    """Take another secret, by which nobody in the database is known; how many people were known by the one before.

    One that comes from the environment is taken as it is; a file beside the database is made anew, the one that was
    there is kept under a name that says when.

    Args:
        database: whose; nothing else may be using it.
        reason: why, for the trail.
        by: who decided it, likewise.

    Raises:
        BadInput: the environment holds the secret that the database knows already, or one that is too short.
    """
    now = datetime.now(UTC)
    beside = _beside(database.url)
    if is_set():
        kept = read_secret(database.url)
        assert kept is not None
    else:
        if beside.exists():
            with writing(beside):
                beside.rename(beside.with_name(f"{beside.name}.before-{now:%Y%m%dT%H%M%S%f}"))
        kept = _make_secret(database)
    check = Secret(kept).mark(_CHECK)

    def work(session: Session) -> int:
        if operator_settings.secret_check(session) == check:
            raise BadInput(f"the database {database.name} knows this secret; set another {VARIABLE} first")
        people = _count_people(session)
        operator_settings.set_secret_check(session, check, by, now)
        operator_settings.note(session, "secret renewed", f"{people} people", reason, by, now)
        return people

    return database.write(work)


def is_set() -> bool:
    """Whether the secret comes from the environment, so that it outlives the disk of the database."""
    return bool(os.environ.get(VARIABLE) or os.environ.get(FILE_VARIABLE))


def read_secret(url: "URL") -> bytes | None:
    """Read the secret of the service of a database; None where there is none yet.

    Raises:
        BadInput: it is too short, or cannot be read.
    """
    if value := os.environ.get(VARIABLE):
        if len(value) < SHORTEST:
            raise BadInput(f"{VARIABLE} has {len(value)} characters and can be guessed; use {SHORTEST} or more")
        return value.encode()
    if path := os.environ.get(FILE_VARIABLE):
        return _read(Path(path))
    beside = _beside(url)
    return _read(beside) if url.get_backend_name() == "sqlite" and beside.exists() else None


def _make_secret(database: "Database") -> bytes:
    """Make a secret where there is none: made beside a file of SQLite; that of a server is the operator's to make."""
    if not database.is_sqlite:
        raise BadInput(
            f"set {VARIABLE} to a random text of {SHORTEST} characters or more, the same for all servers of this "
            "database: python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return _make_key(_beside(database.url))


def _count_people(session: Session) -> int:
    """Count the people that a database knows by a secret."""
    return session.scalar(select(func.count()).select_from(Pseudonym)) or 0


def explain_loss(session: Session, database: "Database", kept: bytes | None) -> str:
    """Explain why a secret is not the one that knows the people in a database; empty where it is, or there are none.

    Args:
        session: of the database.
        database: itself.
        kept: the secret that is there, if there is one.
    """
    if not (people := _count_people(session)):
        return ""
    check = operator_settings.secret_check(session)
    if kept is not None and check in (None, Secret(kept).mark(_CHECK)):
        return ""
    location = f"the file {_beside(database.url)}" if database.is_sqlite else f"{VARIABLE} or {FILE_VARIABLE}"
    how = "not there" if kept is None else "not the one that is there"
    return (
        f"the secret by which {database.name} knows {people} people is {how}: "
        f"each would be a new voter, whose votes count again. Put it back as {location}, from where you keep it or "
        "from a backup made --with-secret; or, where it is gone for good, say that all of them may be new: "
        "podeval admin new-secret --reason WHY"
    )


def _beside(url: "URL") -> Path:
    return Path(f"{url.database}.secret")


def _read(file: Path) -> bytes:
    try:
        key = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the secret {file}: {error.strerror}; run as its owner") from error
    if len(key) < 16:
        raise BadInput(f"the secret {file} is damaged; restore it from the backup")
    return key


def _make_key(file: Path) -> bytes:
    """Make a key in a new file that only its owner reads; of two that make it at once, one wins."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with writing(file):
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
