"""A podcast with its own words in which one turn is repeated at the end, with or without music under it.

It shows what the track `podcast` finds: `podeval demo` has a row with music and one without. The words are podeval's
own, for two topics of Real-Pod's demo; a baseline voice reads them.
"""

import json
import time
from typing import Any

import numpy as np

from podeval.audio.samples import resample
from podeval.benchmarks.records import locate_data
from podeval.systems import registry
from podeval.systems.speech import SOURCES, Ask, OneByOne, Samples, Speech, SpeechFailed
from podeval.text.script import Script

WORDS = "real_pod_podcasts.json"
READER = "espeak_ng"
CHORDS = ((220.0, 277.2, 329.6), (174.6, 220.0, 261.6), (196.0, 246.9, 293.7), (164.8, 207.7, 246.9))
"""Frequencies of the notes of each chord, Hz."""

RATE = 44_100
"""Sampling rate of a mix, Hz: that of the separator that measures music."""

CHORD_SECONDS, BELOW = 2.0, 15.0
"""Length of a chord, and the level of the music below the speech in dB."""


class PlantedPodcast(OneByOne[Speech]):
    """Makes the podcasts.

    Args:
        music: whether there is music under the speech.
    """

    def __init__(self, *, music: bool) -> None:
        self.music = music

    @property
    def generation(self) -> dict[str, Any]:
        """The ingredients of the podcasts."""
        return {"system": "planted_podcast", "music": self.music, "reader": registry.get(READER).generation}

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Read the podcast of a topic, its turn again at the end.

        Raises:
            SpeechFailed: there is no podcast on this topic, or the voice failed.
            ModelMissing: the voice is not installed.
        """
        podcasts = {one["id"]: one for one in json.loads(locate_data(WORDS).read_bytes())["items"]}
        if (podcast := podcasts.get(ask.id)) is None:
            raise SpeechFailed(f"there is no podcast on the topic of {ask.id}; there are {', '.join(podcasts)}")
        turns = [*podcast["turns"], podcast["turns"][podcast["said_again"]]]
        begin = time.perf_counter()
        speech = registry.get(READER).speak(Script.parse(turns), seed=seed)
        samples, rate = (mix_music(speech.samples, speech.rate), RATE) if self.music else (speech.samples, speech.rate)
        planted = {"said_again": turns[-1]["text"], SOURCES: podcast["sources"]}
        return Speech(samples, rate, (), time.perf_counter() - begin, details={**planted, "seed": seed})


def mix_music(speech: Samples, rate: int) -> Samples:
    """Return speech over chords that are `BELOW` dB quieter, mono at `RATE`, without passing full scale.

    Args:
        speech: shape (frames,) or (frames, channels).
        rate: its sampling rate, Hz.
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
