"""Metrics against people: planted agreement is found, controls explain what is theirs, tables are matched."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from podeval.errors import BadInput
from podeval.metrics.facts import Key
from podeval.stats.mushra_scores import Mark
from podeval.validation.human_scores import describe_marks
from podeval.validation.metric_benchmark import benchmark_metrics, compare_preferences, tabulate_agreements
from podeval.validation.output_values import BANDWIDTH, LENGTH, list_key_values, match_recordings, read_values
from podeval.validation.rating_files import Preference

HIGHER, LOWER = Key("good", "higher"), Key("bad", "lower")


def make_outputs(systems: int, items: int) -> list[tuple[str, str]]:
    return [(f"s{s}", f"i{i}") for s in range(systems) for i in range(items)]


def test_a_metric_that_hears_only_bandwidth_agrees_with_people_only_through_it() -> None:
    random = np.random.default_rng(2)
    outputs = make_outputs(12, 10)
    quality, bandwidth, length = (dict(zip(outputs, random.normal(size=120), strict=True)) for _ in range(3))
    marks = [Mark("", i, s, quality[s, i] + bandwidth[s, i] + 0.3 * random.normal()) for s, i in outputs]
    hears = {output: quality[output] + 0.3 * random.normal() for output in outputs}
    fooled = {output: -bandwidth[output] + 0.3 * random.normal() for output in outputs}
    keys = [("hears", "p", HIGHER, hears), ("fooled", "p", LOWER, fooled)]
    rows = benchmark_metrics(keys, {"liking": marks}, {BANDWIDTH: bandwidth, LENGTH: length})
    by_name = {row.metric: row for row in rows}
    assert all((row.srcc.low or 0) > 0.3 for row in rows)
    assert [row.keys for row in rows] == [2, 2]
    without = {name: row.partial[BANDWIDTH] for name, row in by_name.items()}
    assert (without["hears"].low or 0) > 0.5
    assert abs(without["fooled"].value or 0) < 0.2
    assert by_name["fooled"].partial[LENGTH].value == pytest.approx(by_name["fooled"].srcc.value, abs=0.1)
    assert by_name["hears"].partial.keys() == {BANDWIDTH, LENGTH, "all"}
    assert by_name["fooled"].each_system["s0"]["mean"] == pytest.approx(
        np.mean([fooled["s0", f"i{i}"] for i in range(10)])
    )
    lines = tabulate_agreements(rows, [])
    assert lines[1] == "**liking**"
    assert "fooled.bad (turned)" in lines[-1] + lines[-2]
    assert len({len(line) for line in lines[3:]}) == 1, "columns are aligned"


def test_marks_of_systems_as_wholes_are_of_all_their_outputs_and_anchors_are_left_out() -> None:
    values = {output: float(output[0][1:]) + number / 100 for number, output in enumerate(make_outputs(6, 3))}
    places = [Mark("", "", f"s{s}", float(s)) for s in range(6)]
    (row,) = benchmark_metrics([("m", "p", HIGHER, values)], {"order": places}, {})
    assert (row.srcc.count, row.systems.value, row.within and row.within.value) == (18, 1.0, 1.0)
    assert row.chance == pytest.approx(1 / 720)
    hidden = [Mark("r", "i0", name, 9.0) for name in ("HQ", "LQ")]
    few = [Mark("r", "i0", f"s{s}", float(s)) for s in range(6)]
    with_anchors = values | {("HQ", "i0"): 0.0, ("LQ", "i0"): 0.0}
    (row,) = benchmark_metrics([("m", "p", HIGHER, with_anchors)], {"mushra": few + hidden}, {})
    assert row.srcc.count == 6


def test_the_listeners_own_ceiling_is_that_of_their_noise() -> None:
    """Marks of standard deviation 1 with noise of 1: two halves of ten listeners correlate by 5 / (5 + 1)."""
    random = np.random.default_rng(3)
    quality = random.normal(size=200)
    marks = [Mark(f"r{r}", f"i{i}", f"s{i % 10}", quality[i] + random.normal()) for r in range(10) for i in range(200)]
    (counts, ceiling) = describe_marks({"liking": marks})
    assert counts.data["listeners"] == 10
    assert ceiling.data["halves"]["value"] == pytest.approx(5 / 6, abs=0.04)
    assert ceiling.data["all_listeners"] == pytest.approx(10 / 11, abs=0.03)
    assert ceiling.data["leave_one_out"]["value"] == pytest.approx((1 / 2 * 9 / 10) ** 0.5, abs=0.06)
    assert len(describe_marks({"one": [Mark("r", "i", "s", 3.0)]})) == 1, "one listener has no ceiling"


def test_choices_are_shares_in_one_order_against_the_majority_of_listeners() -> None:
    values = {(side, str(item)): float(item if side == "A" else 5) for side in "AB" for item in range(10)}
    better = {item: 1 if item > 5 else -1 for item in range(10)}
    choices = [
        Preference(f"r{r}", str(i), "A", "B", better[i] * (-1 if r == 2 else 1)) for i in better for r in range(3)
    ]
    ties = [Preference("r9", "1", "A", "B", 0)]
    rows = compare_preferences([("m", "p", HIGHER, values), ("n", "p", LOWER, values)], {"pairs": choices + ties})
    # Two of three listeners agree with the order; at item 5 both are alike, which is half.
    expected = (9 * 2 / 3 + 1 / 2) / 10
    assert [row.metric for row in rows] == ["m", "n"]
    assert [row.accuracy.value for row in rows] == pytest.approx([expected, 1 - expected])
    assert (rows[0].accuracy.count, rows[0].keys) == (30, 2)
    # Of two that agree and one that does not, the majority of the others is split for two and against the third.
    assert rows[0].listeners.value == pytest.approx((0.5 + 0.5 + 0) / 3)
    means = compare_preferences([("m", "p", HIGHER, values)], {"votes": [Preference("v", "", "A", "B", -1)]})
    assert means[0].accuracy.value == 1.0, "without an item the means are compared: 4.5 and 5"


def test_recordings_are_matched_by_what_corpora_call_them() -> None:
    names = ["TTA/m1/a.wav", "TTA/m2/a.wav", "deg/c01_f1.wav", "sys1-utt1.wav", "x_s1.flac", "wavs/v1.5_c.wav"]
    outputs = {
        ("m1", "a"): "m1/a",
        ("m2", "a"): "",
        ("db/1", "c01_f1"): "db\\deg\\c01_f1.wav",
        ("sys1", "utt1"): "sys1-utt1.wav",
        ("s1", "x"): "",
        ("c", "v1.5"): "",
        ("nobody", "a"): "",
    }
    matches = match_recordings(names, outputs, {"m1"})
    assert {name: matches.get(name) for name in names} == dict(
        zip(
            names,
            [("m1", "a"), ("m2", "a"), ("db/1", "c01_f1"), ("sys1", "utt1"), ("s1", "x"), ("c", "v1.5")],
            strict=True,
        )
    )
    assert ("nobody", "a") not in matches.values(), "two files are called a"


def test_values_come_from_wide_tables_and_from_what_score_writes(tmp_path: Path) -> None:
    outputs = {("s1", "a"): "", ("s2", "a"): ""}
    wide = tmp_path / "wide.csv"
    wide.write_text("Model,category,dnsmos.ovrl,-mine,seconds\ns1,a,3.1,1,10\ns2,a,,2,12\ns3,a,2,2,2\n")
    values = read_values(wide, outputs, ())
    assert values == {
        "dnsmos.ovrl": {("s1", "a"): 3.1},
        "-mine": {("s1", "a"): 1.0, ("s2", "a"): 2.0},
        "length": {("s1", "a"): 10.0, ("s2", "a"): 12.0},
    }
    keys, notes = list_key_values(values, "table")
    assert [(metric, key.name, key.better) for metric, _, key, _ in keys] == [
        ("dnsmos", "ovrl", "higher"),
        ("mine", "mine", "lower"),
    ]
    assert notes[0].startswith("-mine: not metrics of podeval")
    table = pd.DataFrame([(f"out/{s}/a.wav", "dnsmos", "sig", v) for s, v in (("s1", 3.0), ("s2", 2.0))])
    table.columns = pd.Index(["file", "metric", "key", "value"])
    table.to_csv(tmp_path / "long.csv", index=False)
    table.to_parquet(tmp_path / "long.parquet")
    for name in ("long.csv", "long.parquet"):
        assert read_values(tmp_path / name, outputs, ()) == {"dnsmos.sig": {("s1", "a"): 3.0, ("s2", "a"): 2.0}}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n", "needs the columns system and item, or file"),
        ("system,item,x\ns1,a,1\ns1,a,2\n", "two lines for the output s1 a"),
        ("system,item,x\nother,a,1\n", "no value for a rated output, such as s1 a"),
        ("system,item,x\ns1,a,good\n", "no value for a rated output"),
        ("", "the source contains no values"),
    ],
)
def test_a_wrong_table_of_values_is_refused_with_what_it_needs(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "values.csv"
    path.write_text(content)
    with pytest.raises(BadInput, match=sentence):
        read_values(path, {("s1", "a"): ""}, ())
