"""Control systems make audio that is wrong on purpose. A metric or a ranking that rewards one of them is broken."""

import random
import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from podeval.errors import BadInput
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine
from podeval.systems.speech import Kind, SpeakingSystem, Speech, SpokenTurn, Voice
from podeval.systems.text_cleaning import seconds_to_say, sentences
from podeval.text.script import Script

_RATE = 24000
_WORDS_PER_MINUTE = 150.0
_CHARACTERS_PER_MINUTE = 250.0  # Chinese
_REPEAT_PAUSE = 0.35


class Silence(SpeakingSystem):
    """Digital silence, as long as a person would take for the script."""

    name: ClassVar[str] = "silence"
    description: ClassVar[str] = "control: digital silence as long as the script would take"
    licence: ClassVar[str] = "Apache-2.0"
    kind: ClassVar[Kind] = "control"

    @property
    def languages(self) -> tuple[str, ...]:
        """It is silent in English and in Chinese."""
        return ("en", "zh")

    @property
    def voices(self) -> tuple[Voice, ...]:
        """None."""
        return ()

    @property
    def generation(self) -> dict[str, Any]:
        """How long the silence is."""
        return {"system": self.name, "rate": _RATE, **_pace()}

    def available(self) -> str | None:
        """Return None: it can always be silent."""
        return None

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Say nothing; no turn is spoken."""
        self.require(seed)
        begin = time.perf_counter()
        samples = np.zeros((round(_expected_seconds(script) * _RATE), 1), np.float32)
        return Speech(samples, _RATE, (), time.perf_counter() - begin, details={"seed": seed})


class _Wrapped(SpeakingSystem):
    """A control that misuses the voices of a reader."""

    kind: ClassVar[Kind] = "control"

    def __init__(self, reader: DialogueReader) -> None:
        """Take the reader whose voices are misused."""
        self._reader = reader
        self.licence = reader.licence  # type: ignore[misc]  # as its voices allow, known with the reader

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of the reader."""
        return self._reader.languages

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Those of the reader."""
        return self._reader.voices

    def available(self) -> str | None:
        """Return None where the reader is ready, else what it lacks."""
        missing = self._reader.available()
        return None if missing is None else f"{self.name} speaks through {self._reader.name}: {missing}"


class RepeatedSentence(_Wrapped):
    """The script's first sentence, over and over in the first voice: flawless sound, no content."""

    name: ClassVar[str] = "repeated_sentence"
    description: ClassVar[str] = "control: the first sentence of the script again and again"

    @property
    def generation(self) -> dict[str, Any]:
        """How long, and what speaks."""
        return {"system": self.name, "pause": _REPEAT_PAUSE, **_pace(), "reader": self._reader.generation}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Say the first sentence once and repeat that recording until the script's time is full."""
        self.require(seed)
        first = self._reader.lines(script)[0]
        line = SpokenLine(first.turn, 0, sentences(first.text)[0])
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


class ShuffledVoices(_Wrapped):
    """The script as it stands, but half of its sentences in another speaker's voice: right words, wrong people."""

    name: ClassVar[str] = "shuffled_voices"
    description: ClassVar[str] = "control: the script read right, but half of the sentences in the wrong voice"

    @property
    def generation(self) -> dict[str, Any]:
        """How many sentences, and what speaks."""
        return {"system": self.name, "swapped": 0.5, "reader": self._reader.generation}

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read the script with exactly half of the sentences, chosen by the seed, in another voice."""
        self.require(seed)
        lines = [replace(line, text=text) for line in self._reader.lines(script) for text in sentences(line.text)]
        people = max(2, len(script.speakers))
        if len(self.voices) < people:
            raise BadInput(f"{self.name} needs {people} voices, {self._reader.name} has {len(self.voices)}")
        # Half, not each by a coin: swapping all of them would only rename the speakers.
        chance = random.Random(seed)  # noqa: S311  # no secret
        swapped = sorted(chance.sample(range(len(lines)), max(1, len(lines) // 2)))
        for number in swapped:
            other = (lines[number].voice + chance.randrange(1, people)) % people
            lines[number] = replace(lines[number], voice=other)
        speech = self._reader.read(script, lines, seed=seed)
        return replace(speech, details={**speech.details, "sentences": len(lines), "swapped_sentences": swapped})


def _expected_seconds(script: Script) -> float:
    return max(
        1.0,
        seconds_to_say(script.text, words_per_minute=_WORDS_PER_MINUTE, characters_per_minute=_CHARACTERS_PER_MINUTE),
    )


def _pace() -> dict[str, float]:
    return {"words_per_minute": _WORDS_PER_MINUTE, "characters_per_minute": _CHARACTERS_PER_MINUTE}
