"""The board's page as it is sent: what its address says, in the reader's language, and no work done twice."""

import html
import io
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
from starlette.testclient import TestClient

from podeval.runs.board_tables import BOARD, ITEMS
from tests.board.large_board import write_large_board

pytestmark = pytest.mark.space
PART = {"x-podeval-part": "view"}


@pytest.fixture(scope="module")
def large(board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    """120 systems, twelve figures and three slices."""
    runs = write_large_board(tmp_path_factory.mktemp("large"), systems=120, keys=12, slices=3)
    with TestClient(board_app.build(runs)) as client:
        yield client, runs


def test_the_view_has_no_script_no_style_in_it_and_nothing_from_elsewhere(local: TestClient) -> None:
    page = local.get("/?plot=radar", headers=PART)
    assert page.status_code == 200
    assert "Hibari dialogue" in page.text
    assert "style=" not in page.text
    assert "<script>" not in page.text
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors" in policy


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("board=nope", "Benchmark “nope” is not on this board; showing Real-Pod · voice."),
        (
            "board=lfs_bench/test",
            "Benchmark “lfs_bench/test” is not on this board; showing LFS-Bench · mono.",
        ),
        ("profile=nope", "Profile “nope” is not on this board; showing embedded (built-in models)."),
        (
            "board=lfs_bench/mono&profile=paper",
            "Profile “paper” is not on this board; showing embedded (built-in models).",
        ),
        (
            "slice=category=Nope",
            "Items “category=Nope” is not on this board; showing all items.",
        ),
    ],
)
def test_what_is_not_here_is_said_with_what_is_shown_instead(local: TestClient, query: str, said: str) -> None:
    page = local.get(f"/?{query}", headers=PART)
    assert page.status_code == 200
    assert said in page.text
    file = local.get(f"/board.csv?{query}")
    assert file.status_code == 404
    assert "there is no" in file.json()["error"]


@pytest.mark.parametrize("query", ["", "board=real_pod", "profile=paper", "board=lfs_bench", "slice=category=Arts"])
def test_what_is_here_is_shown_without_a_notice(local: TestClient, query: str) -> None:
    assert "is not on this board; showing" not in local.get(f"/?{query}", headers=PART).text


def test_supplied_outputs_say_what_their_spot_check_found(board_app: ModuleType, tmp_path: Path) -> None:
    runs = write_large_board(tmp_path / "runs", systems=3, keys=2, slices=0)
    table = pd.read_parquet(runs / BOARD)
    table.loc[table["system"] == "system_001", ["provenance", "spot_check"]] = ["outputs supplied", "differs"]
    table.to_parquet(runs / BOARD, index=False)
    with TestClient(board_app.build(runs)) as client:
        assert client.get("/", headers=PART).text.count("outputs submitted (spot check: differs)") == 1


def test_the_reason_stands_behind_the_cell_that_has_no_value(local: TestClient) -> None:
    page = local.get("/", headers=PART).text
    row = page[page.index(">Silence</a>") :].partition("</tr>")[0]
    cells = [cell for cell in row.split("<td")[1:] if "unscored" in cell]
    assert len(cells) == 6
    assert all("<summary>unscored (6)</summary>" in cell for cell in cells)
    assert "6 × the recording is silent (by the system: wer)" in row
    assert "6 × the model clap is not installed" in row
    piper = page[page.index(">Piper, two voices</a>") :].partition("</tr>")[0]
    assert "<summary>incomplete</summary><p>1 × needs at least two speakers, found 1" in piper


def test_the_rank_range_comes_first_then_who_and_the_best_group_is_marked(local: TestClient) -> None:
    page = local.get("/?sort=wer.wer", headers=PART).text
    rows = page[page.index("<tbody>") :].split("<tr")[1:4]
    assert [re.findall(r'class="place">(?:<b>)?([^<]*)', row)[0] for row in rows] == ["1–2", "1–2", "3"]
    assert [row.count('class="n best"') > 0 for row in rows] == [True, True, False]
    assert page.index('class="place"') < page.index(">System<")
    assert page.index(">Hibari dialogue</a>") < page.index('aria-expanded="false" aria-controls="controls"')
    assert page.index(">Silence</a>") > page.index('<tbody id="controls" hidden>'), "controls are folded, below"


