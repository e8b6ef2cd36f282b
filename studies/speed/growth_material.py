"""The material for `growth.py`: clips of 9 s and files of hours, all made from the baseline's speech.

podeval's baseline reads short dialogues from the scripts of Real-Pod once, and they are stored in a folder. A clip is
one of these dialogues with its own gain and leading silence, so no two files are the same, and nothing derived from one
is found for another. A file of hours contains the same dialogues one after another; in each repetition, everyone speaks
at another rate, like another person.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import soxr

from podeval import benchmarks
from podeval.systems.hibari_piper import HibariPiper
from podeval.text.script import Script

RATE = 16_000
SECONDS = 9.0
DIALOGUES = 60
"""Number of different dialogues."""

_WORDS = 10
"""Number of words in a turn; two turns of ten words last about 8 s."""

_SILENCE_STEP = 0.01
_SPEEDS = (1.0, 1.06, 0.94, 1.03, 0.97, 1.09, 0.91)
"""Speeds in a long file, by the number of earlier repetitions of the dialogues."""

_GAP_SECONDS = 0.5


@dataclass(frozen=True)
class Dialogue:
    """Two turns as read, at 16 kHz, with the times of the speakers."""

    samples: np.ndarray
    script: Script
    turns: tuple[tuple[str, float, float], ...]


def write_dialogues(folder: Path) -> None:
    """Have the baseline read the dialogues, unless they exist already."""
    if (folder / "dialogues.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    said = [
        turn.text.split()
        for item in benchmarks.get("real_pod").items("topics")
        if item.script is not None and item.language == "en"
        for turn in item.script.turns
    ]
    long_enough = [" ".join(words[:_WORDS]) for words in said if len(words) >= _WORDS]
    voice, lines = HibariPiper(), []
    for number in range(DIALOGUES):
        turns = [{"speaker": f"Speaker{1 + n}", "text": long_enough[2 * number + n]} for n in (0, 1)]
        speech = voice.speak(Script.parse(turns))
        samples = soxr.resample(np.squeeze(speech.samples), speech.rate, RATE)
        soundfile.write(folder / f"{number:02}.wav", samples, RATE)
        lines.append({"script": turns, "turns": [[turn.speaker, turn.start, turn.end] for turn in speech.turns]})
    (folder / "dialogues.json").write_text(json.dumps(lines), encoding="utf-8")


@cache
def read_dialogues(folder: Path) -> tuple[Dialogue, ...]:
    """Read the dialogues that `write_dialogues` wrote."""
    lines = json.loads((folder / "dialogues.json").read_text(encoding="utf-8"))
    return tuple(
        Dialogue(
            soundfile.read(folder / f"{number:02}.wav", dtype="float32")[0],
            Script.parse(line["script"]),
            tuple((str(who), float(start), float(end)) for who, start, end in line["turns"]),
        )
        for number, line in enumerate(lines)
    )


def write_clip(folder: Path, number: int, path: Path, seconds: float = SECONDS) -> Dialogue:
    """Write the clip with this number in 16 bits; return its dialogue."""
    dialogues = read_dialogues(folder)
    dialogue, again = dialogues[number % len(dialogues)], number // len(dialogues)
    samples = np.zeros(round(seconds * RATE), dtype=np.float32)
    start = round(again % 40 * _SILENCE_STEP * RATE)
    voice = dialogue.samples[: len(samples) - start]
    samples[start : start + len(voice)] = voice * (1 - 0.7 * again / (1 + again))
    soundfile.write(path, samples, RATE, subtype="PCM_16")
    return dialogue


def write_hours(folder: Path, path: Path, minutes: float) -> str:
    """Write a file of this many minutes; return its words."""
    left, words = round(minutes * 60 * RATE), []
    with soundfile.SoundFile(path, "w", RATE, channels=1, subtype="PCM_16") as file:
        for text, samples in _read_on(read_dialogues(folder)):
            file.write(samples[:left])
            words.append(text)
            left -= len(samples)
            if left <= 0:
                return "\n".join(words)
    raise AssertionError("the dialogues never end")


def _read_on(dialogues: tuple[Dialogue, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the words and the sound of one dialogue after another, without end."""
    again, gap = 0, np.zeros(round(_GAP_SECONDS * RATE), dtype=np.float32)
    while True:
        speed = _SPEEDS[again % len(_SPEEDS)] * (1 + 0.002 * (again // len(_SPEEDS)))
        for dialogue in dialogues:
            spoken = soxr.resample(dialogue.samples, RATE * speed, RATE)
            yield dialogue.script.text, np.concatenate([spoken, gap]).astype(np.float32)
        again += 1
