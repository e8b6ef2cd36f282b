"""Listening tests of every kind on short espeak clips, in the database of a folder of runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from podeval.listening import Listening
from podeval.listening.designs import read_design
from podeval.store.database import Database
from podeval.store.tables import ListeningSession
from podeval.systems.espeak_ng import EspeakNg
from podeval.text.script import Script
from tests.space.arena_fixture import HOSTILE

SYSTEMS = ("aria", f"basso {HOSTILE[:40]}")
LINES = (
    "Well, I did not expect to see you here tonight, did you?",
    "The train leaves at seven, and nobody has told the others.",
    "Come in, sit down, and tell me how it went after all.",
    "We could try again tomorrow when the weather is better.",
    "This is the voice of a machine, and it knows no better.",
)


PANEL = {"code": "C1A2B3C4", "screened_out": "C9Z8Y7X6", "panel": "prolific", "seconds": 5}


def fill(database: Path, folder: Path) -> None:
    """A test of each kind; recordings lie in `folder/clips`, and the designs name them relative to `folder`."""
    names = _clips(folder / "clips")
    clip = [{"audio": f"clips/{name}"} for name in names]
    aria, basso = SYSTEMS
    both = {aria: clip[0], basso: clip[1]}
    known = {system: {**heard, "speakers": 1, "music": False} for system, heard in both.items()}
    texts = {aria: {"text": f"One {HOSTILE}"}, basso: {"text": "Two\n\nwords"}}
    anchors = {"reference": clip[2], "high": clip[3], "low": clip[4]}
    title = f"Talk {HOSTILE}"[:100]
    criteria = [f"It answers. {HOSTILE}", "It is clear."]
    prompt = f"Say something {HOSTILE}"
    _create(
        database,
        ("mushra", {"heard": 0.9, "title": title, "consent": prompt}, [("Arts", {**anchors, "stimuli": both})]),
        ("questionnaire", {}, [(title, {"stimuli": known, "prompt": prompt})]),
        ("rubric", {"heard": 0.5}, [("i0", {"stimuli": both, "criteria": criteria, "prompt": prompt})]),
        ("mos", {"scales": ["timbre", "fidelity"]}, [("i0", {"stimuli": both, "prompt_audio": clip[2]})]),
        ("preference", {"aspect": f"Which is warmer? {HOSTILE}"}, [("i0", {"stimuli": both})]),
        ("text_preference", {}, [("i0", {"stimuli": texts}), ("i1", {"stimuli": texts})]),
        ("abx", {"headphone_check": {"failed": "end"}, "completion": PANEL}, [("i0", {"stimuli": both})]),
        mushra_items=("Arts", "Science"),
    )
    _panel(database, {**anchors, "stimuli": both})


def _create(database: Path, *tests: tuple[str, dict[str, Any], list[tuple[str, Any]]], mushra_items: Any) -> None:
    with Database(database) as opened:
        service = Listening(opened)
        for kind, more, items in tests:
            named = [(name, items[0][1]) for name in mushra_items] if kind == "mushra" else items
            content = {"kind": kind, "id": kind, "title": kind, "systems": list(SYSTEMS), **more, "listeners": 4}
            service.create(read_design({**content, "items": [{"id": name, **item} for name, item in named]}))


def _panel(database: Path, item: dict[str, Any]) -> None:
    """A MUSHRA test that two careful listeners finished, and one who marked all alike."""
    marks = {SYSTEMS[0]: 70, SYSTEMS[1]: 40, "HQ": 95, "LQ": 3}
    items = [{"id": name, **item} for name in ("Arts", "Science")]
    content = {"kind": "mushra", "id": "panel", "title": "Panel", "systems": list(SYSTEMS), "items": items}
    with Database(database) as opened:
        service = Listening(opened)
        service.create(read_design(content))
        for who in ("careful", "also careful", "alike"):
            begun = service.start("panel", who)
            for number in range(begun.pages):
                with opened.reading() as session:
                    page = session.get_one(ListeningSession, begun.session).pages[number]
                given = [50 if who == "alike" else marks[name] + number for name in page["stimuli"]]
                service.save(begun.session, number, dict(zip("ABCD", given, strict=True)), seconds=30)
            service.finish(begun.session)


def saved(database: Path, test: str) -> list[ListeningSession]:
    """The sessions of a test, as they are on the disk."""
    with Database(database) as opened, opened.reading() as session:
        return list(session.query(ListeningSession).filter_by(test=test).order_by(ListeningSession.place))


def _clips(folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    system = EspeakNg()
    if reason := system.available():
        pytest.skip(reason)
    speech = system.speak(Script.parse([{"speaker": "A", "text": line} for line in LINES]))
    sound = speech.samples.mean(axis=1)
    names = []
    for number, turn in enumerate(speech.turns):
        names.append(f"{number}.wav")
        cut = sound[round(turn.start * speech.rate) : round((turn.start + 1.0) * speech.rate)]
        sf.write(folder / names[-1], 0.5 * cut / np.abs(cut).max(), speech.rate)
    return names
