"""Speech from the built-in voices: networks that run on onnxruntime in this process, or C engines that run in a child
process.
"""

import json
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.models.device import count_threads
from podeval.systems import speech_worker
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.speech import Samples, SpeechFailed
from podeval.systems.speech_worker import HEAD


class OnnxReader(DialogueReader):
    """A reader of English scripts whose networks come in packages or from `podeval models install`."""

    weight_names: ClassVar[tuple[str, ...]]
    """Names of its weights in the lock file."""
    rate: ClassVar[int]
    """Sampling rate of its output in Hz."""

    def __init__(self) -> None:
        """Choose the number of threads for onnxruntime: PODEVAL_THREADS, otherwise one. Nothing is loaded yet."""
        self.threads = count_threads(1)
        self._networks: dict[int, Any] = {}

    def available(self) -> str | None:
        """Return None if the packages and weights exist, otherwise the missing part with the command to install it."""
        if (missing := super().available()) is not None:
            return missing
        try:
            for name in self.weight_names:
                weights.locate_weights(name)
        except ModelMissing as absent:
            return f"{self.name}: {absent}"
        return None

    @abstractmethod
    def _load(self, voice: int) -> Any:
        """Load the network of a voice, and keep it loaded."""

    @abstractmethod
    def _say_line(self, network: Any, line: SpokenLine, seed: list[int]) -> Samples:
        """Return a line spoken by its voice's network, shape (frames,), at `rate`; empty if the line contains no sound.

        Raises:
            SpeechFailed: the engine failed.
        """

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        for voice in {line.voice for line in lines} - set(self._networks):
            self._networks[voice] = self._load(voice)
        loaded = time.perf_counter()
        sounds = [self._say_line(self._networks[line.voice], line, [seed, n]) for n, line in enumerate(lines)]
        return SynthesisedLines(
            lines=sounds,
            rate=self.rate,
            wall_seconds=time.perf_counter() - loaded,
            load_seconds=loaded - begin,
            details={
                "voices": {str(voice): self.voices[voice] for voice in sorted({line.voice for line in lines})},
                "threads": self.threads,
            },
        )


@contextmanager
def name_broken_line(engine: str, line: SpokenLine) -> Iterator[None]:
    """Turn any error that an engine raises on a line into a message that names the engine and the line.

    Raises:
        SpeechFailed: the engine raised an error, which can be of any kind because the engine is third-party code.
    """
    try:
        yield
    except Exception as broken:
        what = f"{type(broken).__name__}: {broken}"
        raise SpeechFailed(
            f"{engine} could not say turn {line.turn + 1} of the script ({what}): {line.text:.80}"
        ) from broken


class WorkerReader(DialogueReader):
    """A reader whose engine comes in a package and says the lines of each script in a child process.

    Attributes:
        engine: the engine's name in messages and in `speech_worker`.
    """

    engine: ClassVar[str]

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
        """Return the worker's job without the seed, the worker's arguments, and the names of the voices by number."""

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        job, arguments, voices = self._prepare(lines, language, self._locate_package())
        characters = sum(len(line.text) for line in lines)
        output = run_worker(self.engine, arguments, {"seed": seed, **job}, characters)
        rate, sounds, synthesis = read_records(output, len(lines))
        return SynthesisedLines(
            lines=sounds,
            rate=rate,
            wall_seconds=synthesis,
            load_seconds=time.perf_counter() - begin - synthesis,
            details={"voices": {str(voice): voices[voice] for voice in sorted({line.voice for line in lines})}},
        )


def run_worker(engine: str, arguments: Sequence[str], job: dict[str, Any], characters: int) -> bytes:
    """Run the worker on a job, and return the worker's output.

    Args:
        engine: the engine that speaks.
        arguments: the worker's arguments after the engine's name.
        job: the job, as JSON, for the worker's standard input.
        characters: number of characters to speak, which determines the time limit.

    Raises:
        SpeechFailed: the worker took too long or failed; the message contains its last line.
    """
    limit = 60.0 + 0.02 * characters  # a hundred times the usual duration
    command = [sys.executable, "-I", speech_worker.__file__, engine, *arguments]
    try:
        done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        raise SpeechFailed(f"{engine} did not finish speaking {characters} characters within {limit:.0f} s") from late
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        raise SpeechFailed(f"{engine} ended with {end}: {why[-1] if why else 'no message'}")
    return done.stdout


def read_records(output: bytes, count: int) -> tuple[int, list[Samples], float]:
    """Read the rate in Hz, the samples of each line, and the seconds of synthesis.

    Args:
        output: output of a worker: a record with the rate in place of a length, then for each line the seconds taken,
            the length in bytes, and the 16-bit samples.
        count: the number of lines.
    """
    _, rate = HEAD.unpack_from(output)
    position, synthesis = HEAD.size, 0.0
    sounds: list[Samples] = []
    for _ in range(count):
        seconds, size = HEAD.unpack_from(output, position)
        samples = np.frombuffer(output, "<i2", size // 2, position + HEAD.size)
        sounds.append(samples.astype(np.float32) / np.float32(32768))
        position += HEAD.size + size
        synthesis += seconds
    return int(rate), sounds, synthesis
