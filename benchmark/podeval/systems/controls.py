"""Control systems, which make audio that is wrong on purpose. A metric or ranking that rewards such a system is faulty.

Some controls misuse a good reader; others plant faults in the words or only in the signal, to show that the fault
metrics find these faults and that other metrics do not react to them.
"""

import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from podeval.errors import BadInput
from podeval.stats.turn_taking import OFFSETS, count_people
from podeval.systems.dialogue_reader import PACE, DialogueReader, SpokenLine, estimate_seconds
from podeval.systems.speech import Kind, Samples, SpeakingSystem, Speech, SpokenTurn
from podeval.text.script import Script
from podeval.text.tokens import split_sentences

_RATE = 24000
_REPEAT_PAUSE = 0.35
_DRAWN_FROM = "broadcast"
_DRAWN_OFFSETS = (-0.6, -0.25, 0.1, 0.35, 0.75, 1.3)
"""Seconds from the end of a turn to the start of the next turn, for each kind of speaker change in human speech."""
_FASTEST = 1.35
_WAVE = 60.0
"""Period of the changes in pace, in seconds."""


HOLE, CLIPPED = 0.15, 0.5
"""Lengths of a hole and of a clipped stretch, in seconds."""

_FEWEST_WORDS = 5
"""Minimum length of a sentence in words, so that its omission or repetition cannot pass for a recognition error."""

_APART = 2.5
"""Minimum distance in seconds between two planted faults."""

_PERIOD = 0.02
"""Length in seconds of one period of the deepest voice."""

_LOUD = 0.4
"""Minimum level of speech in which a fault is planted, relative to the level that is exceeded in 10 % of the
recording."""


class Silence(SpeakingSystem):
    """Digital silence that lasts as long as a person would need to read the script."""

    name: ClassVar[str] = "silence"
    kind: ClassVar[Kind] = "control"

    @property
    def generation(self) -> dict[str, Any]:
        """The length of the silence."""
        return {"system": self.name, "rate": _RATE, **PACE}

    def available(self) -> str | None:
        """Return None, because silence is always available."""
        return None

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Return silence; no turn is spoken."""
        self.require(seed)
        begin = time.perf_counter()
        samples = np.zeros((round(_expected_seconds(script) * _RATE), 1), np.float32)
        return Speech(samples, _RATE, (), time.perf_counter() - begin, details={"seed": seed})


class ReaderControl(SpeakingSystem):
    """A control that speaks through a reader but misuses its voices or spoils its speech."""

    kind: ClassVar[Kind] = "control"
    facts: ClassVar[dict[str, Any]] = {}
    """Description, for `generation`, of how the reader is misused."""

    def __init__(self, reader: DialogueReader) -> None:
        """Store the reader."""
        self._reader = reader

    @property
    def generation(self) -> dict[str, Any]:
        """The reader, and how its reading is changed."""
        return {"system": self.name, **self.facts, "reader": self._reader.generation}

    def available(self) -> str | None:
        """Return None if the reader is ready, otherwise the missing part."""
        missing = self._reader.available()
        return None if missing is None else f"{self.name} needs {self._reader.name}, which is not ready: {missing}"


class RepeatedSentence(ReaderControl):
    """The script's first sentence, repeated over and over in the first voice: flawless audio, no content."""

    name: ClassVar[str] = "repeated_sentence"
    facts: ClassVar[dict[str, Any]] = {"pause": _REPEAT_PAUSE, **PACE}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Say the first sentence once, and repeat that recording for as long as the whole script would take."""
        first = self._reader.lines(script)[0]
        line = SpokenLine(first.turn, 0, split_sentences(first.text)[0])
        once = self._reader.read(script, [line], seed=seed)
        begin = time.perf_counter()
        pause = np.zeros((round(_REPEAT_PAUSE * once.rate), once.samples.shape[1]), np.float32)
        period = (len(once.samples) + len(pause)) / once.rate
        times = max(1, round((_expected_seconds(script) + _REPEAT_PAUSE) / period))
        speaker = script.turns[line.turn].speaker
        return replace(
            once,
            samples=np.concatenate([once.samples, *([pause, once.samples] * (times - 1))]),
            turns=tuple(
                SpokenTurn(speaker=speaker, start=number * period, end=number * period + once.duration, text=line.text)
                for number in range(times)
            ),
            wall_seconds=once.wall_seconds + time.perf_counter() - begin,
            details={**once.details, "repetitions": times, "unspoken_turns": list(range(1, len(script.turns)))},
        )


class ShuffledVoices(ReaderControl):
    """The unchanged script, but with half of its sentences in another speaker's voice: right words, wrong people."""

    name: ClassVar[str] = "shuffled_voices"
    facts: ClassVar[dict[str, Any]] = {"swapped": 0.5}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script with exactly half of the sentences, chosen by the seed, in another voice."""
        lines = [replace(line, text=text) for line in self._reader.lines(script) for text in split_sentences(line.text)]
        people = max(2, len(script.speakers))
        if (count := len(self._reader.voices)) < people:
            raise BadInput(f"{self.name} needs {people} voices, but {self._reader.name} has {count}")
        # Exactly half are chosen: if chance swapped them all, the speakers would merely be renamed.
        chance = random.Random(seed)  # noqa: S311  # no secret
        swapped = sorted(chance.sample(range(len(lines)), max(1, len(lines) // 2)))
        for number in swapped:
            other = (lines[number].voice + chance.randrange(1, people)) % people
            lines[number] = replace(lines[number], voice=other)
        speech = self._reader.read(script, lines, seed=seed)
        return replace(speech, details={**speech.details, "sentences": len(lines), "swapped_sentences": swapped})


class DrawnGaps(ReaderControl):
    """The unchanged script, but with gaps and overlaps between turns drawn from those in human conversations.

    The reader leaves the same pause between all turns; this control differs from it only in its turn-taking, which is
    more like that of people.
    """

    name: ClassVar[str] = "drawn_gaps"
    facts: ClassVar[dict[str, Any]] = {"people": _DRAWN_FROM, "offsets": list(_DRAWN_OFFSETS)}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script, and rearrange its turns with gaps and overlaps that the seed determines."""
        speech = self._reader.speak(script, seed=seed)
        begin = time.perf_counter()
        offsets = _draw_offsets(len(speech.turns) - 1, seed)
        samples, turns = _lay_out(speech, offsets)
        return replace(
            speech,
            samples=samples,
            turns=turns,
            wall_seconds=speech.wall_seconds + time.perf_counter() - begin,
            details={**speech.details, "offsets": offsets},
        )


