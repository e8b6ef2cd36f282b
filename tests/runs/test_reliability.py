"""What a system's seeds have in common, the worst of them, and what fell through."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from podeval import benchmarks
from podeval.board import build as board
from podeval.board.columns import get_column
from podeval.files import write_json
from podeval.metrics.score import Score, Timeline, Unscored
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.reliability import compute_reliability, declare, read_reliability, write_reliability
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import Output, RunFolder, RunPlan, RunSummary

REAL_POD = benchmarks.get("real_pod")
ITEMS = REAL_POD.items("demo")
SILENT = Unscored("the recording is silent", "system")
TOO_FEW = Unscored("needs at least two speakers, found 1 of 2", "system")


def write_seeds(runs: Path, errors: list[list[Any]]) -> RunFolder:
    """Write a run with the WER of each item in each seed; a number stands for a score."""
    run = RunFolder(runs, "real_pod", "demo", "mine")
    for seed, values in enumerate(errors):
        folder = run.repeat(seed) if seed else run
        plan = RunPlan(
            benchmark="real_pod",
            split="demo",
            dataset="x",
            track="voice",
            system="mine",
            system_title="Mine",
            system_kind="model",
            generation={},
            seed=seed,
        )
        folder.begin(plan)
        folder.write_items(ITEMS)
        current = make_protocols(REAL_POD, plan, "embedded", CONDITIONS)
        for item, value in zip(ITEMS, values, strict=True):
            result = value if isinstance(value, Unscored) else Score({"wer": value, "cer": value / 2})
            windows = Timeline([0.0, 2.0], 3.0, {"timbre_consistency": [0.9, 0.8 - seed / 10]})
            steady = Score({"timbre_consistency": 0.85}, timeline=windows)
            folder.append_results(
                "embedded", item.id, [(current["wer"], result), (current["timbre_consistency"], steady)]
            )
            folder.write_output(Output(item=item.id, duration=1.0))
        summary = RunSummary(
            plan=plan,
            profile="embedded",
            created="2026-11-23T00:00:00+00:00",
            provenance={},
            protocols={one.id: one.to_json() for one in current.values()},
            metrics=tuple(
                {
                    "metric": name,
                    "protocol": current[name].id,
                    "slice": "",
                    "keys": {},
                    "scored": 6,
                    "unscored_system": 0,
                    "unscored_ours": 0,
                    "reasons": {},
                    "rankable": True,
                }
                for name in ("wer", "timbre_consistency")
            ),  # type: ignore[arg-type]
        )
        folder.write_summary(summary)
    return run


def test_mean_worst_and_spread_are_of_the_seeds_of_each_item(tmp_path: Path) -> None:
    seeds = [[0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.2, 0.1, 0.1, 0.1, 0.1, 0.1], [0.3, 0.1, 0.1, 0.1, 0.1, 0.1]]
    figures = compute_reliability(write_seeds(tmp_path, seeds), REAL_POD, "embedded")
    first = figures.items[ITEMS[0].id]["wer.wer"]
    assert (first.mean, first.worst, first.spread, first.seeds) == (pytest.approx(0.2), 0.3, pytest.approx(0.1), 3)
    assert figures.seeds == (0, 1, 2)
    whole = figures.figures
    assert whole["wer_mean"].mean == pytest.approx(np.mean(seeds))
    assert whole["wer_worst"].mean == pytest.approx((0.3 + 0.5) / 6)
    assert whole["wer_spread"].mean == pytest.approx(0.1 / 6)
    assert whole["timbre_consistency_worst_window"].mean == pytest.approx(0.7), "0.8, 0.7 and 0.6"
    low, high = whole["wer_mean"].low, whole["wer_mean"].high
    assert low < whole["wer_mean"].mean < high


def test_what_is_useless_is_counted_with_its_reason(tmp_path: Path) -> None:
    run = write_seeds(tmp_path, [[0.1, 0.4, SILENT, 0.1, 0.1, 0.29], [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]])
    run.repeat(1).write_output(Output(item=ITEMS[3].id, failed="the model failed"))
    figures = compute_reliability(run, REAL_POD, "embedded")
    assert figures.figures["catastrophic"].mean == pytest.approx(3 / 12)
    assert figures.catastrophic == {
        ITEMS[1].id: ("seed 0: a WER of 0.40",),
        ITEMS[2].id: ("seed 0: no speech was recognised (the recording is silent)",),
        ITEMS[3].id: ("seed 1: no output (the model failed)",),
    }


def test_another_number_of_speakers_is_useless_too(tmp_path: Path) -> None:
    run = write_seeds(tmp_path, [[0.1] * 6])
    plan = run.plan()
    sptd = make_protocols(REAL_POD, plan, "embedded", CONDITIONS)["sptd"]
    run.append_results("embedded", ITEMS[4].id, [(sptd, TOO_FEW)])
    summary = run.summaries()[0]
    row = summary.metrics[0].model_copy(update={"metric": "sptd", "protocol": sptd.id})
    run.write_summary(summary.model_copy(update={"metrics": (*summary.metrics, row)}))
    figures = compute_reliability(run, REAL_POD, "embedded")
    assert figures.catastrophic == {ITEMS[4].id: (f"seed 0: {TOO_FEW.reason}",)}
    assert "wer_spread" not in figures.figures, "one seed has no spread"


def test_the_board_has_them_as_a_group_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "locate_hub_source", lambda name: tmp_path / "none")
    run = write_seeds(tmp_path, [[0.1] * 6, [0.2] * 6])
    write_reliability(RunRequest(REAL_POD, "demo", "voice", tmp_path), "mine")
    board.build(tmp_path)
    rows = pd.read_parquet(tmp_path / "board.parquet")
    group = rows[rows.dimension == "reliability.seeds"].set_index("key")
    assert group.loc["wer_worst", "value"] == pytest.approx(0.2)
    assert group.loc["catastrophic", "scored"] == 12
    assert group.rank_best.isna().all()
    assert set(group.system) == {"mine"}, "the repeats are no systems of their own"
    kept = read_reliability(run, "embedded")
    assert kept is not None
    write_json(run.path / "embedded" / "reliability.json", {"schema_version": 2})
    assert read_reliability(run, "embedded") is None


def test_columns_are_declared_by_what_they_are_of() -> None:
    worst = get_column("reliability", "dnsmos_ovrl_worst", "reliability.seeds")
    assert (worst.header, worst.better, worst.bounds) == ("DNSMOS OVRL worst ↑ (MOS)", "higher", (1, 5))
    spread = get_column("reliability", "sim_spread", "reliability.seeds")
    assert (spread.title, spread.better) == ("SIM spread", "lower")
    assert get_column("reliability", "wer_worst", "reliability.seeds").percent
    assert not worst.percent
    assert declare("warmth_worst") is None
    assert get_column("reliability", "warmth_worst", "reliability.seeds").better == "informative"
