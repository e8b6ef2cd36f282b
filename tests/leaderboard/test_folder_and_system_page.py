"""Outputs are read only inside the folder of runs; a page tells a system's standing and its items."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from podeval.errors import BadInput
from podeval.leaderboard import plots, system_page
from podeval.leaderboard.folder import RunsFolder
from podeval.leaderboard.view import View
from podeval.store.results import BOARD

WHERE = "real_pod/voice/embedded"


def test_an_output_has_audio_turns_and_times(folder: RunsFolder) -> None:
    output = folder.output("piper/outputs/arts-1.json")
    assert output.audio == folder.path / "piper/outputs/arts-1.flac"
    assert [turn.speaker for turn in output.turns] == ["Host", "Guest"]
    assert (output.duration, output.wall_seconds) == (12.0, 4.2)


@pytest.mark.parametrize("path", ["../secret.json", "/etc/passwd", "piper/../../secret.json", "link/secret.json"])
def test_an_output_outside_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "runs" / "link").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="leaves the folder of runs"):
        RunsFolder(tmp_path / "runs").output(path)


@pytest.mark.parametrize("audio", ["../../secret.wav", "/etc/passwd", "run.json"])
def test_audio_outside_the_folder_or_no_audio_at_all_is_refused(tmp_path: Path, audio: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").write_text(json.dumps({"audio": audio}))
    with pytest.raises(BadInput, match=r"leaves the folder of runs|not an audio file"):
        RunsFolder(tmp_path / "runs").output("a.json")


def test_a_changed_table_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path, folder: RunsFolder) -> None:
    growing = RunsFolder(tmp_path)
    assert growing.board().empty
    frame = folder.board()
    frame.head(3).to_parquet(tmp_path / BOARD)
    first = growing.board()
    assert len(first) == 3
    assert growing.board() is first
    frame.head(5).to_parquet(tmp_path / BOARD)
    os.utime(tmp_path / BOARD, ns=(1, 1))
    assert len(growing.board()) == 5


def test_results_stand_against_the_median_of_the_others_without_controls(board: pd.DataFrame) -> None:
    rows = {row[0]: row for row in system_page.results(board, "hibari", WHERE, View())}
    wer = next(row for name, row in rows.items() if name.startswith("WER ↓") or name == "wer ↓")
    overall = board[(board["key"] == "wer") & (board["slice"] == "")].set_index("system")["value"]
    assert wer[2] == f"{(overall['piper'] + overall['real-episodes']) / 2:.3f}"
    assert wer[3] in ("better", "no clear difference")
    assert all(len(row) == len(system_page.RESULT_HEADERS) for row in rows.values())


def test_an_item_shows_every_score_and_every_reason(folder: RunsFolder) -> None:
    found, path = system_page.item_results(folder.items(), "piper", WHERE, "news-2")
    rows = system_page.score_rows(found)
    assert ("sptd", "", "unscored by the system", "needs at least two speakers, found 1") in rows
    assert any(row[2] == "unscored by us" for row in rows)
    assert {row[1] for row in rows} >= {"wer", "ovrl", "integrated"}
    assert path == "piper/outputs/news-2.json"


def test_a_timeline_has_seconds_and_every_key(folder: RunsFolder) -> None:
    found, _ = system_page.item_results(folder.items(), "piper", WHERE, "arts-1")
    name, track = next(iter(system_page.timelines(found).items()))
    document = plots.timeline(name, track)
    points = document["data"]["values"]
    assert {point["key"] for point in points} == {"ovrl", "sig", "bak"}
    assert {point["second"] for point in points} == set(track.starts)
    assert "(s)" in document["encoding"]["x"]["title"]


def test_an_unreadable_result_is_unscored_not_an_error(folder: RunsFolder) -> None:
    items = folder.items().assign(result="{not json")
    found, _ = system_page.item_results(items, "piper", WHERE, "arts-1")
    assert all(row[2] == "unscored by us" for row in system_page.score_rows(found))
