"""The service and the backup find the same secret."""

import string
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podeval.arena import Arena
from podeval.errors import BadInput
from podeval.listening import Listening
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.pseudonyms import make_pseudonym
from podeval.store.secret import Secret, SecretLost, read_secret, renew


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.delenv("PODEVAL_SECRET", raising=False)
    monkeypatch.delenv("PODEVAL_SECRET_FILE", raising=False)
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


def same(database: Database, key: bytes) -> bool:
    return read_secret(database.url) == key and Secret.of(database).digest("a") == Secret(key).digest("a")


def test_the_environment_goes_before_a_named_file_and_that_before_the_one_beside(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_secret(database.url) is None
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
    for ask in (lambda: Secret.of(database), lambda: read_secret(database.url)):
        with pytest.raises(BadInput, match=says):
            ask()


def test_of_two_that_make_it_at_once_one_wins(database: Database, tmp_path: Path) -> None:
    start = threading.Barrier(4)

    def make(_: int) -> bytes:
        start.wait()
        return Secret.of(database).digest("a")

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(make, range(4)))) == 1
    assert [path.name for path in tmp_path.glob("*secret*")] == ["podeval.db.secret"]
    assert (tmp_path / "podeval.db.secret").stat().st_mode & 0o777 == 0o600


def known_people(database: Database, secret: Secret, *identities: str) -> list[str]:
    """Pseudonyms of people, made by a secret."""
    return [database.write(lambda session, who=who: make_pseudonym(session, secret, who)) for who in identities]


def test_with_another_secret_than_the_people_are_known_by_nothing_begins(database: Database, tmp_path: Path) -> None:
    beside = tmp_path / "podeval.db.secret"
    known = known_people(database, Secret.of(database), "hf:alice", "hf:bob")
    kept = beside.read_bytes()
    beside.unlink()
    for what in ("is not there", "is not the secret that is stored there"):
        with pytest.raises(SecretLost, match=f"recognises 2 people {what}; .*podeval admin new-secret") as refused:
            Secret.of(database)
        assert str(beside) in str(refused.value)
        assert beside.exists() == (what != "is not there"), "none is made"
        beside.write_bytes(b"another" * 5)
    beside.write_bytes(kept)
    assert known_people(database, Secret.of(database), "hf:alice", "hf:bob") == known


def test_a_database_of_before_keeps_the_secret_that_is_there_and_none_without_it(
    database: Database, tmp_path: Path
) -> None:
    beside = tmp_path / "podeval.db.secret"
    beside.write_bytes(b"before" * 6)
    known_people(database, Secret(b"before" * 6), "hf:alice")
    beside.rename(tmp_path / "elsewhere")
    with pytest.raises(SecretLost):
        Secret.of(database)
    (tmp_path / "elsewhere").rename(beside)
    Secret.of(database)
    beside.write_bytes(b"another" * 5)
    with pytest.raises(SecretLost):
        Secret.of(database)


def test_a_new_secret_is_taken_where_an_operator_says_so(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / "podeval.db.secret"
    (alice,) = known_people(database, Secret.of(database), "hf:alice")
    before = beside.read_bytes()
    assert renew(database, "it was seen by others", "root") == 1
    assert beside.read_bytes() != before
    assert [path.read_bytes() for path in tmp_path.glob("podeval.db.secret.before-*")] == [before]
    assert known_people(database, Secret.of(database), "hf:alice") != [alice]
    with database.reading() as session:
        (noted,) = operator_settings.read_trail(session)
    assert (noted.action, noted.reason, noted.made_by) == ("secret renewed", "it was seen by others", "root")
    monkeypatch.setenv("PODEVAL_SECRET", "e" * 32)
    assert renew(database, "it comes from the environment now", "root") == 2
    assert same(database, b"e" * 32)
    with pytest.raises(BadInput, match="already uses this secret; set a different PODEVAL_SECRET first"):
        renew(database, "again", "root")


def test_what_needs_no_secret_goes_on_without_it(database: Database, tmp_path: Path) -> None:
    known_people(database, Secret.of(database), "hf:alice")
    (tmp_path / "podeval.db.secret").unlink()
    arena, listening = Arena(database), Listening(database)
    assert (arena.counts().battles, listening.tests()) == (0, [])
    for use in (
        lambda: arena.voter("hf:alice"),
        lambda: arena.erase("hf:alice"),
        lambda: arena.origin("127.0.0.1"),
        lambda: arena.sounds.find("a.name.of.some"),
    ):
        with pytest.raises(SecretLost):
            use()


def test_a_site_does_not_start_without_the_secret_of_its_people(database: Database, tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    from services import open_services

    known_people(database, Secret.of(database), "hf:alice")
    (tmp_path / "podeval.db.secret").unlink()
    with pytest.raises(SecretLost, match="each of them would be a new voter"):
        open_services(tmp_path, str(tmp_path / "podeval.db"))


def test_a_token_is_of_one_secret_and_one_purpose_and_no_letter_of_it_can_change() -> None:
    secret = Secret(b"s" * 32)
    token = secret.sign("audio", "battle7", "a", "whole")
    assert secret.verify("audio", token) == ("battle7", "a", "whole")
    assert secret.verify("battle", token) is None
    assert Secret(b"t" * 32).verify("audio", token) is None
    for place, letter in enumerate(token):
        forged = token[:place] + ("x" if letter != "x" else "y") + token[place + 1 :]
        assert secret.verify("audio", forged) is None, forged
    # The last letter of base64 has spare bits: four of the sixty-four spell one signature, whatever it is.
    alphabet = string.ascii_letters + string.digits + "-_"
    for battle in map(str, range(50)):
        token = secret.sign("battle", battle)
        assert [last for last in alphabet if secret.verify("battle", token[:-1] + last)] == [token[-1]]
    for hostile in ("", ".", "battle7", token.rpartition(".")[0], token + "=", "ü" + token, "." * 600):
        assert secret.verify("audio", hostile) is None
