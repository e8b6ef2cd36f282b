"""`python -m podeval.systems.adapters.hand_over JOB.json RESULTS`: generate items, and hand over the finished items.

This is for containers whose results folder is in object storage: only complete files are written to it, each once, and
they are never appended to, renamed or locked. `files/` contains the outputs, and `lines/<item>.<seed>.json` contains an
item's line of the log, written after the item's files; `ended.json`, written last, describes how the generation ended.
A restarted container restores the results of the previous one and generates the rest.
"""

import json
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from podeval.errors import BadInput
from podeval.systems.adapters.adapter import Generated, Job
from podeval.systems.adapters.generate import REFUSED

LINES, FILES, ENDED = "lines", "files", "ended.json"
LOG = "generated.jsonl"
TICK = 1.0
"""Seconds between two checks for new outputs."""

_TAIL, _TAIL_LINES = 4_000, 200
"""Numbers of characters and lines that are kept from the program's standard error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job file and copy its results; return the exit code, which is 0 even if the model cannot be used."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if len(words) != 2:
            raise BadInput("usage: python -m podeval.systems.adapters.hand_over JOB.json RESULTS")
        file, results = map(Path, words)
        job = Job.read(file)
    except BadInput as refusal:
        print(refusal, file=sys.stderr)
        return 2
    taken_back = restore(results, job.out_folder)
    if taken_back:
        print(f"{taken_back} items had already been generated", flush=True)
    command = [sys.executable, "-P", "-s", "-m", "podeval.systems.adapters.generate", str(file)]
    return hand_over(command, job.out_folder, results)


def hand_over(command: Sequence[str], out: Path, results: Path) -> int:
    """Run a program that generates into a folder, and copy its finished results; return the exit code.

    If the model or job cannot be used, the exit code is 0, because restarting the container would not help.
    """
    started = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None, "standard error is a pipe"
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        reading = threading.Thread(target=_pass_on, args=(process.stderr, tail), daemon=True)
        reading.start()
        done = 0
        while True:
            alive = process.poll() is None
            done = _copy_new(out, results, done)
            if not alive:
                break
            time.sleep(TICK)
    reading.join(10)
    refused = out / REFUSED
    refusal = json.loads(refused.read_bytes()) if process.returncode == 2 and refused.is_file() else {}
    ended = {"code": process.returncode, "log": "".join(tail)[-_TAIL:]}
    ended |= {"refused": refusal.get("reason"), "cause": refusal.get("cause")}
    _write(results / ENDED, json.dumps({**ended, "seconds": round(time.monotonic() - started, 1)}).encode())
    return 0 if process.returncode == 2 else process.returncode


def restore(results: Path, out: Path) -> int:
    """Restore the results of the container's earlier starts, and return the number of items."""
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for path in sorted((results / LINES).glob("*.json")):
        try:
            line = Generated.model_validate_json(path.read_bytes())
            for name in line.files:
                shutil.copyfile(results / FILES / name, out / name)
        except (ValidationError, OSError):
            continue
        lines.append(path.read_bytes().strip() + b"\n")
    (out / LOG).write_bytes(b"".join(lines))
    return len(lines)


def name_line(item: str, seed: int) -> str:
    """Return the path of an item's line in the results."""
    return f"{LINES}/{item}.{seed}.json"


def _copy_new(out: Path, results: Path, start: int) -> int:
    """Copy the complete lines of the log, starting at a position; return the position of the next line."""
    log = out / LOG
    if not log.is_file():
        return start
    content = log.read_bytes()[start:]
    whole = content[: content.rfind(b"\n") + 1]
    for raw in whole.splitlines():
        line = Generated.model_validate_json(raw)
        target = results / name_line(line.item, line.seed)
        if target.exists():
            continue
        for name in line.files:
            _write(results / FILES / name, (out / name).read_bytes())
        _write(target, raw + b"\n")
        print(f"{line.item}: {line.error or 'made'}"[:300], flush=True)
    return start + len(whole)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _pass_on(stream: Iterable[str], tail: deque[str]) -> None:
    """Copy a process's standard error to ours, and keep the last part of it."""
    for line in stream:
        sys.stderr.write(line)
        tail.append(line[-_TAIL:])


if __name__ == "__main__":
    sys.exit(main())
