"""Ranks that nobody can take from others, or win, by leaving things out: through run folders and the built board."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.board.exports.downloads import make_tidy
from podeval.board.runs_folder import RunsFolder
from podeval.board.view import BoardView, resolve_view
from podeval.cli.board import print_board
from podeval.datasets.items import load_items
from podeval.metrics import catalogue
from podeval.metrics.score import Result, Score, Unscored
from podeval.metrics.speech.rtf import GenerationLog
from podeval.runs.aggregate import summarise
from podeval.runs.board_tables import ALONE, BOARD, EVIDENT, NOT_RANKED, read_table
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from tests.runs import test_board
from tests.runs.test_board import build_own, column, rank, read_column, write_run

REAL_POD = keep_metrics(benchmarks.get("real_pod"), ("dnsmos", "wer", "sptd", "integrity"), "voice")
"""The columns that these tests read, and what guards them: a board of all of them takes ten times as long."""
LFS_BENCH = keep_metrics(test_board.LFS_BENCH, ("wer", "rtf"), "voice")
TOPICS = 51
APART = {"best": 3.6, "middle": 3.2, "last": 2.6}
"""Three systems that are far apart."""
SILENT = Unscored("the recording is silent", "system")
IN_ORDER = {"best": (1, 1), "middle": (2, 2), "last": (3, 3)}


def quality(value: float | None, number: int, **notes: Any) -> Score:
    """The DNSMOS of one item."""
    worth = None if value is None else value + number / 100
    return Score(dict.fromkeys(("ovrl", "sig", "bak", "p808", "ovrl_mix"), worth), notes)


def write_topics(runs: Path, systems: Mapping[str, float], **others: Mapping[int, Result]) -> None:
    """Runs on the 51 topics: some systems with all items, and others whose DNSMOS is given by item and else is 3."""
    for system, value in systems.items():
        write_run(runs, system, value, benchmark=REAL_POD, split="topics")
    for system, results in others.items():
        changes = {("dnsmos", number): result for number, result in results.items()}
        write_run(runs, system, 3.0, benchmark=REAL_POD, split="topics", changes=changes)


def ranks(rows: Mapping[str, Mapping[Any, Any]], systems: Mapping[str, Any] = APART) -> dict[str, Any]:
    return {system: rank(rows[system]) for system in systems}


def reasons(row: Mapping[Any, Any]) -> dict[str, int]:
    return json.loads(row["reasons"])


def test_a_system_with_a_value_on_one_item_takes_nobody_s_rank(tmp_path: Path) -> None:
    write_topics(tmp_path, APART, one={number: quality(None, number) for number in range(1, TOPICS)})
    rows = column(tmp_path)
    assert ranks(rows) == IN_ORDER
    assert {row["clusters"] for system, row in rows.items() if system in APART} == {TOPICS}
    assert rank(rows["one"]) is None
    assert not rows["one"]["rankable"]
    assert (rows["one"]["scored"], rows["one"]["unscored_system"], rows["one"]["values"]) == (1, 50, 1)
    assert reasons(rows["one"]) == {"ovrl has no value": 50}


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("lack", "reason"),
    [
        (lambda number: quality(3.9, number, unranked={"ovrl": "it is music"}), "not ranked: it is music ({} of 51)"),
        (lambda number: quality(None, number), "ovrl has no value"),
        (lambda number: SILENT, "the recording is silent"),
    ],
    ids=["unranked", "no value", "unscored"],
)
def test_six_systems_that_lack_different_items_take_nobody_s_rank(
    tmp_path: Path, lack: Callable[[int], Result], reason: str
) -> None:
    lacking = {
        f"jingle{system}": {number: lack(number) for number in range(9 * system, min(TOPICS, 9 * system + 9))}
        for system in range(6)
    }
    write_topics(tmp_path, APART, **lacking)
    rows = column(tmp_path)
    assert ranks(rows) == IN_ORDER
    for system, items in lacking.items():
        assert rank(rows[system]) is None
        assert list(reasons(rows[system])) == [reason.format(len(items))]


def test_what_most_others_were_scored_on_takes_nobody_s_rank(tmp_path: Path) -> None:
    """Six systems with music on nine items each, which were scored on their stem: once nobody had a rank."""
    music = {
        f"jingle{system}": {
            number: quality(3.9, number, scored="speech stem")
            for number in range(9 * system, min(TOPICS, 9 * system + 9))
        }
        for system in range(6)
    }
    write_topics(tmp_path, APART, **music)
    rows = column(tmp_path)
    assert ranks(rows, ("best", "last")) == {"best": (1, 1), "last": (9, 9)}
    assert {rank(rows[system]) for system in (*music, "middle")} == {(2, 8)}


@pytest.mark.long
def test_systems_that_each_lack_another_two_of_51_are_compared_by_pairs(tmp_path: Path) -> None:
    lacking = {f"s{n:02}": {2 * n: SILENT, 2 * n + 1: SILENT} for n in range(17)}
    write_topics(tmp_path, APART, **lacking)
    rows = column(tmp_path)
    assert rank(rows["best"]) == (1, 1)
    assert rank(rows["middle"]) == (2, 2)
    assert rank(rows["last"]) == (20, 20)
    assert {rank(rows[system]) for system in lacking} == {(3, 19)}
    assert rows["best"]["clusters"] == TOPICS - 2, "its pairs with each of them, not what all have in common"
    assert {rows[system]["clusters"] for system in lacking} == {TOPICS - 4}


def test_two_items_that_are_left_out_gain_no_rank(tmp_path: Path) -> None:
    """Equal but for two items, on which it is bad: left out, it would be ahead; the worst that is seen counts there."""
    plain = {number: quality(3 + (number % 5 - 2) / 10, number) for number in range(TOPICS)}
    ahead = {number: quality(3.05 + (number % 5 - 2) / 10, number) for number in range(2, TOPICS)}
    some = {number: quality(2.0 + (number % 5 - 2) / 10, number) for number in range(2, 7)}
    write_topics(tmp_path, {}, plain=plain, picky={**ahead, **some, 0: SILENT, 1: SILENT})
    assert set(ranks(column(tmp_path), ("plain", "picky")).values()) == {(1, 2)}


@pytest.mark.every(4)
@pytest.mark.parametrize("given", [range(25), range(1), range(0), range(0, 51, 2)])
def test_a_key_that_is_given_where_it_suits_is_incomplete(tmp_path: Path, given: range) -> None:
    chosen = {number: quality(4.9 if number in given else None, number) for number in range(TOPICS)}
    write_topics(tmp_path, APART, chooser=chosen)
    rows = column(tmp_path)
    assert ranks(rows) == IN_ORDER
    assert rank(rows["chooser"]) is None
    assert rows["chooser"]["unscored_system"] == TOPICS - len(given)
    assert rank(read_column(tmp_path, "sptd")["chooser"]) is not None, "elsewhere it is complete"


def log(seconds: float, first: float | None) -> Result:
    """What the metric itself makes of a log."""
    stated = {} if first is None else {"time_to_first_audio": first}
    source = {"wall_seconds": seconds * 60, "audio_seconds": 60.0, **stated}
    return catalogue.get("rtf")({"generation_log": GenerationLog.parse(source)})


@pytest.mark.every(2)
@pytest.mark.parametrize("stated", [9, 5, 1, 0])
def test_a_slow_system_is_not_first_by_stating_some_of_its_times(
    tmp_path: Path, stated: int, capsys: pytest.CaptureFixture[str]
) -> None:
    speeds = {"fast": 0.3, "mid": 0.5, "slow": 0.9}
    for system, seconds in speeds.items():
        changes = {("rtf", n): log(seconds + n / 100, seconds + n / 90) for n in range(9)}
        write_run(tmp_path, system, 3.0, benchmark=LFS_BENCH, split="sample", changes=changes)
    sly = {("rtf", n): log(0.95 + n / 100, 0.01 + n / 9000 if n < stated else None) for n in range(9)}
    write_run(tmp_path, "sly", 3.0, benchmark=LFS_BENCH, split="sample", changes=sly)
    rows = column(tmp_path, "time_to_first_audio")
    assert rank(read_column(tmp_path, "rtf")["sly"]) == (4, 4)
    if stated == 9:
        assert ranks(rows, rows) == {"sly": (1, 1), "fast": (2, 2), "mid": (3, 3), "slow": (4, 4)}
        return
    assert ranks(rows, speeds) == {"fast": (1, 1), "mid": (2, 2), "slow": (3, 3)}
    assert rank(rows["sly"]) is None
    reason = "the generation log does not state for every piece what time_to_first_audio needs"
    assert reasons(rows["sly"]) == {reason: 9 - stated}
    assert (rows["sly"]["scored"], rows["sly"]["unscored_system"]) == (stated, 9 - stated)
    print_board(tmp_path)
    assert f"{9 - stated} × {reason} (by the system: rtf)" in capsys.readouterr().out.replace("\n", " ")


def test_a_log_of_pieces_cannot_choose_the_pieces_of_which_it_states_a_time() -> None:
    pieces = [{"wall_seconds": 9.0, "audio_seconds": 10.0, "time_to_first_audio": 0.1, "underrun": 0.0},
              {"wall_seconds": 9.0, "audio_seconds": 10.0}]  # fmt: skip
    score = catalogue.get("rtf")({"generation_log": GenerationLog.parse(pieces)})
    assert score.values["time_to_first_audio"] is None
    assert score.values["underrun"] is None
    assert score.notes["underrun_unscored"]["cause"] == "system"


def test_keys_that_an_item_cannot_have_cost_no_rank(tmp_path: Path) -> None:
    """Chinese has no words between spaces: systems are ranked on WER by the English items, on CER by all."""
    chinese = [n for n, one in enumerate(load_items(LFS_BENCH, "sample").items) if one.language == "zh"]
    for system, errors in {"clear": 0.01, "blurred": 0.15}.items():
        spoken = {("wer", n): Score({"wer": None, "cer": errors, "wer_raw": None, "cer_raw": errors}) for n in chinese}
        write_run(tmp_path, system, 3.0, wer=errors, benchmark=LFS_BENCH, split="sample", changes=spoken)
    build_own(tmp_path)
    for key, clusters in (("wer", 9 - len(chinese)), ("cer", 9)):
        rows = read_column(tmp_path, key)
        assert ranks(rows, rows) == {"clear": (1, 1), "blurred": (2, 2)}, key
        assert {row["clusters"] for row in rows.values()} == {clusters}
        assert {row["unscored_system"] for row in rows.values()} == {0}
    only_chinese = read_column(tmp_path, "wer", "language=zh")["clear"]
    assert (rank(only_chinese), reasons(only_chinese)) == (None, {EVIDENT["values"]: len(chinese)})


def test_what_we_could_not_compute_of_one_key_is_our_fault_and_said(tmp_path: Path) -> None:
    values = {key.name: 1.0 for key in catalogue.get("integrity").keys}
    absent = Score({**values, "plcmos": None}, {"plcmos_unscored": "no weights"})
    write_topics(tmp_path, APART)
    write_run(tmp_path, "without", 3.0, benchmark=REAL_POD, split="topics", changes={("integrity", 7): absent})
    row = column(tmp_path, "plcmos")["without"]
    assert rank(row) is None
    assert (row["scored"], row["unscored_ours"], reasons(row)) == (50, 1, {"no weights": 1})
    assert rank(read_column(tmp_path, "faults_per_hour")["without"]) is not None


def test_a_view_is_corrected_over_all_its_columns_when_asked_and_says_how_many_are_expected_to_be_false(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two systems whose DNSMOS differs with p 0.02 in each of four columns: enough for one of them, not for four."""
    random = np.random.default_rng(4)
    noise = random.normal(size=TOPICS)
    noise = 0.3 * (noise - noise.mean()) / noise.std(ddof=1)
    ahead = {number: quality(3.0 + 0.3 * 2.4 / TOPICS**0.5 + shift, number) for number, shift in enumerate(noise)}
    write_topics(tmp_path, {}, plain={number: quality(3.0, number) for number in range(TOPICS)}, ahead=ahead)
    build_own(tmp_path)
    folder = RunsFolder(tmp_path)
    by_column = resolve_view(BoardView(board="real_pod/topics", dimension="speech.quality"), folder.index())
    wish = replace(by_column.view, correction=BoardView.from_query({"correction": "view"}).correction)
    by_view = resolve_view(wish, folder.index())
    assert by_view.view == wish
    both = [make_tidy(view).set_index(["system", "key"]) for view in (by_column, by_view)]
    dnsmos = [("plain", key) for key in ("ovrl", "sig", "bak", "p808")]
    assert [[rank(table.loc[one]) for one in dnsmos] for table in both] == [[(2, 2)] * 4, [(1, 2)] * 4]
    assert by_column.ranked_columns == 4
    expected = [set(zip(table["correction"], table["expected_false_columns"], strict=True)) for table in both]
    assert expected == [{("column", 0.2)}, {("view", 0.05)}]
    # On the terminal, both ways.
    print_board(tmp_path)
    assert "expected in at most 0.2 of the 4 ranked columns" in capsys.readouterr().out
    print_board(tmp_path, correction="view")
    assert "at most one such table in twenty would show any false rank" in capsys.readouterr().out
    # Without the folders of the runs there is nothing to correct with, and the reader is told.
    alone = resolve_view(wish, folder.board())
    assert alone.missed_wishes(wish) == {"correction": "view"}


