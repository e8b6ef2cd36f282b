"""The leaderboard as a folder: pages that work without a server, excerpts, badges, and its push to the Hub."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from podeval.board.exports import downloads
from podeval.board.exports.downloads import render_badge
from podeval.board.runs_folder import Index, RunsFolder
from podeval.board.view import BoardView
from podeval.errors import BadInput
from podeval.hub.commits import push_folder
from tests.space.fixture_runs import write_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and outputs without the folders of runs that they would be built from."""
    return write_runs(tmp_path_factory.mktemp("still") / "runs", {"title": "</script><b>Hibari</b>"})


@pytest.fixture(scope="module")
def site(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_CACHE", str(out.parent / "cache"))
        patch.setattr(downloads, "build", lambda runs: None)
        downloads.write_site(runs, out)
    return out


def read_data(page: Path) -> Any:
    """The JSON in a page."""
    text = page.read_text("utf-8").partition('id="board-data">')[2].partition("</script>")[0]
    assert "<" not in text, "nothing that others wrote ends the script"
    return json.loads(text)


def test_every_board_is_a_page_in_both_languages_with_all_columns_and_pictures(site: Path) -> None:
    names = ["real_pod-voice-embedded", "lfs_bench-mono-embedded"]
    for ending, title in (("", "Measured by podeval"), (".zh", "由 podeval 测得")):
        data = read_data(site / f"index{ending}.html")
        assert [file for file, _ in data["boards"]] == [f"{name}{ending}.html" for name in names]
        assert all((site / file).exists() for file, _ in data["boards"])
        assert data["groups"]["measured"].startswith(title)
    headlines = [column["id"] for column in data["columns"] if column["headline"]]
    assert "dnsmos.ovrl" in headlines
    assert "dnsmos.sig" not in headlines, "the overview has one of each dimension"
    assert set(data["still"]["pictures"]) == {plot for plot, _ in data["plots"]}
    for _, file in data["still"]["files"]:
        assert (site / file).exists()


def test_every_address_in_a_page_is_relative_and_there(site: Path) -> None:
    data, page = read_data(site / "index.html"), (site / "index.html").read_text("utf-8")
    used = re.findall(r'(?:src|href)="([^"]+)"', re.sub(r"(?s)<script type=.*?</script>", "", page))
    sounds = [row["sound"] for row in data["rows"] if row["sound"]]
    assert len(sounds) == 6
    assert (site / sounds[0]).read_bytes()[:4] == b"OggS"
    for address in (*used, *sounds):
        if address == "data:,":
            continue
        assert not address.startswith(("/", "http"))
        assert (site / address).exists(), address
    script = (site / "board.js").read_text("utf-8")
    assert not re.search(r"(?m)^(export|import) ", script), "a page of a folder loads no module"
    assert "sdk: static" in (site / "README.md").read_text("utf-8")


def test_a_badge_says_the_rank_range_or_why_there_is_none(runs: Path, site: Path) -> None:
    index = RunsFolder(runs).index()

    def say(system: str, **wish: str) -> str:
        svg = render_badge(index, system, BoardView(**wish))
        return str(ElementTree.fromstring(svg).find("{http://www.w3.org/2000/svg}title").text)  # type: ignore[union-attr]

    assert say("hibari", sort="wer.wer") == "podeval · Real-Pod · voice: WER #1–2 of 3"
    assert say("real-episodes", sort="wer.wer") == "podeval · Real-Pod · voice: WER #3 of 3"
    assert say("piper", sort="sptd.sptd").endswith("SPTD provisional")
    assert say("podagent", dimension="audio").endswith("reported")
    assert say("silence", dimension="speech") == "podeval · Real-Pod · voice: WER unscored"
    board = RunsFolder(runs).board()
    index = Index.of(board[(board["system"] != "silence") | (board["slice"] != "")])
    assert say("silence", board="real_pod/voice") == "podeval · Real-Pod · voice: unscored", (
        "no image without an answer"
    )
    with pytest.raises(BadInput, match="there is no system 'nobody'"):
        render_badge(index, "nobody", BoardView())
    assert len(list((site / "badges" / "real_pod-voice-embedded").glob("*.svg"))) == 6


def test_a_folder_with_something_else_is_not_written_to(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="files that do not belong to a site"):
        downloads.write_site(runs, tmp_path)


def test_a_folder_without_runs_gives_the_figures_of_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    written = downloads.write_site(tmp_path / "runs", tmp_path / "site")
    assert tmp_path / "site" / "lfs_bench-paper.html" in written


def test_the_folder_is_pushed_as_a_static_space(site: Path, hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_loopback")
    address = push_folder(site, "lab/board", "space", "The leaderboard", delete_patterns="*")
    assert "spaces/lab/board" in address
    _, files = hub_client.repos.repos["spaces", "lab/board"].at("main")
    assert {"index.html", "board.js", "README.md"} <= set(files)
