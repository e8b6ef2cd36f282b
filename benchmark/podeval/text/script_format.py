"""The written form of a podcast script, `Host 1: …`, and checks that a script has it.

What can be counted is counted here and not left to a judge: whether turns have speakers, how many speakers there are,
in which language they speak and how long the script takes to say. A minute is 300 Chinese characters or 150 English
words, with a tolerance of 20 % either way (PodBench, Appendix D; the paper's own tolerance, 5 %, is `tolerance=0.05`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from podeval.errors import BadInput
from podeval.text.characters import HAN, clean_text
from podeval.text.labelled_turns import note_inner_labels, read_labels
from podeval.text.language import identify_language
from podeval.text.reasoning import strip_reasoning
from podeval.text.script import Script, read_source
from podeval.text.tokens import Language, check_language, detect_language, is_unspaced

PER_MINUTE = {"en": 150, "zh": 300}
"""English words, or Chinese characters, per minute of speech."""

LABELS = ("Host", "Speaker", "主持人", "说话人")
"""Words for a speaker that may stand before the number."""

UNITS = {"en": "words", "zh": "characters"}
NAMES = {"en": "English", "zh": "Chinese"}

_TELLING_WORDS = 20
"""Number of different words that suffice to identify a language, if all are in one."""

_DECORATION = r"[\s*_>#\-]*"
_TURN = re.compile(
    rf"{_DECORATION}(?:{'|'.join(LABELS)})\s*(\d{{1,9}})\s*(?:[*_]+\s*)?[:：]\s*[*_]*(.*)", re.IGNORECASE
)
_NEARLY = re.compile(rf"{_DECORATION}(?:{'|'.join(LABELS)})\s*\d+\s*[(（\[【*_][^:：]{{0,40}}[:：]", re.IGNORECASE)
_OTHER_LABEL = re.compile(rf"{_DECORATION}([^\W\d_][\w .·'’]{{0,20}}?)[*_]*\s*[:：](?!//)")
_MARKUP = re.compile(r"\s*(#{1,6}\s|```|\*\*|---+\s*$|\|.*\|\s*$)")
_DIRECTION = re.compile(r"\s*[\[(（【][^\])）】]*[\])）】]\s*$")
_WORD = regex.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:['’.,\-][^\W_{HAN}]+)*")


@dataclass(frozen=True)
class Minutes:
    """A requested length: from `least` to `most` minutes of speech, before any tolerance."""

    least: float
    most: float


def read_script(text: str) -> Script:
    """Read the turns of a script in the form `Host 1: …`; a line without a label continues the turn before it.

    Speakers are named `1`, `2`, …; lines before the first turn are no part of the script and are noted.

    Raises:
        BadInput: no line begins a turn, or no turn has words.
    """
    text = clean_text(text)
    turns = [(number, words) for number, words in _split_turns(text) if words]
    if not turns:
        raise BadInput(f"no line of the script begins a turn with its speaker, such as {LABELS[0]} 1:")
    return Script.from_turns(turns, _check_form(text, turns))


def read_any_script(source: Any) -> Script:
    """Read a script in any form that podeval accepts, or as models and programs write it in plain text.

    The text may follow a model's reasoning; its turns may have labels, tags or the times of subtitles
    (`podeval.text.labelled_turns`). The script's notes say what was read in another way than it is written.

    Raises:
        BadInput: as for `Script.parse`.
    """
    if isinstance(source, Script):
        return source
    data = read_source(source)
    if not isinstance(data, str):
        return note_inner_labels(Script.parse(data))
    text = strip_reasoning(data)
    if not text and data.strip():
        raise BadInput("nothing follows the thoughts of the model; the script holds no words")
    return read_labels(text)


def count_length(text: str) -> int:
    """Count English words or Chinese characters; in mixed text each counts as one, and so does a number."""
    return len(_WORD.findall(clean_text(text)))


def rate_of(text: str) -> int | None:
    """Return the words, or Chinese characters, per minute of speech; the English rate applies to all spaced languages.

    Returns None for languages without spaces such as Japanese or Thai, for which there is no agreed rate.
    """
    return None if is_unspaced(text) else PER_MINUTE[detect_language(text)]


def find_script_problems(
    text: str,
    language: str,
    speakers: int | Sequence[int] | None = None,
    *,
    minutes: float | Minutes | None = None,
    tolerance: float = 0.2,
) -> list[str]:
    """List what is wrong with a script's form, one sentence for each problem; empty if the form is as requested.

    Args:
        text: the script, with one or more lines per turn, each turn beginning with `Host 1:` or another of `LABELS`.
        language: the language it should be in, `en` or `zh`.
        speakers: how many there should be, or the allowed numbers; None if any number will do.
        minutes: how long it should be; None if any length will do.
        tolerance: allowed deviation either way, as a share of the requested length; 0 for a strict request.

    Raises:
        BadInput: the language is neither.
    """
    expected = check_language(language)
    text = clean_text(text)
    if not text.strip():
        return ["The script is empty."]
    turns = list(_split_turns(text))
    if not turns:
        return [f"No line begins a turn with its speaker, such as {LABELS[0]} 1:."]
    words = " ".join(turn_text for _, turn_text in turns)
    return [
        *_check_form(text, turns),
        *_check_speakers(turns, speakers),
        *_check_language(words, expected),
        *(_check_length(words, minutes, tolerance) if minutes is not None else ()),
    ]


def _split_turns(text: str) -> Iterator[tuple[str, str]]:
    """Yield the speaker number and words of every turn; lines before the first turn are left out."""
    number, lines = "", [""]
    for line in text.splitlines():
        if match := _TURN.match(line):
            if number:
                yield number, " ".join(lines).strip()
            number, lines = str(int(match[1])), [match[2].strip()]
        elif line.strip():
            lines.append(line.strip())
    if number:
        yield number, " ".join(lines).strip()


def _check_form(text: str, turns: list[tuple[str, str]]) -> Iterator[str]:
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if _TURN.match(line))
    # What stands around and in the turns.
    if before := " ".join(" ".join(lines[:first]).split()):
        yield f"Words stand before the first turn: {_quote(before)}."
    for number, (speaker, words) in enumerate(turns, 1):
        if not words:
            yield f"Turn {number} (speaker {speaker}) has no words."
    # Lines that are not speech, or that only resemble the beginning of a turn.
    rest = list(enumerate(lines[first:], first + 1))
    marked = [number for number, line in rest if _MARKUP.match(line)]
    if marked:
        yield f"Line {_list_some(marked)} has markup; a script is plain text."
    if directions := [number for number, line in rest if _DIRECTION.match(_drop_label(line))]:
        yield f"Line {_list_some(directions)} is a direction in brackets, not speech."
    if nearly := [number for number, line in rest if _NEARLY.match(line) and not _TURN.match(line)]:
        yield f"Line {_list_some(nearly)} names a speaker by more than the number, so no turn begins there."
    labels = Counter(match[1] for _, line in rest if not _TURN.match(line) and (match := _OTHER_LABEL.match(line)))
    for label, times in labels.items():
        if times > 1:
            yield f"{times} lines begin with {_quote(label + ':')}, which is not a numbered speaker."


def _drop_label(line: str) -> str:
    match = _TURN.match(line)
    return match[2] if match else line


def _check_speakers(turns: list[tuple[str, str]], speakers: int | Sequence[int] | None) -> Iterator[str]:
    numbers = sorted({int(number) for number, words in turns if any(map(str.isalnum, words))})
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"Speakers are numbered {', '.join(map(str, numbers))}, not from 1 on without a gap."
    allowed = [speakers] if isinstance(speakers, int) else list(speakers or ())
    if allowed and len(numbers) not in allowed:
        choices = " or ".join(map(str, allowed))
        yield f"{choices} {'speaker' if allowed == [1] else 'speakers'} asked for, {len(numbers)} in the script."


def _check_language(words: str, expected: Language) -> Iterator[str]:
    written = identify_language(words)
    if written.code is None and len(set(_WORD.findall(words.casefold()))) >= _TELLING_WORDS:
        yield f"The language of the script cannot be detected; {NAMES[expected]} was asked for."
    elif written.is_in(expected) is False:
        yield f"The script is in {written.words}; {NAMES[expected]} was asked for."


def _check_length(words: str, minutes: float | Minutes, tolerance: float) -> Iterator[str]:
    language = detect_language(words)
    count = count_length(words)
    span = minutes if isinstance(minutes, Minutes) else Minutes(minutes, minutes)
    rate = PER_MINUTE[language]
    least, most = span.least * (1 - tolerance) * rate, span.most * (1 + tolerance) * rate
    if not least - 1e-6 <= count <= most + 1e-6:
        accepted = f"{least:.0f} to {most:.0f}" if most != float("inf") else f"{least:.0f} or more"
        yield (
            f"The script has {count} {UNITS[language]}, {count / rate:.1f} minutes at {rate} a minute; "
            f"{accepted} are accepted."
        )


def _list_some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:3])) + (f" and {len(numbers) - 3} more" if len(numbers) > 3 else "")


def _quote(text: str) -> str:
    return f"“{text[:40]}…”" if len(text) > 40 else f"“{text}”"
