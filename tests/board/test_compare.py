"""Two systems side by side: only numbers of one place and protocol, over the items both were scored on."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from podeval.board import compare, report_figures
from podeval.board.columns import get_column
from podeval.board.item_results import compute_course, parse_reading, read_scores
from podeval.board.runs_folder import RunsFolder
from podeval.runs.board_tables import BOARD, ITEMS, BoardRow, ItemRow, write_table

WHERE = "real_pod/voice/embedded"
# Topics are what real_pod resamples: the differences are 0.5 on t1 (two items) and 0.1 on t2, so with two clusters the
# interval reaches from 0.1 to 0.5, and their mean over three items is 1.1 / 3.
VALUES: dict[str, dict[str, float | None]] = {
    "one": {"i1": 3.5, "i2": 4.0, "i3": 3.1, "i4": 5.0},
    "two": {"i1": 3.0, "i2": 3.5, "i3": 3.0, "i4": None, "i5": 1.0},
}
TOPICS = {"i1": "t1", "i2": "t1", "i3": "t2", "i4": "t3", "i5": "t4"}
PROTOCOL = "dnsmos@1.0-aaaaaaaaaaaa"


def board_row(**changed: Any) -> BoardRow:
    known: dict[str, Any] = {
        "benchmark": "real_pod", "split": "voice", "profile": "embedded", "system": "one", "system_title": "One",
        "system_kind": "system", "provenance": "run by us", "dimension": "speech.quality", "metric": "dnsmos",
        "key": "ovrl", "protocol": PROTOCOL, "slice": "", "value": 3.9, "low": 3.0, "high": 4.8, "rank_best": None,
        "rank_worst": None, "rankable": True, "scored": 4, "unscored_system": 0, "unscored_ours": 0, "reasons": "{}",
        "protocol_json": "{}", "source": "", "created": "2026-11-22",
    }  # fmt: skip
    return BoardRow(**known | changed)


def item_row(system: str, item: str, result: dict[str, Any], protocol: str = PROTOCOL) -> ItemRow:
    return ItemRow(
        benchmark="real_pod", split="voice", profile="embedded", system=system, item=item, category="Arts",
        topic=TOPICS[item], metric=protocol.partition("@")[0], protocol=protocol, result=json.dumps(result), output="",
    )  # fmt: skip


def folder_of(path: Path, board: list[BoardRow], items: list[ItemRow]) -> RunsFolder:
    write_table(board, path / BOARD)
    write_table(items, path / ITEMS)
    return RunsFolder(path)


@pytest.fixture
def two(tmp_path: Path) -> RunsFolder:
    unscored = {"unscored": "the recording is silent", "cause": "system"}
    items = [
        item_row(system, item, unscored if value is None else {"ovrl": value})
        for system, values in VALUES.items()
        for item, value in values.items()
    ]
    board = [board_row(), board_row(system="two", system_title="Two", value=2.625, scored=4, unscored_system=1)]
    return folder_of(tmp_path, board, items)


def test_a_difference_is_over_common_items_and_clustered_by_topic(two: RunsFolder) -> None:
    (pair,) = compare.compare(two, "one", "two").pairs
    assert pair.values == (3.9, 2.625), "each one's own mean, as the board has it"
    assert (pair.beside.a, pair.beside.b) == pytest.approx(((3.5 + 4 + 3.1) / 3, (3 + 3.5 + 3) / 3))
    found = pair.beside.difference
    # Two topics, of two items and of one: without either the mean is 0.1 or 0.5, so that the jackknife's error is the
    # root of 1/2 * (0.2667² + 0.1333²), and Student's t with one degree of freedom 12.7062.
    half = 12.706204736432095 * (0.5 * ((1.1 / 3 - 0.1) ** 2 + (0.5 - 1.1 / 3) ** 2)) ** 0.5
    assert (found.mean, found.low, found.high) == pytest.approx((1.1 / 3, 1.1 / 3 - half, 1.1 / 3 + half))
    assert (found.n, found.clusters) == (3, 2)
    assert (pair.to_b.word, pair.to_b.sure) == ("unclear", True), "two topics of one sign are a coin that fell twice"
    (turned,) = compare.compare(two, "two", "one").pairs
    assert turned.to_b.word == "unclear"


def test_every_item_of_either_is_listed_with_its_reason_where_there_is_no_value(two: RunsFolder) -> None:
    found = compare.compare(two, "one", "two")
    assert [item.id for item in found.items] == ["i1", "i2", "i3", "i4", "i5"]
    ovrl = found.headlines[0]
    assert [item.difference(ovrl) for item in found.items] == pytest.approx([0.5, 0.5, 0.1, None, None], nan_ok=True)
    silent = found.item("i4")
    readings = silent.readings["dnsmos"]
    assert (readings[1].reason, readings[1].cause) == ("the recording is silent", "system")
    assert found.item("i6") is None


def test_what_is_best_in_a_range_is_judged_by_its_distance_from_the_range(tmp_path: Path) -> None:
    loudness = get_column("loudness", "integrated", "audio.loudness")
    assert loudness.ideal is not None
    low, high = loudness.ideal
    protocol = "loudness@1.0-aaaaaaaaaaaa"
    # The one is as far above the range as the other is inside it: larger, and worse.
    items = [item_row("one", item, {"integrated": high + 3 + n}, protocol) for n, item in enumerate(TOPICS)]
    items += [item_row("two", item, {"integrated": (low + high) / 2}, protocol) for item in TOPICS]
    own = {"metric": "loudness", "key": "integrated", "dimension": "audio.loudness", "protocol": protocol}
    board = [board_row(**own), board_row(**own, system="two", system_title="Two")]
    folder = folder_of(tmp_path, board, items)
    (pair,) = compare.compare(folder, "one", "two").pairs
    assert pair.beside.difference.mean > 0
    assert (pair.to_b.word, pair.to_b.sure) == ("worse", True)


def test_two_values_in_the_best_range_are_told_so_on_every_page(tmp_path: Path) -> None:
    """Their difference may be sure; it makes neither better."""
    peak = get_column("loudness", "true_peak", "audio.loudness")
    top, protocol = peak.ideal[1], "loudness@1.0-aaaaaaaaaaaa"
    items = [item_row("one", item, {"true_peak": top - 1 - n / 10}, protocol) for n, item in enumerate(TOPICS)]
    items += [item_row("two", item, {"true_peak": top - 4}, protocol) for item in TOPICS]
    own = {"metric": "loudness", "key": "true_peak", "dimension": "audio.loudness", "protocol": protocol}
    board = [
        board_row(**own, value=top - 1.2, low=top - 1.4, high=top - 1),
        board_row(**own, system="two", system_title="Two", value=top - 4, low=top - 4, high=top - 4),
    ]
    folder = folder_of(tmp_path, board, items)
    (pair,) = compare.compare(folder, "one", "two").pairs
    assert pair.beside.difference.low > 0
    (figure,) = report_figures.build_figures(folder, "one", WHERE).figures
    assert pair.to_b == figure.to_median == report_figures.ReferenceFigure("in range", True)


def test_the_only_other_system_is_stood_against_as_where_two_are_compared(tmp_path: Path) -> None:
    """Its own uncertainty counts: its mean may lie outside the interval of a system that it is not told apart from."""
    other = dict(zip(TOPICS, (1.0, 5.0, 1.0, 5.0, 5.0), strict=True))
    items = [item_row("one", item, {"ovrl": 3.0 + n / 100}) for n, item in enumerate(TOPICS)]
    items += [item_row("two", item, {"ovrl": value}) for item, value in other.items()]
    board = [
        board_row(value=3.02, low=3.0, high=3.04),
        board_row(system="two", system_title="Two", value=3.4, low=1.4, high=5.0),
    ]
    folder = folder_of(tmp_path, board, items)
    (pair,) = compare.compare(folder, "one", "two").pairs
    (figure,) = report_figures.build_figures(folder, "one", WHERE).figures
    assert pair.to_b == figure.to_median == report_figures.ReferenceFigure("unclear", True)


def test_numbers_of_two_protocols_are_never_set_against_each_other(tmp_path: Path) -> None:
    other = "dnsmos@1.0-bbbbbbbbbbbb"
    board = [board_row(), board_row(system="two", system_title="Two", protocol=other)]
    items = [item_row("one", "i1", {"ovrl": 3.0}), item_row("two", "i1", {"ovrl": 1.0}, other)]
    folder = folder_of(tmp_path, board, items)
    (pair,) = compare.compare(folder, "one", "two").pairs
    assert (pair.a is None) != (pair.b is None)
    assert (pair.beside, pair.to_b.word) == (None, "")
    # Where one protocol is shared it is chosen, though only one system has the other.
    both = [*board, board_row(protocol=other)]
    folder = folder_of(tmp_path / "both", both, [*items, item_row("one", "i1", {"ovrl": 2.0}, other)])
    (pair,) = compare.compare(folder, "one", "two").pairs
    assert pair.protocol == other
    assert pair.beside.difference.mean == 1.0
    assert pair.beside.difference.low is None, "one topic has no interval"


@pytest.mark.parametrize(
    ("a", "b", "benchmark"),
    [("one", "nobody", ""), ("<script>", "two", ""), ("one", "one", ""), ("one", "two", "lfs_bench"), ("", "", "")],
)
def test_unknown_systems_and_places_are_refused(two: RunsFolder, a: str, b: str, benchmark: str) -> None:
    with pytest.raises(compare.UnknownSystem):
        compare.compare(two, a, b, benchmark)


def test_a_place_is_named_in_whole_or_by_its_beginning(two: RunsFolder) -> None:
    for benchmark in ("", "real_pod", "real_pod/voice", WHERE):
        assert compare.compare(two, "one", "two", benchmark).where == WHERE


def test_scores_are_read_again_when_the_table_has_changed(two: RunsFolder) -> None:
    first = read_scores(two, "one", WHERE)
    assert read_scores(two, "one", WHERE) is first
    write_table([item_row("one", "i1", {"ovrl": 1.25})], two.path / ITEMS)
    assert read_scores(two, "one", WHERE).values(("dnsmos", PROTOCOL), "ovrl") == {"i1": 1.25}


def test_a_result_that_cannot_be_read_is_unscored_by_us() -> None:
    for text in (
        "{not json",
        "[]",
        '{"ovrl": "high"}',
        '{"unscored": "x"}',
        '{"ovrl": 1, "timeline": {"starts": [0]}}',
    ):
        assert (parse_reading(text).cause, parse_reading(text).values) == ("ours", {})
    assert parse_reading('{"ovrl": NaN}').values == {"ovrl": None}


def test_a_course_is_told_in_tenths_of_the_recording() -> None:
    # Windows of 2 s from 0 to 18 s end at 20 s: their middles 1, 3, … 19 lie one in each tenth.
    assert compute_course([2.0 * n for n in range(10)], 2.0, [float(n) for n in range(10)]) == tuple(
        map(float, range(10))
    )
    assert compute_course([0.0, 1.0], 2.0, [3.0, None]) == (None, None, None, 3.0, *[None] * 6)
    assert compute_course([], 1.0, []) == (None,) * 10


def test_drift_over_a_recording_is_the_mean_slope_of_its_items(tmp_path: Path) -> None:
    def result(slope: float, reach: float) -> dict[str, Any]:
        drift = {"per": "minute", "ovrl": {"slope": slope, "ci95": [slope - reach, slope + reach]}}
        timeline = {"starts": [0.0, 1.0], "window": 1.0, "unit": "s", "values": {"ovrl": [3.0, 3.0 + slope]}}
        return {"ovrl": 3.0, "drift": drift, "timeline": timeline}

    items = [item_row("one", "i1", result(1.0, 0.5)), item_row("one", "i3", result(2.0, 3.0))]
    folder = folder_of(tmp_path, [board_row()], items)
    scores = read_scores(folder, "one", WHERE)
    found = report_figures.build_figures(folder, "one", WHERE)
    (drift,) = report_figures.compute_drifts(scores, found.protocols, [figure.column for figure in found.figures])
    assert (drift.slope.mean, drift.rising, drift.falling, drift.per) == (1.5, 1, 0, "minute")
    # The window from 0 s lies in the third tenth of two seconds, the other in the eighth: means of 3 and 3, 4 and 5.
    told = {number: part.mean for number, part in enumerate(drift.course) if part is not None}
    assert told == {2: 3.0, 7: 4.5}


def test_a_system_stands_against_people_by_the_paired_difference(folder: RunsFolder, board: pd.DataFrame) -> None:
    found = report_figures.build_figures(folder, "hibari", WHERE)
    assert found.reference == "real-episodes"
    wer = next(figure for figure in found.figures if figure.column.id == "wer.wer")
    of_both = [read_scores(folder, system, WHERE) for system in ("hibari", "real-episodes")]
    values = [scores.values(("wer", found.protocols["wer"]), "wer") for scores in of_both]
    by_hand = sum(values[0][item] - values[1][item] for item in values[0]) / 6
    assert wer.beside.difference.mean == pytest.approx(by_hand)
    means = board[(board["key"] == "wer") & (board["slice"] == "")].set_index("system")["value"]
    assert wer.median == pytest.approx((means["piper"] + means["real-episodes"]) / 2), "the others', without controls"
    assert wer.to_person == report_figures.ReferenceFigure("better", True)
    assert set(found.slices) == {"", "category=Arts", "category=News"}
    assert report_figures.build_figures(folder, "real-episodes", WHERE).reference == "", (
        "people are not set against people"
    )
