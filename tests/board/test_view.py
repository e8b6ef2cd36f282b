"""A view shows one profile, one slice and one protocol per metric, and its address restores it."""

from dataclasses import replace

import pandas as pd
import pytest

from podeval.board.columns import EVERYTHING, OVERVIEW
from podeval.board.exports.downloads import make_tidy
from podeval.board.view import BoardView, resolve_view
from tests.space.fixture_runs import PROTOCOLS, UPSTREAM


def test_default_view_is_the_first_benchmark_measured_by_us_with_one_column_a_dimension(board: pd.DataFrame) -> None:
    settled = resolve_view(BoardView(), board)
    assert settled.view == replace(settled.view, board="real_pod/voice", profile="embedded", dimension=OVERVIEW)
    assert len({column.dimension for column in settled.columns}) == len(settled.columns)
    assert {"wer.wer", "dnsmos.ovrl"} <= {column.id for column in settled.columns}
    many = (board.assign(benchmark="lfs_bench", split="", profile="paper", system=f"paper-{n}") for n in range(30))
    assert resolve_view(BoardView(), pd.concat([board, *many])).view == settled.view, "not most in papers"
    first = (board["metric"] + "." + board["key"] == settled.columns[0].id) & (board["system_kind"] != "control")
    left = resolve_view(BoardView(), board.assign(value=board["value"].mask(first))).columns
    assert left[0].id == settled.columns[1].id, "only controls have the first"


@pytest.mark.parametrize(
    "wish",
    [
        BoardView(),
        BoardView(profile="paper"),
        BoardView(protocols=(UPSTREAM,)),
        BoardView(slice="category=Arts"),
        BoardView(board="nothing"),
    ],
)
def test_rows_are_never_of_two_profiles_protocols_or_slices(board: pd.DataFrame, wish: BoardView) -> None:
    rows = make_tidy(resolve_view(replace(wish, dimension=EVERYTHING), board))
    assert len(rows)
    assert rows["profile"].nunique() == 1
    assert rows["slice"].nunique() == 1
    assert rows[["benchmark", "split"]].drop_duplicates().shape[0] == 1
    assert (rows.groupby("metric")["protocol"].nunique() == 1).all()


def test_figures_of_a_whole_benchmark_are_called_after_no_split(board: pd.DataFrame) -> None:
    """As papers report them: their rows name no split, and stand on the boards of all splits."""
    board = board.assign(split=board["split"].where(board["profile"] != "paper", ""))
    music = board[board["profile"] == "embedded"].assign(split="music")
    both = pd.concat([board, music], ignore_index=True)
    printed = resolve_view(BoardView(board="real_pod/music", profile="paper"), both)
    assert printed.title == "real_pod"
    assert [name for name in printed.choices.boards if name[0].startswith("real_pod")] == [
        ("real_pod", "real_pod/music")
    ]
    assert resolve_view(BoardView(board="real_pod/music", profile="embedded"), both).title == "real_pod · music"


def test_a_protocol_can_be_chosen_and_the_last_wish_of_a_metric_counts(board: pd.DataFrame) -> None:
    assert resolve_view(BoardView(protocols=(UPSTREAM,)), board).protocols["dnsmos"] == UPSTREAM
    both = resolve_view(BoardView(protocols=(UPSTREAM, PROTOCOLS["dnsmos"])), board)
    assert both.protocols["dnsmos"] == PROTOCOLS["dnsmos"]
    offered = [value for _, value in both.choices.protocols]
    assert sorted(offered) == sorted([UPSTREAM, PROTOCOLS["dnsmos"]]), "only metrics with several protocols ask"


def test_an_invented_address_falls_to_what_exists(board: pd.DataFrame) -> None:
    query = {"board": "<script>", "profile": "x", "dimension": "y", "slice": "z", "sort": "q", "columns": "a,b"}
    assert resolve_view(BoardView.from_query(query), board).view == resolve_view(BoardView(), board).view
