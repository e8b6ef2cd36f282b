"""espeak-ng, the formant synthesiser that PodEval uses as its low anchor: intelligible, plainly a machine.

It needs no weights: the package `espeakng-loader` brings the library and its data. The library is C with global
state, so that each script is spoken in a child process, whose end ends nothing else.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any, ClassVar

from podeval.systems import espeak_worker
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.speech import Kind, Voice
from podeval.systems.worker_process import read_records, run_worker

_LICENCE = "GPL-3.0-or-later"
_VOLUME_PARAMETER = 2  # espeakVOLUME


@dataclass(frozen=True)
class _Setting:
    """A voice by its file, for `en-gb` and its like are not found by name in the packaged data."""

    file: str
    pitch: int
    description: str


_VOICES = {
    "en": (
        _Setting("gmw/en-US", 50, "American, low"),
        _Setting("gmw/en+f3", 50, "British, high"),
        _Setting("gmw/en-US+m7", 70, "American, middle"),
        _Setting("gmw/en-US+f1", 40, "American, upper middle"),
        _Setting("gmw/en-GB-x-rp+m3", 25, "British, very low"),
        _Setting("gmw/en-US+f4", 80, "American, very high"),
    ),
    "zh": (
        _Setting("sit/cmn", 50, "Mandarin, low"),
        _Setting("sit/cmn+f3", 60, "Mandarin, high"),
        _Setting("sit/cmn+m7", 70, "Mandarin, middle"),
        _Setting("sit/cmn+f1", 40, "Mandarin, upper middle"),
        _Setting("sit/cmn+m3", 25, "Mandarin, very low"),
        _Setting("sit/cmn+f4", 80, "Mandarin, very high"),
    ),
}


class EspeakNg(DialogueReader):
    """The low anchor: two clearly different voices, four more by variant and pitch; English and Mandarin."""

    name: ClassVar[str] = "espeak_ng"
    description: ClassVar[str] = "espeak-ng, a formant synthesiser: the robotic low anchor of PodEval"
    licence: ClassVar[str] = _LICENCE
    kind: ClassVar[Kind] = "model"

    def __init__(self, *, words_per_minute: int = 175, volume: int = 80) -> None:
        """Choose pace and volume.

        Args:
            words_per_minute: espeak's rate; 175 is its own default.
            volume: 0..200; some voices clip at espeak's default of 100.
        """
        self._words_per_minute = words_per_minute
        self._volume = volume

    @property
    def languages(self) -> tuple[str, ...]:
        """English and Mandarin Chinese."""
        return tuple(_VOICES)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The English voices; a Chinese script gets as many Mandarin ones."""
        return tuple(Voice(_label(setting), setting.description, _LICENCE) for setting in _VOICES["en"])

    @property
    def generation(self) -> dict[str, Any]:
        """Voices, pitch, pace, volume and assembly."""
        return {
            "system": self.name,
            "engine": "espeak-ng",
            "voices": {language: [_label(setting) for setting in settings] for language, settings in _VOICES.items()},
            "words_per_minute": self._words_per_minute,
            "volume": self._volume,
            "strategy": "chunked",
            "chunk": "turn",
            **self.assembly(),
        }

    def available(self) -> str | None:
        """Return None where the packaged library is installed, else the command that brings it."""
        if _package() is None:
            return "espeak_ng needs the package espeakng-loader; install it with `pip install 'podeval[baselines]'`"
        return None

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        settings = _VOICES[language]
        job = {
            "seed": seed,
            "parameters": [[_VOLUME_PARAMETER, self._volume]],
            "lines": [
                [
                    settings[line.voice].file,
                    settings[line.voice].pitch,
                    round(self._words_per_minute * line.speed),
                    line.text,
                ]
                for line in lines
            ],
        }
        output = run_worker(
            "espeak-ng", espeak_worker.__file__, _list_files(), job, sum(len(line.text) for line in lines)
        )
        _, rate = espeak_worker.HEAD.unpack_from(output)
        sounds, synthesis = read_records(output, len(lines), espeak_worker.HEAD, espeak_worker.HEAD.size)
        return SynthesisedLines(
            lines=sounds,
            rate=int(rate),
            wall_seconds=synthesis,
            load_seconds=time.perf_counter() - begin - synthesis,
            details={
                "espeakng-loader": metadata.version("espeakng-loader"),
                "voices": {str(voice): _label(settings[voice]) for voice in sorted({line.voice for line in lines})},
            },
        )


def _label(setting: _Setting) -> str:
    return f"{setting.file}:{setting.pitch}"


def _package() -> Path | None:
    """Find the folder of `espeakng_loader` without importing it."""
    spec = util.find_spec("espeakng_loader")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _list_files() -> list[str]:
    """List the library and the folder of its data, as the worker takes them."""
    folder = _package()
    assert folder is not None, "checked by require()"
    library = {"win32": "espeak-ng.dll", "darwin": "libespeak-ng.dylib"}.get(sys.platform, "libespeak-ng.so")
    return [str(folder / library), str(folder / "espeak-ng-data")]
