"""The neural baseline: hibari's female voice and Piper's `joe`, both small enough for a laptop without a network.

Determinism: hibari draws its noise from a generator that it is given; every line gets its own, made of seed and
place. Piper draws inside the ONNX graph, from a generator that runs on from call to call and cannot be set; so it
speaks without noise, and what is said depends on nothing said before it.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.models import weights
from podeval.systems.dialogue_reader import SpokenLine, SynthesisedLines
from podeval.systems.onnx_reader import INSTALL_PACKAGES, OnnxReader
from podeval.systems.piper import JOE, MANNER, load_voice, say_line
from podeval.systems.speech import Samples, SpeechFailed, Voice

RATE = 24000
"""Common sampling rate in Hz: hibari's own; Piper's 22050 Hz are resampled."""

_HIBARI_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
_HIBARI, _PIPER = 0, 1


class HibariPiper(OnnxReader):
    """A good, small, two-voice baseline for English: the first speaker is hibari, the second Piper's joe."""

    name: ClassVar[str] = "hibari_piper"
    description: ClassVar[str] = "hibari (female) and Piper joe (male): a small neural baseline"
    licence: ClassVar[str] = "Apache-2.0 (hibari), GPL-3.0-or-later (Piper), CC0-1.0 (joe)"
    longest_line: ClassVar[int | None] = 300  # both attend over the whole line: cost and slips grow with its length
    packages: ClassVar[Mapping[str, str]] = {"hibari": "hibari-tts", "piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = (JOE,)

    def __init__(self, *, threads: int | None = None) -> None:
        """Choose how many processors to use, as every `OnnxReader`."""
        super().__init__(threads=threads)
        self._hibari: Any = None
        self._piper: Any = None

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Hibari's heart, Piper's joe."""
        return (
            Voice("hibari-heart", "American, female", "Apache-2.0"),
            Voice("piper-joe", "American, male", "CC0-1.0"),
        )

    @property
    def generation(self) -> dict[str, Any]:
        """Weights, noise and assembly."""
        return {
            "system": self.name,
            "voices": [voice.name for voice in self.voices],
            "weights": {
                "hibari.onnx": _HIBARI_SHA256,
                **{file.to: file.sha256 for file in weights.lock()[JOE].files},
            },
            "piper": MANNER,
            **self._describe_chunks(RATE),
        }

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        voices = {line.voice for line in lines}
        hibari = self._load_hibari() if _HIBARI in voices else None
        piper = self._load_piper() if _PIPER in voices else None
        loaded = time.perf_counter()
        sounds = [
            _hibari_says(hibari, line, [seed, number]) if line.voice == _HIBARI else say_line(piper, line, RATE)
            for number, line in enumerate(lines)
        ]
        return self._collect(
            sounds, RATE, begin, loaded, {str(voice): self.voices[voice].name for voice in sorted(voices)}
        )

    def _load_hibari(self) -> Any:
        if self._hibari is None:
            from hibari import Hibari
            from hibari.voices import voice_path

            model = Path(voice_path("heart", download_missing=False))
            weights.verify(model, _HIBARI_SHA256, INSTALL_PACKAGES)
            hibari = Hibari(model=str(model), threads=self.threads)
            hibari.phonemize("Ready.")  # its dictionaries are loaded with the first word
            self._hibari = hibari
        return self._hibari

    def _load_piper(self) -> Any:
        if self._piper is None:
            self._piper = load_voice(JOE, self.threads)
        return self._piper


def _hibari_says(hibari: Any, line: SpokenLine, seed: list[int]) -> Samples:
    try:
        return np.asarray(hibari(line.text, speed=line.speed, seed=seed), np.float32)
    except Exception as broken:  # third-party G2P: any error there is the engine's, and must name its line
        what = f"{type(broken).__name__}: {broken}"
        raise SpeechFailed(
            f"hibari could not say turn {line.turn + 1} of the script ({what}): {line.text:.80}"
        ) from broken
