"""Built-in systems, by name, and the demo's podcasts."""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from podeval.audio.samples import resample
from podeval.benchmarks.records import locate_data
from podeval.errors import require_known
from podeval.systems.controls import (
    ContentFaults,
    DrawnGaps,
    RepeatedSentence,
    ShuffledVoices,
    SignalFaults,
    Silence,
    UnevenPace,
)
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper, Piper
from podeval.systems.kokoro import Kokoro
from podeval.systems.pico import Pico
from podeval.systems.speech import SOURCES, Ask, OwnMaker, Samples, SpeakingSystem, Speech, SpeechFailed
from podeval.text.script import Script

SYSTEMS: dict[str, Callable[[], SpeakingSystem]] = {
    HibariPiper.name: HibariPiper,
    EspeakNg.name: EspeakNg,
    Kokoro.name: Kokoro,
    Pico.name: Pico,
    Piper.name: Piper,
    Silence.name: Silence,
    RepeatedSentence.name: lambda: RepeatedSentence(HibariPiper()),
    ShuffledVoices.name: lambda: ShuffledVoices(HibariPiper()),
    DrawnGaps.name: lambda: DrawnGaps(HibariPiper()),
    UnevenPace.name: lambda: UnevenPace(HibariPiper()),
    ContentFaults.name: lambda: ContentFaults(HibariPiper()),
    SignalFaults.name: lambda: SignalFaults(HibariPiper()),
}

NAMES = tuple(SYSTEMS)
"""Every built-in system: the baselines, then the controls."""


def get(name: str) -> SpeakingSystem:
    """Return a new instance of the system with this name; nothing is loaded until the system speaks.

    Raises:
        BadInput: there is no such system; the message suggests the closest name.
    """
    require_known("built-in system", SYSTEMS, name)
    return SYSTEMS[name]()


def list_systems() -> tuple[SpeakingSystem, ...]:
    """Return one instance of every built-in system."""
    return tuple(get(name) for name in NAMES)


WORDS = "real_pod_podcasts.json"
READER = EspeakNg.name
CHORDS = ((220.0, 277.2, 329.6), (174.6, 220.0, 261.6), (196.0, 246.9, 293.7), (164.8, 207.7, 246.9))
"""Frequencies of the notes in each chord, in Hz."""

RATE = 44_100
"""Sampling rate of a mix in Hz, the same as that of the separator with which music is measured."""

CHORD_SECONDS, BELOW = 2.0, 15.0
"""Length of a chord in seconds, and number of dB by which the music is quieter than the speech."""


class PlantedPodcast(OwnMaker[Speech]):
    """A podcast with its own words, in which one turn is repeated at the end, with or without background music.

    It shows what the track `podcast` detects; `podeval demo` has a row with music and one without. We wrote the words,
    for two topics from Real-Pod's demo; a baseline voice reads them.

    Args:
        music: whether there is background music.
    """

    def __init__(self, *, music: bool) -> None:
        self.music = music

    @property
    def generation(self) -> dict[str, Any]:
        """The music and the reader of the podcasts."""
        return {"system": "planted_podcast", "music": self.music, "reader": get(READER).generation}

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Read the podcast on a topic, and repeat the planted turn at the end.

        Raises:
            SpeechFailed: there is no podcast on this topic, or the voice failed.
            ModelMissing: the voice is not installed.
        """
        podcasts = {one["id"]: one for one in json.loads(locate_data(WORDS).read_bytes())["items"]}
        if (podcast := podcasts.get(ask.id)) is None:
            raise SpeechFailed(f"there is no podcast on the topic of {ask.id}, only on {', '.join(podcasts)}")
        turns = [*podcast["turns"], podcast["turns"][podcast["said_again"]]]
        begin = time.perf_counter()
        speech = get(READER).speak(Script.parse(turns), seed=seed)
        samples, rate = (mix_music(speech.samples, speech.rate), RATE) if self.music else (speech.samples, speech.rate)
        planted = {"said_again": turns[-1]["text"], SOURCES: podcast["sources"]}
        return Speech(samples, rate, (), time.perf_counter() - begin, details={**planted, "seed": seed})


def mix_music(speech: Samples, rate: int) -> Samples:
    """Return speech mixed with chords that are `BELOW` dB quieter, mono at `RATE`, without exceeding full scale.

    Args:
        speech: the samples, shape (frames,) or (frames, channels).
        rate: sampling rate of the speech in Hz.
    """
    speech = resample(speech if speech.ndim == 1 else speech.mean(axis=1), rate, RATE)
    seconds = np.arange(len(speech)) / RATE
    chord = (seconds / CHORD_SECONDS).astype(int) % len(CHORDS)
    within = seconds % CHORD_SECONDS
    # A note fades in and out, and has two overtones.
    shape = np.minimum(1.0, within / 0.05) * np.exp(-within)
    notes = np.array(CHORDS)[chord]
    partials = sum(np.sin(2 * np.pi * notes * (number * seconds)[:, np.newaxis]) / number**2 for number in (1, 2, 3))
    music = np.asarray(partials).sum(axis=1) * shape
    music *= np.sqrt(np.mean(speech**2) / np.mean(music**2)) * 10 ** (-BELOW / 20)
    mix = speech + music
    return np.asarray(mix / max(1.0, float(np.abs(mix).max())), np.float32)
