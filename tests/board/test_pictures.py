"""What is drawn: normalised as the paper says, of the rows of the view, with a table that says the same."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from podeval.board import pictures, scene
from podeval.board.columns import get_column
from podeval.board.runs_folder import Index, RunsFolder, arrange_numbers
from podeval.board.system_info import Facts
from podeval.board.view import PLOTS, BoardView, order, resolve_view
from podeval.files import locate_hub_source
from podeval.plots.charts import Series, draw_radar
from podeval.text.message_catalogue import read_texts

TEXTS = read_texts(locate_hub_source("space") / "locale", "en", ("board",))["board"]
WORDS = TEXTS["plot"] | {"breakdowns": {"scenario": "scenario"}}


def drawn(board: pd.DataFrame | Index, folder: RunsFolder, **wish: Any) -> scene.Drawn:
    settled = resolve_view(BoardView(**wish), board)
    return pictures.draw(settled, order(settled), folder, WORDS, lambda column: column.title)


def lfs(values: dict[str, dict[str, float]], slices: dict[str, float] | None = None) -> pd.DataFrame:
    """Rows of LFS-Bench by column and system, with slices of timbre consistency if given."""
    rows = []
    for name, own in values.items():
        metric, key = name.split(".")
        for system, value in own.items():
            rows.append(row(metric, key, system, value))
    for slice_, value in (slices or {}).items():
        rows.append(row("timbre_consistency", "timbre_consistency", "a", value) | {"slice": slice_})
    return pd.DataFrame(rows)


def row(metric: str, key: str, system: str, value: float) -> dict[str, Any]:
    return {
        "benchmark": "lfs_bench", "split": "test", "profile": "reference", "system": system,
        "system_title": system.upper(), "system_kind": "control" if system == "silence" else "system",
        "provenance": "run by us", "dimension": get_column(metric, key, f"x.{metric}").dimension, "metric": metric,
        "key": key, "protocol": f"{metric}@1", "slice": "", "value": value, "low": value - 0.1, "high": value + 0.1,
        "rank_best": 1.0, "rank_worst": 2.0, "rankable": True, "scored": 10.0, "unscored_system": 0.0,
        "unscored_ours": 0.0, "reasons": "{}", "protocol_json": "{}", "source": "",
        "created": "2026-11-20T12:00:00+00:00",
    }  # fmt: skip


# Between the fixed ends of each scale, by hand: a likeness from -1 to 1, so 0.92 is 1.92 / 2; an error rate from 1 to
# 0, so 0.4 is 0.6; marks from 1 to 5, so 2.75 is 1.75 / 4; PESQ from 1 to 4.64, so 3.25 is 2.25 / 3.64.
VALUES = {
    "timbre_consistency.timbre_consistency": {"a": 0.92, "b": 0.88, "silence": 0.1},
    "reverb_consistency.reverb_consistency": {"a": 1.5, "b": 3.0, "c": 1.0},
    "sound_fidelity.pesq_estimate": {"a": 3.25, "b": 2.0},
    "wer.wer": {"a": 0.4, "b": 0.1, "c": 0.5},
    "expressive_richness.expressive_richness": {"a": 2.75, "b": 4.0},
}
EXPECTED = {"timbre_consistency": 0.96, "pesq_estimate": 2.25 / 3.64, "wer": 0.6, "expressive_richness": 0.4375}


def test_the_radar_has_fixed_ends_whoever_else_is_on_the_board() -> None:
    everybody, alone = VALUES, {name: {"a": own["a"]} for name, own in VALUES.items()}
    for values in (everybody, alone):
        axes = scene.choose_radar_axes(resolve_view(BoardView(), lfs(values)).columns)
        places = {axis.column.key: axis.at(VALUES[axis.column.id]["a"]) for axis in axes}
        assert places == pytest.approx(EXPECTED), "reverberation has no fixed ends"


def test_equal_values_are_drawn_at_one_place_and_an_error_rate_above_one_at_the_centre() -> None:
    axis = scene.find_axis(get_column("wer", "wer", "speech.accuracy"))
    assert axis.at(0.973) == pytest.approx(0.027)
    assert axis.at(1.7) == 0.0
    assert axis.span(0.1, 0.3) == pytest.approx((0.9, 0.7))
    assert axis.span(None, None) is None
    drawn = draw_radar("abc", Series.of_systems([(name, (0.5,) * 3, (None,) * 3) for name in "xy"]), "equal")
    circles, squares = (
        re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)[:3],
        re.findall(r'd="M([\d.]+) ([\d.]+)h7', drawn),
    )
    assert [(float(x), float(y)) for x, y in circles] == [(float(x) + 3.5, float(y) + 3.5) for x, y in squares][:3]


def test_a_figure_in_range_is_best_in_it_on_the_radar() -> None:
    axis = scene.find_axis(get_column("loudness", "integrated", "audio.loudness"))
    low, high = axis.column.ideal or (0, 0)
    assert axis.at(low) == axis.at(high) == 1.0
    assert axis.at(low - 6) == axis.at(high + 6) == 0.5


def test_the_radar_says_in_its_table_what_it_draws_and_leaves_gaps(folder: RunsFolder) -> None:
    found = drawn(lfs(VALUES), folder, plot="radar", pins=("c", "a")).picture
    assert [cells[0] for cells in found.rows] == ["C", "A"], "who is pinned, in that order"
    said = dict(zip(found.headers, found.rows[1], strict=True))
    assert said["Timbre consistency"] == "96% [91%, 100%]"
    assert dict(zip(found.headers, found.rows[0], strict=True))["Timbre consistency"] == "–"
    assert "no fixed ends: Reverb consistency." in " ".join(found.notes)
    marks = re.findall(r'class="mk"', found.svg)
    assert len(marks) == 4 + 1 + 2, "four of A, one of C, two in the legend"
    assert found.svg.count('class="span"') == 2, "intervals of both"


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("of", ["wer.wer", "dnsmos.ovrl"])
def test_every_picture_is_sound_svg_without_style_or_script(
    board: pd.DataFrame, folder: RunsFolder, plot: str, of: str
) -> None:
    index = Index(arrange_numbers(board), {"hibari": Facts(size=3e8), "piper": Facts(size=2e9)})
    found = drawn(index, folder, plot=plot, of=of, pins=("piper",))
    if plot in ("rtf", "time"):
        assert found.plot == "size", "nothing of the fixture has an RTF, and all was measured on one day"
    root = ElementTree.fromstring(found.picture.svg)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "style=" not in found.picture.svg
    assert all(len(cells) == len(found.picture.headers) for cells in found.picture.rows)
    assert 'font-size="12"' in found.picture.svg, "360 units are at least 344 px on a phone: no letter below 11"
    coordinates = [float(x) for x in re.findall(r'\b(?:cx|x1|x2|x)="(-?[\d.]+)"', found.picture.svg)]
    assert all(-1 <= x <= 361 for x in coordinates), "nothing lies outside the picture"


def test_names_are_escaped_in_pictures(board: pd.DataFrame, folder: RunsFolder) -> None:
    hostile = board.assign(system_title="<script>alert(1)</script>")
    for plot in ("intervals", "radar", "distribution"):
        found = drawn(hostile, folder, plot=plot, of="wer.wer", pins=("hibari",)).picture
        assert "<script" not in found.svg
        assert "&lt;script" in found.svg


def test_a_caption_speaks_of_intervals_where_there_are_some(board: pd.DataFrame, folder: RunsFolder) -> None:
    ours, printed = (drawn(board, folder, profile=profile).picture for profile in ("embedded", "paper"))
    assert ours.caption.endswith("with 95 % intervals.")
    assert printed.caption.endswith("without intervals.")
    assert printed.caption in printed.svg


def test_intervals_stand_best_on_top_with_a_shape_for_every_kind(board: pd.DataFrame, folder: RunsFolder) -> None:
    found = drawn(board, folder, plot="intervals", of="wer.wer").picture
    assert found.svg.count('class="rule"') == 4, "silence has no value, so no interval"
    assert "One sentence" not in found.svg, "a control far beyond the others would set the axis"
    assert "1 control lies far beyond the others and is not drawn." in found.notes
    places = [found.svg.index(name) for name in ("Hibari", "Piper", "Real-Pod", "eSpeak")]
    assert places == sorted(places), "lower is better"
    assert '<circle class="ranked"' in found.svg
    assert '<path class="human"' in found.svg
    assert '<path class="control"' in found.svg


def test_against_size_draws_only_who_states_one_and_counts_the_others(board: pd.DataFrame, folder: RunsFolder) -> None:
    index = Index(arrange_numbers(board), {"hibari": Facts(size=3e8), "piper": Facts(size=2e9)})
    found = drawn(index, folder, plot="size", of="wer.wer").picture
    sizes = [("Hibari dialogue", "300,000,000"), ("Piper, two voices", "2,000,000,000")]
    assert [cells[:2] for cells in found.rows] == sizes
    assert found.svg.count('class="whisker"') == 2, "with their intervals"
    assert found.notes[0] == "2 systems do not state a size and are left out."
    assert drawn(board, folder, plot="size", of="wer.wer").plot == "intervals", "an empty plot is not offered"


def test_against_speed_uses_the_rtf_of_the_same_view() -> None:
    values = {"wer.wer": {"a": 0.1, "b": 0.2, "c": 0.3}, "rtf.rtf": {"a": 0.5, "b": 2.0}}
    found = drawn(lfs(values), RunsFolder(Path("nowhere")), plot="rtf", of="wer.wer").picture
    assert [cells[:2] for cells in found.rows] == [("A", "0.5"), ("B", "2")]
    assert found.notes == ("1 system has no RTF and is left out.",)


def test_the_distribution_has_quartiles_of_systems_and_of_their_items(board: pd.DataFrame, folder: RunsFolder) -> None:
    found = drawn(board, folder, plot="distribution", of="wer.wer").picture
    rows = {cells[0]: cells for cells in found.rows}
    own = board[(board["key"] == "wer") & (board["slice"] == "") & (board["system_kind"] != "control")][
        "value"
    ].dropna()
    assert rows["All systems"][1] == str(len(own))
    assert rows["All systems"][4] == f"{100 * own.median():.1f} %"
    assert rows["Hibari dialogue"][1] == "6", "items"
    arts = drawn(board, folder, plot="distribution", of="wer.wer", slice="category=Arts").picture
    assert {cells[0]: cells[1] for cells in arts.rows}["Hibari dialogue"] == "2"


def test_over_time_the_best_so_far_never_gets_worse(folder: RunsFolder) -> None:
    board = lfs({"wer.wer": {"a": 0.3, "b": 0.4, "c": 0.2}})
    days = {"a": "2026-01-01", "b": "2026-02-01", "c": "2026-03-01"}
    board["created"] = [f"{days[system]}T00:00:00+00:00" for system in board["system"]]
    found = drawn(board, folder, plot="time", of="wer.wer").picture
    steps = re.search(r'class="best" d="([^"]+)"', found.svg)
    assert steps[1].count("V") == 1, "b was no improvement"
    assert [cells[1] for cells in found.rows] == ["2026-03-01", "2026-02-01", "2026-01-01"]
    reported = drawn(board.assign(created=""), folder, plot="time", of="wer.wer")
    assert reported.plot == "intervals"
    assert pictures.list_offered_plots(resolve_view(BoardView(), board.assign(created=""))) == (
        "intervals",
        "distribution",
        "density",
    )
