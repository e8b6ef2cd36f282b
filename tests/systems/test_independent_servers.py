"""A speech server that others wrote is run from end to end by the command, and a recogniser understands it.

Another one, with OpenAI's API, is that of test_row_in_an_evening.py.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podeval.runs.run_folder import open_run
from tests.fakes.independent_servers import FUNCTION, VOICE, require, serve

pytestmark = pytest.mark.models
SHORT = Path(__file__).parents[1] / "fakes" / "short_real_pod.py"
LARGEST_WER = 0.2


@pytest.fixture(scope="module")
def address(reference_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Piper's own server."""
    require("piper", reference_packages)
    with serve("piper", reference_packages, tmp_path_factory.mktemp("piper")) as url:
        yield url


def podeval_run(program: tuple[str, ...], runs: Path, *words: str, **environment: str) -> float:
    """The WER of a run of the demo split."""
    command = [sys.executable, *program, "run", *words, "--name", "served", "--split", "demo", "--metrics", "wer"]
    done = subprocess.run(
        [*command, "--out", str(runs), "--workers", "1"], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (summary,) = open_run(runs / "real_pod" / "demo" / "served").summaries()
    whole = next(row for row in summary.metrics if row.metric == "wer" and not row.slice)
    assert whole.keys["wer"] is not None
    return whole.keys["wer"].mean


LENGTHS = [
    pytest.param((str(SHORT),), id="two short items"),
    pytest.param(("-m", "podeval"), id="the whole demo", marks=pytest.mark.long),
]
VOICES = ("--voice", VOICE, "--voice", VOICE)


@pytest.mark.long
@pytest.mark.parametrize("program", LENGTHS)
def test_piper_s_own_server_is_understood(program: tuple[str, ...], address: str, tmp_path: Path) -> None:
    words = ("--server", address, "--server-kind", "piper", "--model", VOICE, *VOICES)
    assert podeval_run(program, tmp_path, *words) < LARGEST_WER


@pytest.mark.long
@pytest.mark.parametrize("program", LENGTHS)
def test_a_function_that_asks_piper_s_server_needs_no_change_of_podeval(
    program: tuple[str, ...], address: str, tmp_path: Path
) -> None:
    file = tmp_path / "my_tts.py"
    file.write_text(FUNCTION)
    assert podeval_run(program, tmp_path / "runs", "--python", f"{file}:speak", PIPER_URL=address) < LARGEST_WER
