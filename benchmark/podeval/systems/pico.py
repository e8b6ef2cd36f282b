"""SVOX Pico, the small statistical synthesiser of early Android telephones: plain, quick, clearer than a formant voice.

The package `py-nanotts` brings the engine and its voices. The engine is C with state that runs on from line to line,
and some texts it never finishes; so each script is spoken in a child process, whose end ends nothing else.
Equal scripts give equal samples, whatever the seed.
"""

import time
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, ClassVar

from podeval.systems import pico_worker
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, SynthesisedLines
from podeval.systems.speech import Kind, Voice
from podeval.systems.worker_process import read_records, run_worker

RATE = 16_000
"""Hz of what it says."""

_LICENCE = "Apache-2.0"
_VOICES = {"en-US": "American, female", "en-GB": "British, female"}
_VOLUME = 0.7
"""At its own level of 1 it clips."""
_SPEEDS = (0.2, 5.0)


class Pico(DialogueReader):
    """Two voices, both of women; the first speaker of a script is American, the second British."""

    name: ClassVar[str] = "pico"
    description: ClassVar[str] = "SVOX Pico, the statistical voice of early Android: two women, quick and plain"
    licence: ClassVar[str] = _LICENCE
    kind: ClassVar[Kind] = "model"
    longest_line: ClassVar[int | None] = 300

    @property
    def languages(self) -> tuple[str, ...]:
        """English only."""
        return ("en",)

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The English voices that the package brings."""
        return tuple(Voice(f"pico-{name}", about, _LICENCE) for name, about in _VOICES.items())

    @property
    def generation(self) -> dict[str, Any]:
        """Voices, level and assembly."""
        return {
            "system": self.name,
            "engine": "SVOX Pico",
            "voices": list(_VOICES),
            "volume": _VOLUME,
            "rate": RATE,
            "strategy": "chunked",
            "chunk": f"sentence, at most {self.longest_line} characters",
            **self.assembly(),
        }

    def available(self) -> str | None:
        """Return None where the package is installed, else the command that brings it."""
        if _folder() is None:
            return "pico needs the package py-nanotts; install it with `pip install 'podeval[baselines]'`"
        return None

    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        begin = time.perf_counter()
        names = list(_VOICES)
        spoken = [
            [names[line.voice], min(max(line.speed, _SPEEDS[0]), _SPEEDS[1]), _plain(line.text)] for line in lines
        ]
        folder = _folder()
        assert folder is not None, "checked by require()"
        job = {"volume": _VOLUME, "lines": spoken}
        characters = sum(len(line.text) for line in lines)
        output = run_worker("SVOX Pico", pico_worker.__file__, [str(folder)], job, characters)
        sounds, synthesis = read_records(output, len(lines), pico_worker.HEAD)
        return SynthesisedLines(
            lines=sounds,
            rate=RATE,
            wall_seconds=synthesis,
            load_seconds=time.perf_counter() - begin - synthesis,
            details={
                "py-nanotts": metadata.version("py-nanotts"),
                "voices": {str(voice): names[voice] for voice in sorted({line.voice for line in lines})},
            },
        )


def _plain(text: str) -> str:
    """Take out what the engine would read as markup, and what ends a string in C."""
    return text.translate(dict.fromkeys(map(ord, "<>\0"), " "))


def _folder() -> Path | None:
    """Find the folder in which the package lies, without importing it."""
    spec = util.find_spec("py_nanotts")
    return Path(spec.origin).parents[1] if spec is not None and spec.origin else None
