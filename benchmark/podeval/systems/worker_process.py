"""Engines in C that are run in a child process for each script: its time limit, how it ended, the samples it wrote."""

import json
import struct
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.speech import Samples, SpeechFailed

_HEAD = struct.Struct("<dI")
"""Header that a worker writes before the samples of a line: its duration in seconds, and the number of bytes of
samples."""


class WorkerReader(DialogueReader):
    """A reader with an engine from a package that says the lines of each script in a child process.

    Attributes:
        engine: its name in messages.
        worker: the file of the child's program.
    """

    engine: ClassVar[str]
    worker: ClassVar[str]

    def _locate_package(self) -> Path:
        """Find the folder of the package without importing it."""
        (module,) = self.packages
        spec = util.find_spec(module)
        assert spec is not None, "checked by require()"
        return Path(str(spec.origin)).parent

    @abstractmethod
    def _prepare(
        self, lines: Sequence[SpokenLine], language: str, folder: Path
    ) -> tuple[dict[str, Any], list[str], Sequence[str]]:
        """Return the worker's job without the seed, its arguments, and the names of the voices by number."""

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        job, arguments, voices = self._prepare(lines, language, self._locate_package())
        characters = sum(len(line.text) for line in lines)
        output = run_worker(self.engine, self.worker, arguments, {"seed": seed, **job}, characters)
        rate, sounds, synthesis = read_records(output, len(lines))
        return SynthesisedLines(
            lines=sounds,
            rate=rate,
            wall_seconds=synthesis,
            load_seconds=time.perf_counter() - begin - synthesis,
            details={"voices": {str(voice): voices[voice] for voice in sorted({line.voice for line in lines})}},
        )


def run_worker(engine: str, script: str, arguments: Sequence[str], job: dict[str, Any], characters: int) -> bytes:
    """Run a worker over a job, and return its output.

    Args:
        engine: its name in messages.
        script: the worker's file, run by this Python alone.
        arguments: arguments of the worker.
        job: job for its standard input, as JSON.
        characters: number of spoken characters, for the time limit.

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


def read_records(output: bytes, count: int) -> tuple[int, list[Samples], float]:
    """Read the rate in Hz, the samples of each line, and the seconds of synthesis.

    Args:
        output: output of a worker: a record that has the rate for a length, then for each line its seconds and length
            in bytes, and samples of 16 bits.
        count: the number of lines.
    """
    _, rate = _HEAD.unpack_from(output)
    position, synthesis = _HEAD.size, 0.0
    sounds: list[Samples] = []
    for _ in range(count):
        seconds, size = _HEAD.unpack_from(output, position)
        samples = np.frombuffer(output, "<i2", size // 2, position + _HEAD.size)
        sounds.append(samples.astype(np.float32) / np.float32(32768))
        position += _HEAD.size + size
        synthesis += seconds
    return int(rate), sounds, synthesis
