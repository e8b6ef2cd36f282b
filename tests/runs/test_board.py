"""The board's tables: who is ranked, who is not and why, and that nothing is compared that cannot be."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, keep_metrics
from podeval.board import build as building
from podeval.board.build import build
from podeval.cli.board import print_board
from podeval.cli.report import print_rows
from podeval.datasets.items import load_items
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.score import Protocol, Result, Score, Unscored
from podeval.runs.aggregate import summarise
from podeval.runs.board_tables import BOARD, ITEMS, BoardRow, ItemRow, read_table
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunFolder, RunPlan

REAL_POD = benchmarks.get("real_pod")
DEMO = REAL_POD.items("demo")
LFS_BENCH = benchmarks.get("lfs_bench")
Changes = Mapping[tuple[str, int], Result]


def write_run(
    runs: Path,
    system: str,
    quality: float,
    *,
    wer: float | None = 0.05,
    kind: str = "model",
    profile: str = "embedded",
    changes: Changes | None = None,
    benchmark: Benchmark = REAL_POD,
    split: str = "demo",
    track: str = "voice",
) -> RunFolder:
    """A finished run whose DNSMOS is `quality` on every item, a little more from item to item."""
    folder = RunFolder(runs, benchmark.name, split, system)
    folder.begin(
        RunPlan(
            benchmark=benchmark.name,
            split=split,
            dataset=benchmark.dataset.path,
            track=track,
            system=system,
            system_title=system.title(),
            system_kind=kind,
            generation={},
            seed=0,
        )
    )
    wanted = make_protocols(benchmark, folder.plan(), profile, CONDITIONS)
    items = load_items(benchmark, split).items
    folder.write_items(items)
    for number, item in enumerate(items):
        folder.write_output(Output(item=item.id, failed="nothing was spoken for this test"))
        results = {
            name: (changes or {}).get((name, number)) or _result(name, quality + number / 100, wer) for name in wanted
        }
        folder.append_results(profile, item.id, [(wanted[name], result) for name, result in results.items()])
    folder.write_summary(summarise(folder, profile, benchmark, items))
    return folder


def _result(name: str, quality: float, wer: float | None) -> Result:
    if name == "wer":
        if wer is None:
            return Unscored("no transcriber is installed", "ours")
        return Score({"wer": wer, "cer": wer, "wer_raw": wer, "cer_raw": wer})
    return Score({key.name: quality for key in catalogue.get(name).keys})


def build_own(runs: Path) -> None:
    """The tables without the papers' figures, which take longer to read than all that is measured here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "locate_hub_source", lambda name: runs / "none")
        build(runs)


def column(runs: Path, key: str = "ovrl", slice_: str = "") -> dict[str, dict[Any, Any]]:
    """The rows of one key, by system, on the board that is built from the runs."""
    build_own(runs)
    return read_column(runs, key, slice_)


def read_column(runs: Path, key: str, slice_: str = "") -> dict[str, dict[Any, Any]]:
    """The rows of one key, by system, on the board as it was built."""
    board = read_table(runs / BOARD)
    rows = board[(board.key == key) & (board.slice == slice_) & (board.profile != "paper")]
    return {row["system"]: dict(row) for row in rows.to_dict("records")}


def rank(row: Mapping[Any, Any]) -> tuple[int, int] | None:
    return None if pd.isna(row["rank_best"]) else (int(row["rank_best"]), int(row["rank_worst"]))


def test_better_systems_rank_before_worse_ones_and_equal_ones_share(tmp_path: Path) -> None:
    for system, quality in {"good": 3.5, "same": 3.5, "poor": 2.0}.items():
        write_run(tmp_path, system, quality)
    rows = column(tmp_path)
    assert {system: rank(row) for system, row in rows.items()} == {"good": (1, 2), "same": (1, 2), "poor": (3, 3)}
    good = rows["good"]
    assert good["low"] < good["value"] < good["high"]
    assert good["value"] == pytest.approx(3.525)
    assert (good["scored"], good["rankable"], good["provenance"]) == (6, True, "run by us")
    assert json.loads(good["protocol_json"])["metric"] == "dnsmos"


def test_lower_is_better_where_it_is_and_ranges_have_no_rank(tmp_path: Path) -> None:
    write_run(tmp_path, "clear", 3.0, wer=0.01)
    write_run(tmp_path, "blurred", 3.0, wer=0.15)
    assert {system: rank(row) for system, row in column(tmp_path, "wer").items()} == {
        "clear": (1, 1),
        "blurred": (2, 2),
    }
    assert {rank(row) for row in column(tmp_path, "integrated").values()} == {None}


def test_a_system_alone_on_its_board_has_no_place(tmp_path: Path) -> None:
    write_run(tmp_path, "alone", 4.5)
    write_run(tmp_path, "control", 2.0, kind="control")
    alone = column(tmp_path)["alone"]
    assert rank(alone) is None
    assert alone["rankable"], "it would be ranked if there were another"
    assert json.loads(alone["reasons"]) == {"not ranked: there is no other system to compare it with": 6}
    write_run(tmp_path, "second", 2.0)
    assert {rank(row) for row in column(tmp_path).values()} == {(1, 1), (2, 2), None}


