"""The shared part of the built-in systems with networks on onnxruntime: packages and weights, threads, timed lines."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.models.device import count_threads
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.speech import Samples, SpeechFailed


class OnnxReader(DialogueReader):
    """A reader of English scripts by networks that packages bring, or `podeval models install`."""

    weight_names: ClassVar[tuple[str, ...]]
    """Names in the lock."""
    rate: ClassVar[int]
    """Hz of its output."""

    def __init__(self) -> None:
        """Choose the number of threads for onnxruntime: PODEVAL_THREADS, else one; nothing is loaded yet."""
        self.threads = count_threads(1)
        self._networks: dict[int, Any] = {}

    def available(self) -> str | None:
        """Return None if the packages and the weights exist, else the missing part and its command."""
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
        """Load the network of a voice; it stays loaded."""

    @abstractmethod
    def _say_line(self, network: Any, line: SpokenLine, seed: list[int]) -> Samples:
        """Say a line with the network of its voice, shape (frames,), at `rate`; empty if the line contains no sound.

        Raises:
            SpeechFailed: the engine broke.
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
    """Turn whatever an engine raises over a line into a sentence that names both.

    Raises:
        SpeechFailed: it raised any error, because third-party code converts words to sounds.
    """
    try:
        yield
    except Exception as broken:
        what = f"{type(broken).__name__}: {broken}"
        raise SpeechFailed(
            f"{engine} could not say turn {line.turn + 1} of the script ({what}): {line.text:.80}"
        ) from broken


def open_session(model: Path, threads: int) -> Any:
    """Open a network with onnxruntime on the processor, without its warnings."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
