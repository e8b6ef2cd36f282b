"""A backup of both kinds of database, made while votes come in, and what is refused."""

import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import inspect, select

from podeval.errors import BadInput, StoreUnusable
from podeval.metrics.score import Score
from podeval.operations import backup as backups
from podeval.operations import backup_database
from podeval.operations.restore import restore
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.store.database import Database, find_damage
from podeval.store.files import DiskFull
from podeval.store.tables import ArenaItem, ArenaOutput, TableBase, Vote

Make = Callable[..., Any]
PLAN = RunPlan(
    benchmark="real_pod", split="tiny", dataset="d@1", track="voice", system="echo", system_title="Echo",
    system_kind="model", generation={}, seed=0,
)  # fmt: skip


def a_run(runs: Path, items: int = 3) -> RunFolder:
    folder = RunFolder(runs, "real_pod", "tiny", "echo")
    folder.begin(PLAN)
    samples = np.sin(np.arange(2_000) / 20).astype(np.float32)[:, np.newaxis] / 2
    for number in range(items):
        folder.write_output(Output(item=f"i{number}", duration=0.1), samples, 16_000)
    return folder


def votes(place: str | Path) -> set[str]:
    with Database(place) as database, database.reading() as session:
        assert find_damage(database) is None
        return set(session.scalars(select(Vote.id)))


def everything(place: str | Path) -> dict[str, list[tuple[Any, ...]]]:
    with Database(place) as database, database.engine.connect() as there:
        return {
            table.name: [tuple(row) for row in there.execute(select(table).order_by(*table.primary_key))]
            for table in TableBase.metadata.sorted_tables
        }


def test_every_table_of_the_migrations_is_backed_up(database_place: str) -> None:
    with Database(database_place) as database:
        there = set(inspect(database.engine).get_table_names()) - {"alembic_version"}
    assert there == {table.name for table in backup_database.list_tables()}


