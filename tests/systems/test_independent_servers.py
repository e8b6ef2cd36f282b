"""Speech servers that others wrote are run from end to end by the command, and a recogniser understands them.

Two short items of the server of OpenAI's API are understood in test_row_in_an_evening.py.
"""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from podeval.cli.run import run as run_command
from podeval.runs.run_folder import open_run
from tests.fakes.independent_servers import FUNCTION, SERVER_KEY, VOICE, require, serve

pytestmark = pytest.mark.models
SHORT = Path(__file__).parents[1] / "fakes" / "short_real_pod.py"
LARGEST_WER = 0.2


@pytest.fixture(scope="module")
def address(reference_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Start a server when it is first asked for, and return its address."""
    addresses: dict[str, str] = {}
    with ExitStack() as running:

        def start(server: str) -> str:
            require(server, reference_packages)
            if server not in addresses:
                home = tmp_path_factory.mktemp(server)
                addresses[server] = running.enter_context(serve(server, reference_packages, home))
            return addresses[server]

        yield start


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


@pytest.mark.parametrize("program", LENGTHS[1:])
def test_a_server_of_openai_s_api_is_understood(
    program: tuple[str, ...], address: Callable[[str], str], tmp_path: Path
) -> None:
    words = ("--server", address("local_tts"), "--model", "tts-1", *VOICES, "--at-once", "2")
    assert podeval_run(program, tmp_path, *words, PODEVAL_SERVER_KEY=SERVER_KEY) < LARGEST_WER


@pytest.mark.parametrize("program", LENGTHS)
def test_piper_s_own_server_is_understood(
    program: tuple[str, ...], address: Callable[[str], str], tmp_path: Path
) -> None:
    if "server_kind" not in inspect.signature(run_command).parameters:
        pytest.skip("podeval has no --server-kind yet")
    words = ("--server", address("piper"), "--server-kind", "piper", "--model", VOICE, *VOICES)
    assert podeval_run(program, tmp_path, *words) < LARGEST_WER


@pytest.mark.long
@pytest.mark.parametrize("program", LENGTHS)
def test_a_function_that_asks_piper_s_server_needs_no_change_of_podeval(
    program: tuple[str, ...], address: Callable[[str], str], tmp_path: Path
) -> None:
    file = tmp_path / "my_tts.py"
    file.write_text(FUNCTION)
    assert (
        podeval_run(program, tmp_path / "runs", "--python", f"{file}:speak", PIPER_URL=address("piper")) < LARGEST_WER
    )
