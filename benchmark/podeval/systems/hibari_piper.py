"""The neural baseline: hibari's female voice and Piper's `joe`, both small enough for a laptop without a network.

Determinism: hibari draws its noise from a generator that it is given; every line gets its own, made of seed and
place. Piper draws inside the ONNX graph, from a generator that runs on from call to call and cannot be set; so it
speaks without noise, and what is said depends on nothing said before it.
"""

import time
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.models.threads import threads as threads_allowed
from podeval.systems import piper_voice
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.piper_voice import JOE
from podeval.systems.speech import Kind, Samples, SpeechFailed, Voice

RATE = 24000
"""Common sampling rate in Hz: hibari's own; Piper's 22050 Hz are resampled."""

_PACKAGES = {"hibari": "hibari-tts", "piper": "piper-tts", "onnxruntime": "onnxruntime"}
_INSTALL_PACKAGES = "pip install podeval[baselines]"
_HIBARI_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
_HIBARI, _PIPER = 0, 1


class HibariPiper(DialogueReader):
    """A good, small, two-voice baseline for English: the first speaker is hibari, the second Piper's joe."""

    name: ClassVar[str] = "hibari_piper"
    description: ClassVar[str] = "hibari (female) and Piper joe (male): a small neural baseline"
    licence: ClassVar[str] = "Apache-2.0 (hibari), GPL-3.0-or-later (Piper), CC0-1.0 (joe)"
    kind: ClassVar[Kind] = "model"
    longest_line: ClassVar[int | None] = 300  # both attend over the whole line: cost and slips grow with its length

    def __init__(self, *, threads: int | None = None) -> None:
        """Choose how many processors to use; nothing is loaded yet.

        Args:
            threads: threads of onnxruntime; None reads PODEVAL_THREADS, else 1.
        """
        self.threads = threads or threads_allowed(1)
        self._hibari: Any = None
        self._piper: Any = None

    @property
    def languages(self) -> tuple[str, ...]:
        """English only."""
        return ("en",)

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
            "piper": piper_voice.MANNER,
            "rate": RATE,
            "strategy": "chunked",
            "chunk": f"sentence, at most {self.longest_line} characters",
            **self.assembly(),
        }

    def available(self) -> str | None:
        """Return None where both packages and joe's weights are there, else what is missing and its command."""
        missing = [package for module, package in _PACKAGES.items() if util.find_spec(module) is None]
        if missing:
            return f"{self.name} needs {' and '.join(missing)}; install with `{_INSTALL_PACKAGES}`"
        try:
            weights.folder(JOE)
        except ModelMissing as absent:
            return f"{self.name} needs the voice joe: {absent}"
        return None

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        voices = {line.voice for line in lines}
        hibari = self._load_hibari() if _HIBARI in voices else None
        piper = self._load_piper() if _PIPER in voices else None
        loaded = time.perf_counter()
        sounds = [
            _hibari_says(hibari, line, [seed, number]) if line.voice == _HIBARI else piper_voice.say(piper, line, RATE)
            for number, line in enumerate(lines)
        ]
        return SynthesisedLines(
            lines=sounds,
            rate=RATE,
            wall_seconds=time.perf_counter() - loaded,
            load_seconds=loaded - begin,
            details={
                **{package: metadata.version(package) for package in _PACKAGES.values()},
                "voices": {str(voice): self.voices[voice].name for voice in sorted(voices)},
                "threads": self.threads,
            },
        )

    def _load_hibari(self) -> Any:
        if self._hibari is None:
            from hibari import Hibari
            from hibari.voices import voice_path

            model = Path(voice_path("heart", download_missing=False))
            weights.verify(model, _HIBARI_SHA256, _INSTALL_PACKAGES)
            hibari = Hibari(model=str(model), threads=self.threads)
            hibari.phonemize("Ready.")  # its dictionaries are loaded with the first word
            self._hibari = hibari
        return self._hibari

    def _load_piper(self) -> Any:
        if self._piper is None:
            self._piper = piper_voice.load(JOE, self.threads)
        return self._piper


def _hibari_says(hibari: Any, line: SpokenLine, seed: list[int]) -> Samples:
    try:
        return np.asarray(hibari(line.text, speed=line.speed, seed=seed), np.float32)
    except Exception as broken:  # third-party G2P: any error there is the engine's, and must name its line
        what = f"{type(broken).__name__}: {broken}"
        raise SpeechFailed(
            f"hibari could not say turn {line.turn + 1} of the script ({what}): {line.text:.80}"
        ) from broken
