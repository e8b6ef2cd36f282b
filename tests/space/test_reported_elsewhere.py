"""Figures of other benchmarks as a reader meets them: below a board of papers, as printed, and as a file."""

import csv
import io

import pytest
from starlette.testclient import TestClient

from podeval.board.reported_elsewhere import FIGURES, list_tables_beside, read_sources


@pytest.mark.parametrize(("language", "title"), [("en", "Reported elsewhere"), ("zh", "其他来源报告的数值")])
def test_the_board_of_papers_has_them_below_with_their_sources(local: TestClient, language: str, title: str) -> None:
    address = "/board.json?board=real_pod/voice&profile=paper"
    board = local.get(address, headers={"accept-language": language}).json()
    tables = list_tables_beside("real_pod")
    assert tables
    for shown, table in zip(board["elsewhere"], tables, strict=True):
        assert shown["title"] == f"{title}: {table.source.name}"
        assert shown["address"] == table.source.address
        assert any(table.source.protocol[language] in sentence for sentence in shown["about"])
        assert shown["heads"][1:] == [column.header for column in table.columns]
        assert shown["rows"][1:] == [[system, *(cell or "–" for cell in cells)] for system, cells in table.rows]
    assert not local.get("/board.json?board=real_pod/voice").json()["elsewhere"]


def test_the_file_has_every_stored_figure_to_the_character_and_its_source(local: TestClient) -> None:
    answer = local.get("/reported-elsewhere.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    stored = list(csv.DictReader(FIGURES.read_text(encoding="utf-8").splitlines()))
    kept = [name for name in stored[0] if name != "source"]
    assert [{name: row[name] for name in kept} for row in rows] == [
        {name: row[name] for name in kept} for row in stored
    ]
    names = {source.id: source.name for source in read_sources()}
    assert [row["source"] for row in rows] == [names[row["source"]] for row in stored]
    assert all(row["address"].startswith("https://") and row["table"] and row["date"] for row in rows)
