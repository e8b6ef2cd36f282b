"""Figures 4 to 12 of MTalk-Bench from small runs and logs, each computed by hand or by scipy."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from podeval.benchmarks.benchmark import Item
from podeval.cli import app
from podeval.metrics.score import Protocol, Score
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan
from podeval.stats.battles import Battles, elo
from podeval.validation import raters
from podeval.validation.mtalk_figures import draw_figures, read_rubric_marks
from podeval.validation.raters import AnalysisLine

MET = {"aria": [1, 1, 1, 0], "basso": [1, 1, 0, 0], "corno": [1, 0, 0, 0], "drum": [0, 0, 0, 0]}
"""Marks of each system: two dialogues of two criteria."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs of four systems, measured by two judges, of which the second marks the first criterion the other way."""
    for number, (system, marks) in enumerate(MET.items(), 1):
        folder = RunFolder(tmp_path / "runs", "mtalk_bench", "sample", system)
        about = {"system": system, "system_title": system, "system_kind": "model", "track": "respond"}
        folder.begin(
            RunPlan(benchmark="mtalk_bench", split="sample", dataset="d", generation={}, seed=0, **about)  # type: ignore[arg-type]
        )
        items = []
        for at, dialogue in enumerate(("d1", "d2")):
            properties = {"capability": ("reasoning_and_execution", "interaction_strategy")[at]}
            items.append(Item(id=dialogue, topic="t", language="en", voices=1, properties=properties))
            name = folder.write_audio(f"{dialogue}-1", np.full(1600 * number, 0.1, np.float32), 16_000)
            folder.write_output(Output(item=dialogue, answers=(OutputAnswer(audio=name),)))
            of_item = marks[2 * at : 2 * at + 2]
            for judge, turned in (("j@1#a", False), ("k@1#b", True)):
                criteria = {
                    f"c{n}": {"criterion": "x", "met": int(met != (turned and not at and not n)), "reason": "r"}
                    for n, met in enumerate(of_item)
                }
                models: dict[str, Any] = {"judge": {"id": judge}}
                protocol = Protocol("rubric", "1", {}, (), models)
                result = Score(values={"rubric": 50.0}, notes={"criteria": criteria})
                folder.append_results("embedded", dialogue, [(protocol, result)])
        folder.write_items(items)
    return tmp_path / "runs"


def log(judge: str, better: str = "abcd") -> list[dict[str, Any]]:
    """Every two systems on both dialogues; the one whose first letter comes first in `better` wins."""
    return [
        {
            "dialogue": dialogue,
            "system_a": one,
            "system_b": other,
            "outcome": "a" if better.index(one[0]) < better.index(other[0]) else "b",
            "judge": judge,
        }
        for one, other in itertools.combinations(MET, 2)
        for dialogue in ("d1", "d2")
    ]


def of_figure(lines: list[AnalysisLine], number: int) -> list[AnalysisLine]:
    return [line for line in lines if line.analysis == f"MTalk-Bench figure {number}"]


def test_each_figure_is_what_it_is_by_hand(runs: Path) -> None:
    logs = {"j": log("j@1#other-sampling"), "k": log("k@1#b", "bacd")}
    lines = draw_figures(logs, read_rubric_marks(runs))
    assert {line.analysis for line in lines} == {f"MTalk-Bench figure {number}" for number in range(4, 13)}
    rates = {line.data["system"]: line.data["win_rate"] for line in of_figure(lines, 4) if line.of == "j"}
    assert rates == pytest.approx({"aria": 1.0, "basso": 2 / 3, "corno": 1 / 3, "drum": 0.0})
    # Longer answers are of worse systems here: 0.1 to 0.4 s.
    length = {line.of: line.data["srcc"]["value"] for line in of_figure(lines, 5)}
    assert length["Elo of j"] == pytest.approx(-1.0)
    assert length["rubric of j@1#a"] == pytest.approx(-1.0)
    # The logs disagree on aria and basso alone: p q + (1 - p)(1 - q) is 0 there, and 1 elsewhere.
    (pseudo,) = of_figure(lines, 6)
    assert pseudo.data["pairs"]["aria and basso"] == 0.0
    assert (pseudo.data["above"], len(pseudo.data["pairs"])) == (5, 6)
    common = {line.of: line.data for line in of_figure(lines, 7)}
    assert common["j and k"]["arena"]["value"] == pytest.approx(10 / 12)
    assert common["j@1#a and k@1#b"]["rubric"]["value"] == pytest.approx(12 / 16)
    # j chooses aria before basso in both dialogues, and gives it more in d2 alone; d1 is equal and left out.
    consistent = {line.of: line.data["agreeing"] for line in of_figure(lines, 8)}
    assert (consistent["j"]["value"], consistent["j"]["count"]) == (1.0, 8)
    references = {line.data["reference"]: line.data["draws"][0] for line in of_figure(lines, 9) if line.of == "j@1#a"}
    assert references["the ranking by all criteria"]["mean"] > 0.9
    assert set(references) == {"the ranking by all criteria", "the Elo of j", "the Elo of k"}
    capabilities = {line.data["system"]: line.data["capabilities"] for line in of_figure(lines, 11)[:4]}
    assert capabilities["aria"] == {"interaction_strategy": 50.0, "reasoning_and_execution": 100.0}
    assert all(0 <= rate <= 1 for line in of_figure(lines, 10) for rate in line.data["close"] + line.data["far"])
    assert [line.of for line in of_figure(lines, 12)] == ["j", "k"]