def write_part(runs: Path, system: str, value: float, count: int) -> None:
    """A run of the first topics only."""
    part: RunFolder = write_run(runs, system, value, benchmark=REAL_POD, split="topics")
    items = load_items(REAL_POD, "topics").items[:count]
    part.write_items(items)
    part.write_summary(summarise(part, "embedded", REAL_POD, items))


LACKING = (
    "not ranked: it shares 20 of 51 independent items with another system, but 90 % are needed; the others are missing "
    "from {} results"
)


@pytest.mark.every(2)
@pytest.mark.parametrize("parts", [1, 4])
def test_systems_that_share_too_few_items_with_others_are_not_comparable_and_widen_no_range(
    tmp_path: Path, parts: int
) -> None:
    write_topics(tmp_path, APART)
    for number in range(parts):
        write_part(tmp_path, f"part{number}", 4.9 - number, 20)
    rows = column(tmp_path)
    assert ranks(rows) == IN_ORDER
    for number in range(parts):
        row = rows[f"part{number}"]
        assert (rank(row), row["rankable"], list(reasons(row))) == (None, False, [LACKING.format("its own")])


def test_partial_runs_do_not_push_the_only_whole_one_out(tmp_path: Path) -> None:
    write_topics(tmp_path, {"whole": 3.0})
    for system, value in {"some": 4.9, "few": 4.0}.items():
        write_part(tmp_path, system, value, 20)
    rows = column(tmp_path)
    assert set(ranks(rows, rows).values()) == {None}
    assert list(reasons(rows["whole"])) == [LACKING.format("the other's")]
    assert list(reasons(rows["few"])) == [LACKING.format("its own")]


