"""Programs in processes of their own, which do not each import again what takes seconds to import.

One Python imports it, then forks a process for every program that it is asked for on its standard input. The programs
are killed and started again as any other; what they find imported is all they share. The process that forks runs no
threads, and ends when its standard input does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_FORKS = """
import gc, importlib, json, os, sys, threading, traceback
gc.disable()
paths, modules = json.loads(sys.stdin.readline())
sys.path[:0] = paths
for module in modules:
    try:
        importlib.import_module(module)
    except ImportError:
        pass
assert threading.active_count() == 1, threading.enumerate()
gc.freeze()
gc.set_threshold(100_000, 10, 10)
gc.enable()
answers, sys.stdout = os.fdopen(os.dup(1), "w", buffering=1), sys.stderr
for line in sys.stdin:
    what, content = json.loads(line)
    if what == "poll":
        pid, status = os.waitpid(content, os.WNOHANG)
        print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), file=answers)
        continue
    pid = os.fork()
    if pid:
        print(pid, file=answers)
        continue
    code = 1
    try:
        answers.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(content["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
        os.dup2(1, 2)
        sys.stdout = open(1, "w", buffering=1, closefd=False)
        os.environ.clear()
        os.environ.update(content["environment"])
        sys.argv = ["-c", *content["arguments"]]
        exec(compile(content["program"], "<program>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""


class WarmPython:
    """A Python that has imported modules from these folders, those that are installed."""

    def __init__(self, folders: list[Path], modules: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GRADIO_ANALYTICS_ENABLED": "False"},
        )  # fmt: skip
        self._say([[str(folder) for folder in folders], modules])

    def _say(self, content: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(content) + "\n")

    def ask(self, what: str, content: Any) -> Any:
        """One request to the process that forks, and its answer."""
        assert self._process.stdout is not None
        self._say([what, content])
        answer = self._process.stdout.readline()
        assert answer, f"the process that forks ended with {self._process.wait()}"
        return json.loads(answer)

    def start(self, program: str, output: Path, *arguments: str, environment: dict[str, str] | None = None) -> "Forked":
        """Run the text of a program as `python -c` does; what it prints is appended to a file."""
        content = {"program": program, "arguments": arguments, "output": str(output)}
        return Forked(self, self.ask("start", {**content, "environment": {**os.environ, **(environment or {})}}))

    def close(self) -> None:
        """End the process that forks; what it forked is ended by who started it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Forked:
    """A running program, with what is used of `subprocess.Popen`."""

    def __init__(self, python: WarmPython, pid: int) -> None:
        self._python = python
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._python.ask("poll", self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """As a power cut would."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = 60.0) -> int:
        """Its exit status, once it ended."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a program", timeout)
            time.sleep(0.005)
        return status