@pytest.mark.parametrize("name", ["backup.tar", "backup.tar.gz", "backup.tgz"])
@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_file_of_sqlite_with_its_runs_goes_into_a_backup_and_back(
    small_arena: Make, database_place: str, tmp_path: Path, name: str
) -> None:
    small = small_arena(gold_share=0.0)
    for number in range(6):
        small.vote(small.arena.voter(f"hf:person{number % 3}"), comment="a reason — 理由")
    runs, restored = tmp_path / "runs", tmp_path / "elsewhere"
    a_run(runs)
    (runs / "podeval.db").write_bytes(b"of another site, not to be taken along")
    secret = b"s" * 32
    Path(f"{database_place}.secret").write_bytes(secret)
    made = backups.make_backup(tmp_path / name, database_place, runs, with_secret=True)
    assert (made.rows["votes"], made.runs, made.secret, made.audio) == (6, 1, True, True)
    assert backups.verify(tmp_path / name) == made

    done = restore(tmp_path / name, restored / "podeval.db", restored)
    assert done.rows["votes"] == 6
    assert everything(restored / "podeval.db") == everything(database_place)
    for path in sorted((runs / "real_pod").rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            assert (restored / path.relative_to(runs)).read_bytes() == path.read_bytes()
    kept = restored / "podeval.db.secret"
    assert kept.read_bytes() == secret
    assert kept.stat().st_mode & 0o077 == 0
    assert not [path for path in restored.iterdir() if path.name.startswith(".restoring")]


@pytest.mark.parametrize(
    ("database_place", "to"),
    [
        ("sqlite", "postgresql"),
        ("postgresql", "sqlite"),
        pytest.param("sqlite", "sqlite", marks=pytest.mark.long),
        pytest.param("postgresql", "postgresql", marks=pytest.mark.long),
    ],
    indirect=["database_place"],
)
def test_a_backup_goes_back_into_either_kind_of_database(
    small_arena: Make, database_place: str, postgresql: str, tmp_path: Path, to: str
) -> None:
    small = small_arena(systems=6, gold_share=0.5, gold_after=2)
    for _ in range(14):
        small.vote("somebody", comment="it is 100% real — 理由,\tand\\N is \r\n no\\tnull\b\x0b")
    small.arena.exclude("ballot-000002", "a test", "ada")
    made = backups.make_backup(tmp_path / "backup.tar", database_place, None)
    assert backups.verify(tmp_path / "backup.tar") == made
    place = str(tmp_path / "new.db")
    if to == "postgresql":
        import psycopg

        with psycopg.connect(f"{postgresql}/postgres", autocommit=True) as server:
            name = f"restored_{os.urandom(6).hex()}"
            server.execute(f"CREATE SCHEMA {name}")
        place = f"{postgresql}/postgres?options=-csearch_path%3D{name}"
    done = restore(tmp_path / "backup.tar", place, tmp_path / "runs")
    assert everything(place) == everything(database_place)
    assert done.rows["votes"] == 14
    again = small_arena(place, systems=6)
    again.clock.on(86_400)
    assert again.vote("another", id="after-the-restore").number == 15, "numbers go on"
    with pytest.raises(BadInput, match="--force"):
        restore(tmp_path / "backup.tar", place, tmp_path / "runs")
    again.close()
    restore(tmp_path / "backup.tar", place, tmp_path / "runs", force=True)
    assert everything(place) == everything(database_place)


def test_votes_that_come_during_a_backup_are_in_it_whole_or_not_at_all(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small = small_arena(systems=12, items=4, most_an_hour=10_000, gold_share=0.0)
    for number in range(5):
        small.vote(f"before{number}", id=f"before-{number:04}")
    before, told, stop = set(), [], threading.Event()
    before = {f"before-{number:04}" for number in range(5)}

    def go_on() -> None:
        while not stop.is_set():
            number = len(told)
            told.append(small.vote(f"meanwhile{number % 7}", id=f"meanwhile-{number:04}").vote)

    voter = threading.Thread(target=go_on)
    voter.start()
    try:
        while len(told) < 3:
            assert voter.is_alive()
        acknowledged = before | set(told)
        for number in range(3):
            backups.make_backup(tmp_path / f"backup{number}.tar", database_place, None)
        while len(told) < len(acknowledged):
            assert voter.is_alive()
    finally:
        stop.set()
        voter.join()
    for number in range(3):
        restore(tmp_path / f"backup{number}.tar", tmp_path / f"{number}.db", tmp_path / f"runs{number}")
        kept = votes(tmp_path / f"{number}.db")
        assert acknowledged <= kept, "what was acknowledged before the backup is in it"
        assert kept <= before | set(told)
    assert votes(database_place) == before | set(told), "and none was kept from voting"


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_results_written_during_a_backup_refer_to_nothing_that_is_not_in_it(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    from podeval.metrics import catalogue
    from podeval.metrics.protocol import make_protocol

    small_arena()
    runs = tmp_path / "runs"
    folder = a_run(runs, 0)
    protocol = make_protocol(catalogue.get("loudness"), {}, ("recording",), {}, dataset="d@1", generation={})
    written, stop = [0], threading.Event()
    quiet = np.zeros((800, 1), dtype=np.float32)

    def measure() -> None:
        while not stop.is_set():
            item = f"item{written[0]}"
            folder.write_output(Output(item=item, duration=0.05), quiet, 16_000)
            folder.append_results("embedded", item, [(protocol, Score({"integrated": -20.0}))])
            written[0] += 1

    worker = threading.Thread(target=measure)
    worker.start()
    try:
        while written[0] < 20:
            assert worker.is_alive()
        for number in range(3):
            backups.make_backup(tmp_path / f"backup{number}.tar", database_place, runs)
    finally:
        stop.set()
        worker.join()
    for number in range(3):
        there = tmp_path / f"restored{number}"
        restore(tmp_path / f"backup{number}.tar", there / "podeval.db", there)
        restored = RunFolder(there, "real_pod", "tiny", "echo")
        results = restored.results("embedded")
        assert len(results) >= 20
        assert {id for _, id in results} <= restored.protocols("embedded").keys()
        assert all(restored.output(item) is not None for item, _ in results)


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_recordings_of_the_arena_play_where_they_are_restored(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small = small_arena(systems=2, items=1)
    runs, outside = tmp_path / "runs", tmp_path / "recordings" / "of s1.wav"
    inside = a_run(runs).outputs / "i0.flac"
    outside.parent.mkdir()
    outside.write_bytes(b"RIFF of another folder")
    with small.database.writing() as session:
        for output, path in zip(session.scalars(select(ArenaOutput)), (inside, outside), strict=True):
            output.audio = str(path)
        session.get_one(ArenaItem, "i0").turns = [{"text": "Why?", "audio": str(tmp_path / "gone.wav")}]
    made = backups.make_backup(tmp_path / "backup.tar", database_place, runs)
    assert made.absent == [str(tmp_path / "gone.wav")]
    shutil.rmtree(outside.parent)
    there = tmp_path / "there"
    restore(tmp_path / "backup.tar", there / "podeval.db", there)
    with Database(there / "podeval.db") as database, database.reading() as session:
        paths = {Path(output.audio) for output in session.scalars(select(ArenaOutput))}
    assert {path.read_bytes()[:4] for path in paths} == {b"fLaC", b"RIFF"}
    assert all(path.is_relative_to(there) for path in paths)


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_backup_without_recordings_says_so_and_holds_the_rest(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small_arena()
    a_run(tmp_path / "runs")
    made = backups.make_backup(tmp_path / "small.tar.gz", database_place, tmp_path / "runs", with_audio=False)
    assert not made.audio
    with tarfile.open(tmp_path / "small.tar.gz") as archive:
        names = archive.getnames()
    assert "runs/real_pod/tiny/echo/outputs/i0.json" in names
    assert not [name for name in names if name.endswith((".flac", ".wav"))]


def pack(folder: Path, path: Path) -> None:
    """Make a file of tar of what is in a folder."""
    with tarfile.open(path, "w") as archive:
        for entry in sorted(folder.iterdir()):
            archive.add(entry, entry.name)


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_damaged_backup_is_told_by_file_and_changes_nothing(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small_arena().vote("alice")
    a_run(tmp_path / "runs")
    whole, unpacked = tmp_path / "backup.tar", tmp_path / "unpacked"
    backups.make_backup(whole, database_place, tmp_path / "runs")

    def refused(path: Path, says: str) -> None:
        for attempt in (backups.verify, lambda path: restore(path, tmp_path / "new.db", tmp_path / "new-runs")):
            with pytest.raises(BadInput, match=says):
                attempt(path)
        assert not (tmp_path / "new.db").exists()
        assert not (tmp_path / "new-runs").exists()

    content = whole.read_bytes()
    (tmp_path / "cut.tar").write_bytes(content[: len(content) // 3])
    refused(tmp_path / "cut.tar", "backup")
    at = content.index(b'"item": "i1"')
    (tmp_path / "flipped.tar").write_bytes(content[:at] + b'"item": "i9"' + content[at + 12 :])
    refused(tmp_path / "flipped.tar", r"outputs/i1\.json has changed since the backup")
    shutil.unpack_archive(whole, unpacked)
    manifest = json.loads((unpacked / "manifest.json").read_text())
    pack(unpacked, tmp_path / "again.tar")
    assert backups.verify(tmp_path / "again.tar") == backups.verify(whole)
    manifest["files"]["../../escaped"] = next(iter(manifest["files"].values()))
    for number, (change, says) in enumerate((
        (lambda place: (place / "runs/real_pod/tiny/echo/outputs/i1.flac").unlink(), r"lacks .*i1\.flac"),
        (lambda place: (place / "more").write_text("x"), "holds more"),
        (lambda place: (place / "database.sqlite").open("ab").write(b"x"), "database.sqlite has changed"),
        (lambda place: (place / "manifest.json").unlink(), "not a complete backup"),
        (lambda place: (place / "manifest.json").write_text("{"), "damaged"),
        (lambda place: (place / "manifest.json").write_text(json.dumps(manifest)), "points outside"),
    )):  # fmt: skip
        copy = Path(shutil.copytree(unpacked, tmp_path / f"copy{number}"))
        change(copy)
        pack(copy, tmp_path / f"changed{number}.tar")
        refused(tmp_path / f"changed{number}.tar", says)
    refused(unpacked, r"is a folder, and a backup is one file.*tar -cf \.\./unpacked\.tar")


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_backup_of_postgresql_that_a_former_version_made_of_rows_is_still_read(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small_arena().vote("alice", id="of-alice-1")
    backups.make_backup(tmp_path / "backup.tar", database_place, None)
    shutil.unpack_archive(tmp_path / "backup.tar", tmp_path / "unpacked")
    manifest = json.loads((tmp_path / "unpacked" / "manifest.json").read_text())
    del manifest["revision"]
    (tmp_path / "unpacked" / "manifest.json").write_text(json.dumps(manifest | {"kind": "postgresql", "schema": 1}))
    pack(tmp_path / "unpacked", tmp_path / "former.tar")
    assert backups.verify(tmp_path / "former.tar").database == "postgresql"
    restore(tmp_path / "former.tar", tmp_path / "new.db", tmp_path / "runs")
    assert votes(tmp_path / "new.db") == {"of-alice-1"}


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_what_is_there_is_replaced_only_when_forced_and_then_kept(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small = small_arena()
    runs = tmp_path / "runs"
    alice = small.arena.voter("hf:alice")
    small.vote(alice, id="of-alice-1")
    small.vote("bob", id="of-bob-0001")
    a_run(runs)
    backups.make_backup(tmp_path / "backup.tar", database_place, runs)
    small.vote("carol", id="of-carol-01")
    small.arena.erase("hf:alice")
    with pytest.raises(BadInput, match=r"real_pod already.*--force"):
        restore(tmp_path / "backup.tar", database_place, runs)
    with pytest.raises(StoreUnusable, match=r"podeval is running on .*stop its site and workers"):
        restore(tmp_path / "backup.tar", database_place, runs, force=True)
    assert votes(database_place) == {"of-bob-0001", "of-carol-01"}
    small.close()
    done = restore(tmp_path / "backup.tar", database_place, runs, force=True)
    assert votes(database_place) == {"of-bob-0001"}, "who asked to be forgotten since stays forgotten"
    assert done.forgotten == 1
    assert votes(done.kept[0]) == {"of-bob-0001", "of-carol-01"}
    assert (done.kept[1] / "real_pod" / "tiny" / "echo" / "run.json").is_file()


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_backup_of_an_older_version_is_brought_to_this_one(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    from alembic import command

    from podeval.store.migrate import build_configuration

    small = small_arena()
    small.vote("alice")
    with small.database.engine.execution_options(writes=True).begin() as connection:
        command.downgrade(build_configuration(connection), "0001")
    small.close()
    made = backups.make_backup(tmp_path / "old.tar", database_place, None)
    assert "submissions" not in made.rows
    done = restore(tmp_path / "old.tar", tmp_path / "new.db", tmp_path / "runs")
    assert (done.rows["votes"], done.rows["submissions"]) == (1, 0)
    with Database(tmp_path / "new.db", migrate=False) as database:
        assert find_damage(database) is None


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_backup_that_finds_no_room_leaves_nothing(small_arena: Make, database_place: str, tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for the full disk: a write beyond 400 kB fails as one on a full disk does."""
    small_arena()
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "large.json").write_bytes(os.urandom(600_000))
    for name in ("backup.tar", "backup.tar.gz"):
        place = tmp_path / "backups" / name
        place.parent.mkdir(exist_ok=True)
        with (
            no_file_larger_than(400_000),
            pytest.raises(DiskFull, match="the disk is full: there is no backup") as full,
        ):
            backups.make_backup(place, database_place, runs)
        assert str(place) in str(full.value)
        assert list(place.parent.iterdir()) == []


@contextlib.contextmanager
def no_file_larger_than(most: int) -> Iterator[None]:
    """For this process, which is told so instead of ended."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_wrong_places_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no database"):
        backups.make_backup(tmp_path / "b.tar", tmp_path / "none.db", None)
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    with pytest.raises(StoreUnusable, match="podeval arena status"):
        backups.make_backup(tmp_path / "b.tar", tmp_path / "broken.db", None)
    (tmp_path / "full.tgz").touch()
    with pytest.raises(BadInput, match="a name of its own"):
        backups.make_backup(tmp_path / "full.tgz", tmp_path / "broken.db", None)
    with pytest.raises(BadInput, match=r"does not end in \.tar or \.tar\.gz or \.tgz"):
        backups.make_backup(tmp_path / "folder", tmp_path / "broken.db", None)
    with pytest.raises(BadInput, match="there is no backup"):
        backups.verify(tmp_path / "nowhere")
    assert issubclass(DiskFull, Exception)
    assert not (tmp_path / "b.tar").exists()


def test_the_command_line_backs_up_checks_and_restores(empty_store: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    a_run(runs)
    shutil.copy(empty_store, runs / "podeval.db")

    def podeval(*arguments: str, code: int = 0) -> str:
        from typer.testing import CliRunner

        from podeval.cli import app

        done = CliRunner().invoke(app, list(arguments), env={"DATABASE_URL": ""})
        if code == 0:
            assert done.exit_code == 0, (done.output, done.exception)
            return done.output
        return str(done.exception)

    place, other = str(tmp_path / "b.tar"), str(tmp_path / "other")
    told = podeval("backup", place, "--runs", str(runs))
    assert "0 votes, 0 submissions, 1 runs with recordings" in told
    assert "The secret is not in the backup" in told
    assert "is whole" in podeval("backup", place, "--verify")
    assert json.loads(podeval("backup", place, "--verify", "--json"))["runs"] == 1
    assert "restored to" in podeval("restore", place, "--runs", other)
    assert "already" in podeval("restore", place, "--runs", other, code=2)
    with sqlite3.connect(Path(other) / "podeval.db") as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
