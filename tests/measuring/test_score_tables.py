"""The table of `podeval score` in terminals of any width."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import podeval
from podeval.measuring.score_tables import build_table
from podeval.measuring.standing import format_number

pytestmark = pytest.mark.usefixtures("own_cache")


def print_in(width: int, scores: podeval.Scores) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    console.print(build_table(scores))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [64, 80, 100, 140])
def test_no_figure_and_no_word_is_cut_off_however_narrow_the_terminal_is(voice: Path, width: int) -> None:
    scores = podeval.score(voice, metrics="loudness")
    text = print_in(width, scores)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for row in scores.shown_rows:
        line = next(line for line in text.splitlines() if f" {format_number(row.value)} " in f"{line} ")
        assert row.word(scores.profile) in line


def test_names_are_whole_where_there_is_room_and_keys_stand_under_their_metric_where_there_is_none(voice: Path) -> None:
    scores = podeval.score(voice, metrics="loudness")
    whole, narrow = print_in(140, scores), print_in(80, scores)
    assert all(row.short_name in whole for row in scores.shown_rows)
    keys = [line.split()[0] for line in narrow.splitlines() if line.startswith("  .")]
    assert ".true_peak" in keys
