"""The neural baseline, with hibari's female voice and Piper's `joe`, and Piper on its own; all fit on a laptop.

Both are deterministic. Hibari draws its noise from a given generator; every line gets its own generator, derived from
the seed and the line's position. Piper draws inside the ONNX graph, from a generator that continues from call to call
and cannot be seeded; it therefore speaks without noise, and its speech does not depend on earlier speech.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from podeval.audio.samples import resample
from podeval.models import weights
from podeval.models.exported import open_session
from podeval.systems.dialogue_reader import INSTALL_PACKAGES, SpokenLine, cut_silence, describe_chunks
from podeval.systems.engines import OnnxReader, name_broken_line
from podeval.systems.speech import Samples

# Piper with two voices of its own: kristin (female) and joe (male). Piper draws inside the ONNX graph, from a generator
# that continues from call to call and cannot be seeded; it therefore speaks without noise, so a line does not depend on
# earlier lines. Of Piper's voices, only joe is in a package. Kristin is fetched from the publisher's repo on the Hub,
# pinned by its SHA-256: if the Hub cannot be reached, the system is skipped with the installer's message.

JOE, KRISTIN = "piper-joe", "piper-kristin"
"""Names of the voices' weights in the lock file."""

MANNER = {"noise_scale": 0.0, "length_scale": 1.0, "noise_w_scale": 0.0}
"""Settings of the voice, for `generation`."""


def load_voice(voice: str, threads: int) -> Any:
    """Load a voice whose weights are installed.

    Raises:
        ModelMissing: the weights are not installed.
    """
    from piper import PiperConfig, PiperVoice

    folder = weights.locate_weights(voice)
    model = next(folder / file.to for file in weights.lock()[voice].files if file.to.endswith(".onnx"))
    config = PiperConfig.from_dict(json.loads(model.with_name(f"{model.name}.json").read_text("utf-8")))
    return PiperVoice(session=open_session(str(model), threads), config=config)


def say_line(voice: Any, line: SpokenLine, rate: int) -> Samples:
    """Return a spoken line, shape (frames,), at `rate` Hz; empty if the line contains no sound.

    Raises:
        SpeechFailed: Piper failed.
    """
    from piper import SynthesisConfig

    # Piper's own normalisation would raise every sentence to full scale, whispers and shouts alike.
    manner = SynthesisConfig(
        noise_scale=MANNER["noise_scale"],
        length_scale=MANNER["length_scale"] / line.speed,
        noise_w_scale=MANNER["noise_w_scale"],
        normalize_audio=False,
    )
    with name_broken_line("Piper", line):
        parts = [np.asarray(part.audio_float_array, np.float32) for part in voice.synthesize(line.text, manner)]
    if not parts:
        return np.zeros(0, np.float32)
    native = voice.config.sample_rate
    return resample(cut_silence(np.concatenate(parts), native), native, rate)


VOICES = (KRISTIN, JOE)
"""Names of the voices' weights in the lock file, in the order in which voices are assigned to speakers."""


class Piper(OnnxReader):
    """Two American voices from two networks; the first speaker in a script gets kristin, the second joe."""

    name: ClassVar[str] = "piper"
    voices: ClassVar[tuple[str, ...]] = VOICES
    longest_line: ClassVar[int | None] = 300
    packages: ClassVar[Mapping[str, str]] = {"piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = VOICES
    rate: ClassVar[int] = 22_050

    @property
    def generation(self) -> dict[str, Any]:
        """Weights, noise and assembly."""
        return {
            "system": self.name,
            "voices": list(VOICES),
            "weights": {file.to: file.sha256 for voice in VOICES for file in weights.lock()[voice].files},
            "piper": MANNER,
            "rate": self.rate,
            **describe_chunks(self.longest_line),
        }

    def _load(self, voice: int) -> Any:
        return load_voice(VOICES[voice], self.threads)

    def _say_line(self, network: Any, line: SpokenLine, seed: list[int]) -> Samples:
        return say_line(network, line, self.rate)


_HIBARI_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
_HIBARI = 0
"""Number of hibari's voice; the other voice is Piper's."""


class HibariPiper(OnnxReader):
    """A good, small, two-voice baseline for English: the first speaker gets hibari, the second Piper's joe."""

    name: ClassVar[str] = "hibari_piper"
    voices: ClassVar[tuple[str, ...]] = ("hibari-heart", "piper-joe")
    longest_line: ClassVar[int | None] = 300  # attention spans the whole line: long lines take longer, with more errors
    packages: ClassVar[Mapping[str, str]] = {"hibari": "hibari-tts", "piper": "piper-tts", "onnxruntime": "onnxruntime"}
    weight_names: ClassVar[tuple[str, ...]] = (JOE,)
    rate: ClassVar[int] = 24_000  # hibari's own rate; Piper's 22,050 Hz is resampled

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
