import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import select

from podeval.arena.import_votes import import_file, read_file
from podeval.arena.vote_records import (
    export,
    read_erasure_records,
    read_standing_records,
    read_vote_records,
    write_lines,
)
from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.tables import ListeningAnswer, ListeningRating, ListeningSession, ListeningTest, Vote
from tests.fakes.databases import ON_SQLITE, Make

OPERATOR = "operator-quilliam-thorogood"
"""Nothing that is random or compressed has these letters by chance."""


def filled(small_arena: Make) -> Any:
    small = small_arena(systems=6, gold_share=0.5, gold_after=3)
    for number in range(10):
        small.vote(
            f"voter{number % 2}", ("a", "b", "tie", "both_bad", "skip")[number % 5], comment=f"why\u2028not {number}"
        )
    small.arena.decide("ballot-000002", "excluded", "a test", OPERATOR)
    return small


def write_log(database: Database, file: Path) -> Path:
    with database.reading() as session:
        records = (read_vote_records(session, private=True), read_standing_records(session))
        file.write_text("".join(map(write_lines, (*records, read_erasure_records(session)))), encoding="utf-8")
    return file


def test_records_can_be_taken_in_once(small_arena: Make, tmp_path: Path) -> None:
    log = write_log(filled(small_arena).database, tmp_path / "log.jsonl")
    with Database(tmp_path / "other.db") as other:
        done = import_file(other, log)
        assert (done.votes, done.standings, done.repeated) == (10, 1, 0)
        again = import_file(other, log)
        assert (again.votes, again.standings, again.repeated) == (0, 0, 11)
        assert write_log(other, tmp_path / "again.jsonl").read_bytes() == log.read_bytes()
    assert json.loads(log.read_text(encoding="utf-8").split("\n")[0])["comment"] == "why\u2028not 0"


def test_a_public_export_holds_no_comment(small_arena: Make, tmp_path: Path) -> None:
    small = filled(small_arena)
    export(small.database, tmp_path / "out")
    table = pd.read_parquet(tmp_path / "out" / "votes.parquet")
    assert set(table["comment"]) == {""}
    assert not {"origin", "identity"} & set(table.columns)
    assert table["recorded_at"].dt.tz is not None
    assert (table["standing"] == "excluded").sum() == 1
    standings = tmp_path / "out" / "standings.parquet"
    assert len(pd.read_parquet(standings)) == 1
    assert OPERATOR.encode() not in standings.read_bytes()


def test_ratings_and_answers_of_listening_tests_are_exported(small_arena: Make, tmp_path: Path) -> None:
    small, now = small_arena(), datetime.now(UTC)
    with small.database.writing() as session:
        session.add(
            ListeningTest(id="t", name="naturalness", kind="mushra", design={}, digest="d" * 64, created_at=now)
        )
        session.flush()
        session.add(
            ListeningSession(id="s", test="t", listener="p1", place=0, pages=[], seed=1, started_at=now, seen_at=now)
        )
        session.flush()
        session.add(ListeningRating(session="s", page="1", stimulus="s0", value=81.0, saved_at=now))
        session.add(
            ListeningAnswer(session="s", page="1", question="speakers", choice="2", reason="two voices", saved_at=now)
        )
    counts = export(small.database, tmp_path)
    assert (counts["ratings"], counts["answers"]) == (1, 1)
    (rating,) = pd.read_parquet(tmp_path / "ratings.parquet").to_dict("records")
    assert (rating["test"], rating["listener"], rating["stimulus"], rating["value"]) == (
        "naturalness",
        "p1",
        "s0",
        81.0,
    )
    assert pd.read_parquet(tmp_path / "answers.parquet")["reason"].tolist() == [""]
    assert "origin" not in rating


def test_an_import_is_all_or_nothing(small_arena: Make, tmp_path: Path) -> None:
    small = filled(small_arena)
    file = write_log(small.database, tmp_path / "votes.jsonl")
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[5] = lines[5].replace('"outcome": "', '"outcome": "x')
    file.write_text("\n".join(lines), encoding="utf-8")
    with Database(tmp_path / "other.db") as other:
        with pytest.raises(BadInput, match=r"votes\.jsonl, row 6: outcome"):
            import_file(other, file)
        with other.reading() as session:
            assert session.scalars(select(Vote)).all() == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"PAR1nonsense", b"[1]\n", b"{}\n", b"{"])
@ON_SQLITE
def test_a_file_that_has_no_records_is_refused(small_arena: Make, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "votes.jsonl").write_bytes(content)
    with pytest.raises(BadInput, match="votes"):
        import_file(small_arena().database, tmp_path / "votes.jsonl")
    with pytest.raises(BadInput, match="specify a file of votes"):
        import_file(small_arena().database, tmp_path / "absent")


def test_a_table_without_rows_has_the_columns_of_one_with_rows(small_arena: Make, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    small = small_arena()
    export(small.database, tmp_path / "none")
    small.vote("alice", comment="clear")
    small.arena.decide("ballot-000001", "excluded", "a test", "ada")
    small.arena.erase(pseudonym=small.arena.voter("bob"))
    export(small.database, tmp_path / "some")
    for name in ("votes", "standings", "erasures"):
        none, some = (pq.read_schema(tmp_path / which / f"{name}.parquet") for which in ("none", "some"))
        assert none.names == some.names
        types = dict(zip(some.names, some.types, strict=True))
        known = {column for column in some.names if str(types[column]) != "null"}
        assert [c for c in known if str(none.field(c).type)[:9] != str(types[c])[:9]] == [], "of the same kinds"
    for name in ("ratings", "answers"):
        assert {"test", "listener", "page", "saved_at"} < set(
            pq.read_schema(tmp_path / "none" / f"{name}.parquet").names
        )


@pytest.mark.parametrize(("stamp", "year"), [("1700000000", 2023), ("1700000000000", 2023), ("NaN", 1970)])
def test_another_log_counts_seconds_or_milliseconds(tmp_path: Path, stamp: str, year: int) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(f'{{"model_a": "x", "model_b": "y", "winner": "x", "tstamp": {stamp}}}')
    (vote,) = read_file(log)
    assert vote.recorded_at.year == year