def test_every_row_has_a_sample_where_there_is_a_recording(local: TestClient) -> None:
    page = local.get("/", headers=PART).text
    sounds = [html.unescape(address) for address in re.findall(r'data-sound="([^"]+)"', page)]
    assert len(sounds) == 6
    assert len({parse_qs(urlsplit(address).query)["item"][0] for address in sounds}) == 1, "all say the same"
    answer = local.get(next(address for address in sounds if "system=hibari" in address))
    assert answer.content[:4] == b"fLaC"


def test_papers_stand_below_in_a_table_of_their_own_without_ranks(local: TestClient) -> None:
    page = local.get("/", headers=PART).text
    papers = page[page.index('id="papers"') :].partition("</section>")[0]
    assert re.findall(r'class="name" href="[^"]+">([^<]+)', papers) == ["MoonCast", "PodAgent", "Real-Pod"]
    assert "0.80" in papers
    assert "#1" not in papers
    assert 'id="papers"' not in local.get("/?profile=paper", headers=PART).text


def test_each_column_is_explained_behind_its_head_with_a_link_to_its_card(local: TestClient) -> None:
    page = local.get("/", headers=PART).text
    for column in re.findall(r'popovertarget="about-([^"]+)"', page):
        part = page[page.index(f'id="about-{column}"') :].partition("</div>\n")[0]
        assert f'href="/cards#{column.partition(".")[0]}"' in page
        assert "<dt>Better</dt>" in part
    sptd = page[page.index('id="about-sptd.sptd"') + 5 :].partition('id="about-')[0]
    assert "How different the voices of a recording sound." in sptd
    assert "<dt>People reach</dt><dd>0.43 – 0.55</dd>" in sptd
    assert "34 clips of real podcasts" in sptd
    assert "<dt>Range</dt><dd>0 to 2" in sptd
    cards = local.get("/cards").text
    assert all(f'id="{name}"' in cards for name in ("sptd", "wer", "mos"))


def test_a_system_page_and_a_comparison_open_with_the_leading_systems(local: TestClient) -> None:
    system, compared = local.get("/system").text, local.get("/compare").text
    assert "<h1>Hibari dialogue</h1>" in system
    assert '<option value="hibari" selected>' in compared
    assert '<option value="piper" selected>' in compared


def test_a_shared_link_shows_what_the_site_is(local: TestClient) -> None:
    for address in ("/", "/method", "/report/piper"):
        page = local.get(address, headers={"accept": "text/html"}).text
        image = re.findall(r'property="og:image" content="http://testserver(/[^"]+)"', page)
        assert local.get(image[0]).content[:4] == b"\x89PNG"
        assert '<meta name="description" content="Which systems' in page
        assert 'rel="icon"' in page


def test_the_page_comes_with_its_first_view_before_any_script(local: TestClient) -> None:
    page = local.get("/?dimension=speech&lang=en").text
    early = page.partition('id="early"')[2].partition("<gradio-app")[0]
    assert early.count("<h1>") == 1
    assert "Hibari dialogue" in early
    assert 'data-label="WER ↓"' in early, "a card on a phone says of what each number is"
    assert 'href="/arena"' in early
    assert 'id="early"' not in local.get("/arena").text, "other tabs have another beginning"
    assert local.get("/?page=4").status_code == 200, "a name that Gradio reads itself is none of its own here"


def test_an_item_of_a_system_is_chosen_by_its_address_and_says_why_it_has_no_score(local: TestClient) -> None:
    of_item = local.get("/system?system=silence&where=real_pod/voice/embedded&item=news-2").text
    assert '<option value="news-2" selected' in of_item
    assert "the recording is silent" in of_item


