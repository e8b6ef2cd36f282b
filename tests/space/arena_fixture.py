"""An arena with real speech, served by the real program: made in a folder of runs, started, killed, started again."""

import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from podeval.arena import Arena, Ballot
from podeval.arena.manifest import (
    ItemEntry,
    Manifest,
    ManifestTurn,
    OutputEntry,
    SystemEntry,
    add,
)
from podeval.store.database import Database
from podeval.store.tables import Battle
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script
from tests.fakes.small_arena import fetch
from tests.space.pages_fixture import SPACE, build_pages

HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>{{7*7}}"
SYSTEMS = {
    "muted-one": SystemEntry(id="muted-one", title=f"Quiet {HOSTILE}"),
    "strong-one": SystemEntry(id="strong-one", title="=Loud voice & co"),
    "anchor-one": SystemEntry(id="anchor-one", title="eSpeak anchor", kind="control"),
}
RATE = 22_050
LEVELS = {"muted-one": 0.1, "strong-one": 0.7, "anchor-one": 0.4}
RATES = {"muted-one": 24_000, "strong-one": 44_100, "anchor-one": 16_000}
LINES = (
    "Good morning.",
    "Good night.",
    "Not today.",
    "Tell me more.",
    "Very well.",
    "Come in.",
    "So it is.",
    "Who knows?",
)


def fill(database: Path, folder: Path, *, items: int = len(LINES)) -> None:
    """Three systems that say one short line on each item, at different levels and rates, tagged with who they are."""
    folder.mkdir(parents=True, exist_ok=True)
    said = _speech(items)
    outputs, entries = [], []
    for number in range(items):
        dimension = "semantic" if number % 2 == 0 else HOSTILE
        prompt = folder / f"asked-{number}.wav"
        sf.write(prompt, said[number], RATE)
        entries.append(
            ItemEntry(
                id=f"i{number}",
                dimension=dimension,
                title=f"Greeting {number} {HOSTILE}",
                instructions=f"Which is the better answer? {HOSTILE}",
                turns=[ManifestTurn(text=f"{LINES[number]} {HOSTILE}", audio=str(prompt))],
                language="en",
            )
        )
        outputs += [_output(folder, system, f"i{number}", said[number]) for system in SYSTEMS]
    with Database(database) as opened:
        add(opened, Manifest(systems=list(SYSTEMS.values()), items=entries, outputs=outputs))


def fill_long(database: Path, folder: Path, seconds: int = 5) -> None:
    """Long items, of which excerpts are heard: so many that who judged two pairs has not judged all."""
    folder.mkdir(parents=True, exist_ok=True)
    speech = np.resize(_speech(1)[0], seconds * RATE)
    with Database(database) as opened:
        items = [ItemEntry(id=f"long-{number}", dimension="long form") for number in range(3)]
        outputs = [_output(folder, name, item.id, speech) for item in items for name in SYSTEMS]
        add(opened, Manifest(items=items, outputs=outputs))


def cast_vote(arena: Arena, name: str, outcome: str = "a") -> str:
    """The id of a vote of somebody who had all the time to hear both sides."""
    voter = arena.voter(name)
    view = arena.serve(voter)
    with arena.database.writing() as session:
        session.get_one(Battle, view.token.partition(".")[0]).served_at -= timedelta(days=365)
    fetch(arena, view)
    heard = {"played_a": [(0.0, view.a.seconds)], "played_b": [(0.0, view.b.seconds)]}
    ballot = Ballot(id=view.token[:32], token=view.token, outcome=outcome, **heard)  # type: ignore[arg-type]
    return str(arena.vote(voter, ballot).vote)


def _speech(lines: int) -> list[np.ndarray]:
    system = EspeakNg()
    if reason := system.available():
        pytest.skip(reason)
    speech = system.speak(Script.parse([{"speaker": "A", "text": line} for line in LINES[:lines]]))
    assert speech.rate == RATE
    sound = speech.samples.mean(axis=1)
    # A battle lasts whole seconds: what is a little longer than one would be heard for two.
    return [sound[round(turn.start * RATE) : round(min(turn.end, turn.start + 0.95) * RATE)] for turn in speech.turns]


def _output(folder: Path, system: str, item: str, samples: np.ndarray) -> OutputEntry:
    file = folder / f"{system}-{item}.flac"
    rate = RATES[system]
    sound = np.interp(np.arange(0, len(samples) / RATE, 1 / rate), np.arange(len(samples)) / RATE, samples)
    with sf.SoundFile(file, "w", rate, 1, format="FLAC") as written:
        written.title = f"made by {system}"
        written.write(LEVELS[system] * sound / np.abs(sound).max())
    return OutputEntry(system=system, item=item, audio=str(file))


def quick(times: float) -> str:
    """A script for a page whose recordings then play so many times as fast."""
    return f"""
      const Made = window.Audio;
      window.Audio = function (...content) {{
        const made = new Made(...content);
        made.defaultPlaybackRate = made.playbackRate = {times};
        return made;
      }};
    """


@dataclass
class Site:
    """The program `space/app.py` in a process of its own, local mode, on a database that outlives it.

    `python` starts it: see tests/fakes/warm_python.py.
    """

    runs: Path
    python: Any
    port: int = 0
    process: Any = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        return self.runs / "podeval.db"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "Site":
        """Start it, or start it again at the same address; it answers when this returns."""
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        environment = {
            "PODEVAL_RUNS": str(self.runs),
            "GRADIO_SERVER_NAME": "127.0.0.1",
            "GRADIO_SERVER_PORT": str(self.port),
            "DATABASE_URL": "",
            **self.environment,
        }
        program = f"import runpy; runpy.run_path({str(SPACE / 'app.py')!r}, run_name='__main__')"
        self.process = self.python.start(program, self.runs / "site.log", environment=environment)
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.address}/arena/ratings.json", timeout=60).close()
                return self
            except OSError:
                assert self.process.poll() is None, (self.runs / "site.log").read_text()
                time.sleep(0.02)
        raise AssertionError((self.runs / "site.log").read_text())

    def kill(self) -> None:
        """As a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()


def site_without_board(runs: Path, arena: Arena, mode: str = "", closed: str | None = None, tabs: bool = False) -> Any:
    """The site's own pages over an arena, without the board; see `build_pages`."""
    from pages import arena as page
    from services import Services

    services = Services(runs, arena.database, arena, closed)
    return build_pages(services, page, mode=mode, tabs=tabs)
