"""Real-Pod's hard lines on the board: what systems stumble over, by tag; and other splits stay as they were."""

import json
from pathlib import Path
from typing import Any

import pytest

from podeval import benchmarks
from podeval.metrics.score import Score, Unscored, parse_result
from podeval.runs.board_tables import BOARD, read_table
from podeval.runs.item_inputs import ask_of, gather_inputs
from podeval.runs.measure import make_protocols
from podeval.runs.run_folder import Output, RunPlan
from tests.runs.test_board import build_own, rank, write_run

REAL_POD = benchmarks.get("real_pod")
HARD = REAL_POD.items("hard")


def tagged(**rates: tuple[float, float]) -> Score:
    """A WER result with the rate and the words of each tag."""
    parts = {"tag": {tag: {"wer": pair} for tag, pair in rates.items()}}
    return Score({"wer": 0.1, "cer": 0.1, "wer_raw": 0.1, "cer_raw": 0.1}, parts=parts)


def rows_of(runs: Path, tag: str) -> dict[str, Any]:
    """The rows of a tag's WER on the board, by system."""
    board = read_table(runs / BOARD)
    rows = board[(board.key == "wer") & (board.slice == f"tag={tag}")]
    return {str(row["system"]): row for row in rows.to_dict("records")}


def inputs_named(split: str) -> list[str]:
    plan = RunPlan(
        benchmark="real_pod", split=split, dataset="d", track="voice", system="s", system_title="S",
        system_kind="model", generation={}, seed=0,
    )  # fmt: skip
    return list(make_protocols(REAL_POD, plan, "embedded", {})["wer"].inputs)


def test_the_protocol_names_accepted_readings_in_the_split_that_has_them_and_in_no_other() -> None:
    assert inputs_named("demo") == inputs_named("topics") == ["recording", "reference_text"]
    assert inputs_named("hard") == ["recording", "reference_text", "readings"]
    for split in REAL_POD.splits:
        assert {item.readings is not None for item in REAL_POD.items(split.name)} == {split.readings}


def test_no_system_is_shown_how_a_line_may_be_read(tmp_path: Path) -> None:
    item = next(item for item in HARD if item.lines[0].readings)
    shown = ask_of("voice", item).model_dump_json()
    assert item.script.turns[0].text in json.loads(shown)["script"][0]["text"]
    assert "accepted" not in shown
    # A metric is given them, of what was spoken.
    output = Output(item=item.id, audio="a.flac", duration=1.0, script=tuple(item.script.to_json()))
    assert gather_inputs(item, output, tmp_path, "embedded")["readings"].text == item.script.text


def test_the_board_breaks_errors_down_by_tag_and_weighs_them_by_words(tmp_path: Path) -> None:
    changes = {("wer", number): tagged(money=(0.0, 2)) for number in range(len(HARD))}
    changes |= {("wer", 0): tagged(money=(1.0, 6), date=(0.5, 2)), ("wer", 1): tagged(date=(0.0, 6))}
    write_run(tmp_path, "stumbler", 3.0, changes=changes, split="hard")
    better = {("wer", number): tagged(money=(0.0, 2)) for number in range(len(HARD))}
    write_run(tmp_path, "speaker", 3.0, changes=better, split="hard")
    build_own(tmp_path)
    money, date, phone = (rows_of(tmp_path, tag) for tag in ("money", "date", "phone"))
    words = 6 + 2 * (len(HARD) - 2)
    assert money["stumbler"]["value"] == pytest.approx(6 / words)
    assert money["speaker"]["value"] == 0
    assert (date["stumbler"]["value"], date["stumbler"]["values"]) == (pytest.approx(1 / 8), 2)
    assert date["stumbler"]["scored"] == 2
    assert set(date) == {"stumbler"}
    assert rank(money["speaker"]) == (1, 2)
    assert phone == {}


def test_an_item_without_a_score_is_missing_in_every_tag(tmp_path: Path) -> None:
    changes = {("wer", number): tagged(money=(0.0, 2)) for number in range(len(HARD))}
    changes[("wer", 3)] = Unscored("the transcriber is not installed", "ours")
    write_run(tmp_path, "system", 3.0, changes=changes, split="hard")
    build_own(tmp_path)
    row = rows_of(tmp_path, "money")["system"]
    assert (row["scored"], row["unscored_ours"], row["rankable"]) == (len(HARD) - 1, 1, False)


def test_parts_survive_being_stored() -> None:
    score = tagged(money=(0.25, 4))
    assert parse_result(json.loads(json.dumps(score.to_json()))) == score
    assert score.part("tag", "money") == Score({"wer": 0.25}, weights={"wer": 4})
    assert score.part("tag", "date") is None
