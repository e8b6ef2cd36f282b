"""Two runs are compared pair by pair, and a gate fails for what became worse and for nothing else."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from podeval import benchmarks
from podeval.cli import app
from podeval.cli.compare import describe
from podeval.errors import BadInput
from podeval.metrics.score import Unscored
from podeval.runs.compare import compare_runs
from tests.fakes.command import refuse_command, run_command

DEMO = benchmarks.get("real_pod").items("demo")
SILENT = Unscored("the system produced no audio: nothing was said", "system")


Write = Callable[..., Path]

BEFORE = [0.05, 0.08, 0.03, 0.06, 0.10, 0.04]


def judge(a: Path, b: Path, margin: float = 0.0, column: str = "wer") -> Any:
    comparison = compare_runs(a, b, {column: margin})
    (watched,) = (one for one in comparison.columns if one.verdict)
    return comparison, watched


def test_what_is_worse_on_every_item_fails(written: Write) -> None:
    a = written("a", {0: BEFORE})
    b = written("b", {0: [value + 0.02 + 0.005 * n for n, value in enumerate(BEFORE)]})
    comparison, wer = judge(a, b)
    assert comparison.failed
    assert wer.verdict == "worse"
    assert wer.difference.mean == pytest.approx(0.0325)
    assert wer.anytime[0] > 0
    assert "wer.wer is 0.0325 worse over 6 pairs: it became worse (evidence" in describe(wer)


def test_a_margin_is_forgiven(written: Write) -> None:
    a, b = written("a", {0: BEFORE}), written("b", {0: [value + 0.004 for value in BEFORE]})
    assert judge(a, b)[1].verdict == "worse"
    comparison, wer = judge(a, b, 0.005)
    assert not comparison.failed
    assert wer.verdict == "no worse"


def test_what_is_better_is_no_worse_and_the_other_way_round_fails(written: Write) -> None:
    a, b = written("a", {0: BEFORE}), written("b", {0: [value / 2 for value in BEFORE]})
    assert judge(a, b)[1].verdict == "no worse"
    assert judge(b, a)[0].failed
    higher = {"metric": "dnsmos", "key": "ovrl"}
    c, d = (written(name, {0: values}, **higher) for name, values in (("c", [3.0] * 6), ("d", [2.5] * 6)))
    assert judge(c, d, column="dnsmos.ovrl")[0].failed
    assert not judge(d, c, column="dnsmos")[0].failed


def test_noise_is_undecided_and_says_what_would_decide(written: Write) -> None:
    a = written(
        "a", {seed: [value + 0.02 * math.sin(9 * seed + n) for n, value in enumerate(BEFORE)] for seed in (0, 1)}
    )
    b = written(
        "b",
        {
            seed: [value + 0.008 + 0.02 * math.sin(5 * seed + 3 * n) for n, value in enumerate(BEFORE)]
            for seed in (0, 1)
        },
    )
    comparison, wer = judge(a, b)
    assert not comparison.failed
    assert wer.verdict == "undecided"
    assert "whether it became worse is undecided" in describe(wer)
    assert wer.more_items is None or wer.more_items > 0
    assert "would" in describe(wer)


def test_silence_does_not_pay(written: Write) -> None:
    a = written("a", {0: BEFORE})
    b = written("b", {0: [SILENT] * 5 + [0.0]})
    comparison, wer = judge(a, b)
    assert (wer.lost, wer.won, wer.pairs) == (5, 0, 1)
    assert not comparison.failed, "five of six items are lost, the last is better"
    assert wer.evidence > 1
    longer = written("c", {0: [SILENT] * 5 + [0.2]})
    assert judge(a, longer)[0].failed
    ours = Unscored("a model is missing", "ours")
    assert judge(a, written("d", {0: [ours] * 5 + [0.04]}))[1].lost == 0


def test_one_item_of_six_is_caught_by_its_seeds(written: Write) -> None:
    generator = np.random.default_rng(1)

    def seeds(worse: float) -> dict[int, list[float]]:
        return {
            seed: [value + 0.01 * generator.random() + worse * (n == 2) for n, value in enumerate(BEFORE)]
            for seed in range(5)
        }

    comparison, wer = judge(written("a", seeds(0.0)), written("b", seeds(0.2)))
    assert comparison.tested_items
    assert comparison.failed
    assert wer.verdict == "undecided", "the mean of six items does not tell"
    assert [one.item for one in wer.worse_items] == [DEMO[2].id]
    assert DEMO[2].id in describe(wer)
    assert not judge(written("c", seeds(0.0)), written("d", seeds(0.0)))[0].failed


def test_more_items_need_more_seeds_for_items_by_themselves(written: Write) -> None:
    seeds = {seed: [0.1] * 51 for seed in range(5)}
    comparison, _ = judge(*(written(name, seeds, split="topics") for name in "ab"))
    assert not comparison.tested_items
    assert comparison.seeds_for_items == 7


def test_only_figures_of_one_protocol_are_compared(written: Write) -> None:
    a, b = written("a", {0: BEFORE}), written("b", {0: BEFORE}, version="2")
    assert compare_runs(a, b).apart == ("wer",)
    with pytest.raises(BadInput, match="wer has different protocols in the two runs"):
        judge(a, b)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a", "nowhere"], "there is no run in"),
        (["a", "b", "--fail-if-worse", "wer=-1"], "takes METRIC or METRIC=MARGIN"),
        (
            ["a", "b", "--fail-if-worse", "warmth"],
            r"not a column that has a better direction in both runs; choose from wer\.wer",
        ),
        (["a", "topics"], r"differ in their split \(demo and topics\)"),
        (["a", "late"], "have no seed in common"),
        (["a", "b", "--profile", "reference"], "no measurements of the profile reference"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(
    written: Write, tmp_path: Path, words: list[str], reason: str
) -> None:
    for name in "ab":
        written(name, {0: BEFORE})
    written("late", {7: BEFORE})
    written("topics", {0: BEFORE}, split="topics")
    paths = {name: str(tmp_path / "real_pod" / "demo" / name) for name in ("a", "b", "late", "nowhere")}
    paths["topics"] = str(tmp_path / "real_pod" / "topics" / "topics")
    assert re.search(reason, refuse_command("compare", *(paths.get(word, word) for word in words)))


def test_the_command_ends_with_three_and_tells_ci(written: Write, tmp_path: Path) -> None:
    a, b = written("a", {0: BEFORE}), written("b", {0: [value + 0.1 for value in BEFORE]})
    words = ["compare", str(a), str(b), "--fail-if-worse", "wer=0.005", "--junit", str(tmp_path / "gate.xml")]
    plain = CliRunner().invoke(app, [*words, "--annotations"])
    assert plain.exit_code == 3
    assert "::error title=podeval: wer.wer::wer.wer is 0.1 worse over 6 pairs: it became worse" in plain.output
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure") is not None
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert told["failed"] is True
    assert told["columns"][0]["verdict"] == "worse"
    assert told["columns"][0]["before"] == pytest.approx(np.mean(BEFORE))
    assert CliRunner().invoke(app, ["compare", str(a), str(a), "--fail-if-worse", "wer"]).exit_code == 0
    assert CliRunner().invoke(app, ["compare", str(a), str(b)]).exit_code == 0, "nothing is watched"


def test_an_item_in_quarantine_is_compared_and_decides_nothing(written: Write, tmp_path: Path) -> None:
    names = [item.id for item in DEMO]
    a = written("a", {seed: BEFORE for seed in range(6)})
    b = written("b", {seed: [value + 0.3 * (n == 2) for n, value in enumerate(BEFORE)] for seed in range(6)})
    assert judge(a, b)[0].failed, "its seeds are worse"
    comparison = compare_runs(a, b, {"wer": 0.0}, quarantine={names[2]: "issue 7"})
    assert not comparison.failed
    assert comparison.items == 5
    (resting,) = comparison.quarantined
    assert (resting.item, resting.reason) == (names[2], "issue 7")
    assert resting.means["wer.wer"] == pytest.approx((0.03, 0.33))
    (tmp_path / "list.txt").write_text(f"\n# flaky\n{names[2]}  # issue 7\n", encoding="utf-8")
    words = [a, b, "--fail-if-worse", "wer", "--quarantine", tmp_path / "list.txt", "--junit", tmp_path / "gate.xml"]
    assert f"In quarantine, not counted: {names[2]} (issue 7): wer.wer 0.03 to 0.33." in run_command("compare", *words)
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")
    assert "issue 7" in suite.find("testcase/skipped").get("message")
    unknown = refuse_command("compare", a, b, "--quarantine", "nothing_like_it")
    assert "lists nothing_like_it, which neither run contains" in unknown
    everything = [word for name in names for word in ("--quarantine", name)]
    assert "no item outside quarantine in common" in refuse_command("compare", a, b, *everything)


def test_the_items_that_show_a_size_are_counted(written: Write) -> None:
    a, b = written("a", {0: BEFORE}), written("b", {0: [value + 0.01 * (-1) ** n for n, value in enumerate(BEFORE)]})
    command = ("compare", a, b, "--detect")
    few, many = (
        json.loads(run_command(*command, f"wer={size}", "--json"))["columns"][0]["items_to_show"]
        for size in (0.1, 0.005)
    )
    assert few < 8 < many
    assert f"about {few} items like these would show that it is worse by 0.1" in run_command(*command, "wer=0.1")
    assert "--detect takes METRIC=SIZE" in refuse_command("compare", a, b, "--detect", "wer")


def test_markdown_is_a_table_in_which_names_are_text(written: Write, tmp_path: Path) -> None:
    a, b = written("a|<b>", {0: BEFORE}), written("b", {0: BEFORE})
    run_command("compare", a, b, "--fail-if-worse", "wer", "--markdown", tmp_path / "page.md")
    lines = (tmp_path / "page.md").read_text("utf-8").splitlines()
    assert lines[0] == "### b is not shown to be worse"
    table = [line for line in lines if line.startswith("| ")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in table] == [8, 8, 8]
    assert r"a\|\<b>" in table[0]