def test_seven_long_episodes_rank_nobody_and_the_board_says_why(tmp_path: Path) -> None:
    for system, value in APART.items():
        write_run(tmp_path, system, value, benchmark=REAL_POD, split="long")
    rows = column(tmp_path)
    assert ranks(rows) == dict.fromkeys(APART)
    assert {reason for row in rows.values() for reason in reasons(row)} == {
        f"{NOT_RANKED}: the 7 items of its split are too few for ranks"
    }
    assert not any(row["rankable"] for row in rows.values())


@pytest.mark.long
def test_values_that_a_metric_calls_unranked_are_in_no_rank(tmp_path: Path) -> None:
    few = {number: quality(4.9, number, unranked={"ovrl": "it is short"}) for number in range(2)}
    many = {number: quality(None, number, unranked={"ovrl": "it is short"}) for number in range(3)}
    write_topics(tmp_path, APART, few=few, many=many)
    rows = column(tmp_path)
    assert rank(rows["few"]) == (3, 3), "two of 51 may be short, and are compared with nothing"
    assert rank(rows["many"]) is None


def test_pooled_values_are_ranked_by_their_weighted_mean(tmp_path: Path) -> None:
    """Nine criteria of one dialogue count nine times as much as one of another: 3.28, not 2.8, against 3."""
    heavy = {number: {"ovrl": 9.0 if number % 2 else 1.0} for number in range(TOPICS)}
    plain = {number: Score({"ovrl": 3.0}, weights=weight) for number, weight in heavy.items()}
    pooled = {number: Score({"ovrl": 3.4 if number % 2 else 2.2}, weights=weight) for number, weight in heavy.items()}
    write_topics(tmp_path, {}, plain=plain, pooled=pooled)
    rows = column(tmp_path)
    assert ranks(rows, rows) == {"pooled": (1, 1), "plain": (2, 2)}


