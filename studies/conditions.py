"""The conditions for every item of the corpus: distortions and changes in the middle, from weak to strong."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studies import distortions
from studies.corpus import RATE, Item, Samples, load, other_recording, other_voice

LEVELS: dict[str, tuple[float, ...]] = {
    "noise": (30, 20, 10, 0),
    "tanh": (0.01, 0.05, 0.2, 0.4),
    "mu_law": (8, 6, 5, 4),
    "low_pass": (6000, 4000, 2000, 1000),
    "clip": (0.001, 0.01, 0.1, 0.3),
    "reverb": (0.3, 0.5, 0.8, 1.2),
    "gain": (-12, -6, 6),
    "speed": (0.8, 0.9, 1.1, 1.25),
    "music": (10, 5, 0, -5),
    "voice": (0.5,),
    "recording": (0.5,),
    "room": (0.3, 0.5, 0.8),
    "distance": (6, -6),
}
"""The levels of every distortion, the weakest first; those of gain and speed, which go in both directions, in ascending
order.
"""

CLEAN = "clean"

NEUTRAL = {"gain": 0.0, "speed": 1.0}
"""The level of the clean signal for distortions that go in both directions."""

UNITS = {
    "noise": "SNR, dB",
    "tanh": "share of samples past the knee",
    "mu_law": "bits",
    "low_pass": "cut-off, Hz",
    "clip": "share of samples cut off",
    "reverb": "RT60, s",
    "gain": "dB",
    "speed": "factor",
    "music": "speech over music, dB",
    "voice": "another voice of the same collection",
    "recording": "another voice, recorded in another way",
    "room": "RT60 from the middle, s",
    "distance": "direct over reverberant from the middle, dB",
}

CHANGES = ("voice", "recording", "room", "distance")
"""Properties that change in the middle of a recording."""

MIDDLE_RT60 = 0.5
"""Reverberation time, in seconds, of the room for `distance`."""

DIALOGUES = 6
"""Number of items for which a dialogue with another voice is also made."""

_DIALOGUE_TURN, _DIALOGUE_PAUSE = 5.0, 0.3


@dataclass(frozen=True)
class Subject:
    """An item with its samples and the samples with which it is combined: other voices, music."""

    item: Item
    samples: Samples
    voice: Samples | None
    recording: Samples
    music: Samples | None
    seed: int


def subject(item: Item, items: Sequence[Item], folder: Path) -> Subject:
    """Load an item of the corpus from `folder`; its seed is derived from its name."""
    seed = zlib.crc32(item.name.encode())
    tracks = sorted(folder.glob("music_*.wav"))
    voice = other_voice(item, items)
    return Subject(
        item=item,
        samples=load(folder / item.file),
        voice=load(folder / voice.file) if voice else None,
        recording=load(folder / other_recording(item, items).file),
        music=load(tracks[seed % len(tracks)]) if tracks else None,
        seed=seed,
    )


def dialogue(subject: Subject) -> Samples:
    """Return a dialogue: two voices in turn for 5 s each, with pauses of 0.3 s; each speaks twice."""
    turn = round(_DIALOGUE_TURN * RATE)
    pause = np.zeros(round(_DIALOGUE_PAUSE * RATE), np.float32)
    turns = [voice[start : start + turn] for start in (0, turn) for voice in (subject.samples, subject.recording)]
    return np.concatenate([part for own in turns for part in (own, pause)][:-1])


def distorted(subject: Subject, name: str, level: float) -> Samples | None:
    """Return the item's samples with a distortion; None if the corpus lacks the material for it."""
    clean, seed = subject.samples, subject.seed
    middle = len(clean) / RATE / 2
    match name:
        case "clean":
            return clean
        case "noise":
            return distortions.gaussian_noise(clean, level, seed=seed)
        case "tanh":
            return distortions.tanh_distortion(clean, level)
        case "mu_law":
            return distortions.mu_law(clean, int(level))
        case "low_pass":
            return distortions.low_pass(clean, RATE, level)
        case "clip":
            return distortions.clip(clean, level)
        case "reverb":
            return distortions.reverberate(clean, RATE, level, seed=seed)
        case "gain":
            return distortions.gain(clean, level)
        case "speed":
            return distortions.speed(clean, RATE, level)
        case "music":
            if subject.music is None:
                return None
            return distortions.mix_music(clean, subject.music, RATE, level)
        case "voice" | "recording":
            other = subject.voice if name == "voice" else subject.recording
            return None if other is None else _taken_over(clean, other)
        case "room":
            return distortions.change_room(clean, RATE, middle, level, seed=seed)
        case "distance":
            return distortions.change_room(clean, RATE, middle, MIDDLE_RT60, seed=seed, direct_to_reverberant_db=level)
    raise ValueError(f"there is no distortion {name!r}")


def _taken_over(first: Samples, second: Samples) -> Samples:
    """Return the first half of one voice followed by the last half of another, which is as loud as the part that it
    replaces.
    """
    half = min(len(first), len(second)) // 2
    replaced = distortions.match_loudness(second[-half:], first[-half:], RATE)
    return distortions.join(first[: len(first) // 2], replaced, RATE)
