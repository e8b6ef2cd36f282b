"""Figures of other benchmarks as a reader meets them: below a board of papers, as printed, and as a file."""

import csv
import io
from html import unescape

import pytest
from starlette.testclient import TestClient

from podeval.board.reported_elsewhere import FIGURES, list_tables_beside, read_sources

pytestmark = pytest.mark.space
PART = {"x-podeval-part": "view"}


@pytest.mark.parametrize(("language", "title"), [("en", "Reported elsewhere"), ("zh", "其他来源报告的数值")])
def test_the_board_of_papers_has_them_below_with_their_sources(local: TestClient, language: str, title: str) -> None:
    page = local.get("/?board=real_pod/voice&profile=paper", headers=PART | {"accept-language": language}).text
    _, heading, below = page.partition(title)
    assert heading
    for table in list_tables_beside("real_pod"):
        _, _, part = below.partition(f'<details id="elsewhere-{table.source.id}">')
        part = unescape(part.partition("</details>")[0])
        assert f'href="{table.source.address}"' in part
        assert table.source.protocol[language] in part
        for system, cells in table.rows:
            heads = [column.header for column in table.columns]
            row = "".join(
                f'<td class="n" data-label="{head}">{cell or "–"}</td>' for head, cell in zip(heads, cells, strict=True)
            )
            assert f'<tr><th scope="row">{system}</th>{row}</tr>' in part


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
