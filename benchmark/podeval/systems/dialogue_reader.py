"""Dialogue readers: engines with several voices, whose lines are joined into one recording.

A reader says each line separately. Joining the lines trims the silence at their edges, brings all voices to the same
level, inserts fixed pauses and limits the peak, so turn times are known and listeners are not startled.
"""

import re
import textwrap
import time
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata, util
from typing import Any, ClassVar

import numpy as np

from podeval.errors import BadInput
from podeval.systems.speech import Kind, Samples, SpeakingSystem, Speech, SpeechFailed, SpokenTurn
from podeval.text.characters import HAN
from podeval.text.language import identify_language, read_as
from podeval.text.script import Script
from podeval.text.tokens import detect_language, split_sentences

TURN_PAUSE = 0.28
"""Seconds of silence between turns."""
SENTENCE_PAUSE = 0.35
"""Seconds of silence between the lines of a turn."""
PIECE_PAUSE = 0.4
"""Seconds of silence between pieces, each of which contains several turns that a system spoke together."""
SPEECH_LEVEL = -23.0
"""RMS of each voice over its active frames, in dBFS."""
PEAK_CEILING = -1.5
"""Maximum sample value in dBFS; it is half a decibel below −1 to leave room for the true peak."""

INSTALL_PACKAGES = "pip install 'podeval[baselines]'"
"""The command that installs the packages of every reader."""

_FRAME = 0.02
_ACTIVE = 10 ** (-40 / 20)
_EDGE = 0.03


@dataclass(frozen=True)
class SpokenLine:
    """Words that one voice says in one go, and the number of their turn in the script, counted from 0.

    `speed` is how fast a built-in reader says them: 1 is its own pace, 2 takes half the time.
    """

    turn: int
    voice: int
    text: str
    speed: float = 1.0


@dataclass(frozen=True)
class SynthesisedLines:
    """The lines as an engine said them: mono samples per line, the rate in Hz, the seconds taken, and provenance."""

    lines: Sequence[Samples]
    rate: int
    wall_seconds: float
    load_seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


