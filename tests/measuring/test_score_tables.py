"""The table of `podeval score` in terminals of any width."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import podeval
from podeval.measuring.score_tables import build_table
from podeval.metrics.standing import format_value

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
        line = next(line for line in text.splitlines() if f" {format_value(row.key, row.value)} " in f"{line} ")
        assert row.word in line
    if width >= 100:
        assert all(row.metric.title_of(row.key) in text for row in scores.shown_rows)