class UnevenPace(ReaderControl):
    """The unchanged script, but alternately hurried and slow: the right words and voices at an unsteady pace."""

    name: ClassVar[str] = "uneven_pace"
    facts: ClassVar[dict[str, Any]] = {"fastest": _FASTEST, "wave": _WAVE, **PACE}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script sentence by sentence, each at the speed of the wave at the time when the sentence begins."""
        lines = [replace(line, text=text) for line in self._reader.lines(script) for text in split_sentences(line.text)]
        return self._reader.read(script, list(_wave(lines)), seed=seed)


class ContentFaults(ReaderControl):
    """The script with one sentence omitted, one repeated and one turn in another speaker's voice; clean audio."""

    name: ClassVar[str] = "content_faults"
    facts: ClassVar[dict[str, Any]] = {"planted": {"omitted": 1, "repeated": 1, "wrong_voice": 1}}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script with three faults at positions determined by the seed.

        Raises:
            BadInput: the script is too short for them, has only one speaker, or has more speakers than there are
                voices.
        """
        if len(script.speakers) < 2:
            raise BadInput(f"{self.name} needs a script with two speakers, to give one speaker's words to the other")
        lines = [replace(line, text=text) for line in self._reader.lines(script) for text in split_sentences(line.text)]
        chance = random.Random(seed)  # noqa: S311  # no secret
        omitted, repeated, turn = _choose_places(lines, chance, self.name)
        spoken: list[SpokenLine] = []
        for number, line in enumerate(lines):
            voice = (line.voice + 1) % len(script.speakers) if line.turn == turn else line.voice
            spoken += [replace(line, voice=voice)] * (0 if number == omitted else 1)
            if number == repeated:
                # The line is spoken again in a different tone, because identical audio would also be a signal fault.
                spoken.append(replace(line, text=line.text.rstrip(".!?") + ("?" if line.text.endswith("!") else "!")))
        speech = self._reader.read(script, spoken, seed=seed)
        planted = {"omitted": lines[omitted].text, "repeated": lines[repeated].text, "wrong_voice": turn}
        return replace(speech, details={**speech.details, "planted": planted})


class SignalFaults(ReaderControl):
    """The script read correctly, with a hole, a click and a clipped stretch in the audio."""

    name: ClassVar[str] = "signal_faults"
    facts: ClassVar[dict[str, Any]] = {"planted": {"hole": HOLE, "click": 1, "clipped": CLIPPED}}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script, and damage its audio at three loud positions determined by the seed."""
        speech = self._reader.speak(script, seed=seed)
        begin = time.perf_counter()
        chance = random.Random(seed)  # noqa: S311  # no secret
        samples = speech.samples.copy()
        where: dict[str, float] = {}
        for kind, plant in (("hole", plant_hole), ("click", plant_click), ("clipped", plant_clipped)):
            where[kind] = choose_loud_place(samples[:, 0], speech.rate, chance, tuple(where.values()))
            if kind == "hole":
                # The hole interrupts the audio where it is loudest, so that it is clearly audible.
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


