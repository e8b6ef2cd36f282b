"""SVOX Pico, a small statistical synthesiser from early Android phones: plain, quick, and clearer than formant voices.

The package `py-nanotts` contains the engine and its voices. The engine is written in C, keeps its state from line to
line, and never finishes some texts, so each script is spoken in a child process; if that process crashes, nothing else
is affected. Identical scripts give identical samples, regardless of the seed, as long as the package is in the same
folder; from another folder, the engine says some lines a little slower or faster.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from podeval.systems.dialogue_reader import SpokenLine, describe_chunks
from podeval.systems.engines import WorkerReader
from podeval.systems.speech_worker import PICO_RATE

_VOLUME = 0.7
"""Volume; at the default of 1, the engine clips."""
_SPEEDS = (0.2, 5.0)


class Pico(WorkerReader):
    """Two female voices; the first speaker in a script is American, the second British."""

    name: ClassVar[str] = "pico"
    voices: ClassVar[tuple[str, ...]] = ("en-US", "en-GB")
    longest_line: ClassVar[int | None] = 300
    engine: ClassVar[str] = "SVOX Pico"
    packages: ClassVar[Mapping[str, str]] = {"py_nanotts": "py-nanotts"}

    @property
    def generation(self) -> dict[str, Any]:
        """Voices, level and assembly."""
        return {
            "system": self.name,
            "engine": self.engine,
            "voices": list(self.voices),
            "volume": _VOLUME,
            "rate": PICO_RATE,
            **describe_chunks(self.longest_line),
        }

    def _prepare(
        self, lines: Sequence[SpokenLine], language: str, folder: Path
    ) -> tuple[dict[str, Any], list[str], Sequence[str]]:
        spoken = [
            [self.voices[line.voice], min(max(line.speed, _SPEEDS[0]), _SPEEDS[1]), _plain(line.text)] for line in lines
        ]
        return {"volume": _VOLUME, "lines": spoken}, [str(folder.parent)], self.voices


def _plain(text: str) -> str:
    """Remove characters that the engine would read as markup, and characters that end a string in C."""
    return text.translate(dict.fromkeys(map(ord, "<>\0"), " "))
