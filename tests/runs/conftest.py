"""The tiny benchmark in this process, and the command line with it in another."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval import benchmarks
from podeval.metrics import catalogue
from podeval.metrics.score import Protocol, Result, Score, Unscored
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.systems import registry as systems

PROGRAM = Path(__file__).parents[1] / "fakes" / "tiny_run.py"
SUBMISSION = """\
schema_version: 1
system:
  id: singer
  name: The Singer
  description: A tone that stands in for a system.
  licence: CC0-1.0
  open: true
  languages: [en]
benchmarks:
  - name: real_pod
    tracks: [voice]
source:
  kind: builtin
  runner: singer
  role: baseline
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The benchmark `tiny` and the system `singer`; what it says and measures is counted in two files."""
    from tests.fakes import tiny_run

    monkeypatch.setattr(catalogue, "NAMES", (*catalogue.NAMES, "trouble"))
    monkeypatch.setitem(benchmarks.find_all(), "tiny", tiny_run.BENCHMARK)
    monkeypatch.setitem(systems.SYSTEMS, "singer", tiny_run.Singer)
    for variable, name in (("TINY_SPOKEN", "spoken"), ("TINY_MEASURED", "measured"), ("TINY_FLAG", "flag")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    yield tiny_run
    assert "trouble" in catalogue.REGISTERED


@pytest.fixture
def counted(tmp_path: Path) -> Callable[[str], int]:
    """How often the singer has `spoken` or `trouble` has `measured`."""

    def count(name: str) -> int:
        path = tmp_path / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    return count


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start `podeval run` of the singer on the tiny benchmark in a process group of its own."""
    (tmp_path / "singer.yaml").write_text(SUBMISSION)

    def start(out: Path, *options: str, **environment: str) -> "subprocess.Popen[str]":
        files = {"TINY_SPOKEN": "spoken", "TINY_MEASURED": "measured", "TINY_FLAG": "flag"}
        settings: dict[str, Any] = {variable: str(tmp_path / name) for variable, name in files.items()}
        return subprocess.Popen(
            [
                *(sys.executable, str(PROGRAM), "run", str(tmp_path / "singer.yaml")),
                *("--benchmark", "tiny", "--out", str(out), *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Who starts the tests in the background has Ctrl-C ignored, which programs inherit.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | settings | environment,
        )

    return start


def protocol(metric: str, version: str = "1") -> Protocol:
    return Protocol(metric, version, {}, (), {}, "podeval/real_pod", {})


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
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