def test_controls_are_shown_and_never_ranked(tmp_path: Path) -> None:
    write_run(tmp_path, "system", 2.0)
    write_run(tmp_path, "other", 1.0)
    write_run(tmp_path, "control", 4.5, kind="control")
    rows = column(tmp_path)
    assert rank(rows["system"]) == (1, 1)
    assert rank(rows["control"]) is None
    assert rows["control"]["system_kind"] == "control"
    assert not rows["control"]["rankable"]
    assert json.loads(rows["control"]["reasons"]) == {"not ranked: it is a control": 6}
    assert rows["control"]["value"] > 4


def test_words_that_are_not_there_cost_the_rank_and_the_board_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, "honest", 3.0, wer=0.30)
    write_run(tmp_path, "plain", 2.0, wer=0.10)
    write_run(tmp_path, "mumbler", 4.5, wer=0.31)
    write_run(tmp_path, "unknown", 4.0, wer=None)
    rows = column(tmp_path)
    places = {"honest": (1, 1), "plain": (2, 2), "mumbler": None, "unknown": None}
    assert {system: rank(row) for system, row in rows.items()} == places
    reason = "not ranked: its WER of 0.31 is above the ceiling of 0.30"
    assert json.loads(rows["mumbler"]["reasons"]) == {reason: 6}
    assert not rows["mumbler"]["rankable"]
    assert json.loads(rows["unknown"]["reasons"]) == {"not ranked: its WER is not known": 6}
    accuracy = column(tmp_path, "wer")
    assert rank(accuracy["mumbler"]) is None, "an error rate above the ceiling has no place either"
    assert json.loads(accuracy["mumbler"]["reasons"]) == {reason: 6}
    assert rank(accuracy["honest"]) == (2, 2)
    print_board(tmp_path)
    printed = capsys.readouterr().out
    assert f"Mumbler: {reason}" in printed
    assert len(re.findall(r"DNSMOS OVRL(?!,? (mix|of))", printed)) == 1, "each column once"


@pytest.mark.parametrize(("rate", "items", "mean"), [(0.4, range(6), "0.40"), (0.99, (3, 4, 5), "0.52")])
def test_chinese_is_judged_by_its_characters_and_good_english_does_not_cover_it(
    tmp_path: Path, rate: float, items: Sequence[int], mean: str
) -> None:
    chinese = Score({"wer": None, "cer": rate, "wer_raw": None, "cer_raw": rate})
    write_run(tmp_path, "mandarin", 3.0, changes={("wer", number): chinese for number in items})
    (reason,) = json.loads(column(tmp_path)["mandarin"]["reasons"])
    assert reason == f"not ranked: its CER of {mean} is above the ceiling of 0.30"


def test_the_ceiling_holds_in_each_language(tmp_path: Path) -> None:
    items = load_items(LFS_BENCH, "sample").items
    assert {item.language for item in items} == {"en", "zh"}
    wrong = Score({"wer": None, "cer": 0.5, "wer_raw": None, "cer_raw": 0.5})
    changes = {("wer", number): wrong for number, item in enumerate(items) if item.language == "zh"}
    write_run(tmp_path, "half", 3.0, benchmark=LFS_BENCH, split="sample", changes=changes)
    build_own(tmp_path)
    board = read_table(tmp_path / BOARD)
    (row,) = board[(board.key == "timbre_consistency") & (board.slice == "") & (board.profile != "paper")].to_dict(
        "records"
    )
    assert not row["rankable"]
    (reason,) = json.loads(row["reasons"])
    assert reason == "not ranked: its CER of 0.50 (language=zh) is above the ceiling of 0.30"


@pytest.mark.every(2)
@pytest.mark.parametrize("cause", ["system", "ours"])
def test_one_item_of_six_without_a_score_costs_the_rank(tmp_path: Path, cause: Any) -> None:
    write_run(tmp_path, "whole", 3.0)
    write_run(tmp_path, "worse", 2.0)
    write_run(tmp_path, "part", 4.5, changes={("dnsmos", 2): Unscored("a reason", cause)})
    rows = column(tmp_path)
    assert rank(rows["whole"]) == (1, 1)
    assert rank(rows["part"]) is None
    assert not rows["part"]["rankable"]
    assert (rows["part"]["scored"], rows["part"][f"unscored_{cause}"]) == (5, 1)
    assert json.loads(rows["part"]["reasons"]) == {"a reason": 1}
    assert rank(column(tmp_path, "sptd")["part"]) == (1, 1), "elsewhere it is complete"


def test_other_protocols_and_profiles_are_never_ranked_together(tmp_path: Path) -> None:
    write_run(tmp_path, "whole", 3.0)
    write_run(tmp_path, "elsewhere", 2.0, profile="reference")
    rows = column(tmp_path)
    assert {rank(row) for row in rows.values()} == {None}, "each is alone in its column"
    assert rows["whole"]["protocol"] != rows["elsewhere"]["protocol"], "the profiles separate music differently"


