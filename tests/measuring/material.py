"""The recordings whose result is a golden file: a dialogue by Hibari with Piper, clean and damaged, and by eSpeak."""

from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.text.script import Script

TURNS = [
    ("Maya", "Welcome back to Night Shift. Tonight we ask why a third of our lives disappears under a blanket."),
    ("Tom", "I wrote a book about sleep, and I still lie awake before every interview."),
    ("Maya", "So what happens in the brain when we finally drift off?"),
    ("Tom", "It cleans up. Fluid washes through the tissue and carries away what has gathered during the day."),
    ("Maya", "My grandmother said that an hour before midnight is worth two after it. Was she right?"),
    ("Tom", "Half right. The deepest sleep comes early in the night, whenever that night begins."),
    ("Maya", "And the famous eight hours? My neighbour swears that five are enough for him."),
    ("Tom", "Some people need nine, a few need six, and nearly all who boast about five are tired."),
    ("Maya", "Then we will all go to bed a little earlier tonight. Thank you for coming, Tom."),
    ("Tom", "Thank you for having me. Sleep well, everybody, and leave the telephone in the kitchen."),
]
SCRIPT = Script.parse([{"speaker": speaker, "text": text} for speaker, text in TURNS])
TWICE = 3
"""The turn whose first sentence is said again in the damaged recording."""
HOLE = 0.3
BED = 10 ** (-18 / 20)
"""Level of the music beside that of the voices."""


def make_recordings(folder: Path) -> dict[str, Path]:
    """Write the recordings into a folder; returns them by name."""
    speech = HibariPiper().speak(SCRIPT, seed=1)
    clean, rate = np.asarray(speech.samples[:, 0], np.float32), speech.rate
    robot = EspeakNg().speak(SCRIPT, seed=1)
    made = {
        "clean": (clean, rate),
        "damaged": (_damage(clean, rate, speech.turns), rate),
        "music": (clean + _make_music(len(clean), rate, float(np.sqrt(np.mean(clean**2)))), rate),
        "espeak": (robot.samples[:, 0], robot.rate),
    }
    for name, (samples, its_rate) in made.items():
        soundfile.write(folder / f"{name}.wav", samples, its_rate, subtype="PCM_16")
    return {name: folder / f"{name}.wav" for name in made}


def _damage(clean: Any, rate: int, turns: Any) -> Any:
    """Say a sentence twice, and put 0.3 s of digital silence into the last turn."""
    start, end = (round(at * rate) for at in (turns[TWICE].start, turns[TWICE].end))
    # The pause after the first sentence is the quietest place of its first third.
    first = start + round(0.5 * rate)
    third = clean[first : start + (end - start) // 3]
    frames = np.abs(third[: len(third) // 240 * 240]).reshape(-1, 240).mean(axis=1)
    pause = first + int(np.convolve(frames, np.ones(10) / 10, mode="same").argmin()) * 240
    # Where the last turn is loudest, so that sound breaks off.
    last = round(turns[-1].start * rate)
    hole = last + int(np.abs(clean[last : last + 2 * rate]).argmax())
    damaged = clean.copy()
    damaged[hole : hole + round(HOLE * rate)] = 0
    return np.concatenate([damaged[:pause], clean[start:pause], damaged[pause:]])


def _make_music(length: int, rate: int, level: float) -> Any:
    """Chords on a plucked instrument with a bass, four beats a bar."""
    beat, time = round(0.5 * rate), np.arange(round(2.0 * rate)) / rate
    music = np.zeros(length + len(time), np.float32)
    chords = ((220.0, 261.63, 329.63), (174.61, 220.0, 261.63), (196.0, 246.94, 293.66), (164.81, 196.0, 246.94))
    for number, start in enumerate(range(0, length, beat)):
        chord = chords[number // 4 % 4]
        notes = (*chord, chord[0] / 2) if number % 4 == 0 else (chord[number % 3] * 2,)
        for note in notes:
            sound = sum(np.sin(2 * np.pi * note * k * time) / k**1.5 for k in range(1, 7)) * np.exp(-2.5 * time)
            music[start : start + len(time)] += sound.astype(np.float32)
    music = music[:length]
    return np.asarray(music * (BED * level / np.sqrt(np.mean(music**2))), np.float32)
