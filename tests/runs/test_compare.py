"""Two runs are compared pair by pair, and a gate fails for what became worse and for nothing else."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
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
from podeval.metrics.protocol import Protocol
from podeval.metrics.score import Result, Score, Unscored
from podeval.runs.compare import compare_runs
from podeval.runs.run_folder import RunFolder, RunPlan
from tests.fakes.command import refuse_command

DEMO = benchmarks.get("real_pod").items("demo")
SILENT = Unscored("the system produced no audio: nothing was said", "system")


def protocol(metric: str, version: str = "1") -> Protocol:
    return Protocol(metric, version, {}, (), {}, "podeval/real_pod", {})


Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Write a run whose seeds have these results, item by item; its folder."""

    def write(
        name: str,
        results: Mapping[int, Sequence[Result | float]],
        metric: str = "wer",
        key: str = "wer",
        version: str = "1",
        split: str = "demo",
    ) -> Path:
        items = benchmarks.get("real_pod").items(split)
        run = RunFolder(tmp_path, "real_pod", split, name)
        for seed, values in results.items():
            folder = run if seed == next(iter(results)) else run.repeat(seed)
            plan = {"benchmark": "real_pod", "split": split, "dataset": "x", "track": "voice", "system": name}
            folder.begin(RunPlan(**plan, system_title=name, system_kind="model", generation={}, seed=seed))
            folder.write_items(items)
            for item, value in zip(items, values, strict=False):
                result = value if isinstance(value, Score | Unscored) else Score({key: value})
                folder.append_results("embedded", item.id, [(protocol(metric, version), result)])
        return run.path

    return write


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
    with pytest.raises(BadInput, match="wer was not measured by one protocol in both runs"):
        judge(a, b)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a", "nowhere"], "there is no run in"),
        (["a", "b", "--fail-if-worse", "wer=-1"], "takes METRIC or METRIC=MARGIN"),
        (["a", "b", "--fail-if-worse", "warmth"], r"not a column with a direction in both runs; choose from wer\.wer"),
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
