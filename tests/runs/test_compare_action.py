"""The GitHub Action: its steps run in a shell as a runner runs them, on two real runs."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

FILE = Path(__file__).parents[2] / ".github" / "actions" / "compare" / "action.yml"
ACTION: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
INPUT = re.compile(r"^\$\{\{ inputs\.(\w+) \}\}$")
BEFORE = [0.05, 0.08, 0.03, 0.06, 0.10, 0.04]


def run_action(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run the steps one after the other; the status, what they printed, and what they wrote into GitHub's files."""
    values = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | inputs
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    printed, status = "", 0
    for step in ACTION["runs"]["steps"]:
        variables = {name: values[INPUT.fullmatch(value)[1]] for name, value in step["env"].items()}  # type: ignore[index]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, **variables, **{name: str(file) for name, file in files.items()}, "PATH": path}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(shell, capture_output=True, text=True, check=False, env=environment, cwd=folder)
        printed, status = printed + done.stdout + done.stderr, done.returncode
        if status:
            break
    return status, printed, {name: file.read_text("utf-8") if file.exists() else "" for name, file in files.items()}


def test_every_input_is_described_and_reaches_the_shell_as_a_value() -> None:
    assert all(one["description"] for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))
    steps = ACTION["runs"]["steps"]
    assert not any("${{" in step["run"] for step in steps), "an expression in a script is code of whoever names a file"
    used = {INPUT.fullmatch(value)[1] for step in steps for value in step["env"].values()}  # type: ignore[index]
    assert used == set(ACTION["inputs"])
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    without_default = {name for name, one in ACTION["inputs"].items() if "default" not in one}
    assert required == without_default == {"before", "after", "watch"}


def test_a_regression_fails_the_job_and_is_in_its_summary(written: Callable[..., Path], tmp_path: Path) -> None:
    a = written("a", {0: BEFORE})
    b = written("b", {0: [value + 0.1 for value in BEFORE]})
    status, printed, files = run_action(
        tmp_path, before=str(a), after=str(b), watch="\n  wer=0.005\n", junit="gate.xml", detect="wer=0.1"
    )
    assert status == 3
    assert "::error title=podeval: wer.wer::" in printed
    assert files["GITHUB_OUTPUT"] == "failed=true\n"
    assert "### b is worse" in files["GITHUB_STEP_SUMMARY"]
    assert "in four of five comparisons" in files["GITHUB_STEP_SUMMARY"]
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "1"


@pytest.mark.long
def test_equal_runs_pass_and_an_input_is_no_code(written: Callable[..., Path], tmp_path: Path) -> None:
    a = written("a $(touch broken)", {0: BEFORE})
    status, printed, files = run_action(tmp_path, before=str(a), after=str(a), watch="wer", summary="false")
    assert status == 0, printed
    assert files == {"GITHUB_OUTPUT": "failed=false\n", "GITHUB_STEP_SUMMARY": ""}
    assert not (tmp_path / "broken").exists()


@pytest.mark.every(2)
@pytest.mark.parametrize("quarantine", ["list", "file"])
def test_items_in_quarantine_decide_nothing(written: Callable[..., Path], tmp_path: Path, quarantine: str) -> None:
    from podeval import benchmarks

    items = [item.id for item in benchmarks.get("real_pod").items("demo")]
    a, b = written("a", {0: BEFORE}), written("b", {0: [*BEFORE[:3], *(value + 0.2 for value in BEFORE[3:])]})
    lines = "\n".join(f"{item} # noisy, see issue 7" for item in items[3:])
    (tmp_path / "quarantine.txt").write_text(lines, encoding="utf-8")
    text = lines if quarantine == "list" else "quarantine.txt"
    status, printed, files = run_action(tmp_path, before=str(a), after=str(b), watch="wer", quarantine=text)
    assert status == 0, printed
    assert files["GITHUB_STEP_SUMMARY"].count("In quarantine, not counted") == 3
    assert "noisy, see issue 7" in files["GITHUB_STEP_SUMMARY"]


def test_runs_that_cannot_be_compared_fail_without_an_outcome(tmp_path: Path) -> None:
    status, printed, files = run_action(tmp_path, before="nowhere", after="nowhere", watch="wer")
    assert status not in (0, 3)
    assert "there is no run in" in printed
    assert files["GITHUB_OUTPUT"] == ""


@pytest.mark.every(4)
@pytest.mark.parametrize("missing", [{"before": ""}, {"after": ""}, {"watch": ""}, {"watch": "\n  \n"}])
def test_a_required_input_that_is_missing_does_not_pass(
    written: Callable[..., Path], tmp_path: Path, missing: dict[str, str]
) -> None:
    a = written("a", {0: BEFORE})
    status, printed, files = run_action(tmp_path, **{"before": str(a), "after": str(a), "watch": "wer"} | missing)
    assert status == 2
    assert "there is no run in" in printed or "watch names no metric" in printed
    assert files["GITHUB_OUTPUT"] == ""
