"""The secret of a service: what makes its tokens unforgeable and its hashes of persons useless to others."""

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput
from podeval.store.files import sync_folder, writing

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from podeval.store.database import Database

VARIABLE = "PODEVAL_SECRET"
FILE_VARIABLE = "PODEVAL_SECRET_FILE"
SHORTEST = 32
"""Characters of a secret that is set by hand."""


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
        """
        if (kept := kept_secret(database.url)) is not None:
            return cls(kept)
        if not database.is_sqlite:
            raise BadInput(
                f"set {VARIABLE} to a random text of {SHORTEST} characters or more, the same for all servers of this "
                "database: python -c 'import secrets; print(secrets.token_hex(32))'"
            )
        return cls(_made(_beside(database.url)))

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
        """A token that carries its parts, none of which may hold a dot."""
        return ".".join((*parts, self.mark(purpose, *parts)))

    def verified(self, purpose: str, token: str) -> tuple[str, ...] | None:
        """The parts of a token that this secret signed for this purpose; None where it did not."""
        if len(token) > 500 or not token.isascii():
            return None
        *parts, mark = token.split(".")
        return tuple(parts) if hmac.compare_digest(mark, self.mark(purpose, *parts)) else None


def is_set() -> bool:
    """Whether the secret comes from the environment, so that it outlives the disk of the database."""
    return bool(os.environ.get(VARIABLE) or os.environ.get(FILE_VARIABLE))


def kept_secret(url: "URL") -> bytes | None:
    """The secret of the service of a database; None where there is none yet.

    Raises:
        BadInput: it is too short, or cannot be read.
    """
    if given := os.environ.get(VARIABLE):
        if len(given) < SHORTEST:
            raise BadInput(f"{VARIABLE} has {len(given)} characters and can be guessed; use {SHORTEST} or more")
        return given.encode()
    if named := os.environ.get(FILE_VARIABLE):
        return _read(Path(named))
    beside = _beside(url)
    return _read(beside) if url.get_backend_name() == "sqlite" and beside.exists() else None


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


def _made(file: Path) -> bytes:
    """A key in a new file that only its owner reads; of two that make it at once, one wins."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with writing(file):
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as made:
            made.write(secrets.token_bytes(32))
            made.flush()
            os.fsync(made.fileno())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_folder(file.parent)
    return _read(file)