class DialogueReader(SpeakingSystem):
    """A system that gives each speaker in a script a separate voice and reads line by line.

    Attributes:
        languages: the languages that it reads, as ISO 639-1 codes.
        voices: the names of its voices for English, in the order in which a script's speakers get them.
        longest_line: maximum number of characters in a sentence once turns have been split; None if turns are read
            whole.
        packages: the modules that it imports, each with its package.
    """

    kind: ClassVar[Kind] = "model"
    languages: ClassVar[tuple[str, ...]] = ("en",)
    voices: ClassVar[tuple[str, ...]]
    longest_line: ClassVar[int | None] = None
    packages: ClassVar[Mapping[str, str]]

    def available(self) -> str | None:
        """Return None if the packages are installed, otherwise the missing ones and the command that installs them."""
        missing = [package for module, package in self.packages.items() if util.find_spec(module) is None]
        return f"{self.name} needs {' and '.join(missing)}; install with `{INSTALL_PACKAGES}`" if missing else None

    def lines(self, script: Script) -> tuple[SpokenLine, ...]:
        """Split the script into lines with voices; the n-th speaker of the script gets the n-th voice.

        Raises:
            BadInput: there are too many speakers, the language is not supported, or nothing can be spoken.
        """
        self._check(script)
        return list_lines(script, longest=self.longest_line)

    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read a script aloud with each speaker in a separate voice; see `SpeakingSystem.speak`."""
        return self.read(script, self.lines(script), seed=seed)

    def read(self, script: Script, lines: Sequence[SpokenLine], *, seed: int = 0) -> Speech:
        """Read the given lines of a script; the voices of the lines may differ from those of the speakers.

        Raises:
            ModelMissing: the engine is not installed.
            SpeechFailed: the engine failed or stayed silent.
        """
        self.require(seed)
        sounds = self._say(lines, detect_language(script.text), seed)
        begin = time.perf_counter()
        samples, turns = join_lines(script, lines, sounds.lines, sounds.rate)
        if not turns:
            raise SpeechFailed(f"{self.name} returned only silence for a script of {len(script.turns)} turns")
        spoken = {line.turn for line in lines}
        return Speech(
            samples=samples,
            rate=sounds.rate,
            turns=turns,
            wall_seconds=sounds.wall_seconds + time.perf_counter() - begin,
            load_seconds=sounds.load_seconds,
            details={
                **{package: metadata.version(package) for package in self.packages.values()},
                **sounds.details,
                "seed": seed,
                "unspoken_turns": [number for number in range(len(script.turns)) if number not in spoken],
            },
        )

    @abstractmethod
    def _say(self, lines: Sequence[SpokenLine], language: str, seed: int) -> SynthesisedLines:
        """Say every line in its voice."""

    def _check(self, script: Script) -> None:
        needed, count = len(script.speakers), len(self.voices)
        if needed > count:
            raise BadInput(
                f"{self.name} has {count} voices, but the script needs {needed} "
                f"({', '.join(script.speakers)[:200]}); use a system with more voices"
            )
        language = read_as(script.text) or detect_language(script.text)
        if language not in self.languages:
            language_name = identify_language(script.text).words if language == "other" else language
            raise BadInput(
                f"{self.name} reads {', '.join(self.languages)}, but the script is in {language_name}; use a system "
                f"that reads {'that language' if language == 'other' else language}"
            )


def describe_chunks(longest: int | None = None) -> dict[str, Any]:
    """Describe, for `generation`, the pieces in which a script is read and how they are joined.

    Args:
        longest: maximum number of characters in a line; None if turns are read whole.
    """
    return {
        "strategy": "chunked",
        "chunk": "turn" if longest is None else f"sentence, at most {longest} characters",
        "turn_pause": TURN_PAUSE,
        "sentence_pause": SENTENCE_PAUSE,
        "speech_level": SPEECH_LEVEL,
        "peak_ceiling": PEAK_CEILING,
    }


def list_lines(
    script: Script, voices: Mapping[str, int] | None = None, longest: int | None = None, laugh: str = ""
) -> tuple[SpokenLine, ...]:
    """List the spoken lines in a script, omitting turns that contain no words.

    Args:
        script: the script to read aloud.
        voices: the number of each speaker's voice; by default, the n-th speaker gets the n-th voice.
        longest: maximum number of characters in a line; None keeps turns whole.
        laugh: the engine's mark for laughter, if it has one.

    Raises:
        BadInput: nothing can be spoken.
    """
    numbers = voices or {speaker: number for number, speaker in enumerate(script.speakers)}
    lines = tuple(
        SpokenLine(number, numbers[turn.speaker], text)
        for number, turn in enumerate(script.turns)
        if (words := make_speakable(turn.text, laugh))
        for text in ([words] if longest is None else split_into_short_lines(words, longest))
    )
    if not lines:
        raise BadInput("nothing in the script can be spoken: it has no letters or digits")
    return lines


def join_lines(
    script: Script, lines: Sequence[SpokenLine], sounds: Sequence[Samples], rate: int
) -> tuple[Samples, tuple[SpokenTurn, ...]]:
    """Return all lines joined into one recording, shape (frames, 1), and the time of each turn in it.

    Lines without sound are omitted; if no line has sound, the recording is empty.
    """
    cut = [cut_silence(sound, rate) for sound in sounds]
    gains = _gains(lines, cut, rate)
    pieces: list[Samples] = []
    spans: dict[int, tuple[int, int]] = {}
    position = 0
    for line, sound in zip(lines, cut, strict=True):
        if not len(sound):
            continue
        if spans:
            pause = round((SENTENCE_PAUSE if line.turn in spans else TURN_PAUSE) * rate)
            pieces.append(np.zeros(pause, np.float32))
            position += pause
        pieces.append(sound * np.float32(gains[line.voice]))
        start, _ = spans.get(line.turn, (position, position))
        position += len(sound)
        spans[line.turn] = (start, position)
    samples = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    turns = tuple(
        SpokenTurn(speaker=script.turns[turn].speaker, start=start / rate, end=end / rate, text=script.turns[turn].text)
        for turn, (start, end) in spans.items()
    )
    return _under_ceiling(samples)[:, np.newaxis], turns


def fit_lines(
    lines: Sequence[SpokenLine], longest: int | None, measure_text: Callable[[str], int] = len
) -> tuple[SpokenLine, ...]:
    """Cut overlong lines into as few parts as possible, between sentences or, failing that, between clauses or words.

    Args:
        lines: the lines to cut, in order.
        longest: the maximum length of a line; None if there is no stated maximum.
        measure_text: function that returns the length of a text.
    """
    fitted: list[SpokenLine] = []
    for line in lines:
        length = measure_text(line.text)
        if longest is None or length <= longest:
            fitted.append(line)
            continue
        text = ""
        for sentence in split_into_short_lines(line.text, max(1, longest * len(line.text) // length - 1)):
            joined = f"{text} {sentence}".strip()
            if text and measure_text(joined) > longest:
                fitted.append(replace(line, text=text))
                joined = sentence
            text = joined
        fitted.append(replace(line, text=text))
    return tuple(fitted)


def join_pieces(sounds: Sequence[Samples], rate: int) -> Samples:
    """Join pieces of several turns each, with pauses between the pieces; the result has the shape (frames, 1)."""
    pause = np.zeros(round(PIECE_PAUSE * rate), np.float32)
    return np.concatenate([part for sound in sounds for part in (pause, sound)][1:])[:, np.newaxis]


def cut_silence(sound: Samples, rate: int) -> Samples:
    """Trim a sound to its first and last active frames, with 30 ms on either side; empty if all of it is silent."""
    levels = _frame_levels(sound, rate)
    active = np.flatnonzero(levels > max(_ACTIVE * float(levels.max(initial=0.0)), 1e-6))
    if not len(active):
        return sound[:0]
    frame, edge = round(_FRAME * rate), round(_EDGE * rate)
    return sound[max(0, int(active[0]) * frame - edge) : (int(active[-1]) + 1) * frame + edge]


def _frame_levels(sound: Samples, rate: int) -> Samples:
    """Return the RMS of consecutive 20 ms frames; the last one may be padded with zeros."""
    frame = round(_FRAME * rate)
    padded = np.pad(sound, (0, -len(sound) % frame)).reshape(-1, frame)
    return np.asarray(np.sqrt(np.mean(np.square(padded), axis=1)), np.float32)


def _gains(lines: Sequence[SpokenLine], sounds: Sequence[Samples], rate: int) -> dict[int, float]:
    """Return, for each voice, the factor that brings the RMS of its active frames to `SPEECH_LEVEL`."""
    gains: dict[int, float] = {}
    for voice in {line.voice for line in lines}:
        voice_levels = [
            _frame_levels(s, rate) for line, s in zip(lines, sounds, strict=True) if line.voice == voice and len(s)
        ]
        if not voice_levels:
            continue
        levels = np.concatenate(voice_levels)
        active = levels[levels > _ACTIVE * levels.max()]
        gains[voice] = 10 ** (SPEECH_LEVEL / 20) / float(np.sqrt(np.mean(np.square(active, dtype=np.float64))))
    return gains


def _under_ceiling(samples: Samples) -> Samples:
    ceiling = 10 ** (PEAK_CEILING / 20)
    peak = float(np.abs(samples).max(initial=0.0))
    return samples * np.float32(ceiling / peak) if peak > ceiling else samples


# Written text is reduced to words and punctuation that engines can speak, without anything that could break one.

PACE = {"words_per_minute": 150.0, "characters_per_minute": 250.0}
"""Pace of a person reading aloud: words per minute, and Chinese characters per minute."""

_PLAIN = str.maketrans("‘’‛“”„«»⁄−•〇", '\'\'\'"""""/-,零')
_KEPT = {"Mn", "Mc", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc"}
# At best, these would be read out as "asterisk" or "open bracket"; [[x]] and [x](/y/) are phoneme commands to some
# engines.
_MARKUP = set("[]{}<>|\\`~^_*#")
_LAUGH = re.compile(r"\[laughs\]", re.IGNORECASE)
_SYMBOLS = set("+=±×÷°")
_LONG_WORD = re.compile(r"[^\W\d_\u2e80-\U0010ffff]{41,}")
_LONG_NUMBER = re.compile(r"\d[\d,.]{12,}\d|\d{13,}")
_REPEATED_MARK = re.compile(r"([^\w\s])\1{3,}")
_CLAUSE_END = re.compile(r"(?<=[,;:—，；：、])\s*")
_OTHER_SPACE = re.compile(r"[\t\n\x0b\x0c\r]")


def make_speakable(text: str, laugh: str = "") -> str:
    """Strip emoji, control characters and markup from a text, replace typographic forms, and shorten repeated marks.

    The mark `[laughs]` becomes the engine's own mark for laughter; it is removed for engines without one, because they
    would read the word. The result is empty if no letter or digit remains, because there are then no words to speak.
    """
    pieces = _LAUGH.split(text.translate(_PLAIN))
    plain = f" {laugh} ".join("".join(map(_plain_character, piece)) for piece in pieces)
    plain = unicodedata.normalize("NFC", plain)
    plain = _REPEATED_MARK.sub(r"\1\1\1", plain)
    plain = _LONG_WORD.sub(lambda word: " ".join(textwrap.wrap(word.group(), 20)), plain)
    plain = _LONG_NUMBER.sub(lambda number: " ".join(re.sub(r"\D", "", number.group())), plain)
    plain = " ".join(plain.split())
    return plain if any(character.isalnum() for character in plain) else ""


@cache
def _plain_character(character: str) -> str:
    """Return the speakable part of a character."""
    category = unicodedata.category(character)
    if category in ("Nd", "No"):  # engines can read only ASCII digits
        digit = unicodedata.digit(character, None)
        return _plain_letters(character) if digit is None else str(digit)
    if category[0] in "LN":
        return _plain_letters(character)
    if category in ("Cf", "Me") or "\ufe00" <= character <= "\ufe0f":  # joiners and variation selectors of emoji
        return ""
    return character if (category in _KEPT and character not in _MARKUP) or character in _SYMBOLS else " "


def _plain_letters(character: str) -> str:
    """Replace mathematical bold letters, full-width forms, fractions and ligatures with ordinary letters and digits."""
    plain = unicodedata.normalize("NFKC", character).translate(_PLAIN)
    return plain if not plain.isnumeric() or plain.isdecimal() or plain.isalpha() else " "


def estimate_seconds(text: str) -> float:
    """Estimate the time that a person takes to read a text, from its alphabetic words and Chinese characters."""
    characters = len(re.findall(f"[{HAN}]", text))
    words = len(re.findall(r"\w[\w'’.-]*", re.sub(f"[{HAN}]", " ", text)))
    return 60.0 * (words / PACE["words_per_minute"] + characters / PACE["characters_per_minute"])


def split_into_short_lines(text: str, longest: int) -> list[str]:
    """Split a text into sentences, and those of over `longest` characters between clauses or, failing that, words."""
    return [line for sentence in split_sentences(text) for line in _break_up(sentence, longest)]


def _break_up(sentence: str, longest: int) -> Iterator[str]:
    if len(sentence) <= longest:
        yield sentence
        return
    line = ""
    for clause in _CLAUSE_END.split(sentence):
        # A clause that fits is not changed, unless it contains unusual spaces.
        fits = len(clause) <= longest and not _OTHER_SPACE.search(clause)
        for part in [clause] * bool(clause) if fits else textwrap.wrap(clause, longest, break_on_hyphens=False):
            joined = f"{line} {part}".strip()
            if len(joined) > longest:
                yield line
                joined = part
            line = joined
    yield line
