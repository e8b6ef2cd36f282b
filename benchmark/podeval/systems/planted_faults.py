"""Controls with faults that are planted in a good reading: in what is said, or in the signal alone.

They stand on the board to show that what looks for faults finds them, and that nothing else takes them for its own.
"""

import random
import time
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from podeval.errors import BadInput
from podeval.systems.controls import ReaderControl
from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.speech import Samples, Speech
from podeval.systems.text_cleaning import split_sentences
from podeval.text.script import Script

HOLE, CLIPPED = 0.15, 0.5
"""Seconds of a hole, and of a clipped run."""

_FEWEST_WORDS = 5
"""Of a sentence whose absence or return nobody can take for a slip of the recogniser."""

_APART = 2.5
"""Seconds between two planted faults at least."""

_PERIOD = 0.02
"""Seconds within which the deepest voice swings once."""

_LOUD = 0.4
"""Level of speech in which a fault is planted, against the level that a tenth of the recording exceeds."""


class _Faulty(ReaderControl):
    """A control that spoils what a reader says."""

    planted: ClassVar[dict[str, float]]
    """By kind of fault how many are planted, or how long they are."""

    @property
    def generation(self) -> dict[str, Any]:
        """What is planted, and what speaks."""
        return {"system": self.name, "planted": self.planted, "reader": self._reader.generation}


class ContentFaults(_Faulty):
    """The script with one sentence left out, one said twice and one turn in another speaker's voice; clean sound."""

    name: ClassVar[str] = "content_faults"
    planted: ClassVar[dict[str, float]] = {"omitted": 1, "repeated": 1, "wrong_voice": 1}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script with three faults at places that the seed chooses.

        Raises:
            BadInput: the script is too short for them, or has one speaker, or more than there are voices.
        """
        self.require(seed)
        if len(script.speakers) < 2:
            raise BadInput(f"{self.name} needs a script of two speakers, to give one the other's words")
        lines = [replace(line, text=text) for line in self._reader.lines(script) for text in split_sentences(line.text)]
        chance = random.Random(seed)  # noqa: S311  # no secret
        omitted, repeated, turn = _choose_places(lines, chance, self.name)
        spoken: list[SpokenLine] = []
        for number, line in enumerate(lines):
            voice = (line.voice + 1) % len(script.speakers) if line.turn == turn else line.voice
            spoken += [replace(line, voice=voice)] * (0 if number == omitted else 1)
            if number == repeated:
                # Said anew, in another tone: the same sound twice would be a fault of the signal as well.
                spoken.append(replace(line, text=line.text.rstrip(".!?") + ("?" if line.text.endswith("!") else "!")))
        speech = self._reader.read(script, spoken, seed=seed)
        where = {"omitted": lines[omitted].text, "repeated": lines[repeated].text, "wrong_voice": turn}
        return replace(speech, details={**speech.details, "planted": where})


class SignalFaults(_Faulty):
    """The script read right, with a hole, a click and a clipped run in the sound."""

    name: ClassVar[str] = "signal_faults"
    planted: ClassVar[dict[str, float]] = {"hole": HOLE, "click": 1, "clipped": CLIPPED}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script and spoil its sound at three loud places that the seed chooses."""
        speech = self._reader.speak(script, seed=seed)
        begin = time.perf_counter()
        chance = random.Random(seed)  # noqa: S311  # no secret
        samples = speech.samples.copy()
        where: dict[str, float] = {}
        for kind, plant in (("hole", plant_hole), ("click", plant_click), ("clipped", plant_clipped)):
            where[kind] = choose_loud_place(samples[:, 0], speech.rate, chance, tuple(where.values()))
            if kind == "hole":
                # It breaks the sound off at its loudest, so that nobody misses it.
                around = np.abs(samples[round(where[kind] * speech.rate) :, 0])[: round(_PERIOD * speech.rate)]
                where[kind] += (int(np.argmax(around)) + 1) / speech.rate
            for channel in samples.T:
                plant(channel, speech.rate, where[kind])
        return replace(
            speech,
            samples=samples,
            wall_seconds=speech.wall_seconds + time.perf_counter() - begin,
            details={**speech.details, "planted": {kind: round(at, 3) for kind, at in where.items()}},
        )


def plant_hole(samples: Samples, rate: int, at: float) -> None:
    """Silence a channel for `HOLE` seconds from a moment on, in place."""
    samples[round(at * rate) : round((at + HOLE) * rate)] = 0


def plant_click(samples: Samples, rate: int, at: float) -> None:
    """Move one sample of a channel by half of the peak, away from where it is, in place."""
    place = round(at * rate)
    samples[place] -= np.copysign(0.5 * float(np.abs(samples).max()), samples[place])


def plant_clipped(samples: Samples, rate: int, at: float) -> None:
    """Clip a channel for `CLIPPED` seconds from a moment on at 0.4 of its peak there, in place."""
    part = slice(round(at * rate), round((at + CLIPPED) * rate))
    limit = 0.4 * float(np.abs(samples[part]).max())
    samples[part] = samples[part].clip(-limit, limit)


def choose_loud_place(samples: Samples, rate: int, chance: random.Random, taken: tuple[float, ...] = ()) -> float:
    """Choose a moment of loud speech, seconds, with `_APART` around it and others, and a second before the end.

    Raises:
        BadInput: there is none.
    """
    step = rate // 10
    levels = np.sqrt(np.mean(np.square(samples[: len(samples) // step * step].reshape(-1, step)), axis=1))
    # Loud from before to after, so that a fault lies inside of a sound.
    inner = np.min(np.lib.stride_tricks.sliding_window_view(levels, 5), axis=1)
    moments = (np.flatnonzero(inner >= _LOUD * np.percentile(levels, 90)) + 1) / 10
    fit = [
        float(moment)
        for moment in moments
        if 0.5 <= moment <= len(samples) / rate - 1.5 and all(abs(moment - other) >= _APART for other in taken)
    ]
    if not fit:
        raise BadInput("the recording has no loud place that is free for a fault; take a longer script")
    return chance.choice(fit) + 0.05


def _choose_places(lines: list[SpokenLine], chance: random.Random, name: str) -> tuple[int, int, int]:
    """Choose the sentence that is left out, the one that is said twice, and the turn in another voice."""
    long_enough = [at for at, line in enumerate(lines) if len(line.text.split()) >= _FEWEST_WORDS]
    turns = [turn for turn, said in groupby(lines, key=lambda line: line.turn) if _count_words(said) >= _FEWEST_WORDS]
    chance.shuffle(turns)
    for turn in turns:
        inner = [at for at in long_enough if lines[at].turn != turn and 0 < at < len(lines) - 1]
        chance.shuffle(inner)
        for omitted in inner:
            for repeated in inner:
                if abs(repeated - omitted) > 1:
                    return omitted, repeated, turn
    raise BadInput(f"{name} needs a longer script: two sentences and a turn of {_FEWEST_WORDS} words that are apart")


def _count_words(lines: Any) -> int:
    return sum(len(line.text.split()) for line in lines)
