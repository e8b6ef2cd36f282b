"""Engines in C that are run in a child process for each script: its time limit, how it ended, the samples it wrote."""

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from podeval.systems.speech import Samples, SpeechFailed


def run_worker(engine: str, script: str, arguments: Sequence[str], job: dict[str, Any], characters: int) -> bytes:
    """Run a worker over a job, and return what it wrote.

    Args:
        engine: its name in messages.
        script: the worker's file, run by this Python alone.
        arguments: what it is called with.
        job: given on its standard input as JSON.
        characters: how much text it has to say, for the time limit.

    Raises:
        SpeechFailed: it took too long, or broke; the message has its last line.
    """
    limit = 60.0 + 0.02 * characters  # a hundred times what it takes
    command = [sys.executable, "-I", script, *arguments]
    try:
        done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        raise SpeechFailed(f"{engine} did not finish within {limit:.0f} s over {characters} characters") from late
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        raise SpeechFailed(f"{engine} ended with {end}: {why[-1] if why else 'without a word'}")
    return done.stdout


def read_records(output: bytes, count: int, head: struct.Struct, start: int = 0) -> tuple[list[Samples], float]:
    """Read the samples of each line, and the seconds of synthesis.

    Args:
        output: what a worker wrote: for each line its seconds and length in bytes, then samples of 16 bits.
        count: the number of lines.
        head: the form of what comes before the samples of a line.
        start: the offset of the first line.
    """
    position, synthesis = start, 0.0
    sounds: list[Samples] = []
    for _ in range(count):
        seconds, size = head.unpack_from(output, position)
        samples = np.frombuffer(output, "<i2", size // 2, position + head.size)
        sounds.append(samples.astype(np.float32) / np.float32(32768))
        position += head.size + size
        synthesis += seconds
    return sounds, synthesis
