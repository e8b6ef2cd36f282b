"""Completion as people have it: installed by `podeval --install-completion`, in bash, zsh and fish that run."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROMPT = "ready> "
DEADLINE = 20.0
"""Seconds until a shell has to have answered."""
LINES = (
    ("podeval measure dn", "podeval measure dnsmos"),
    ("podeval score x.wav --metrics wer,dn", "podeval score x.wav --metrics wer,dnsmos"),
    ("podeval run --benchmark lfs_bench --split te", "podeval run --benchmark lfs_bench --split test"),
    ("podeval measure wer x.wav --set normaliser=wh", "podeval measure wer x.wav --set normaliser=whisper"),
    ("podeval run hib", "podeval run hibari_piper"),
    ("podeval listen", "podeval listening"),
)
"""What is typed before the key, and what stands there after it."""


class Terminal:
    """A shell that runs in a terminal of 200 columns, as somebody types into it.

    Args:
        command: that starts it.
        environment: of it.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.execvpe(command[0], command, {**environment, "COLUMNS": "200"})

    def type(self, keys: str) -> None:
        """Type some keys."""
        os.write(self._terminal, keys.encode())

    def read_until(self, text: str) -> str:
        """Return all that is shown from now on, as soon as a text is among it."""
        shown, until = "", time.monotonic() + DEADLINE
        while text not in shown:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} was not shown, only {shown!r}"
            shown += os.read(self._terminal, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        """End the shell."""
        os.close(self._terminal)
        os.waitpid(self._process, 0)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has just installed podeval."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "PODEVAL_CACHE") if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # A terminal that is told nothing of by name has no key that shells would ask it about.
    return {**kept, "PATH": path, "HOME": str(tmp_path), "TERM": "dumb", "LANG": "C.UTF-8"}


def require(shell: str) -> str:
    """Return where a shell is; where it is not, the test is skipped and says how to get it."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed: apt-get install {shell}")
    return program


def install(shell: str, environment: dict[str, str]) -> None:
    """Install the completion from within a shell, as its user does."""
    # A shell that has one command to run gives its place to it, and the command sees another shell above it.
    command = [shell, "-c", "podeval --install-completion; exit 0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"{Path(shell).name} completion installed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_first_tab_completes_what_stands_on_the_line(shell: str, home: dict[str, str]) -> None:
    program = require(shell)
    start = Path(home["HOME"]) / f".{shell}rc"
    start.write_text(f"PS1='{PROMPT}'\n")
    install(program, home)
    for typed, whole in LINES:
        # Each line in a shell of its own: what the first key does is what people see.
        terminal = Terminal([program, "-i"], home)
        try:
            terminal.read_until(PROMPT)
            terminal.type(f"{typed}\t")
            terminal.read_until(whole)
        finally:
            terminal.close()


def test_fish_offers_what_may_follow(home: dict[str, str]) -> None:
    program = require("fish")
    install(program, home)
    for typed, whole in LINES:
        command = [program, "-c", "complete -C $argv[1]", typed]
        done = subprocess.run(command, env=home, capture_output=True, text=True, check=True)
        offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
        assert offered == [whole.rpartition(" ")[2]], (typed, done.stderr)
