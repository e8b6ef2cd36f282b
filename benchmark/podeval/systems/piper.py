"""Piper with two voices of its own: kristin (female) and joe (male).

Of Piper's voices only joe comes in a package. Kristin is fetched from the publisher's repo on the Hub, pinned by its
SHA-256: where that cannot be reached, the system is left out with the installer's sentence.
"""

import time
from collections.abc import Sequence
from importlib import metadata, util
from typing import Any, ClassVar

from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.models.threads import threads as threads_allowed
from podeval.systems import piper_voice
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.piper_voice import JOE, KRISTIN
from podeval.systems.speech import Kind, Voice

RATE = 22_050
"""Hz of what it says."""

VOICES = (KRISTIN, JOE)
"""Names in the lock, in the order in which speakers get them."""

_PACKAGES = {"piper": "piper-tts", "onnxruntime": "onnxruntime"}


class Piper(DialogueReader):
    """Two American voices by two networks; the first speaker of a script is kristin, the second joe."""

    name: ClassVar[str] = "piper"
    description: ClassVar[str] = "Piper's kristin (female) and joe (male): a neural baseline of one engine"
    licence: ClassVar[str] = "GPL-3.0-or-later (Piper), public domain (kristin), CC0-1.0 (joe)"
    kind: ClassVar[Kind] = "model"
    longest_line: ClassVar[int | None] = 300

    def __init__(self, *, threads: int | None = None) -> None:
        """Choose how many processors to use; nothing is loaded yet.

        Args:
            threads: threads of onnxruntime; None reads PODEVAL_THREADS, else 1.
        """
        self.threads = threads or threads_allowed(1)
        self._loaded: dict[int, Any] = {}

    @property
    def languages(self) -> tuple[str, ...]:
        """English only."""
        return ("en",)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Kristin and joe."""
        return (Voice(KRISTIN, "American, female", "public domain"), Voice(JOE, "American, male", "CC0-1.0"))

    @property
    def generation(self) -> dict[str, Any]:
        """Weights, noise and assembly."""
        return {
            "system": self.name,
            "voices": list(VOICES),
            "weights": {file.to: file.sha256 for voice in VOICES for file in weights.lock()[voice].files},
            "piper": piper_voice.MANNER,
            "rate": RATE,
            "strategy": "chunked",
            "chunk": f"sentence, at most {self.longest_line} characters",
            **self.assembly(),
        }

    def available(self) -> str | None:
        """Return None where the packages and both voices are there, else what is missing and its command."""
        missing = [package for module, package in _PACKAGES.items() if util.find_spec(module) is None]
        if missing:
            return f"{self.name} needs {' and '.join(missing)}; install with `pip install podeval[baselines]`"
        try:
            for voice in VOICES:
                weights.folder(voice)
        except ModelMissing as absent:
            return f"{self.name}: {absent}"
        return None

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        for number in {line.voice for line in lines} - set(self._loaded):
            self._loaded[number] = piper_voice.load(VOICES[number], self.threads)
        loaded = time.perf_counter()
        sounds = [piper_voice.say(self._loaded[line.voice], line, RATE) for line in lines]
        return SynthesisedLines(
            lines=sounds,
            rate=RATE,
            wall_seconds=time.perf_counter() - loaded,
            load_seconds=loaded - begin,
            details={
                **{package: metadata.version(package) for package in _PACKAGES.values()},
                "voices": {str(number): VOICES[number] for number in sorted({line.voice for line in lines})},
                "threads": self.threads,
            },
        )
