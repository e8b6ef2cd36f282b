"""Outputs are read only inside the folder of runs; a page tells a system's standing and its items."""

import json
import os
import re
from pathlib import Path

import pytest

from podeval.board import item_results
from podeval.board.playable import list_parts
from podeval.board.runs_folder import RunsFolder
from podeval.metrics.score import Score
from podeval.runs.board_tables import BOARD
from tests.space.fixture_runs import PROTOCOLS, UPSTREAM

WHERE = "real_pod/voice/embedded"


def test_an_output_has_audio_and_turns(folder: RunsFolder) -> None:
    (part,) = list_parts(folder.path, "piper/outputs/arts-1.json")
    assert part.audio == folder.path / "piper/outputs/arts-1.flac"
    assert [turn.speaker for turn in part.turns] == ["Host", "Guest"]


@pytest.mark.parametrize("path", ["../secret.json", "/etc/passwd", "piper/../../secret.json", "link/secret.json"])
def test_an_output_outside_the_folder_is_not_opened(tmp_path: Path, path: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "runs" / "link").symlink_to(tmp_path)
    (part,) = list_parts(tmp_path / "runs", path)
    assert part.why == "unreadable"
    assert "leads outside the folder of runs" in part.detail


@pytest.mark.parametrize("audio", ["../../secret.wav", "/etc/passwd", "run.json"])
def test_audio_outside_the_folder_or_no_audio_at_all_is_not_opened(tmp_path: Path, audio: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").write_text(json.dumps({"item": "a", "audio": audio}))
    (part,) = list_parts(tmp_path / "runs", "a.json")
    assert (part.audio, part.why) == (None, "unreadable")
    assert re.search(r"leads outside the folder of runs|not an audio file", part.detail)


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


def test_an_item_shows_every_score_and_every_reason(folder: RunsFolder) -> None:
    found, path = item_results.find_item_results(folder.items(), "piper", WHERE, "news-2")
    said = {(one.metric, one.reason): one for one in item_results.list_scores(found)}
    assert said["sptd", "needs at least two speakers, found 1"].cause == "system"
    assert {one.cause for one in said.values() if one.reason} == {"system", "ours"}
    names = {one.name for one in item_results.list_scores(found)}
    assert {"WER ↓", "DNSMOS OVRL ↑ (MOS)", "Loudness ↔ (LUFS)"} <= names
    assert any(one.metric == f"dnsmos ({UPSTREAM})" for one in said.values()), "of two protocols, each says which"
    assert path == "piper/outputs/news-2.json"


def test_notes_are_words_and_rounded_numbers() -> None:
    notes = {"speakers": {"Leo": 0.87712345, "Ines": 0.83}, "windows_left_out": 0, "swapped": [], "cuts": [2.25, 3.5]}
    (said,) = item_results.list_scores({"timbre_consistency": Score({"timbre_consistency": 0.85}, notes)})
    words = [("speakers", "Leo 0.877, Ines 0.830"), ("windows left out", "0"), ("cuts", "2.25, 3.50")]
    assert said.notes == words, "what a note names nothing of is left out"


def test_words_as_heard_stand_apart_from_the_notes() -> None:
    found = {"wer": Score({"wer": 0.25, "cer": None}, {"transcript": "we're here", "words": 4})}
    first, second = item_results.list_scores(found)
    assert (first.value, first.notes) == ("25.0 %", [("words", "4")])
    assert (second.value, second.notes) == ("–", ())
    assert item_results.read_transcripts(found) == [("wer", "we're here")]


def test_a_timeline_is_drawn_over_seconds_with_a_line_a_key(folder: RunsFolder) -> None:
    found, _ = item_results.find_item_results(folder.items(), "piper", WHERE, "arts-1")
    track = item_results.collect_timelines(found)[f"dnsmos ({PROTOCOLS['dnsmos']})"]
    drawn = item_results.draw_timeline(track, "DNSMOS <over> time", list(track.values))
    assert drawn.count("<polyline") == 3
    assert "&lt;over&gt;" in drawn
    # Four windows of 9.01 s from 0 to 3 s: the axis ends at 12.01 s, marked each 2 s.
    assert re.findall(r'text-anchor="middle">0:(\d+)<', drawn) == ["00", "02", "04", "06", "08", "10", "12"]


def test_an_unreadable_result_is_unscored_not_an_error(folder: RunsFolder) -> None:
    items = folder.items().assign(result="{not json")
    found, _ = item_results.find_item_results(items, "piper", WHERE, "arts-1")
    assert {(one.cause, one.value) for one in item_results.list_scores(found)} == {("ours", "")}
