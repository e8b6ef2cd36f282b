"""What the cells say, and in what order the rows stand."""

import json
from typing import Any

import pandas as pd
import pytest

from podeval.board import columns
from podeval.board.columns import get_column
from podeval.board.exports.downloads import make_tidy
from podeval.board.view import BoardView, build_lines, order, resolve_view
from podeval.runs.board_tables import ALONE, EVIDENT
from podeval.text.table_files import make_csv_safe


def row(**changed: Any) -> dict[str, Any]:
    return {
        "metric": "dnsmos", "key": "ovrl", "provenance": "run by us", "system_kind": "system", "value": 3.521,
        "low": 3.44, "high": 3.60, "rank_best": 1, "rank_worst": 2, "rankable": True, "scored": 51,
        "unscored_system": 0, "unscored_ours": 0, "reasons": "{}",
    } | changed  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "3.52 ±0.08  #1–2"),
        ({"rank_worst": 1}, "3.52 ±0.08  #1"),
        ({"low": 3.2}, "3.52 [3.20, 3.60]  #1–2"),
        ({"rankable": False, "scored": 40, "unscored_system": 11}, "3.52 ±0.08  incomplete"),
        ({"rankable": False, "scored": 50, "unscored_ours": 1}, "3.52 ±0.08  incomplete"),
        ({"value": None, "rankable": False, "scored": 0, "unscored_system": 51}, "unscored (51)"),
        ({"value": float("nan"), "rankable": False, "scored": 0, "unscored_ours": 51}, "unscored (51)"),
        ({"provenance": "reported", "low": None, "high": None, "rankable": False, "scored": None}, "3.52"),
        ({"system_kind": "control", "rank_best": None, "rank_worst": None}, "3.52 ±0.08"),
        ({"rank_best": None, "rank_worst": None}, "3.52 ±0.08"),
        ({"rank_best": None, "rank_worst": None, "rankable": False}, "3.52 ±0.08  not ranked"),
        ({"value": -16.4, "low": -16.9, "high": -15.9}, "−16.40 ±0.50  #1–2"),
        ({"value": 1.0, "low": 0.61, "high": 1.0, "values": 6}, "1.00 6 of 6  #1–2"),
        ({"value": 2.0, "low": 2.0, "high": 2.0}, "2.00 51 of 51  #1–2"),
    ],
)
def test_a_cell_says_value_interval_and_standing(changed: dict[str, Any], said: str) -> None:
    assert str(columns.build_cell(row(**changed), 2)) == said


def test_reasons_count_each_metric_once_and_say_whose_cause() -> None:
    silent = json.dumps({"the recording is silent": 2})
    rows = [
        row(unscored_system=2, reasons=silent),
        row(key="sig", unscored_system=2, reasons=silent),
        row(metric="pam", unscored_ours=1, reasons=json.dumps({"clap is not installed": 1})),
    ]
    said = columns.describe_reasons(rows)
    assert said == "2 × the recording is silent (by the system: dnsmos); 1 × clap is not installed (by us: pam)"


def test_reasons_of_one_key_are_told_besides_those_of_its_metric() -> None:
    both = json.dumps({"the recording is silent": 1, "the log lacks a time": 3})
    rows = [
        row(metric="rtf", key="rtf", unscored_system=1, reasons=json.dumps({"the recording is silent": 1})),
        row(metric="rtf", key="time_to_first_audio", scored=47, unscored_system=4, reasons=both),
    ]
    assert columns.describe_reasons(rows) == (
        "1 × the recording is silent (by the system: rtf); 3 × the log lacks a time (by the system: rtf)"
    )
    assert columns.format_standing({**rows[1], "rankable": False}) == "incomplete"


@pytest.mark.parametrize("reason", EVIDENT.values())
def test_what_the_column_or_the_kind_of_row_shows_is_not_told_for_every_row(reason: str) -> None:
    assert columns.describe_reasons([row(reasons=json.dumps({reason: 6}))]) == ""
    assert columns.describe_reasons([row(reasons=json.dumps({ALONE: 6}))]) == ALONE


def test_best_first_with_incomplete_behind_and_controls_last(board: pd.DataFrame) -> None:
    higher = [system for system, _ in order(resolve_view(BoardView(sort="sptd.sptd"), board))]
    assert higher[:3] == ["hibari", "real-episodes", "piper"], "piper misses one item in six, so it is incomplete"
    assert set(higher[3:]) == {"espeak", "repeat", "silence"}
    lower = [system for system, _ in order(resolve_view(BoardView(sort="wer.wer"), board))]
    assert lower[:3] == ["hibari", "piper", "real-episodes"]
    assert lower[-1] == "silence", "what has no value stands behind what has one"


def test_two_systems_of_one_title_are_told_apart(board: pd.DataFrame) -> None:
    same = board.assign(system_title="Same")
    settled = resolve_view(BoardView(), same)
    names = [line.name for line in build_lines(settled, settled.keys)]
    assert len(set(names)) == len(names)


def test_downloads_hold_only_what_is_shown_and_no_formulas(board: pd.DataFrame) -> None:
    settled = resolve_view(BoardView(dimension="speech.accuracy", columns=("wer.wer",), controls=False), board)
    frame = make_tidy(settled)
    assert set(frame["key"]) == {"wer"}
    assert set(frame["system"]) == {"hibari", "piper", "real-episodes"}
    safe = make_csv_safe(frame.assign(system_title="=HYPERLINK(1)", value=-1.0))
    assert set(safe["system_title"]) == {"'=HYPERLINK(1)"}
    assert set(safe["value"]) == {-1.0}


def test_in_range_is_better_the_nearer_to_the_range() -> None:
    loudness = get_column("loudness", "integrated", "audio.loudness")
    assert loudness.ideal is not None
    low, high = loudness.ideal
    assert loudness.badness(low) == loudness.badness(high) == 0
    assert loudness.badness(low - 2) > loudness.badness(high + 1) > 0


def test_a_key_no_declaration_knows_is_still_a_column() -> None:
    reported = get_column("overall", "rtf_score", "efficiency.speed")
    assert "overall" in reported.title
    assert get_column("unheard_of", "value", "x.y").better == "informative"