def test_downloads_are_of_the_view_whatever_page_of_it_is_shown(large: tuple[TestClient, Path]) -> None:
    client, _ = large
    page = client.get("/", headers=PART)
    assert page.text.count('<a class="pin"') == 100
    assert "Show all 120" in page.text
    assert client.get("/?rows=all", headers=PART).text.count('<a class="pin"') == 120
    answer = client.get("/board.parquet?columns=wer.wer&dimension=all&slice=scenario=audiobook")
    shown = pd.read_parquet(io.BytesIO(answer.content))
    assert len(shown) == 120
    assert set(shown["slice"]) == {"scenario=audiobook"}
    assert shown["size_parameters"].notna().any()
    assert (
        'filename="podeval-lfs_bench-test-reference-all-scenario-audiobook.parquet"'
        in answer.headers["content-disposition"]
    )
    rows = pd.read_csv(io.BytesIO(client.get("/board.csv?columns=wer.wer&dimension=all&licence=MIT").content))
    assert set(rows["licence"]) == {"MIT"}
    assert len(rows) == 30


def test_facts_can_be_filtered_by_what_is_not_stated(large: tuple[TestClient, Path]) -> None:
    client, _ = large
    assert "30 of 120 systems" in client.get("/?licence=not_stated", headers=PART).text
    assert "24 of 120 systems" in client.get("/?size=not_stated", headers=PART).text
    assert "24 / 120 个系统" in client.get("/?size=not_stated&lang=zh", headers=PART).text
    client.cookies.clear()


class Work:
    """Counts what should be done once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from podeval.board import runs_folder, table

        self.done: Counter[str] = Counter()
        self._count(monkeypatch, runs_folder, "arrange_numbers", "tables read")
        self._count(monkeypatch, runs_folder, "list_offers", "protocols looked through")
        self._count(monkeypatch, runs_folder.Sheet, "__init__", "sheets made")
        self._count(monkeypatch, runs_folder, "list_rows", "columns read")
        self._count(monkeypatch, table, "build_cell", "cells written")

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, said: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.done[said] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    def of(self, client: TestClient, address: str) -> Counter[str]:
        self.done.clear()
        assert client.get(address, headers=PART).status_code == 200
        return Counter(self.done)


def test_nothing_is_done_twice_from_one_interaction_to_the_next(
    large: tuple[TestClient, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, runs = large
    work = Work(monkeypatch)
    columns = "/?dimension=all&columns=wer.wer,wer.cer,rtf.rtf&plot=radar"
    client.get(f"{columns}&rows=all", headers=PART)
    for address in (
        "&rows=all",
        "&rows=all&sort=-wer.cer",
        "&q=system+01",
        "&licence=MIT&size=1b_to_4b",
        "&pins=system_001",
    ):
        assert not work.of(client, columns + address), address
    found = work.of(client, f"{columns}&slice=scenario=chat")
    assert found["sheets made"] == 1
    assert found["tables read"] == found["protocols looked through"] == 0
    assert found["cells written"] <= 3 * 120
    os.utime(runs / BOARD, ns=(1, 1))
    assert work.of(client, columns)["tables read"] == 1, "a changed table is read once"
    assert work.of(client, columns)["tables read"] == 0


def test_tables_that_cannot_be_read_are_told_in_a_sentence(board_app: ModuleType, tmp_path: Path) -> None:
    with TestClient(board_app.build(tmp_path)) as client:
        assert "No results yet" in client.get("/", headers=PART).text
        assert client.get("/board.csv").status_code == 422
        (tmp_path / BOARD).write_bytes(b"garbage")
        broken = client.get("/", headers={"accept": "text/html", **PART})
        assert broken.status_code == 503
        assert "could not be read" in broken.text
        assert "podeval report" in broken.text


def test_the_board_says_how_many_draws_its_places_rest_on(board_app: ModuleType, runs: Path, tmp_path: Path) -> None:
    """And six of six at one value stand in words of the reader's language."""
    whole = tmp_path / "runs"
    whole.mkdir()
    for table in (BOARD, ITEMS):
        shutil.copy(runs / table, whole)
    words = {"en": "rest on 3 independent items", "zh": "依据 3 组相互独立的条目"}
    board = pd.read_parquet(whole / BOARD)
    board["clusters"] = 3.0
    board["values"] = 6.0
    ranked = board["rank_best"].notna()
    board.loc[ranked, "high"] = board.loc[ranked, "value"]
    board.to_parquet(whole / BOARD, index=False)
    with TestClient(board_app.build(whole)) as client:
        for language, said in words.items():
            page = client.get("/", headers={"Accept-Language": language, **PART}).text
            assert said in page, language
            assert ("6 of 6" if language == "en" else "6 项皆同") in page