MTALK = benchmarks.get("mtalk_bench")
UNHEARD = "a judge that reads plain words cannot tell how an answer sounds"


def write_answers(runs: Path, system: str, value: float, hears: bool) -> None:
    """A run of MTalk-Bench whose judge hears the answers, or reads words and scores dialogues about meaning alone."""
    folder = RunFolder(runs, "mtalk_bench", "sample", system)
    about = {"track": "respond", "system": system, "system_title": system, "system_kind": "model"}
    folder.begin(RunPlan(benchmark="mtalk_bench", split="sample", dataset="d", generation={}, seed=0, **about))
    wanted = make_protocols(MTALK, folder.plan(), "embedded", CONDITIONS)
    items = load_items(MTALK, "sample").items
    folder.write_items(items)
    for number, item in enumerate(items):
        of = item.group("dimension") or ""
        keys = dict.fromkeys(("rubric", "general", "dimension", "sample", of), value + number)
        rubric = Score(keys) if hears or of == "semantic" else Unscored(UNHEARD, "ours")
        results = {"rubric": rubric, "content_density": Score({"content_density": value})}
        folder.write_output(Output(item=item.id, failed="nothing was answered for this test"))
        folder.append_results("embedded", item.id, [(wanted[name], result) for name, result in results.items()])
    folder.write_summary(summarise(folder, "embedded", MTALK, items))


