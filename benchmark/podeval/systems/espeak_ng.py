"""espeak-ng, the formant synthesiser that PodEval uses as its low anchor: intelligible, but clearly a machine.

It does not need weights: the package `espeakng-loader` contains the library and its data. The library is written in C
and has global state, so each script is spoken in a child process; if that process crashes, nothing else is affected.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from podeval.systems.dialogue_reader import SpokenLine, describe_chunks
from podeval.systems.engines import WorkerReader

# Voices are given by file and pitch, because `en-gb` and similar names are not found in the packaged data.
_VOICES = {
    "en": (
        ("gmw/en-US", 50),  # American, low
        ("gmw/en+f3", 50),  # British, high
        ("gmw/en-US+m7", 70),  # American, middle
        ("gmw/en-US+f1", 40),  # American, upper middle
        ("gmw/en-GB-x-rp+m3", 25),  # British, very low
        ("gmw/en-US+f4", 80),  # American, very high
    ),
    "zh": (
        ("sit/cmn", 50),
        ("sit/cmn+f3", 60),
        ("sit/cmn+m7", 70),
        ("sit/cmn+f1", 40),
        ("sit/cmn+m3", 25),
        ("sit/cmn+f4", 80),
    ),
}
_LABELS = {language: tuple(f"{file}:{pitch}" for file, pitch in voices) for language, voices in _VOICES.items()}

_WORDS_PER_MINUTE = 175
"""The engine's default speaking rate."""
_VOLUME = 80
"""Volume; at the default of 100, some voices clip."""
_VOLUME_PARAMETER = 2  # espeakVOLUME


class EspeakNg(WorkerReader):
    """The low anchor for English and Mandarin: two clearly different voices, and four voices of other variants and
    pitches.
    """

    name: ClassVar[str] = "espeak_ng"
    languages: ClassVar[tuple[str, ...]] = tuple(_VOICES)
    voices: ClassVar[tuple[str, ...]] = _LABELS["en"]
    engine: ClassVar[str] = "espeak-ng"
    packages: ClassVar[Mapping[str, str]] = {"espeakng_loader": "espeakng-loader"}

    @property
    def generation(self) -> dict[str, Any]:
        """The voices, pitch, pace, volume and assembly."""
        return {
            "system": self.name,
            "engine": self.engine,
            "voices": {language: list(labels) for language, labels in _LABELS.items()},
            "words_per_minute": _WORDS_PER_MINUTE,
            "volume": _VOLUME,
            **describe_chunks(self.longest_line),
        }

    def _prepare(
        self, lines: Sequence[SpokenLine], language: str, folder: Path
    ) -> tuple[dict[str, Any], list[str], Sequence[str]]:
        spoken = [[*_VOICES[language][line.voice], round(_WORDS_PER_MINUTE * line.speed), line.text] for line in lines]
        library = {"win32": "espeak-ng.dll", "darwin": "libespeak-ng.dylib"}.get(sys.platform, "libespeak-ng.so")
        files = [str(folder / library), str(folder / "espeak-ng-data")]
        return {"parameters": [[_VOLUME_PARAMETER, _VOLUME]], "lines": spoken}, files, _LABELS[language]
