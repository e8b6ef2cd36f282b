"""The service and the backup find the same secret."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.secret import Secret, kept_secret


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.delenv("PODEVAL_SECRET", raising=False)
    monkeypatch.delenv("PODEVAL_SECRET_FILE", raising=False)
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


def same(database: Database, key: bytes) -> bool:
    return kept_secret(database.url) == key and Secret.of(database).digest("a") == Secret(key).digest("a")


def test_the_environment_goes_before_a_named_file_and_that_before_the_one_beside(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept_secret(database.url) is None
    Secret.of(database)
    beside = tmp_path / "podeval.db.secret"
    assert same(database, beside.read_bytes())
    (tmp_path / "named").write_bytes(b"n" * 32)
    monkeypatch.setenv("PODEVAL_SECRET_FILE", str(tmp_path / "named"))
    assert same(database, b"n" * 32)
    monkeypatch.setenv("PODEVAL_SECRET", "e" * 32)
    assert same(database, b"e" * 32)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PODEVAL_SECRET", "short", "can be guessed; use 32 or more"),
        ("PODEVAL_SECRET_FILE", "/none", "cannot read the secret /none"),
    ],
)
def test_a_secret_that_the_service_refuses_is_not_backed_up(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    for ask in (lambda: Secret.of(database), lambda: kept_secret(database.url)):
        with pytest.raises(BadInput, match=says):
            ask()


def test_of_two_that_make_it_at_once_one_wins(database: Database, tmp_path: Path) -> None:
    found: list[bytes] = []
    start = threading.Barrier(4)

    def make() -> None:
        start.wait()
        found.append(Secret.of(database).digest("a"))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.glob("*secret*")] == ["podeval.db.secret"]
    assert (tmp_path / "podeval.db.secret").stat().st_mode & 0o777 == 0o600
