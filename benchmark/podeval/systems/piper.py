"""Piper with two voices of its own: kristin (female) and joe (male).

Of Piper's voices only joe comes in a package. Kristin is fetched from the publisher's repo on the Hub, pinned by its
SHA-256: where that cannot be reached, the system is left out with the installer's sentence.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from podeval.models import weights
from podeval.systems import piper_voice
from podeval.systems.dialogue_reader import SpokenLine, SynthesisedLines
from podeval.systems.onnx_reader import OnnxReader
from podeval.systems.piper_voice import JOE, KRISTIN
from podeval.systems.speech import Voice

RATE = 22_050
"""Hz of what it says."""

VOICES = (KRISTIN, JOE)
"""Names in the lock, in the order in which speakers get them."""


class Piper(OnnxReader):
    """Two American voices by two networks; the first speaker of a script is kristin, the second joe."""

    name: ClassVar[str] = "piper"
    description: ClassVar[str] = "Piper's kristin (female) and joe (male): a neural baseline of one engine"
    licence: ClassVar[str] = "GPL-3.0-or-later (Piper), public domain (kristin), CC0-1.0 (joe)"
    longest_line: ClassVar[int | None] = 300
    packages: ClassVar[Mapping[str, str]] = {"piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = VOICES

    def __init__(self, *, threads: int | None = None) -> None:
        """Choose how many processors to use, as every `OnnxReader`."""
        super().__init__(threads=threads)
        self._loaded: dict[int, Any] = {}

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
            **self._describe_chunks(RATE),
        }

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        for number in {line.voice for line in lines} - set(self._loaded):
            self._loaded[number] = piper_voice.load(VOICES[number], self.threads)
        loaded = time.perf_counter()
        sounds = [piper_voice.say(self._loaded[line.voice], line, RATE) for line in lines]
        voices = {str(number): VOICES[number] for number in sorted({line.voice for line in lines})}
        return self._collect(sounds, RATE, begin, loaded, voices)
