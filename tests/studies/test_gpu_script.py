"""The script that measures a GPU, tried without one: it runs through, and an error in a part is not lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "studies" / "speed" / "gpu.sh"


@pytest.mark.long
def test_the_script_runs_through_without_a_gpu(tmp_path: Path) -> None:
    settings = {"PROFILE": "embedded", "METRICS": "loudness,dnsmos", "MINUTES": "0.5", "BATCHES": "32"}
    settings |= {"WORKERS": "1", "CLIPS": "2", "SECONDS_EACH": "12", "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", SCRIPT, tmp_path], capture_output=True, text=True, check=False, env={**os.environ, **settings}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^(\d+) values on the CPU and here: \1 within 1 %; others: \[\]$", done.stdout, re.M)
    assert len(re.findall(r"^one process, embedded: 0\.\d minutes in ", done.stdout, re.M)) == 2
    assert re.search(r"^2 clips of 12 s, \d+ metrics; 0 not measured", done.stdout, re.M)


def test_a_part_that_fails_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    settings = {"PYTHON": "false", "BATCHES": "32 64"}
    done = subprocess.run(["sh", SCRIPT, tmp_path], capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 1
    assert done.stdout.count("\n== ") == 7
