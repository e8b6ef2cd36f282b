"""A script: a dialogue as a list of turns `{speaker, text}`.

Accepted as JSON in the usual forms: a list of turns, an object with the list under `turns`, `dialogue`, `content`,
`transcript`, `segments` or another usual key, or JSON lines; a turn is an object with a speaker (`speaker`, `role`,
`name`) and a text (`text`, `content`, `speaking_content`, `dialogue`, `line`, `utterance`), or a pair [speaker, text].
The segments of a recogniser need no speaker, and JSON in a fence of Markdown is read too. Plain text is one turn of one
speaker. Every text passes through `clean_text`.

Names that differ only in case, spacing or character width belong to one speaker and take the spelling of the first.
A name whose turns hold no words is not a speaker.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podeval.errors import BadInput
from podeval.text.characters import clean_text, fold_letters
from podeval.text.longest import refuse_longer

_TURN_LIST_KEYS = (
    "turns", "dialogue", "content", "transcript", "script", "conversation", "messages", "segments", "utterances",
    "inputs", "lines",
)  # fmt: skip
_SPEAKER_KEYS = ("speaker", "role", "name", "speaker_name", "character", "voice", "speaker_id", "voice_id")
_TEXT_KEYS = ("text", "content", "speaking_content", "dialogue", "line", "utterance")
# Whose turns a recogniser's segments are that name no speaker.
_UNKNOWN = "unknown speaker"
# An object or a list of objects or lists; "[Music] Welcome back" and "{laughs} Hello" are words.
_LOOKS_LIKE_JSON = re.compile(r"""\s*(\{\s*["'}]|\[\s*[{\[\]])""")
# A block of code and a few words of a model around it.
_FENCED = re.compile(r"\A[^`]{0,300}```\w*[ \t]*\r?\n([^`]*)\n[ \t]*```[^`]{0,300}\Z")
# What other readers may take for the beginning of a turn: some words and a colon.
_LABEL = re.compile(r"[^:\uff1a]{1,60}[:\uff1a]")


@dataclass(frozen=True)
class Turn:
    """One turn: the uninterrupted words of one speaker."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - how pydantic reads one

    speaker: str
    text: str


@dataclass(frozen=True)
class Script:
    """A dialogue in writing; `speakers` are in order of first appearance.

    Attributes:
        turns: the turns, in order.
        notes: sentences for people on what was read in another way than it is written; no part of the dialogue.
    """

    turns: tuple[Turn, ...]
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False, metadata={"exclude": True})

    def __post_init__(self) -> None:
        spelt: dict[str, str] = {}
        for turn in self.turns:
            spelt.setdefault(normalise_speaker(turn.speaker), " ".join(turn.speaker.split()))
        names = [spelt[normalise_speaker(turn.speaker)] for turn in self.turns]
        if any(name != turn.speaker for name, turn in zip(names, self.turns, strict=True)):
            turns = tuple(replace(turn, speaker=name) for name, turn in zip(names, self.turns, strict=True))
            object.__setattr__(self, "turns", turns)

    @property
    def text(self) -> str:
        """All words, with turns joined by one space."""
        return " ".join(turn.text for turn in self.turns)

    @property
    def lines(self) -> str:
        """One line per turn, `speaker: text`, with line breaks inside a turn removed so that they cannot begin another.

        A single turn is returned without its speaker and with its own line breaks, unless a line would look like a
        turn.
        """
        if len(self.turns) == 1:
            text = self.turns[0].text
            first, *rest = text.splitlines() or [""]
            if not any(map(_LABEL.match, rest)):
                return text
            return first + "".join(f" {line}" if _LABEL.match(line) else f"\n{line}" for line in rest)
        return "\n".join(f"{turn.speaker}: {' '.join(turn.text.splitlines())}" for turn in self.turns)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Names of the speakers who have words, in order of first appearance."""
        return tuple(
            dict.fromkeys(turn.speaker for turn in self.turns if any(character.isalnum() for character in turn.text))
        )

    def to_json(self) -> list[dict[str, str]]:
        """Return the turns as plain data."""
        return [{"speaker": turn.speaker, "text": turn.text} for turn in self.turns]

    @classmethod
    def parse(cls, source: "str | Script | Mapping[str, Any] | Iterable[Any]") -> "Script":
        """Create a script from JSON text, JSON lines, plain text, or parsed data.

        Raises:
            BadInput: the JSON is broken, a turn lacks its speaker or text, there are no words at all, or there are more
                characters than podeval reads (`podeval.text.longest`).
        """
        if isinstance(source, Script):
            return source
        data = read_source(source)
        if isinstance(data, str):
            return cls.from_turns([("1", data)])
        turns = [_parse_turn(entry, number) for number, entry in enumerate(data, start=1)]
        unknown = sum(turn.speaker == _UNKNOWN for turn in turns)
        note = [f"{unknown} segments name no speaker and are read as turns of “{_UNKNOWN}”"] if unknown else []
        return cls.from_turns([(turn.speaker, turn.text) for turn in turns], note)

    @classmethod
    def from_turns(cls, turns: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> "Script":
        """Create a script from speakers and texts, and note what another program could not read in them.

        Raises:
            BadInput: there are no words at all, or more characters than podeval reads.
        """
        refuse_longer(sum(len(text) for _, text in turns))
        if not any(text.strip() for _, text in turns):
            raise BadInput("the script holds no words; give at least one turn with text")
        lost = sum(text.count("\ufffd") for _, text in turns)
        note = f"{lost} characters of the text are \ufffd, because a program could not read them; export it again"
        return cls(tuple(Turn(*turn) for turn in turns), (*notes, note) if lost else tuple(notes))


def normalise_speaker(name: str) -> str:
    """Return a speaker's name for comparison: without case, character width, invisible characters and extra spaces."""
    return " ".join(fold_letters(name).split())


def read_source(source: "str | Mapping[str, Any] | Iterable[Any]") -> "str | list[Any]":
    """Return the entries of the turns in a source, or its clean plain text if it has no turns as data.

    Raises:
        BadInput: the JSON is broken, or the text is longer than podeval reads (`podeval.text.longest`).
    """
    if isinstance(source, str):
        refuse_longer(len(source))
    data = _read(source) if isinstance(source, str) else source
    if not isinstance(data, Mapping):
        return data if isinstance(data, str) else list(data)
    key = next((key for key in _TURN_LIST_KEYS if isinstance(data.get(key), list | tuple)), None)
    if key is None:
        texts = (data[key] for key in (*_TURN_LIST_KEYS, *_TEXT_KEYS) if isinstance(data.get(key), str))
        return next(map(clean_text, texts), [data]) if data.keys().isdisjoint(_SPEAKER_KEYS) else [data]
    entries = list(data[key])
    if key != "segments" or not all(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in entries
    ):
        return entries
    # A recogniser tells the speakers of its segments apart, of some of them, or of none.
    if any(each.get("speaker") for each in entries):
        return [(each.get("speaker") or _UNKNOWN, each["text"].strip()) for each in entries]
    return clean_text(" ".join(each["text"].strip() for each in entries))


def _read(text: str) -> Any:
    """Read the text as JSON or JSON lines; any other text is returned clean."""
    text = text.lstrip("\ufeff")
    fenced = _FENCED.match(text)
    text = fenced[1] if fenced and _LOOKS_LIKE_JSON.match(fenced[1]) else text
    if not _LOOKS_LIKE_JSON.match(text):
        return clean_text(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for a number of thousands of digits
        broken = error
    try:
        # Other line ends may be in a text; a carriage return may not.
        return [json.loads(line) for line in re.split(r"[\r\n]+", text) if line.strip()]
    except (ValueError, RecursionError):
        # Never read it as words: the brackets and keys of a truncated script would be scored as vocabulary.
        raise BadInput(f"the script looks like JSON but cannot be read as such: {broken}") from None


def _parse_turn(entry: Any, number: int) -> Turn:
    if isinstance(entry, Turn):
        return Turn(clean_text(entry.speaker), clean_text(entry.text))
    if isinstance(entry, list | tuple) and len(entry) == 2:
        entry = dict(zip(("speaker", "text"), entry, strict=True))
    if not isinstance(entry, Mapping):
        raise BadInput(f"turn {number} of the script is not an object with a speaker and a text: {repr(entry)[:80]}")
    speaker = next((entry[key] for key in _SPEAKER_KEYS if key in entry), None)
    text = next((entry[key] for key in _TEXT_KEYS if key in entry), None)
    if (
        isinstance(text, list)
        and text
        and all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in text)
    ):
        # The parts of a chat message.
        text = " ".join(part["text"] for part in text)
    if speaker is None or isinstance(speaker, Mapping | list) or not isinstance(text, str):
        raise BadInput(
            f"turn {number} of the script needs a speaker ({', '.join(_SPEAKER_KEYS)}) and a text "
            f"({', '.join(_TEXT_KEYS)}); it has {', '.join(sorted(map(str, entry))) or 'nothing'}"
        )
    return Turn(clean_text(str(speaker)), clean_text(text))
