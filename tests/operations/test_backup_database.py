"""Rows that go from one kind of database into the other and back: unchanged, in one state, or refused."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from podeval.errors import StoreUnusable
from podeval.files import DiskFull
from podeval.operations.backup import copy_database, make_backup
from podeval.operations.restore import restore
from podeval.store.database import Database
from podeval.store.operator_settings import OperatorAction, OperatorSetting
from podeval.store.submission_tables import HubJob, SubmissionRow
from podeval.store.tables import (
    ArenaItem,
    ArenaOutput,
    ArenaSystem,
    Battle,
    Flag,
    ListeningTest,
    Pseudonym,
    TableBase,
    Vote,
)
from tests.survival.test_backup import no_file_larger_than

HARD = "100% — 理由 🎧, a\ttab, \\N, \\\\x, 'one' \"two\"\r\nnext\b\x0b\x7f\ufffe"
MOMENT = datetime(2026, 3, 29, 2, 30, 0, 123457, timezone(timedelta(hours=5, minutes=30)))
DOCUMENT: dict[str, Any] = {
    "big": 2**70,
    "float": 0.1 + 0.2,
    "no": None,
    "list": [True, {"理": "\x00 and \ud800"}],
    "": [[]],
}


def fill(place: str) -> None:
    """Store rows with values that one of the two kinds of database could change."""
    times = {"served_at": MOMENT, "expires_at": datetime.max.replace(tzinfo=UTC)}
    battle = {
        "item": "i",
        "output_a": "oa",
        "output_b": "ob",
        "low": "A",
        "high": "a",
        "dimension": "d",
        "pairing": "p",
    }
    moments = {"not_before": MOMENT, "submitted_at": MOMENT, "state_at": MOMENT}
    with Database(place) as database, database.writing() as session:
        session.add_all([ArenaSystem(id=id, title=HARD, active=id == "a", added_at=MOMENT) for id in ("a", "A")])
        session.add(ArenaItem(id="i", dimension="", instructions=HARD, turns=[DOCUMENT, None], added_at=MOMENT))
        session.flush()
        for id, seconds, loudness in (("oa", 5e-324, None), ("ob", 1.7976931348623157e308, -0.1)):
            output = {"audio": "", "seconds": seconds, "loudness": loudness, "added_at": MOMENT}
            session.add(ArenaOutput(id=id, system=id[1:].replace("b", "A"), item="i", **output))
        session.flush()
        # A repeat whose id comes before that of the battle that it refers to.
        session.add(Battle(id="z", voter="v", seed=2**63 - 1, excerpt=DOCUMENT, **battle, **times))
        session.flush()
        session.add(Battle(id="b", voter="v", seed=-(2**63), purpose="gold", repeats="z", **battle, **times))
        session.flush()
        session.add(Vote(number=2**40, id="v1", battle="z", voter="v", outcome="a", comment=HARD, recorded_at=MOMENT))
        session.add(Pseudonym(identity="n", key=bytes(range(256))[:32], pseudonym="p", made_at=MOMENT))
        session.add(Pseudonym(identity="m", key=b"", pseudonym="=p", made_at=MOMENT))
        session.add(ListeningTest(id="t", name=HARD, kind="k", design=DOCUMENT, digest="", created_at=MOMENT))
        for number, value in enumerate((None, True, 0, 2**53 + 1, 0.1 + 0.2, "", "5", HARD, DOCUMENT)):
            session.add(OperatorSetting(name=f"s{number}", value=value, changed_by=HARD, changed_at=MOMENT))
        session.add(SubmissionRow(id="s", number=1, owner="o", owner_proven=True, system="s", kind="k", digest="",
                                  document=DOCUMENT, state="queued", **moments))  # fmt: skip
        session.flush()
        job = {"namespace": "n", "image": "i", "flavour": "f", "minutes": 2**31 - 1, "attempts": 0, "per_minute": 0.1}
        session.add(HubJob(submission="s", run="r", round=1, reserved=1 / 3, spent=None, asked_at=MOMENT, **job))


def read_rows(place: str | Path) -> dict[str, list[str]]:
    """Read all rows as text, in which `1` and `True`, `0.0` and `-0.0`, and times of other zones differ."""
    with Database(place) as database, database.engine.connect() as connection:
        return {
            table.name: [repr(tuple(row)) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in TableBase.metadata.sorted_tables
        }


@pytest.mark.parametrize("target", ["file", "server"])
def test_values_that_a_kind_of_database_could_change_are_unchanged(
    database_place: str, server_place: str, tmp_path: Path, target: str
) -> None:
    fill(database_place)
    before = read_rows(database_place)
    assert len([name for name, rows in before.items() if rows]) == 10
    assert MOMENT.astimezone(UTC).isoformat() == "2026-03-28T21:00:00.123457+00:00"
    make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    restored = server_place if target == "server" else str(tmp_path / "restored.db")
    restore(tmp_path / "backup.tar", restored, tmp_path / "runs")
    after = read_rows(restored)
    for name, rows in before.items():
        assert after[name] == rows, name
    with Database(restored) as database, database.writing() as session:
        session.add(OperatorAction(id="1", action="a", subject="s", made_by="m", made_at=MOMENT))
        session.add(Vote(id="v2", battle="b", voter="v", outcome="a", recorded_at=MOMENT))
        session.flush()
        assert session.scalars(select(Vote.number).where(Vote.id == "v2")).one() == 2**40 + 1, "numbers go on"


@pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)
def test_a_server_with_tables_of_another_version_is_refused(database_place: str, tmp_path: Path) -> None:
    with Database(database_place) as database:
        engine = database.engine
    for version, says in (("0005", "out of date; run `podeval arena status`"), ("9999", "newer podeval")):
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
        with pytest.raises(StoreUnusable, match=says):
            make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    assert not (tmp_path / "backup.tar").exists()


@pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
def test_a_row_that_a_server_refuses_changes_nothing(database_place: str, server_place: str, tmp_path: Path) -> None:
    """PostgreSQL has no text with a NUL, SQLite has. The flag is copied last, after the numbers of the votes."""
    fill(server_place)
    before = read_rows(server_place)
    fill(database_place)
    with Database(database_place) as database, database.writing() as session:
        session.add(Flag(id="f", vote="v1", kind="signal", detail="a \x00", made_by="m", made_at=MOMENT))
    make_backup(tmp_path / "backup.tar", database_place, tmp_path / "none")
    with pytest.raises(StoreUnusable, match=r"do not fit the tables of .* NUL .*nothing was changed"):
        restore(tmp_path / "backup.tar", server_place, tmp_path / "runs", force=True)
    assert read_rows(server_place) == before
    with Database(server_place) as database, database.writing() as session:
        session.add(Vote(id="v2", battle="b", voter="v", outcome="a", recorded_at=MOMENT))
        session.flush()
        assert session.scalars(select(Vote.number).where(Vote.id == "v2")).one() == 1, "numbers are as they were"


@pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)
def test_a_server_is_read_without_writing_and_its_password_stays(database_place: str, tmp_path: Path) -> None:
    fill(database_place)
    copy_database(database_place, tmp_path / "copy.sqlite")
    assert read_rows(tmp_path / "copy.sqlite") == read_rows(database_place)
    with pytest.raises(StoreUnusable) as refused:
        copy_database("postgresql://ada:s3cret@127.0.0.1:9/board", tmp_path / "none.sqlite")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)
def test_a_server_that_finds_no_room_on_the_disk_leaves_nothing(database_place: str, tmp_path: Path) -> None:
    with Database(database_place) as database, database.writing() as session:
        session.add(ArenaItem(id="i", dimension="", instructions="x" * 8_000_000, added_at=MOMENT))
    target = tmp_path / "backups" / "backup.tar"
    target.parent.mkdir()
    with no_file_larger_than(3_000_000), pytest.raises(DiskFull, match="the disk is full, so "):
        make_backup(target, database_place, tmp_path / "none")
    assert list(target.parent.iterdir()) == []