def test_slices_hold_their_items_and_their_own_ranks(tmp_path: Path) -> None:
    write_run(tmp_path, "good", 3.5)
    write_run(tmp_path, "poor", 2.0)
    name = f"category={DEMO[2].category}"
    rows = column(tmp_path, slice_=name)
    assert rows["good"]["value"] == pytest.approx(3.52)
    assert rows["good"]["scored"] == 1
    assert rank(rows["good"]) == (1, 2), "one item tells nothing apart"


def test_reported_figures_stand_as_printed(tmp_path: Path) -> None:
    write_run(tmp_path, "system", 3.0)
    build(tmp_path)
    board = read_table(tmp_path / BOARD)
    reported = board[board.profile == "paper"]
    assert len(reported) > 50
    assert set(reported.provenance) == {"reported"}
    assert not reported.rankable.any()
    assert set(reported.reasons) == {'{"not ranked: a paper reports it": 1}'}
    for name in ("low", "high", "rank_best", "rank_worst", "scored"):
        assert reported[name].isna().all(), name
    assert reported.source.str.contains("Table").any()


def test_the_tables_hold_what_their_rows_declare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "system", 3.0, changes={("dnsmos", 0): Unscored("a reason", "system")})
    build(tmp_path)
    for name, form in ((BOARD, BoardRow), (ITEMS, ItemRow)):
        table = read_table(tmp_path / name)
        assert list(table.columns) == list(form.model_fields)
        for row in table.to_dict("records"):
            form.model_validate(
                {key: None if pd.api.types.is_scalar(v) and pd.isna(v) else v for key, v in row.items()}
            )
    items = read_table(tmp_path / ITEMS)
    assert len(items) == 6 * 8
    assert (tmp_path / items.output[0]).exists()
    assert sum('"unscored"' in result for result in items.result) == 1
    print_rows(tmp_path, "embedded")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["system"] for line in lines} == {"system"}


def test_an_empty_folder_has_numeric_columns_too(tmp_path: Path) -> None:
    build(tmp_path)
    board = read_table(tmp_path / BOARD)
    for name in ("value", "low", "high", "rank_best", "rank_worst", "scored", "unscored_system"):
        assert board[name].dtype == "float64", name
    assert read_table(tmp_path / ITEMS).empty


@pytest.mark.parametrize("width", [80, 170])
def test_the_printed_tables_fit_the_width(
    tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = keep_metrics(REAL_POD, ["dnsmos", "content_errors"], "voice")
    faulty = {("dnsmos", n): Unscored(f"the WAV announces 2147479552 bytes and has {n}", "system") for n in range(6)}
    write_run(tmp_path, "clear", 3.0, benchmark=small)
    write_run(tmp_path, "a_reader_with_a_very_long_name", 2.0, benchmark=small, changes=faulty)
    write_run(tmp_path, "silence", 1.0, benchmark=small, kind="control")
    build_own(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    print_board(tmp_path)
    printed = capsys.readouterr().out
    tables = printed.partition("\nClear: ")[0]
    assert max(map(len, tables.splitlines())) <= width
    golden = Path(__file__).with_name(f"board_in_{width}_columns.txt")
    assert [line.rstrip() for line in printed.splitlines()] == golden.read_text(encoding="utf-8").splitlines()


def test_results_of_an_older_protocol_do_not_count(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "system", 3.0)
    new = make_protocols(REAL_POD, folder.plan(), "embedded", CONDITIONS)["dnsmos"]
    old: Protocol = replace(new, version="0.9")
    folder.append_results("embedded", DEMO[0].id, [(old, Score({"ovrl": 1.0}))])
    folder.write_summary(summarise(folder, "embedded", REAL_POD, DEMO))
    assert column(tmp_path)["system"]["value"] == pytest.approx(3.025)


def test_a_run_that_nothing_here_knows_is_told_by_its_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "system", 3.0)
    for path in (folder.path / "run.json", folder.path / "embedded/summary.json"):
        path.write_text(path.read_text().replace('"benchmark": "real_pod"', '"benchmark": "other_pod"'))
    with pytest.raises(BadInput, match=rf"the run in {folder.path} cannot be shown: there is no benchmark 'other_pod'"):
        build_own(tmp_path)


def test_a_system_called_as_markup_is_text_on_the_operators_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path, "bomb", 3.0, wer=0.31)
    for plan in tmp_path.rglob("*.json"):
        content = plan.read_text(encoding="utf-8")
        plan.write_text(
            content.replace('"Bomb"', '"[/x] [link=https://evil]Bomb[/link] \\u001b[31m"'), encoding="utf-8"
        )
    column(tmp_path)
    print_board(tmp_path)
    printed = capsys.readouterr().out
    assert "[/x] [link=https://evil]Bomb[/link]" in printed
    assert "\x1b" not in printed
