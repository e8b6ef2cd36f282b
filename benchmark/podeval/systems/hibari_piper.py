"""The neural baseline: hibari's female voice and Piper's `joe`, both small enough for a laptop without a network.

Determinism: hibari draws its noise from a generator that it is given; every line gets its own, made of seed and
place. Piper draws inside the ONNX graph, from a generator that runs on from call to call and cannot be set; so it
speaks without noise, and what is said depends on nothing said before it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.models import weights
from podeval.systems.dialogue_reader import INSTALL_PACKAGES, SpokenLine, describe_chunks
from podeval.systems.onnx_reader import OnnxReader, name_broken_line
from podeval.systems.piper import JOE, MANNER, load_voice, say_line
from podeval.systems.speech import Samples

_HIBARI_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
_HIBARI = 0
"""Number of hibari's voice; the other one is Piper's."""


class HibariPiper(OnnxReader):
    """A good, small, two-voice baseline for English: the first speaker is hibari, the second Piper's joe."""

    name: ClassVar[str] = "hibari_piper"
    voices: ClassVar[tuple[str, ...]] = ("hibari-heart", "piper-joe")
    longest_line: ClassVar[int | None] = 300  # both attend over the whole line: cost and slips grow with its length
    packages: ClassVar[Mapping[str, str]] = {"hibari": "hibari-tts", "piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = (JOE,)
    rate: ClassVar[int] = 24_000  # hibari's own; Piper's 22,050 Hz are resampled

    @property
    def generation(self) -> dict[str, Any]:
        """Weights, noise and assembly."""
        return {
            "system": self.name,
            "voices": list(self.voices),
            "weights": {
                "hibari.onnx": _HIBARI_SHA256,
                **{file.to: file.sha256 for file in weights.lock()[JOE].files},
            },
            "piper": MANNER,
            "rate": self.rate,
            **describe_chunks(self.longest_line),
        }

    def _load(self, voice: int) -> Any:
        if voice != _HIBARI:
            return load_voice(JOE, self.threads)
        from hibari import Hibari
        from hibari.voices import voice_path

        model = Path(voice_path("heart", download_missing=False))
        weights.verify(model, _HIBARI_SHA256, INSTALL_PACKAGES)
        hibari = Hibari(model=str(model), threads=self.threads)
        hibari.phonemize("Ready.")  # its dictionaries are loaded with the first word
        return hibari

    def _say_line(self, network: Any, line: SpokenLine, seed: list[int]) -> Samples:
        if line.voice != _HIBARI:
            return say_line(network, line, self.rate)
        with name_broken_line("hibari", line):
            return np.asarray(network(line.text, speed=line.speed, seed=seed), np.float32)
