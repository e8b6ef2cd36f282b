"""Results leave in forms that others read, and their own readers take them."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from podeval.board.exports import every_eval_ever, result_forms
from podeval.datasets.items import load_items
from podeval.errors import BadInput
from podeval.metrics.score import Score
from podeval.runs.run_folder import RunFolder
from tests.board.measured_run import ITEMS
from tests.fakes.command import refuse_command, run_command
from tests.runs.test_board import LFS_BENCH, write_run


@pytest.fixture(scope="module")
def robot(runs: Path) -> RunFolder:
    return RunFolder(runs, "real_pod", "demo", "robot")


@pytest.fixture(scope="module")
def record(robot: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> every_eval_ever.ExportedRecord:
    (one,) = every_eval_ever.write_records(robot, tmp_path_factory.mktemp("eee"))
    return one


def test_every_eval_ever_takes_the_records_with_its_own_validator(
    record: every_eval_ever.ExportedRecord, reference_packages: Path
) -> None:
    if not (reference_packages / "every_eval_ever").is_dir():
        pytest.skip("every-eval-ever is not among the reference packages; `make reference-packages` gets it")
    program = (
        f"import sys; sys.path.append({str(reference_packages)!r})\n"
        "from every_eval_ever.validate import main\nsys.exit(main(sys.argv[1:]))"
    )
    files = [str(record.path), str(record.samples), "--format", "json"]
    done = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = json.loads(done.stdout)
    assert [(report["valid"], report["warnings"]) for report in reports] == [(True, []), (True, [])]
    assert {report["file_type"] for report in reports} == {"aggregate", "instance"}


def test_a_record_says_what_the_run_says(robot: RunFolder, record: every_eval_ever.ExportedRecord) -> None:
    content = json.loads(record.path.read_text(encoding="utf-8"))
    (summary,) = robot.summaries()
    row = next(row for row in summary.metrics if row.metric == "dnsmos" and not row.slice)
    result = next(
        result
        for result in content["evaluation_results"]
        if result["metric_config"]["metric_id"] == "podeval.dnsmos.ovrl"
        and not result["score_details"]["details"]["slice"]
    )
    value = row.keys["ovrl"]
    assert result["score_details"]["score"] == value.mean
    assert result["score_details"]["uncertainty"]["confidence_interval"]["lower"] == value.low
    assert result["metric_config"]["additional_details"]["protocol"] == row.protocol
    assert result["metric_config"]["lower_is_better"] is False
    assert "podeval.wer.wer" not in {r["metric_config"]["metric_id"] for r in content["evaluation_results"]}, "unscored"


def test_each_measured_item_has_a_line_and_an_unscored_one_has_none(
    robot: RunFolder, record: every_eval_ever.ExportedRecord
) -> None:
    lines = [json.loads(line) for line in record.samples.read_text(encoding="utf-8").splitlines()]
    overall = {
        line["sample_id"]: line["evaluation"]["score"] for line in lines if "/ovrl" in line["evaluation_result_id"]
    }
    results = robot.results("embedded")
    (summary,) = robot.summaries()
    protocol = next(row.protocol for row in summary.metrics if row.metric == "dnsmos")
    scores = {item.id: results[item.id, protocol] for item in ITEMS}
    assert overall == {id: score.values["ovrl"] for id, score in scores.items() if isinstance(score, Score)}
    assert len(lines) == record.rows == 3 * len(ITEMS)


def test_a_second_export_writes_the_same_files(
    robot: RunFolder, record: every_eval_ever.ExportedRecord, tmp_path: Path
) -> None:
    (again,) = every_eval_ever.write_records(robot, tmp_path)
    assert again.path.read_bytes() == record.path.read_bytes()
    assert again.path.name == record.path.name


def test_recordings_of_people_are_no_model(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="recordings of people"):
        every_eval_ever.write_records(RunFolder(runs, "real_pod", "demo", "person"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_all_results_are_a_dataset_that_load_dataset_reads(runs: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    out = tmp_path / "results"
    rows = result_forms.write_dataset(runs, out)
    loaded = {
        config: load_dataset(str(out), config, split=result_forms.SPLIT, cache_dir=str(tmp_path / "cache"))
        for config in result_forms.CONFIGS
    }
    assert {config: len(table) for config, table in loaded.items()} == rows
    ids = set(loaded["protocols"]["id"])
    assert set(loaded["results"]["protocol"]) == ids
    (protocol,) = (row for row in loaded["protocols"] if row["metric"] == "dnsmos" and row["version"])
    assert json.loads(protocol["content"])["id"] == protocol["id"]
    assert rows["items"] > 0
    assert result_forms.write_dataset(runs, out) == rows, "an earlier export is replaced"
    file = pq.ParquetFile(out / "results" / result_forms.FILE)
    assert file.metadata.row_group(0).column(0).has_offset_index


@pytest.mark.long
def test_the_command_prints_and_writes_each_form(runs: Path, robot: RunFolder, tmp_path: Path) -> None:
    export = ("report", "export")
    cited = run_command(*export, robot.path, "--form", "bibtex")
    assert cited.count("\n@") == 2
    assert "dnsmos@" in cited
    assert str(tmp_path) in run_command(*export, "--form", "dataset", "--runs", runs, "--out", tmp_path / "all")
    assert "results" in run_command(*export, robot.path, "--out", tmp_path / "eee")
    (entry, *_) = yaml.safe_load(run_command(*export, robot.path, "--form", "eval-results"))
    index = yaml.safe_load(run_command(*export, robot.path, "--form", "model-index"))["model-index"]
    assert entry["dataset"]["id"] == index[0]["results"][0]["dataset"]["type"]
    (task,) = json.loads(run_command(*export, robot.path, "--form", "papers-with-code"))
    (table,) = task["datasets"]
    assert (task["task"], table["dataset"]) == ("Real-Pod", robot.path.parent.name)
    assert (
        set(table["sota"]["rows"][0]["metrics"])
        == set(table["sota"]["metrics"])
        >= {index[0]["results"][0]["metrics"][0]["type"]}
    )
    assert "results.csv" in run_command(*export, "--form", "csv", "--runs", runs, "--out", tmp_path / "table")
    assert "results.parquet" in run_command(*export, "--form", "parquet", "--runs", runs, "--out", tmp_path / "table")
    numbers = pd.read_parquet(tmp_path / "table/results.parquet")
    assert len(pd.read_csv(tmp_path / "table/results.csv")) == len(numbers) > 0
    assert {"system", "value", "low", "high", "rank_best", "protocol"} <= set(numbers)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--form", "xml"], "there is no form 'xml'"),
        ([], "give the folder of a run"),
        (["--form", "dataset", "--runs", "nowhere"], "no runs in nowhere"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_a_sentence(options: list[str], sentence: str) -> None:
    assert sentence in refuse_command("report", "export", *options)


def test_a_folder_with_something_else_in_it_is_not_written_into(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"notes\.txt"):
        result_forms.write_dataset(runs, tmp_path)


def test_every_printed_figure_is_in_an_evaluation_table_with_its_protocol_and_place() -> None:
    from podeval.board.reported_elsewhere import read_figures
    from podeval.files import locate_hub_source

    tasks = {task["task"]: task for task in json.loads(run_command("report", "export", "--form", "papers-with-code"))}
    tables = [table for task in tasks.values() for table in task["datasets"]]
    parts = [part for table in tables for part in (table, *table["subdatasets"])]
    values = [(name, value) for part in parts for row in part["sota"]["rows"] for name, value in row["metrics"].items()]
    printed = [name for name, _ in values if not name.endswith((" (spread)", " (n)"))]
    files = locate_hub_source("submissions").glob("*/results.csv")
    assert len(printed) == sum(len(pd.read_csv(file)) for file in files) + len(read_figures()) == 4_379
    for part in (part for part in parts if part["sota"]["rows"]):
        (citation, *_) = part["dataset_citations"]
        assert citation["url"].startswith("https://")
        assert "as printed" in part["description"].splitlines()[0]
    (table,) = (one for one in tasks["LFS-Bench"]["datasets"] if one["dataset"] == "Table 2, single speaker")
    (row,) = (one for one in table["sota"]["rows"] if one["model_name"] == "CosyVoice2")
    assert (row["metrics"]["Timbre"], row["metrics"]["Timbre (spread)"]) == ("0.92", "0.018")
    assert "CER: lower is better." in table["description"]
    assert "Chinese only" in table["description"]


def test_errors_likeness_and_speed_stand_in_the_columns_of_the_open_tts_leaderboard(tmp_path: Path) -> None:
    """Of English items by their words, of Chinese ones by their characters; what was not measured is empty."""
    runs = tmp_path / "runs"
    write_run(runs, "quick", 3.0, wer=0.02)
    items = load_items(LFS_BENCH, "sample").items
    chinese = [number for number, one in enumerate(items) if one.language == "zh"]
    spoken = {("wer", n): Score({"wer": None, "cer": 0.4, "wer_raw": None, "cer_raw": 0.4}) for n in chinese}
    speed = {("rtf", number): Score({"rtf": 0.25}) for number in range(len(items))}
    write_run(runs, "quick", 3.0, wer=0.1, benchmark=LFS_BENCH, split="sample", changes={**spoken, **speed})
    run_command("report", "export", "--form", "open-tts", "--runs", runs, "--out", tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "open-tts.csv", keep_default_na=False)
    assert list(table.columns[:6]) == ["model", "dataset", "voice", "wer", "sim", "rtfx"]
    rows = {(row["dataset"], row["language"]): row for row in table.to_dict("records")}
    demo, words, characters = (
        rows[place] for place in (("real_pod/demo", ""), ("lfs_bench/sample", "en"), ("lfs_bench/sample", "zh"))
    )
    assert (demo["model"], demo["voice"], demo["items"], demo["rate"]) == ("Quick", "fixed", 6, "wer")
    assert (demo["sim"], demo["rtfx"], float(demo["wer"])) == ("", "", pytest.approx(2))
    assert (words["rate"], float(words["wer"]), float(words["rtfx"])) == ("wer", pytest.approx(10), pytest.approx(4))
    assert (characters["rate"], float(characters["wer"])) == ("cer", pytest.approx(40))
