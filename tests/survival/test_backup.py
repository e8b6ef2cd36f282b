"""A backup of both kinds of database, made while votes come in, and what is refused."""

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, inspect, select, text

from podeval.errors import BadInput, StoreUnusable
from podeval.files import DiskFull
from podeval.metrics.score import Score
from podeval.operations import backup as backups
from podeval.operations.restore import restore
from podeval.runs.run_folder import Output, RunFolder
from podeval.store.database import Database, find_damage
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaItem, ArenaOutput, ListeningTest, TableBase, Vote
from podeval.submissions import moderation
from tests.fakes.command import refuse_command, run_command
from tests.fakes.databases import ON_SQLITE, Make
from tests.survival.test_retention import a_run


def votes(place: str | Path) -> set[str]:
    with Database(place) as database, database.reading() as session:
        assert find_damage(database) is None
        return set(session.scalars(select(Vote.id)))


def everything(place: str | Path, without: str = "audio") -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, without a column: the paths of recordings change with the place."""
    with Database(place) as database, database.engine.connect() as there:
        return {
            table.name: [
                tuple(row)
                for row in there.execute(
                    select(*(column for column in table.c if column.name != without)).order_by(*table.primary_key)
                )
            ]
            for table in TableBase.metadata.sorted_tables
        }


def test_every_table_of_the_migrations_is_backed_up(database_place: str) -> None:
    with Database(database_place) as database:
        there = set(inspect(database.engine).get_table_names()) - {"alembic_version"}
    assert there == {table.name for table in TableBase.metadata.sorted_tables}


@pytest.mark.parametrize("name", ["backup.tar", "backup.tar.gz", "backup.tgz"])
@ON_SQLITE
def test_a_file_of_sqlite_with_its_runs_goes_into_a_backup_and_back(
    small_arena: Make, database_place: str, tmp_path: Path, name: str
) -> None:
    small = small_arena(gold_share=0.0)
    for number in range(6):
        small.vote(small.arena.voter(f"hf:person{number % 3}"), comment="a reason — 理由")
    runs, restored = tmp_path / "runs", tmp_path / "elsewhere"
    a_run(runs, "echo", "")
    (runs / "podeval.db").write_bytes(b"of another site, not to be taken along")
    secret = b"s" * 32
    Path(f"{database_place}.secret").write_bytes(secret)
    made = backups.make_backup(tmp_path / name, database_place, runs, with_secret=True)
    assert made.contents == "6 votes, 0 submissions, 1 runs"

    restore(tmp_path / name, restored / "podeval.db", restored)
    assert everything(restored / "podeval.db") == everything(database_place)
    for path in sorted((runs / "real_pod").rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            assert (restored / path.relative_to(runs)).read_bytes() == path.read_bytes()
    kept = restored / "podeval.db.secret"
    assert kept.read_bytes() == secret
    assert kept.stat().st_mode & 0o077 == 0
    assert not [path for path in restored.iterdir() if path.name.startswith(".restoring")]


@pytest.mark.parametrize("database_place", ["sqlite", "postgresql"], indirect=True)
def test_either_kind_of_database_goes_back_into_a_server(
    small_arena: Make, database_place: str, server_place: str, tmp_path: Path
) -> None:
    small = small_arena(systems=6, gold_share=0.5, gold_after=2)
    for _ in range(14):
        small.vote(small.arena.voter("hf:somebody"), comment="it is 100% real — 理由,\tand\\N is \r\n no\\tnull\b\x0b")
    small.arena.decide("ballot-000002", "excluded", "a test", "ada")
    runs, backup = tmp_path / "runs", tmp_path / "backup.tar"
    runs.mkdir()
    with small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput)):
            output.audio = str(runs / output.audio.lstrip("/"))
    backups.make_backup(backup, database_place, runs)
    restore(backup, server_place, runs)
    assert everything(server_place) == everything(database_place)
    assert len(votes(server_place)) == 14
    again = small_arena(server_place, systems=0)
    again.clock.on(86_400)
    assert again.vote("another", id="after-the-restore").number == 15, "numbers go on"
    with pytest.raises(BadInput, match="--force"):
        restore(backup, server_place, runs)
    again.arena.erase("hf:somebody")
    again.close()
    assert restore(backup, server_place, runs, force=True).forgotten == 1
    assert votes(server_place) == set(), "who asked to be forgotten since stays forgotten"
    with Database(server_place) as database:
        assert not [name for name in inspect(database.engine).get_schema_names() if name.startswith("podeval_")]


def test_votes_that_come_during_a_backup_are_in_it_whole_or_not_at_all(
    small_arena: Make, database_place: str, server_place: str, tmp_path: Path
) -> None:
    small = small_arena(systems=12, items=4, most_an_hour=10_000, gold_share=0.0)
    for number in range(5):
        small.vote(f"before{number}", id=f"before-{number:04}")
    told, stop = [], threading.Event()
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
            backups.make_backup(tmp_path / f"backup{number}.tar", database_place, tmp_path / "none")
        while len(told) < len(acknowledged):
            assert voter.is_alive()
    finally:
        stop.set()
        voter.join()
    for number in range(3):
        restored = tmp_path / f"{number}.db" if database_place.endswith(".db") else server_place
        restore(tmp_path / f"backup{number}.tar", restored, tmp_path / f"runs{number}", force=True)
        kept = votes(restored)
        assert acknowledged <= kept, "what was acknowledged before the backup is in it"
        assert kept <= before | set(told)
    assert votes(database_place) == before | set(told), "and none was kept from voting"


@ON_SQLITE
def test_a_takedown_during_a_backup_is_noted_next_to_it(
    small_arena: Make, database_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, runs, backup = small_arena(), tmp_path / "runs", tmp_path / "backup.tar"
    a_run(runs, "echo", "")
    decision = moderation.TakenDown("s", "stolen", "ada", small.clock.now)
    copy = backups.copy_database

    def copy_and_take_down(*places: Any) -> Any:
        # A takedown notes itself after its rows; only the note matters here.
        moderation._note_beside_backups(decision, runs, print)
        return copy(*places)

    monkeypatch.setattr(backups, "copy_database", copy_and_take_down)
    backups.make_backup(backup, database_place, runs)
    # What lies next to a backup is read by a restore alone.
    assert moderation._read_beside(backup) == [decision]


@ON_SQLITE
def test_results_written_during_a_backup_refer_to_nothing_that_is_not_in_it(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    from podeval.metrics import catalogue
    from podeval.metrics.catalogue import make_protocol

    small_arena()
    runs = tmp_path / "runs"
    folder = a_run(runs, "echo", "", 0)
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


@ON_SQLITE
def test_recordings_of_the_arena_play_where_they_are_restored(
    small_arena: Make, database_place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = small_arena(systems=2, items=1)
    runs, outside = tmp_path / "runs", tmp_path / "recordings" / "of s1.wav"
    inside = a_run(runs, "echo", "").outputs / "i0.flac"
    outside.parent.mkdir()
    outside.write_bytes(b"RIFF of another folder")
    with small.database.writing() as session:
        for output, path in zip(session.scalars(select(ArenaOutput)), (inside, outside), strict=True):
            output.audio = str(path)
        session.get_one(ArenaItem, "i0").turns = [{"text": "Why?", "audio": str(tmp_path / "gone.wav")}]
    backups.make_backup(tmp_path / "backup.tar", database_place, runs)
    assert f"no longer exists, so it is not in the backup: {tmp_path / 'gone.wav'}" in caplog.text
    shutil.rmtree(outside.parent)
    there = tmp_path / "there"
    restore(tmp_path / "backup.tar", there / "podeval.db", there)
    with Database(there / "podeval.db") as database, database.reading() as session:
        paths = {Path(output.audio) for output in session.scalars(select(ArenaOutput))}
    assert {path.read_bytes()[:4] for path in paths} == {b"fLaC", b"RIFF"}
    assert all(path.is_relative_to(there) for path in paths)
    outside.parent.mkdir()
    outside.write_bytes(b"RIFF of another folder")
    with Database(there / "podeval.db") as database, database.writing() as session:
        session.get_one(ArenaItem, "i0").turns = [{"text": "Why?", "audio": str(outside)}]
    backups.make_backup(tmp_path / "again.tar", there / "podeval.db", there)
    restore(tmp_path / "again.tar", there / "podeval.db", there, force=True)
    assert len(list((there / "sounds").iterdir())) == 2, "a second restore keeps those of the first"


def pack(folder: Path, path: Path) -> None:
    """Make a file of tar of what is in a folder."""
    with tarfile.open(path, "w") as archive:
        for entry in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.add(entry, entry.relative_to(folder))


@ON_SQLITE
def test_a_damaged_backup_is_told_by_file_and_changes_nothing(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small_arena().vote("alice")
    a_run(tmp_path / "runs", "echo", "")
    whole, unpacked = tmp_path / "backup.tar", tmp_path / "unpacked"
    backups.make_backup(whole, database_place, tmp_path / "runs")

    def refused(path: Path, says: str) -> None:
        with pytest.raises(BadInput, match=says):
            restore(path, tmp_path / "new.db", tmp_path / "new-runs")
        assert not (tmp_path / "new.db").exists()
        assert not list((tmp_path / "new-runs").glob("*"))

    content = whole.read_bytes()
    (tmp_path / "cut.tar").write_bytes(content[: len(content) // 3])
    refused(tmp_path / "cut.tar", "backup")
    at = content.index(b'"item": "i1"')
    (tmp_path / "flipped.tar").write_bytes(content[:at] + b'"item": "i9"' + content[at + 12 :])
    refused(tmp_path / "flipped.tar", r"has changed since it was made, in .*outputs/i1\.json;")
    shutil.unpack_archive(whole, unpacked)
    manifest = json.loads((unpacked / "manifest.json").read_text())
    pack(unpacked, tmp_path / "again.tar")
    restore(tmp_path / "again.tar", tmp_path / "again.db", tmp_path / "again-runs")
    manifest["files"]["../../escaped"] = next(iter(manifest["files"].values()))
    for number, (change, says) in enumerate((
        (lambda place: (place / "runs/real_pod/tiny/echo/outputs/i1.flac").unlink(), r"has changed .* in .*i1\.flac;"),
        (lambda place: (place / "runs/more").write_text("x"), "has changed .* in runs/more;"),
        (lambda place: (place / "database.sqlite").open("ab").write(b"x"), "has changed .* in database.sqlite;"),
        (lambda place: (place / "manifest.json").unlink(), "missing"),
        (lambda place: (place / "manifest.json").write_text("{"), "damaged"),
        (lambda place: (place / "manifest.json").write_text(json.dumps(manifest)), "has changed .* in .*escaped;"),
    )):  # fmt: skip
        copy = Path(shutil.copytree(unpacked, tmp_path / f"copy{number}"))
        change(copy)
        pack(copy, tmp_path / f"changed{number}.tar")
        refused(tmp_path / f"changed{number}.tar", says)
    refused(unpacked, "cannot be read as a backup")


@ON_SQLITE
@pytest.mark.parametrize(
    ("hostile", "says"),
    [
        ({"name": "../../escaped"}, "does not belong in"),
        ({"name": "/tmp/escaped"}, "does not belong in"),
        ({"name": "runs/../../escaped"}, "does not belong in"),
        ({"name": "runs/podeval.db"}, "does not belong in"),
        ({"name": "runs/.backups.jsonl"}, "does not belong in"),
        ({"name": "etc/passwd"}, "does not belong in"),
        ({"name": "runs/x", "type": tarfile.SYMTYPE, "linkname": "/etc"}, "links, devices"),
        ({"name": "runs/x", "type": tarfile.LNKTYPE, "linkname": "database.sqlite"}, "links, devices"),
        ({"name": "runs/x", "type": tarfile.CHRTYPE}, "links, devices"),
        ({"name": "runs/x", "type": tarfile.FIFOTYPE}, "links, devices"),
        ({"name": "database.sqlite"}, "a duplicate name"),
        ({"name": "runs/x", "size": 1 << 60}, "use another|the disk is full"),
    ],
)
def test_a_backup_that_names_anything_outside_is_refused(
    small_arena: Make, database_place: str, tmp_path: Path, hostile: dict[str, Any], says: str
) -> None:
    small_arena()
    a_run(tmp_path / "runs", "echo", "")
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "runs")
    member = tarfile.TarInfo()
    for key, value in hostile.items():
        setattr(member, key, value)
    with tarfile.open(tmp_path / "backup.tar") as whole, tarfile.open(tmp_path / "hostile.tar", "w") as changed:
        for entry in whole.getmembers():
            content = whole.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name == "manifest.json":
                manifest = json.loads(content)
                manifest["files"].setdefault(member.name, "0")
                content = json.dumps(manifest).encode()
                entry.size = len(content)
            changed.addfile(entry, io.BytesIO(content))
        changed.addfile(member)
    folder = set(tmp_path.iterdir())
    with pytest.raises((BadInput, DiskFull), match=says):
        restore(tmp_path / "hostile.tar", tmp_path / "new.db", tmp_path / "runs", force=True)
    assert set(tmp_path.iterdir()) == folder


def rewrite(backup: Path, target: Path, sql: str, **fields: Any) -> None:
    """Make a backup as someone makes one who wants it to be restored: its sums are right."""
    unpacked = target.with_suffix("")
    shutil.unpack_archive(backup, unpacked)
    with contextlib.closing(sqlite3.connect(unpacked / "database.sqlite")) as opened, opened:
        opened.executescript(sql)
    manifest = json.loads((unpacked / "manifest.json").read_text()) | fields
    content = (unpacked / "database.sqlite").read_bytes()
    manifest["files"]["database.sqlite"] = hashlib.sha256(content).hexdigest()
    (unpacked / "manifest.json").write_text(json.dumps(manifest))
    pack(unpacked, target)


@ON_SQLITE
def test_no_row_of_a_restored_database_names_a_file_outside(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small = small_arena(systems=2, items=1)
    design = {"items": [{"stimuli": {"a": {"audio": "/etc/hostname"}, "b": {"audio": "../../x.wav"}}}]}
    with small.database.writing() as session:
        first, second = session.scalars(select(ArenaOutput))
        first.audio, second.audio = "/etc/hostname", "/old/runs/../../etc/hostname"
        session.get_one(ArenaItem, "i0").turns = [
            {"text": "Why?", "audio": "/etc/hostname"},
            {"text": "Where?", "audio": "https://example.org/a.wav"},
        ]
        session.add(
            ListeningTest(id="t", name="t", kind="mushra", design=design, digest="t", created_at=small.clock.now)
        )
        moment = {"not_before": small.clock.now, "submitted_at": small.clock.now, "state_at": small.clock.now}
        session.add(
            SubmissionRow(
                id="s", number=1, owner="o", system="s", kind="outputs", digest="d", document={}, place="/etc",
                state="queued", **moment,
            )
        )  # fmt: skip
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    rewrite(tmp_path / "backup.tar", tmp_path / "hostile.tar", "", runs="/old/runs", sounds={})
    there = tmp_path / "there"
    restore(tmp_path / "hostile.tar", there / "podeval.db", there)
    with Database(there / "podeval.db") as database, database.reading() as session:
        assert {output.audio for output in session.scalars(select(ArenaOutput))} == {""}
        documents = json.dumps([session.get_one(ArenaItem, "i0").turns, session.get_one(ListeningTest, "t").design])
        assert documents.count(f'"audio": "{there.resolve()}/sounds/absent"') == 3
        assert '"audio": "https://example.org/a.wav"' in documents
        assert session.get_one(SubmissionRow, "s").place == ""
    for number, name in enumerate(("../../../../x.wav", "/etc/hostname", "runs/../../x.wav", "runs//etc/hostname")):
        rewrite(tmp_path / "backup.tar", tmp_path / f"sounds{number}.tar", "", sounds={"/etc/hostname": name})
        restore(tmp_path / f"sounds{number}.tar", there / "podeval.db", there, force=True)
        with Database(there / "podeval.db") as database:
            assert set(database.list_rows(select(ArenaOutput.audio))) == {""}


@ON_SQLITE
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON votes BEGIN DELETE FROM votes WHERE id <> new.id; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (id INTEGER)",
        "ALTER TABLE votes ADD COLUMN more TEXT",
        "DROP INDEX ix_submissions_owner",
    ],
)
def test_a_database_with_other_than_the_tables_of_its_version_is_refused(
    small_arena: Make, database_place: str, tmp_path: Path, sql: str
) -> None:
    small_arena()
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    rewrite(tmp_path / "backup.tar", tmp_path / "same.tar", "ANALYZE")
    restore(tmp_path / "same.tar", tmp_path / "same.db", tmp_path / "runs")
    rewrite(tmp_path / "backup.tar", tmp_path / "hostile.tar", sql)
    with pytest.raises(StoreUnusable, match="differs from that of its version"):
        restore(tmp_path / "hostile.tar", tmp_path / "new.db", tmp_path / "runs")
    assert not (tmp_path / "new.db").exists()


@ON_SQLITE
def test_what_is_there_is_replaced_only_when_forced_and_then_kept(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small = small_arena()
    runs = tmp_path / "runs"
    alice = small.arena.voter("hf:alice")
    small.vote(alice, id="of-alice-1")
    small.vote("bob", id="of-bob-0001")
    a_run(runs, "echo", "")
    backups.make_backup(tmp_path / "backup.tar", database_place, runs)
    small.vote("carol", id="of-carol-01")
    small.arena.erase("hf:alice")
    with pytest.raises(BadInput, match=r"already contains real_pod.*--force"):
        restore(tmp_path / "backup.tar", database_place, runs)
    with pytest.raises(StoreUnusable, match=r"podeval is running on .*stop its site and workers"):
        restore(tmp_path / "backup.tar", database_place, runs, force=True)
    assert votes(database_place) == {"of-bob-0001", "of-carol-01"}
    small.close()
    done = restore(tmp_path / "backup.tar", database_place, runs, force=True)
    assert votes(database_place) == {"of-bob-0001"}, "who asked to be forgotten since stays forgotten"
    assert done.forgotten == 1
    assert done.kept
    assert votes(done.kept / Path(database_place).name) == {"of-bob-0001", "of-carol-01"}
    assert (done.kept / "real_pod" / "tiny" / "echo" / "run.json").is_file()


@ON_SQLITE
def test_a_backup_contains_nothing_of_deleted_rows(small_arena: Make, database_place: str, tmp_path: Path) -> None:
    """Some builds of SQLite leave what a deleted row contained in the file, as this setting does."""
    small_arena()
    with contextlib.closing(sqlite3.connect(database_place)) as opened:
        opened.executescript("PRAGMA secure_delete = OFF; CREATE TABLE t (c); INSERT INTO t VALUES ('words of alice')")
        opened.executescript("PRAGMA secure_delete = OFF; DROP TABLE t")
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    assert b"words of alice" not in (tmp_path / "backup.tar").read_bytes()


@ON_SQLITE
def test_a_damaged_database_is_not_replaced_unread(small_arena: Make, database_place: str, tmp_path: Path) -> None:
    """Who asked to be forgotten, and what was taken down, would be lost with it."""
    small_arena().vote("alice", id="of-alice-1")
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    with pytest.raises(
        StoreUnusable, match=r"takedowns cannot be read .* move that database to another folder and restore again"
    ):
        restore(tmp_path / "backup.tar", damaged, tmp_path / "runs", force=True)
    assert damaged.stat().st_size == 5016
    damaged.rename(tmp_path / "aside.db")
    Path(f"{damaged}-wal").write_bytes(b"of the damaged database")
    restore(tmp_path / "backup.tar", damaged, tmp_path / "runs", force=True)
    assert [path.name for path in (tmp_path / "runs").glob(".before-restore-*/*")] == ["damaged.db-wal"]
    assert votes(damaged) == {"of-alice-1"}


@ON_SQLITE
def test_a_database_is_restored_onto_another_disk_than_the_runs(
    small_arena: Make, database_place: str, tmp_path: Path
) -> None:
    small_arena().vote("alice", id="of-alice-1")
    backups.make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        if os.stat(memory).st_dev == tmp_path.stat().st_dev:
            pytest.skip("one disk alone")
        target = Path(memory, "podeval.db")
        for force in (False, True):
            restore(tmp_path / "backup.tar", target, tmp_path / "runs", force=force)
            assert votes(target) == {"of-alice-1"}
        assert [path.name for path in Path(memory).iterdir()] == ["podeval.db"]
    assert len(list((tmp_path / "runs").glob(".before-restore-*/podeval.db"))) == 1


@ON_SQLITE
def test_a_backup_of_an_older_version_is_brought_to_this_one(database_place: str, tmp_path: Path) -> None:
    from podeval.store.migrate import create_tables

    engine = create_engine(f"sqlite:///{database_place}")
    create_tables(engine, "0001", database_place)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO systems VALUES ('s', 'S', 'system', 1, '2026-01-01 00:00:00')"))
    engine.dispose()
    made = backups.make_backup(tmp_path / "old.tar", database_place, tmp_path / "none")
    assert made.contents == "0 votes, 0 submissions, 0 runs"
    restore(tmp_path / "old.tar", tmp_path / "new.db", tmp_path / "runs")
    rows = everything(tmp_path / "new.db")
    assert (len(rows["systems"]), rows["submissions"]) == (1, [])
    with Database(tmp_path / "new.db", migrate=False) as database:
        assert find_damage(database) is None


@ON_SQLITE
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
            pytest.raises(DiskFull, match="the disk is full, so ") as full,
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
        backups.make_backup(tmp_path / "b.tar", tmp_path / "none.db", tmp_path / "none")
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\x00" + b"x" * 5000)
    with pytest.raises(StoreUnusable, match="podeval arena status"):
        backups.make_backup(tmp_path / "b.tar", tmp_path / "broken.db", tmp_path / "none")
    (tmp_path / "full.tgz").touch()
    with pytest.raises(BadInput, match="a different name"):
        backups.make_backup(tmp_path / "full.tgz", tmp_path / "broken.db", tmp_path / "none")
    with pytest.raises(BadInput, match=r"does not end in \.tar or \.tar\.gz or \.tgz"):
        backups.make_backup(tmp_path / "folder", tmp_path / "broken.db", tmp_path / "none")
    with pytest.raises(BadInput, match="cannot be read as a backup"):
        restore(tmp_path / "nowhere", tmp_path / "new.db", tmp_path / "runs")
    assert not (tmp_path / "b.tar").exists()


def test_the_command_line_backs_up_checks_and_restores(empty_store: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    a_run(runs, "echo", "")
    shutil.copy(empty_store, runs / "podeval.db")
    place, other, server = tmp_path / "b.tar", tmp_path / "other", {"DATABASE_URL": ""}
    told = run_command("backup", place, "--runs", runs, **server)
    assert "0 votes, 0 submissions, 1 runs" in told
    assert "The secret is not in the backup" in told
    assert "restored to" in run_command("restore", place, "--runs", other, **server)
    assert "already" in refuse_command("restore", place, "--runs", other, **server)
    with sqlite3.connect(other / "podeval.db") as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