@pytest.mark.parametrize("hears", [False, True])
def test_dialogues_about_meaning_rank_without_a_judge_that_hears_and_no_others(tmp_path: Path, hears: bool) -> None:
    for system, value in {"best": 80.0, "middle": 60.0}.items():
        write_answers(tmp_path, system, value, hears)
    semantic = column(tmp_path, "semantic")["best"]
    assert (rank(semantic), semantic["unscored_ours"], reasons(semantic)) == ((1, 2), 0, {})
    for key in ("rubric", "general", "dimension", "sample"):
        row = read_column(tmp_path, key)["best"]
        assert (rank(row), reasons(row)) == (((1, 2), {}) if hears else (None, {UNHEARD: 2})), key
    for dimension in ("paralinguistic", "ambient"):
        rows = [read_column(tmp_path, key, f"dimension={dimension}")["best"] for key in ("rubric", dimension)]
        assert {rank(row) for row in rows} == {(1, 2) if hears else None}
    board = read_table(tmp_path / BOARD)
    assert board[board["rank_best"].isna() & (board["reasons"] == "{}")].empty


def test_every_row_has_a_rank_or_a_reason(tmp_path: Path) -> None:
    for system, value in APART.items():
        write_run(tmp_path, system, value)
    write_run(tmp_path, "mumbler", 4.5, wer=0.31)
    write_run(tmp_path, "unknown", 4.0, wer=None)
    write_run(tmp_path, "control", 1.0, kind="control")
    write_run(tmp_path, "people", 3.9, kind="human")
    write_run(tmp_path, "part", 4.0, changes={("dnsmos", 2): SILENT})
    write_run(tmp_path, "chooser", 4.0, changes={("dnsmos", 2): quality(None, 2)})
    write_run(tmp_path, "alone", 3.0, profile="reference")
    for system in ("one", "two"):
        write_run(tmp_path, system, 3.0, benchmark=LFS_BENCH, split="sample")
    build_own(tmp_path)
    board = read_table(tmp_path / BOARD)
    bare = board[board["rank_best"].isna() & (board["reasons"] == "{}")]
    assert bare.empty, bare[["system", "metric", "key", "slice"]]
    both = board[board["rank_best"].notna() & board["reasons"].str.contains(NOT_RANKED)]
    assert both.empty
    alone = board[(board["system"] == "alone") & (board["key"] == "ovrl") & (board["slice"] == "")]
    assert list(map(json.loads, alone["reasons"])) == [{ALONE: 6}]
    assert pd.notna(board["rank_best"]).sum() > 100
