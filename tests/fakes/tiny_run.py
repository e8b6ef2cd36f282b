"""A tiny benchmark and a system that sings; as a program, the real command line with both of them in it.

What goes wrong is asked for by environment variables, which worker processes inherit:
    TINY_SPOKEN     file that gets a line each time the system speaks: the process and the words
    TINY_SPEAKING   seconds that speaking an item takes
    TINY_MEASURED   file that gets a line each time the metric `trouble` measures
    TINY_KILL       item whose measuring kills its process, `once` or `always` after a colon
    TINY_SLOW       seconds that measuring an item takes
    TINY_FAIL       text that the system cannot speak
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from podeval import benchmarks
from podeval.benchmarks import records
from podeval.benchmarks.benchmark import Benchmark
from podeval.metrics import catalogue
from podeval.metrics.catalogue import metric
from podeval.metrics.facts import Key
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.systems import registry as systems
from podeval.systems.speech import Kind, SpeakingSystem, Speech, SpeechFailed, SpokenTurn
from podeval.text.script import Script

ITEMS = ("one", "two", "three")
_FILE = "tiny_for_tests.json"
_DATA = json.dumps(
    {
        "licence": "CC0-1.0",
        "attribution": "made for tests",
        "items": [
            {
                "id": item,
                "topic": item,
                "category": "Arts",
                "language": "en",
                "voices": 2,
                "script": [{"speaker": "A", "text": f"Number {item}."}, {"speaker": "B", "text": "Indeed."}],
            }
            for item in ITEMS
        ],
    }
).encode()
_path = records.locate_data
_KEPT: Any = SimpleNamespace(read_bytes=lambda: _DATA)
records.locate_data = lambda file: _KEPT if file == _FILE else _path(file)

BENCHMARK = Benchmark.model_validate(
    {
        **benchmarks.get("real_pod").model_dump(),
        "name": "tiny",
        "title": "Tiny",
        "tracks": [{"name": "voice", "title": "Voice", "task": "Speak the script, whatever it says."}],
        "splits": [
            {
                "name": "demo",
                "description": "Three items of a second each.",
                "file": _FILE,
                "revision": f"sha256:{hashlib.sha256(_DATA).hexdigest()}",
                "tracks": ["voice"],
                "licence": "CC0-1.0",
            }
        ],
        "dimensions": [
            {
                "name": "audio",
                "title": "Audio",
                "description": "Whether it can be measured at all.",
                "tracks": ["voice"],
                "metrics": [{"name": "loudness", "keys": ["integrated"]}, {"name": "trouble", "keys": ["trouble"]}],
                "main": "loudness.integrated",
                "needs_accurate_speech": False,
            }
        ],
        "breakdowns": [],
        "aggregation": {"cluster": "id"},
    }
)


@metric(
    name="trouble",
    title="Trouble",
    version="1.0",
    dimension="audio.trouble",
    keys=(Key("trouble", "higher"),),
    paper="none",
)
def trouble(recording: Recording) -> Score:
    """The level, unless something happens."""
    _note("TINY_MEASURED", recording.name)
    time.sleep(float(os.environ.get("TINY_SLOW", "0")))
    item, _, how = os.environ.get("TINY_KILL", "").partition(":")
    if item and Path(recording.name).stem == item:
        first = not Path(os.environ["TINY_FLAG"]).exists()
        Path(os.environ["TINY_FLAG"]).touch()
        if how == "always" or first:
            os.kill(os.getpid(), signal.SIGKILL)
    return Score({"trouble": round(float(np.abs(recording.samples).mean()), 6)})


class Singer(SpeakingSystem):
    """A second of tone whose pitch follows the words."""

    name: ClassVar[str] = "singer"
    kind: ClassVar[Kind] = "model"
    pitch = 200

    @property
    def generation(self) -> dict[str, Any]:
        return {"pitch": self.pitch, "range": (0, 1)}

    def available(self) -> str | None:
        return os.environ.get("TINY_ABSENT")

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        _note("TINY_SPOKEN", f"{os.getpid()} {script.text}")
        time.sleep(float(os.environ.get("TINY_SPEAKING", "0")))
        if (refused := os.environ.get("TINY_FAIL")) and refused in script.text:
            raise SpeechFailed("the singer has lost its voice")
        time_line = np.arange(16_000) / 16_000
        tone = 0.3 * np.sin(2 * np.pi * (self.pitch + len(script.text)) * time_line)
        turns = (
            SpokenTurn(speaker="A", start=0.0, end=0.5, text=script.turns[0].text),
            SpokenTurn(speaker="B", start=0.5, end=1.0, text=script.turns[1].text),
        )
        return Speech(tone.astype(np.float32)[:, None], 16_000, turns, wall_seconds=0.01)


def _note(variable: str, line: str) -> None:
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line.replace("\n", " ") + "\n")


def settle_in() -> None:
    """Make podeval know the benchmark, the metric and the system, in this process and in its workers."""
    benchmarks.find_all()["tiny"] = BENCHMARK
    if "trouble" not in catalogue.NAMES:
        catalogue.NAMES = (*catalogue.NAMES, "trouble")  # type: ignore[assignment]
    systems.SYSTEMS["singer"] = Singer
    systems.NAMES = tuple(systems.SYSTEMS)


# Worker processes import this program's file under another name, and need the same.
if __name__ in ("__main__", "__mp_main__"):
    settle_in()
if __name__ == "__main__":
    from podeval.board import build
    from podeval.cli import main

    # The board of a tiny run leaves out the papers' figures, whose reading takes longer than all the rest of it.
    build.locate_hub_source = lambda name: Path(os.devnull)
    sys.argv[0] = "podeval"
    main()
