"""The board's page as it is sent: what its address says, in the reader's language, and no work done twice."""

import asyncio
import gzip
import io
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
from starlette.testclient import TestClient

from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS
from podeval.text.table_files import make_csv_safe
from tests.board.large_board import write_large_board

BOARD_JSON = "/board.json"


@pytest.fixture(scope="module")
def large(board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    """120 systems, twelve figures and three slices."""
    runs = write_large_board(tmp_path_factory.mktemp("large"), systems=120, keys=12, slices=3)
    with TestClient(board_app.build(runs)) as client:
        yield client, runs


def read(client: TestClient, query: str = "", language: str = "en") -> dict[str, Any]:
    """The JSON of a view."""
    answer = client.get(f"{BOARD_JSON}{query}", headers={"accept-language": language})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def row(board: dict[str, Any], name: str) -> dict[str, Any]:
    """The row of a system."""
    found: dict[str, Any] = next(each for each in board["rows"] if each["name"] == name)
    return found


def cell(board: dict[str, Any], name: str, column: str) -> dict[str, Any]:
    """The cell of a system in a column."""
    found: dict[str, Any] = row(board, name)["cells"][[each["id"] for each in board["columns"]].index(column)]
    return found


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
    assert read(local, f"?{query}")["notices"] == [said]
    file = local.get(f"/board.csv?{query}")
    assert file.status_code == 404
    assert "there is no" in file.json()["error"]


@pytest.mark.parametrize("query", ["", "board=real_pod", "profile=paper", "board=lfs_bench", "slice=category=Arts"])
def test_what_is_here_is_shown_without_a_notice(local: TestClient, query: str) -> None:
    assert read(local, f"?{query}")["notices"] == []


def test_supplied_outputs_say_what_their_spot_check_found(board_app: ModuleType, tmp_path: Path) -> None:
    runs = write_large_board(tmp_path / "runs", systems=3, keys=2, slices=0)
    table = pd.read_parquet(runs / BOARD)
    table.loc[table["system"] == "system_001", ["provenance", "spot_check"]] = ["outputs supplied", "differs"]
    table.to_parquet(runs / BOARD, index=False)
    with TestClient(board_app.build(runs)) as client:
        stated = [each["stated"] for each in read(client)["rows"]]
    assert [text.endswith("outputs submitted (spot check: differs)") for text in stated] == [False, True, False]


def test_the_reason_is_with_the_cell_that_has_no_value_or_no_rank(local: TestClient) -> None:
    board = read(local)
    cells = row(board, "Silence")["cells"]
    assert [each["number"] for each in cells if each] == ["unscored (6)"] * 6
    assert cell(board, "Silence", "wer.wer")["why"] == "6 × the recording is silent (by the system: wer)"
    assert "6 × the model clap is not installed" in cell(board, "Silence", "pam.pam")["why"]
    sptd = cell(board, "Piper, two voices", "sptd.sptd")
    assert sptd["word"] == "incomplete"
    assert sptd["why"].startswith("1 × needs at least two speakers, found 1")
    scored, why = row(board, "Piper, two voices")["missing"]
    assert scored == "29/36"
    assert "found 1 (by the system: sptd)" in why


def test_measured_rows_have_rank_ranges_and_intervals_and_ties_say_so(local: TestClient) -> None:
    board = read(local)
    systems = ("Hibari dialogue", "Piper, two voices", "Real-Pod episodes")
    of_wer = [cell(board, name, "wer.wer") for name in systems]
    assert [(each["place"], each.get("best", False)) for each in of_wer] == [("1–2", True), ("1–2", True), ("3", False)]
    assert all("±" in each["interval"] for each in of_wer)
    tied = cell(board, "Hibari dialogue", "sptd.sptd")
    assert (tied["word"], tied["tied"], "place" in tied, "best" in tied) == ("not separable", True, False, False)
    groups = {each["name"]: each["group"] for each in board["rows"]}
    assert [groups[name] for name in systems] == ["measured"] * 3
    assert groups["Silence"] == groups["eSpeak anchor"] == "folded"
    assert board["groups"]["folded"] == "3 controls and baselines"


def test_every_measured_row_has_a_sample_where_there_is_a_recording(local: TestClient) -> None:
    sounds = {each["id"]: each["sound"] for each in read(local)["rows"] if each["sound"]}
    assert len(sounds) == 6
    items = {parse_qs(urlsplit(address).query)["item"][0] for address in sounds.values()}
    assert len(items) == 1, "all say the same"
    assert local.get(sounds["hibari"]).content[:4] == b"fLaC"


def test_reported_rows_are_in_the_same_table_with_value_and_source_and_nothing_else(local: TestClient) -> None:
    board = read(local)
    reported = [each for each in board["rows"] if each["group"] == "reported"]
    assert [each["name"] for each in reported] == ["PodAgent", "MoonCast", "Real-Pod"], "as the table has them"
    assert all(each["marks"] == ["PodEval, Table 9"] and not each["sound"] for each in reported)
    cells = [each for one in reported for each in one["cells"] if each]
    assert {"0.970", "0.470"} <= {each["number"] for each in cells}
    assert all(each.keys() == {"number", "value", "note"} for each in cells)
    assert {each["group"] for each in read(local, "?profile=paper")["rows"]} == {"reported"}
    assert not any(each["group"] == "reported" for each in read(local, "?slice=category=Arts")["rows"])


def test_shares_are_read_in_percent_measured_and_printed_alike(
    board_app: ModuleType, runs: Path, tmp_path: Path
) -> None:
    from podeval.board.build import build

    build(tmp_path)
    with TestClient(board_app.build(runs)) as client, TestClient(board_app.build(tmp_path)) as papers:
        board, printed = read(client), read(papers)
    wer = cell(board, "Hibari dialogue", "wer.wer")
    assert (wer["number"], wer["interval"], round(wer["value"], 3)) == ("4.0 %", "±0.8", 0.040), "data keep the share"
    assert printed["place"]["board"] == "lfs_bench/", "of what ships, most known systems that speak"
    mega = cell(printed, "MegaTTS3", "wer.wer")
    assert (mega["number"], mega["note"]) == ("10.8 %", "LFS-Bench, Table 2")
    assert [each["name"] for each in printed["rows"][:3]] == ["CosyVoice2", "CosyVoice3", "FishSpeech"], "as printed"


def test_each_column_is_explained_and_says_unit_and_direction_in_its_tooltip(local: TestClient) -> None:
    columns = {each["id"]: each for each in read(local)["columns"]}
    assert columns["wer.wer"]["title"] == "WER"
    assert columns["wer.wer"]["tip"] == "WER · Better: lower"
    assert columns["dnsmos.ovrl"]["tip"] == "DNSMOS OVRL · MOS · Better: higher"
    sentences, facts, card = columns["sptd.sptd"]["about"]
    assert "How different the voices of a recording sound." in sentences
    assert ["People reach", "0.43 – 0.55"] in facts
    assert any("34 clips of real podcasts" in text for _, text in facts)
    assert any(name == "Range" and text.startswith("0 to 2") for name, text in facts)
    assert card == "/metrics/sptd"
    assert any(name == "Agreement with people" and text.startswith("SRCC 0.09 [") for name, text in facts)
    assert ["Agreement with people", "never measured"] in columns["wer.wer"]["about"][1]


def test_a_system_page_and_a_comparison_open_with_the_leading_systems(local: TestClient) -> None:
    system, compared = local.get("/system").text, local.get("/compare").text
    assert "<h1>Hibari dialogue</h1>" in system
    assert '<option value="hibari" selected>' in compared
    assert '<option value="piper" selected>' in compared
    for page in (system, compared):
        assert '<option value="real_pod/voice/embedded" selected>Real-Pod · voice · embedded</option>' in page


@pytest.mark.parametrize("system", ["hibari", "silence", "podagent"])
def test_the_page_of_a_system_offers_its_badge_as_a_line_of_markdown(local: TestClient, system: str) -> None:
    page = unescape(local.get("/system", params={"system": system}).text)
    (line,) = re.findall(r"\[!\[podeval\]\(http://testserver(\S+)\)\]\(http://testserver(\S+)\)", page)
    badge = local.get(line[0])
    assert (badge.status_code, badge.headers["content-type"]) == (200, "image/svg+xml")
    assert ("reported" in badge.text) == (system == "podagent")
    assert local.get(line[1]).status_code == 200
    assert local.get(f"/badge/{system}.svg?board=nothing").status_code == 404


@pytest.mark.long
def test_no_line_ends_between_a_number_and_its_unit(local: TestClient) -> None:
    for path in ("/compare?a=hibari&b=piper", "/system?system=hibari", "/method", "/arena/ratings"):
        texts = re.findall(r">([^<>]+)<", local.get(path).text.partition("</head>")[2])
        assert not [text for text in texts if re.search(r"\d (%|pp|s|LUFS|dBTP|votes?)(?!\w)", text)], path
    assert "\N{NO-BREAK SPACE}pp" in local.get("/compare?a=hibari&b=piper").text


def test_a_shared_link_shows_what_the_site_is(local: TestClient) -> None:
    for address in ("/", "/method", "/system"):
        page = local.get(address, headers={"accept": "text/html"}).text
        image = re.findall(r'property="og:image" content="http://testserver(/[^"]+)"', page)
        assert local.get(image[0]).content[:4] == b"\x89PNG"
        assert '<meta name="description" content="Which systems' in page
        assert 'rel="icon"' in page


def test_the_page_comes_with_the_json_of_its_first_view(local: TestClient) -> None:
    page = local.get("/?dimension=speech&lang=en").text
    early = page.partition('id="early"')[2].partition("<gradio-app")[0]
    written = early.partition('id="board-data">')[2].partition("</script>")[0]
    assert "<" not in written, "nothing in it ends the script"
    assert json.loads(written) == read(local, "?dimension=speech&lang=en")
    assert 'src="/own/board.js"' in early
    assert "/board.csv" in page.partition("<noscript>")[2].partition("</noscript>")[0], "what there is without a script"
    assert 'id="early"' not in local.get("/arena").text, "other tabs have another beginning"
    assert local.get("/?page=4").status_code == 200, "a name that Gradio reads itself is none of its own here"


def test_a_value_that_is_best_in_a_range_says_how_far_it_is_from_there(local: TestClient) -> None:
    board = read(local, "?dimension=all")
    at = [column["id"] for column in board["columns"]].index("loudness.integrated")
    cells = [row["cells"][at] for row in board["rows"] if row["cells"][at] and "value" in row["cells"][at]]
    assert {cell["off"] == pytest.approx(max(-18 - cell["value"], cell["value"] + 16, 0)) for cell in cells} == {True}
    assert len({cell["off"] > 0 for cell in cells}) == 2, "some are in the range and some are not"


def test_an_item_of_a_system_is_chosen_by_its_address_and_says_why_it_has_no_score(local: TestClient) -> None:
    of_item = local.get("/system?system=silence&where=real_pod/voice/embedded&item=news-2").text
    assert '<option value="news-2" selected' in of_item
    assert "the recording is silent" in of_item


def test_downloads_are_of_the_view_whatever_page_of_it_is_shown(large: tuple[TestClient, Path]) -> None:
    client, _ = large
    assert len(read(client)["rows"]) == 120
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
    fields = {each["name"]: each for each in read(large[0])["fields"]}
    assert ["not_stated", "not stated (30)"] in fields["licence"]["options"]
    assert ["not_stated", "not stated (24)"] in fields["size"]["options"]
    assert fields["licence"]["local"] is True
    in_chinese = next(each for each in read(large[0], "", "zh")["fields"] if each["name"] == "size")
    assert ["not_stated", "未说明 (24)"] in in_chinese["options"]


def test_how_a_row_was_spoken_is_marked_and_can_be_filtered_by(board_app: ModuleType, tmp_path: Path) -> None:
    runs = write_large_board(tmp_path / "runs", systems=3, keys=2, slices=0)
    table = pd.read_parquet(runs / BOARD)
    for system, strategy in (("system_000", "whole"), ("system_001", "turns")):
        here = table["system"] == system
        table.loc[here, "protocol_json"] = json.dumps({"generation": {"track": "voice", "strategy": strategy}})
    table.to_parquet(runs / BOARD, index=False)
    with TestClient(board_app.build(runs)) as client:
        board = read(client)
        rows = pd.read_csv(io.BytesIO(client.get("/board.csv?spoken=turns").content))
    assert [each["marks"] for each in board["rows"]] == [["in one piece"], ["turn by turn"], []]
    assert [each["facts"]["spoken"] for each in board["rows"]] == [["whole"], ["turns"], ["not_stated"]]
    field = next(each for each in board["fields"] if each["name"] == "spoken")
    assert field["options"] == [["whole", "in one piece"], ["turns", "turn by turn"], ["not_stated", "not stated"]]
    assert set(rows["system"]) == {"system_001"}


def test_the_board_that_is_shown_first_has_the_most_systems_that_people_know(
    board_app: ModuleType, tmp_path: Path
) -> None:
    """Own baselines and controls are none, and are folded where somebody's system was measured."""
    runs = write_large_board(tmp_path / "runs", systems=4, keys=2, slices=0)
    systems = pd.read_parquet(runs / SYSTEMS)
    systems.loc[systems["system"].isin(["system_002", "system_003"]), "source"] = "builtin"
    systems.to_parquet(runs / SYSTEMS, index=False)
    table = pd.read_parquet(runs / BOARD)
    other = table.assign(benchmark="real_pod", split="voice")
    both = [table[table["system"] != "system_001"], other[other["system"] != "system_003"]]
    pd.concat(both).to_parquet(runs / BOARD, index=False)
    with TestClient(board_app.build(runs)) as client:
        board = read(client)
        assert board["place"]["board"] == "real_pod/voice", "two known ones, against one of three"
        assert [each["group"] for each in board["rows"]] == ["measured", "measured", "folded"]
        assert row(board, "System 002 of a lab")["marks"] == ["baseline"]


class Work:
    """Counts what should be done once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from podeval.board import runs_folder

        self.done: Counter[str] = Counter()
        self._count(monkeypatch, runs_folder, "arrange_numbers", "tables read")
        self._count(monkeypatch, runs_folder, "list_offers", "protocols looked through")
        self._count(monkeypatch, runs_folder.Sheet, "__init__", "sheets made")
        self._count(monkeypatch, runs_folder, "list_rows", "columns read")
        self._count(monkeypatch, runs_folder, "build_cell", "cells written")

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, said: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.done[said] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    def of(self, client: TestClient, address: str) -> Counter[str]:
        self.done.clear()
        assert client.get(address).status_code == 200
        return Counter(self.done)


def test_nothing_is_done_twice_from_one_interaction_to_the_next(
    large: tuple[TestClient, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, runs = large
    work = Work(monkeypatch)
    columns = f"{BOARD_JSON}?dimension=all&columns=wer.wer,wer.cer,rtf.rtf&plot=radar"
    client.get(columns)
    for address in ("&sort=-wer.cer&part=picture", "&licence=MIT&size=1b_to_4b&part=picture", "&pins=system_001"):
        assert not work.of(client, columns + address), address
    found = work.of(client, f"{columns}&slice=scenario=chat")
    assert found["sheets made"] == 1
    assert found["tables read"] == found["protocols looked through"] == 0
    assert found["cells written"] <= 12 * 120
    os.utime(runs / BOARD, ns=(1, 1))
    assert work.of(client, columns)["tables read"] == 1, "a changed table is read once"
    assert work.of(client, columns)["tables read"] == 0


def test_tables_that_cannot_be_read_are_told_in_a_sentence(board_app: ModuleType, tmp_path: Path) -> None:
    with TestClient(board_app.build(tmp_path)) as client:
        assert read(client)["nothing"][0] == "No results yet"
        assert client.get("/board.csv").status_code == 422
        (tmp_path / BOARD).write_bytes(b"garbage")
        broken = client.get(BOARD_JSON)
        assert broken.status_code == 503
        assert "could not be read" in broken.json()["nothing"][0]
        assert "podeval report" in broken.json()["nothing"][1]


def test_the_board_says_how_many_draws_its_places_rest_on(board_app: ModuleType, runs: Path, tmp_path: Path) -> None:
    """And six of six at one value stand in words of the reader's language."""
    whole = tmp_path / "runs"
    whole.mkdir()
    for table in (BOARD, ITEMS):
        shutil.copy(runs / table, whole)
    words = {
        "en": (
            "based on 3 independent items",
            "expected in at most 0.25 of the 5 ranked columns",
            "Correction of ranks “view” is",
        ),
        "zh": ("依据 3 组相互独立的条目", "5 个排名列中，预计至多有 0.25 列（5%）", "名次校正“view”"),
    }
    board = pd.read_parquet(whole / BOARD)
    board["clusters"] = 3.0
    board["values"] = 6.0
    ranked = board["rank_best"].notna()
    board.loc[ranked, "high"] = board.loc[ranked, "value"]
    board.to_parquet(whole / BOARD, index=False)
    with TestClient(board_app.build(whole)) as client:
        for language, said in words.items():
            board = read(client, "", language)
            assert said[0] in board["footing"], language
            assert said[1] in board["footing"], language
            assert board["correction"][1] == "view"
            # Here are no run folders to correct with.
            assert said[2] in read(client, "?correction=view", language)["notices"][0]
            assert client.get("/board.csv?correction=view").status_code == 404
            alike = cell(board, "Hibari dialogue", "wer.wer")["interval"]
            assert alike == ("6 of 6" if language == "en" else "6 项皆同")


def test_a_table_is_written_and_packed_while_it_is_sent(board_app: ModuleType) -> None:
    from pages.board import CSV_ROWS, stream_csv
    from starlette.requests import Request

    rows = 2 * CSV_ROWS + 5
    table = pd.DataFrame({"system": ["=1+1", "two, words"] * (rows // 2) + ["é"], "value": [0.5] * rows})

    async def send(accepts: str) -> list[bytes]:
        request = Request({"type": "http", "headers": [(b"accept-encoding", accepts.encode())]})
        return [part async for part in stream_csv(request, table, "x.csv").body_iterator]

    def run(accepts: str) -> list[bytes]:
        # In a thread: a browser under test leaves an event loop in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, send(accepts)).result()

    parts = run("")
    assert len(parts) == 3
    assert b"".join(parts).decode() == "\ufeff" + make_csv_safe(table).to_csv(index=False)
    assert "'=1+1" in parts[2].decode()
    packed = run("br, gzip")
    assert gzip.decompress(b"".join(packed)) == b"".join(parts)