def _draw_offsets(changes: int, seed: int) -> list[float]:
    """Draw an offset for each speaker change, so that each kind of change is as frequent as in human speech."""
    counts = count_people(_DRAWN_FROM)[: len(OFFSETS) + 1]
    kinds = np.random.default_rng(seed).choice(len(counts), size=changes, p=counts / counts.sum())
    return [_DRAWN_OFFSETS[kind] for kind in kinds]


def _lay_out(speech: Speech, offsets: Sequence[float]) -> tuple[Samples, tuple[SpokenTurn, ...]]:
    """Arrange the turns of a recording, each at its offset in seconds from the end of the previous turn.

    A turn never starts before the previous turn does. The peak of overlapping speech is limited to the recording's
    peak.
    """
    rate = speech.rate
    sounds = [speech.samples[round(turn.start * rate) : round(turn.end * rate)] for turn in speech.turns]
    starts = [0]
    for sound, offset in zip(sounds, offsets, strict=False):
        starts.append(max(starts[-1], starts[-1] + len(sound) + round(offset * rate)))
    ends = [start + len(sound) for start, sound in zip(starts, sounds, strict=True)]
    samples = np.zeros((max(ends), speech.samples.shape[1]), np.float32)
    for start, sound in zip(starts, sounds, strict=True):
        samples[start : start + len(sound)] += sound
    peak, ceiling = (float(np.abs(one).max()) for one in (samples, speech.samples))
    turns = (
        SpokenTurn(speaker=turn.speaker, start=start / rate, end=end / rate, text=turn.text)
        for turn, start, end in zip(speech.turns, starts, ends, strict=True)
    )
    return samples * np.float32(min(1.0, ceiling / peak)), tuple(turns)


def _wave(lines: Iterable[SpokenLine]) -> Iterator[SpokenLine]:
    """Set the speed of each line according to a wave that begins at the reader's own pace."""
    start = 0.0
    for line in lines:
        yield replace(line, speed=round(_FASTEST ** math.sin(2 * math.pi * start / _WAVE), 2))
        start += estimate_seconds(line.text)


def _expected_seconds(script: Script) -> float:
    return max(1.0, estimate_seconds(script.text))


def plant_hole(samples: Samples, rate: int, at: float) -> None:
    """Silence a channel in place for `HOLE` seconds, starting at a given time."""
    samples[round(at * rate) : round((at + HOLE) * rate)] = 0


def plant_click(samples: Samples, rate: int, at: float) -> None:
    """Shift one sample of a channel in place by half the peak."""
    place = round(at * rate)
    samples[place] -= np.copysign(0.5 * float(np.abs(samples).max()), samples[place])


def plant_clipped(samples: Samples, rate: int, at: float) -> None:
    """Clip a channel in place at 0.4 of its local peak, for `CLIPPED` seconds from a given time."""
    part = slice(round(at * rate), round((at + CLIPPED) * rate))
    limit = 0.4 * float(np.abs(samples[part]).max())
    samples[part] = samples[part].clip(-limit, limit)


def choose_loud_place(samples: Samples, rate: int, chance: random.Random, taken: tuple[float, ...] = ()) -> float:
    """Choose a moment of loud speech in seconds, more than a second before the end and at least `_APART` from `taken`.

    Raises:
        BadInput: there is no such moment.
    """
    step = rate // 10
    levels = np.sqrt(np.mean(np.square(samples[: len(samples) // step * step].reshape(-1, step)), axis=1))
    # The level stays high around this moment, so a fault falls within audible speech.
    inner = np.min(np.lib.stride_tricks.sliding_window_view(levels, 5), axis=1)
    moments = (np.flatnonzero(inner >= _LOUD * np.percentile(levels, 90)) + 1) / 10
    fit = [
        float(moment)
        for moment in moments
        if 0.5 <= moment <= len(samples) / rate - 1.5 and all(abs(moment - other) >= _APART for other in taken)
    ]
    if not fit:
        raise BadInput("the recording has no loud passage left for a fault; use a longer script")
    return chance.choice(fit) + 0.05


def _choose_places(lines: list[SpokenLine], chance: random.Random, name: str) -> tuple[int, int, int]:
    """Choose the sentence to omit, the sentence to repeat, and the turn to give to another voice."""
    long_enough = [at for at, line in enumerate(lines) if len(line.text.split()) >= _FEWEST_WORDS]
    turns = [
        turn
        for turn, said in groupby(lines, key=lambda line: line.turn)
        if sum(len(line.text.split()) for line in said) >= _FEWEST_WORDS
    ]
    chance.shuffle(turns)
    for turn in turns:
        inner = [at for at in long_enough if lines[at].turn != turn and 0 < at < len(lines) - 1]
        chance.shuffle(inner)
        for omitted in inner:
            for repeated in inner:
                if abs(repeated - omitted) > 1:
                    return omitted, repeated, turn
    raise BadInput(f"{name} needs a longer script: two sentences, and a turn of {_FEWEST_WORDS} words elsewhere")
