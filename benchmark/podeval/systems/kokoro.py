"""Kokoro, a neural voice with 82 million parameters, quantised to 8 bits: a better voice, which still runs on a laptop.

Only its five Japanese voices come in packages, so it reads English with a Japanese accent. The espeak-ng in Piper's
package converts words to sounds. Nothing is random: identical words give identical samples, regardless of the seed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from podeval.models import weights
from podeval.models.exported import open_session
from podeval.systems.dialogue_reader import SpokenLine, cut_silence, describe_chunks
from podeval.systems.engines import OnnxReader, name_broken_line
from podeval.systems.speech import Samples

WEIGHTS = "kokoro"
"""Name of the weights for `podeval models install --profile`, and in the lock file."""

_MODEL, _VOCABULARY, _VOICES = "kokoro-v1.0.int8.onnx", "vocab.json", "voices_ja.npz"
_MOST_SOUNDS = 508  # the network has 512 positions, including the marks at both ends
_NAMES = ("jf_alpha", "jm_kumo", "jf_nezumi", "jf_gongitsune", "jf_tebukuro")
"""Names of the voices in the package; the second letter shows whether the speaker is a woman or a man."""


class Kokoro(OnnxReader):
    """Five voices from one network; the first speaker in a script is a woman, the second a man."""

    name: ClassVar[str] = "kokoro"
    voices: ClassVar[tuple[str, ...]] = _NAMES
    longest_line: ClassVar[int | None] = 250
    packages: ClassVar[Mapping[str, str]] = {"piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = (WEIGHTS,)
    rate: ClassVar[int] = 24_000

    @property
    def generation(self) -> dict[str, Any]:
        """Weights, voices and assembly."""
        return {
            "system": self.name,
            "voices": list(_NAMES),
            "weights": {file.to: file.sha256 for file in weights.lock()[WEIGHTS].files},
            "speed": 1.0,
            "rate": self.rate,
            **describe_chunks(self.longest_line),
        }

    def _load(self, voice: int) -> "_Network":
        # One network contains all voices.
        return next(iter(self._networks.values()), None) or _Network(self.threads)

    def _say_line(self, network: "_Network", line: SpokenLine, seed: list[int]) -> Samples:
        with name_broken_line("Kokoro", line):
            sounds = network.spell(line.text)
            pieces = [sounds[start : start + _MOST_SOUNDS] for start in range(0, len(sounds), _MOST_SOUNDS)]
            parts = [network.speak(piece, _NAMES[line.voice], line.speed) for piece in pieces]
        return cut_silence(np.concatenate(parts), self.rate) if parts else np.zeros(0, np.float32)


class _Network:
    """The network with its voices, and the converter from words to sounds."""

    def __init__(self, threads: int) -> None:
        from piper.phonemize_espeak import EspeakPhonemizer

        folder = weights.locate_weights(WEIGHTS)
        self._session = open_session(str(folder / _MODEL), threads)
        self._numbers: dict[str, int] = json.loads((folder / _VOCABULARY).read_bytes())["vocab"]
        with np.load(folder / _VOICES, allow_pickle=False) as voices:
            self._voices = {name: np.asarray(voices[name], np.float32) for name in _NAMES}
        self._phonemizer = EspeakPhonemizer()

    def spell(self, text: str) -> list[int]:
        """Return the numbers of a text's sounds, leaving out sounds that the network does not support."""
        sentences = self._phonemizer.phonemize("en-us", text)
        sounds = " ".join("".join(sentence) for sentence in sentences)
        return [self._numbers[sound] for sound in sounds if sound in self._numbers]

    def speak(self, sounds: Sequence[int], voice: str, speed: float) -> Samples:
        """Return sounds spoken in a voice, shape (frames,); each voice has a style for every number of sounds."""
        style = self._voices[voice][len(sounds)].reshape(1, -1)
        tokens = np.array([[0, *sounds, 0]], np.int64)
        inputs = {"tokens": tokens, "style": style, "speed": np.full(1, speed, np.float32)}
        return np.asarray(self._session.run(None, inputs)[0], np.float32).reshape(-1)
