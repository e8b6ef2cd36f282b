"""The written version of a Real-Pod script stands alone: what joins its clauses is not only in the spontaneous one."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podeval.benchmarks.real_pod import SCRIPTS
from podeval.datasets.real_pod_scripts import find_missing_joint, make_script_rules

STANDS_ALONE = next(rule for rule in make_script_rules() if rule.name == "stands alone")


def lost_joints() -> Iterator[Any]:
    """The sentences of the revision before (sha256:d1cd79e9…) that had lost a clause or its joint, numbered from 0."""
    with (Path(__file__).parent / "lost_joints.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield pytest.param(row["written"], row["spontaneous"], id=row["turn"])


@pytest.mark.parametrize(("written", "spontaneous"), list(lost_joints()))
def test_a_written_sentence_that_lacks_a_clause_of_the_spontaneous_one_breaks_a_rule(
    written: str, spontaneous: str
) -> None:
    turns = [{"text": "Yes.", "spontaneous": "Yes."}, {"text": written, "spontaneous": spontaneous}]
    assert str(STANDS_ALONE.broken_by({"turns": turns})).startswith("turn 2 has no ")


@pytest.mark.parametrize(
    ("written", "spontaneous", "missing"),
    [
        ("It rains, we stay.", "It rains, and, um, we stay.", ("and", "we stay")),
        ("I like what it cannot do feel.", "I like what it can't do, which is, uh, feel.", ("which is", "feel")),
        ("It rains, and we stay.", "It rains, and, um, and we stay.", None),
        ("It is a tidy idea, I think.", "It's, uh, it's a tidy idea, I think.", None),
        ("It rains. We stay.", "It rains. And, um, we stay.", None),
        ("One thing is hard: to stay.", "One thing is hard, and, uh, that is: to stay.", None),
        ("They drew, they sewed, and they wrote.", "They drew, and, and they sewed, and they wrote.", None),
        (
            "They drew, they sewed. And they wrote.",
            "They drew, and, and they sewed. And they wrote.",
            ("and and", "they"),
        ),
        ("A list before bed, in a drawer.", "A list before bed, um, you know, in a drawer.", None),
        ("I bought a camera.", "I bought a camera, which, uh, leaked.", None),
    ],
)
def test_a_joint_is_missed_within_a_sentence_unless_it_is_a_restart_or_a_lists(
    written: str, spontaneous: str, missing: tuple[str, str] | None
) -> None:
    found = find_missing_joint(written, spontaneous)
    assert (found and (found[0], found[1][: len(missing[1])] if missing else found[1])) == missing


def test_every_script_of_the_benchmark_stands_alone() -> None:
    scripts = [json.loads(line) for line in SCRIPTS.read().decode("utf-8").splitlines()]
    assert len(scripts) == 51
    assert {script["id"]: said for script in scripts if (said := STANDS_ALONE.broken_by(script))} == {}
