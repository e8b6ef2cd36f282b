"""One's own runs beside print: only where material and protocol are the paper's, and then with a verdict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.cli import app
from podeval.errors import BadInput
from podeval.metrics.score import Score, Unscored
from podeval.runs.aggregate import summarise
from podeval.runs.measure import make_protocols
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.runs.settings import apply_choices
from podeval.validation.paper_runs import RunFigure, compare_with_print

LFS = benchmarks.get("lfs_bench")
SPEAKERS = {f"text_{number}": "1" if number < 20 else "2" for number in range(30)}
"""Speakers by item; every second text is Chinese."""


@pytest.fixture
def measured(tmp_path: Path) -> Callable[..., list[RunFigure]]:
    """What is compared once a run is measured, whose timbre is 0.9 for one speaker and 0.1 for two."""

    def run(system: str = "indextts2", split: str = "test", preset: str = "lfs", failed: int = 0) -> list[RunFigure]:
        folder = RunFolder(tmp_path / "runs", "lfs_bench", split, system)
        names = {"benchmark": "lfs_bench", "split": split, "system": system, "system_title": system, "dataset": "d"}
        plan = RunPlan(**names, track="voice", system_kind="model", generation={}, seed=0)
        folder.begin(plan)
        items = [
            Item(
                id=name, topic=name, language="zh" if number % 2 else "en", voices=1, properties={"speakers": speakers}
            )
            for number, (name, speakers) in enumerate(SPEAKERS.items())
        ]
        folder.write_items(items)
        benchmark, profile = apply_choices(LFS, "voice", "timbre_consistency,wer", (), preset)
        protocols = make_protocols(benchmark, plan, profile, {"voices": "own", "strategy": "whole", "capture": "file"})
        for number, item in enumerate(items):
            value = (0.9 if SPEAKERS[item.id] == "1" else 0.1) + 0.01 * (number % 5 - 2)
            result: Any = Score({"timbre_consistency": value, "worst_window": value})
            if number < failed:
                result = Unscored("silent", "system")
            folder.append_results(profile, item.id, [(protocols["timbre_consistency"], result)])
        folder.write_summary(summarise(folder, profile, benchmark, items))
        return compare_with_print(tmp_path / "runs")

    return run


def of_timbre(figures: list[RunFigure]) -> dict[tuple[str, str], RunFigure]:
    return {(one.table, one.figure.partition(" (")[2]): one for one in figures if ": Timbre" in one.figure}


def test_a_figure_of_the_papers_material_and_protocol_has_a_verdict(measured: Callable[..., list[RunFigure]]) -> None:
    figures = measured()
    timbre = of_timbre(figures)
    whole = timbre["Table 2", ""]
    assert whole.ours == pytest.approx(0.9), "the texts of one speaker alone"
    assert whole.difference == pytest.approx(0.9 - whole.printed)
    assert whole.low < 0.9 < whole.high
    assert whole.inside is (whole.low - 0.005 <= whole.printed <= whole.high + 0.005)
    chinese = timbre["Table 14", "language=zh)"]
    assert chinese.ours == pytest.approx(0.9, abs=0.01)
    assert chinese.low < whole.low, "of half as many texts"
    # What deviates is counted with its reason and has no number.
    others = [one for one in figures if ": Timbre" not in one.figure]
    assert {one.why_not for one in others} >= {
        "Whisper large v3 transcribes, not FunASR-Nano",
        "its prompt is worded by podeval",
        "not measured by the paper's protocol: run it with --preset lfs",
    }
    assert all((one.ours, one.difference, one.inside) == (None, None, None) for one in others)


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ({"preset": ""}, "run it with --preset lfs"),
        ({"split": "sample"}, "the paper's material differs from that of the split sample, track voice"),
        ({"failed": 3}, "17 of 20 items are scored"),
    ],
)
def test_another_protocol_other_material_or_gaps_give_a_reason_and_no_number(
    choices: dict[str, Any], why: str, measured: Callable[..., list[RunFigure]]
) -> None:
    figure = of_timbre(measured(**choices))["Table 2", ""]
    assert figure.why_not.endswith(why)
    assert (figure.ours, figure.low, figure.difference) == (None, None, None)


def test_a_run_of_no_paper_has_nothing_beside_it(measured: Callable[..., list[RunFigure]], tmp_path: Path) -> None:
    assert measured("my_tts") == []
    result = CliRunner().invoke(app, ["report", "papers", "--runs", str(tmp_path / "runs")])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is named like a system in a paper" in result.stderr
    with pytest.raises(BadInput, match="there are no runs in"):
        compare_with_print(tmp_path / "nowhere")


def test_the_command_prints_the_verdict_and_counts_the_rest(
    measured: Callable[..., list[RunFigure]], tmp_path: Path
) -> None:
    figure = of_timbre(measured())["Table 2", ""]
    lines = CliRunner().invoke(app, ["report", "papers", "--runs", str(tmp_path / "runs")]).stdout.splitlines()
    (line,) = (one for one in lines if one.startswith("  indextts2: Timbre: "))
    verdict = "inside" if figure.inside else "outside"
    assert f"printed {figure.printed:g}, ours 0.9 [" in line
    assert f"{verdict} the interval" in line
    assert "  2 figures are not compared: Whisper large v3 transcribes, not FunASR-Nano" in lines


def test_clips_and_episodes_have_no_difference() -> None:
    result = CliRunner().invoke(app, ["report", "papers"])
    assert result.exit_code == 0
    table = [line for line in result.stdout.splitlines() if "Table 9" in line and "podeval" in line]
    assert any("15 figures are not compared: measured on" in line for line in table)
    assert "17 s instead of whole episodes (see --json)" in result.stdout
    assert "recomputed on" not in result.stdout
