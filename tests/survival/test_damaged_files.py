"""Files that were cut or changed behind podeval's back: what is kept, what comes back from elsewhere, what is said."""

import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena.vote_objects import VoteObjects
from podeval.errors import BadInput, StoreUnusable
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database, find_damage
from podeval.store.tables import Vote
from tests.survival.test_retention import a_run

VOTES = 20
FRAME = 24 + 4096
KILLED_AFTER_VOTES = f"""
import os, signal, sys
from pathlib import Path
from tests.fakes.small_arena import SmallArena
from podeval.arena.vote_objects import VoteObjects
arena = SmallArena(sys.argv[1], systems=12, items=4, gold_share=0.0, objects=VoteObjects(Path(sys.argv[2])))
for number in range({VOTES}):
    arena.vote(f"voter{{number % 5}}", id=f"vote-{{number:06}}")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, warm_python: Any) -> Path:
    """A folder with a database, its log and index as a killed program left them, and the bucket beside it."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copy(empty_store, folder / "podeval.db")
    assert (
        warm_python.start(KILLED_AFTER_VOTES, folder / "log", str(folder / "podeval.db"), str(folder / "bucket")).wait()
        == -signal.SIGKILL
    )
    assert (folder / "podeval.db-wal").stat().st_size > 50 * FRAME
    return folder


@pytest.fixture
def left(killed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(killed, tmp_path / "left"))


def votes(database: Database) -> set[str]:
    with database.reading() as session:
        return set(session.scalars(select(Vote.id)))


@pytest.mark.long
def test_a_log_that_a_kill_left_holds_every_vote(left: Path) -> None:
    with (left / "podeval.db-wal").open("ab") as file:
        file.write(bytes(3000))  # of a page that was being written and is not committed
    with Database(left / "podeval.db") as database:
        assert len(votes(database)) == VOTES
        assert find_damage(database) is None


@pytest.mark.parametrize("seed", range(9))
def test_what_a_log_that_was_cut_or_changed_loses_comes_back_from_the_bucket(left: Path, seed: int) -> None:
    """SQLite reads its log up to the first page that does not fit, and says nothing of the rest."""
    chance = random.Random(seed)
    log = left / "podeval.db-wal"
    content = bytearray(log.read_bytes())
    at = chance.randrange(len(content) // 2, len(content) - 2 * FRAME)
    match seed % 3:
        case 0:
            del content[at:]
        case 1:
            content[at] ^= 0x40
        case 2:
            content[:64] = bytes(64)
    log.write_bytes(content)
    with Database(left / "podeval.db") as database:
        assert find_damage(database) is None, "all of a transaction or nothing of it"
        rest = len(votes(database))
        assert rest < VOTES
        assert VoteObjects(left / "bucket").read_back(database).votes == VOTES - rest
        assert votes(database) == {f"vote-{number:06}" for number in range(VOTES)}
        assert find_damage(database) is None
        assert VoteObjects(left / "bucket").read_back(database).votes == 0


def settled(left: Path) -> Path:
    file = left / "podeval.db"
    with sqlite3.connect(file) as opened:
        opened.execute("PRAGMA journal_mode = DELETE")
    opened.close()
    return file


def test_a_page_of_the_database_that_was_changed_is_told_before_anything_is_taken(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi")
    from services import open_services

    file = settled(left)
    content = bytearray(file.read_bytes())
    with sqlite3.connect(file) as opened:
        (root,) = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = 'votes'").fetchone()
    content[(root - 1) * 4096 : root * 4096] = bytes([0xA5]) * 4096
    file.write_bytes(content)
    monkeypatch.delenv("PODEVAL_BUCKET", raising=False)
    with pytest.raises(StoreUnusable, match=r"is damaged .*podeval restore.*public log"):
        open_services(left / "runs", str(file))
    with Database(file) as database, pytest.raises(StoreUnusable, match="is damaged"), database.reading() as session:
        session.scalars(select(Vote)).all()


def test_a_site_that_starts_takes_in_what_the_bucket_has_and_says_so(
    left: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("fastapi")
    from services import open_services

    shutil.copy(empty_store, left / "new.db")
    monkeypatch.setenv("PODEVAL_BUCKET", str(left / "bucket"))
    services = open_services(left / "runs", str(left / "new.db"))
    assert votes(services.database) == {f"vote-{number:06}" for number in range(VOTES)}
    assert f"{VOTES} votes missing from the database were imported from" in caplog.text
    services.database.close()


@pytest.mark.parametrize(
    ("name", "garbage", "call"),
    [
        ("run.json", b'{"benchmark": "real', lambda folder: folder.plan()),
        ("items.json", b"\xff\xfe\x00", lambda folder: folder.items()),
        ("embedded/summary.json", b"\x00" * 4096, lambda folder: folder.summaries()),
        ("embedded/protocols.json", b'{"loudness@1', lambda folder: folder.protocols("embedded")),
        ("embedded/protocols.json", b"[]", lambda folder: folder.protocols("embedded")),
        ("embedded/results.jsonl", b'{"item": "i0", "prot\n{}\n', lambda folder: folder.results("embedded")),
        ("embedded/results.jsonl", b"\xff\xfe\n", lambda folder: folder.results("embedded")),
        ("embedded/results.jsonl", b"[1, 2]\n", lambda folder: folder.results("embedded")),
        ("outputs/i0.json", b"\x80\x81", lambda folder: folder.output("i0")),
        ("outputs/i0.json", b"{}", lambda folder: folder.output("i0")),
    ],
)
def test_a_file_of_a_run_that_holds_garbage_is_told_by_name(
    tmp_path: Path, name: str, garbage: bytes, call: Callable[[RunFolder], Any]
) -> None:
    folder = a_run(tmp_path, "echo", "", 1)
    path = folder.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(garbage)
    with pytest.raises(BadInput) as told:
        call(folder)
    assert str(path) in str(told.value)
    assert "delete" in str(told.value)


@pytest.mark.parametrize("table", ["board.parquet", "items.parquet"])
def test_a_table_of_the_board_that_holds_garbage_is_a_sentence(tmp_path: Path, table: str) -> None:
    from podeval.board.runs_folder import RunsFolder

    (tmp_path / table).write_bytes(b"PAR1" + b"\x00" * 100)
    read = {"board.parquet": RunsFolder.board, "items.parquet": RunsFolder.items}[table]
    with pytest.raises(BadInput, match="podeval report"):
        read(RunsFolder(tmp_path))


def test_a_cached_fact_that_was_cut_or_changed_is_made_anew(tmp_path: Path) -> None:
    from podeval.recording.cache import Cache

    cache = Cache(tmp_path / "cache")
    key = Cache.key("c", "fact", version=1)
    cache.put(key, b"what was computed")
    (entry,) = (path for path in cache.folder.glob("??/*"))
    for damage in (lambda data: data[: len(data) // 2], lambda data: data[:-1] + b"\x00", lambda data: b""):
        whole = entry.read_bytes()
        entry.write_bytes(damage(whole))
        assert cache.get(key) is None
        cache.put(key, b"what was computed")
        assert cache.get(key) == b"what was computed"