def test_figure_12_is_spearmans_correlation() -> None:
    random = np.random.default_rng(3)
    names = [f"s{n}" for n in range(8)]
    sides = [random.choice(8, 2, replace=False) for _ in range(600)]
    first, second = ([names[side[at]] for side in sides] for at in (0, 1))
    outcomes = ["a" if random.random() < 1 / (1 + 10 ** ((b - a) / 4)) else "b" for a, b in sides]
    battles = Battles.of(first, second, outcomes)
    ratings = {name: row.rating for name, row in elo(battles).items()}
    won: dict[tuple[str, str], list[int]] = {}
    for a, b, outcome in zip(first, second, outcomes, strict=True):
        won.setdefault((min(a, b), max(a, b)), []).append((outcome == "a") == (a < b))
    gaps = [ratings[a] - ratings[b] for a, b in sorted(won)]
    shares = [2 * float(np.mean(won[pair])) - 1 for pair in sorted(won)]
    found = raters.correlate_elo_with_win_rate(battles).value
    assert found == pytest.approx(stats.spearmanr(gaps, shares).statistic)
    assert found != pytest.approx(stats.pearsonr(gaps, shares).statistic, abs=1e-4)


def test_people_who_judged_the_same_are_raters_of_one_log() -> None:
    votes = [
        {"first": "x", "second": "y", "outcome": outcome, "voter": voter, "item": "i1"}
        for voter, outcome in (("p1", "a"), ("p2", "a"), ("p3", "tie"))
    ]
    (line,) = of_figure(draw_figures({"people": votes}, []), 7)
    assert (line.of, line.data["arena"]["count"]) == ("raters of people", 3)
    assert line.data["arena"]["value"] == pytest.approx(1 / 3)


def test_people_who_mark_criteria_are_evaluators_of_rubrics(runs: Path, tmp_path: Path) -> None:
    # One person marks as the first judge does, another one the contrary; both vote as they mark.
    header, lines = "system,item,measure,rater,score\n", []
    for system, marks in MET.items():
        for number, met in enumerate(marks):
            place = f"{system},d{1 + number // 2},c{number % 2}"
            lines += [f"{place},p1,{met}\n", f"{place},p2,{1 - met}\n"]
    (tmp_path / "marks.csv").write_text(header + "".join(lines), encoding="utf-8")
    (tmp_path / "stars.csv").write_text(header + "aria,d1,charm,p1,4\n", encoding="utf-8")
    votes = [{"first": one["system_a"], "second": one["system_b"], "outcome": one["outcome"], "item": one["dialogue"],
              "voter": "p1"} for one in log("", "abcd")]  # fmt: skip
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in votes), encoding="utf-8")
    files = [arg for name in ("marks.csv", "stars.csv", "votes.jsonl") for arg in ("--ratings", tmp_path / name)]
    command = ["report", "agreement", *map(str, files), "--figures", "mtalk", "--runs", str(runs), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    common = {one["of"]: one["data"]["rubric"]["value"] for one in found if "rubric" in one.get("data", {})}
    assert (common["j@1#a and p1"], common["j@1#a and p2"], common["p1 and p2"]) == (1.0, 0.0, 0.0)
    assert not any("charm" in line or "p1 and p1" in line for line in common)
    # Figure 8: the votes and marks of p1 agree, in the battles that its marks decide.
    (own,) = [one for one in found if one.get("analysis") == "MTalk-Bench figure 8" and one["of"] == "votes"]
    assert own["data"]["agreeing"]["value"] == 1.0
    # Figures 11 and 5, by the runs' capabilities and seconds.
    shares = [one["data"]["capabilities"] for one in found if one.get("of") == "p1" and "capabilities" in one["data"]]
    assert shares[0] == {"interaction_strategy": 50.0, "reasoning_and_execution": 100.0}
    assert any(one.get("of") == "rubric of p1" for one in found)


def test_the_command_prints_them_and_says_what_is_missing(runs: Path, tmp_path: Path) -> None:
    battles = tmp_path / "battles.jsonl"
    battles.write_text("".join(json.dumps(line) + "\n" for line in log("j@1#a", "bacd")), encoding="utf-8")
    command = ["report", "agreement", "--ratings", str(battles), "--figures", "mtalk", "--runs"]
    result = CliRunner().invoke(app, [*command, str(runs)])
    assert "figure 12, battles: SRCC of differences in Elo and in win rate 0.65" in result.stdout
    assert "figure 11, j@1#a: aria: interaction_strategy 50.0, reasoning_and_execution 100.0 %" in result.stdout
    alone = CliRunner().invoke(app, [*command, str(tmp_path / "none")])
    assert "figure 4, battles: basso wins 1.00 of 6 battles" in alone.stdout
    assert "no run in" in alone.stderr
    assert "figures 5, 7, 8, 9 and 11 need" in alone.stderr
