"""A script: a dialogue as a list of turns `{speaker, text}`.

A script can be JSON in any of the common forms: a list of turns, an object with the list under `turns`, `dialogue`,
`content`, `transcript`, `segments` or another common key, or JSON lines; a turn is an object with a speaker (`speaker`,
`role`, `name`) and a text (`text`, `content`, `speaking_content`, `dialogue`, `line`, `utterance`), or a pair [speaker,
text]. Segments from a recogniser do not need a speaker, and JSON in a Markdown fence is also accepted. Plain text is
read as one turn by one speaker. Every text passes through `clean_text`.

Names that differ only in case, spacing or character width belong to one speaker, whose name is spelt as it first
appears. A name whose turns contain no words is not a speaker.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podeval.errors import BadInput, is_missing
from podeval.text.characters import clean_text, fold_letters
from podeval.text.longest import refuse_longer
from podeval.text.markup import strip_tags

# Names of keys without case, spaces, hyphens and underscores; if there are several, the first one is used.
_TURN_LIST_KEYS = (
    "turns", "dialogue", "content", "transcript", "script", "conversation", "conversations", "messages", "segments",
    "utterances", "inputs", "lines", "audiosegments", "monologues", "phrases", "recognizedphrases", "sentences",
    "transcription", "events",
)  # fmt: skip
_SPEAKER_KEYS = (
    "speaker", "speakername", "name", "character", "speakerlabel", "speakerid", "role", "who", "author", "from", "host",
    "persona", "voice", "voiceid",
)  # fmt: skip
_TEXT_KEYS = (
    "text", "content", "speakingcontent", "dialogue", "line", "utterance", "transcript", "message", "body", "value",
    "sentence", "speech", "display", "utf8", "says", "words", "word",
)  # fmt: skip
# Keys for a recogniser's alternative results for a stretch, and for the words of one result.
_ALTERNATIVES, _PARTS = ("alternatives", "nbest"), ("elements", "segs")
# Keys for recognisers' lists, whose entries do not need a speaker, and for the times of an entry.
_RECOGNISED = frozenset(
    ("segments", "utterances", "phrases", "recognizedphrases", "sentences", "transcription", "events")
)
_TIMES = frozenset(("start", "starttime", "duration", "timestamp", "timestamps", "offset"))
# Keys that do not contain turns: single words, and facts about turns.
_NO_TURNS = frozenset(("words", "items", "wordsegments", "metadata", "speakers", "speakerlabels"))
# Keys for text before or after the turns, which an unnamed speaker may say.
_BESIDE = frozenset(("intro", "introduction", "opening", "coldopen", "outro", "closing", "conclusion"))
# The speaker of a recogniser's segments that do not name a speaker.
_UNKNOWN = "unknown speaker"
# An object or a list of objects or lists; "[Music] Welcome back" and "{laughs} Hello" are words.
_JSON = r"""(?:\{\s*["'}]|\[\s*[{\[\]])"""
_LOOKS_LIKE_JSON = re.compile(rf"\s*{_JSON}")
# JSON surrounded by a few words from a model, or in a code block.
_EMBEDDED = re.compile(rf"\A[^{{}}]{{0,300}}?(?={_JSON})")
_MORE = re.compile(_JSON)
_MOST_BEHIND = 300
# Words before a colon that other programs may mistake for the beginning of a turn.
_LABEL = re.compile(r"[^:\uff1a]{1,60}[:\uff1a]")


@dataclass(frozen=True)
class Turn:
    """A turn: the uninterrupted words of one speaker."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - the form that pydantic reads

    speaker: str
    text: str


@dataclass(frozen=True)
class Script:
    """A written dialogue; `speakers` are in order of first appearance.

    Attributes:
        turns: the speakers' turns, in order.
        notes: notes for human readers about unusual interpretations; they are not part of the dialogue.
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
        """All words, with turns joined by a space."""
        return " ".join(turn.text for turn in self.turns)

    @property
    def lines(self) -> str:
        """One line per turn, `speaker: text`, without line breaks inside a turn, because they could begin another turn.

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
        # Entries with neither a speaker nor words are music, pauses, or facts about the script.
        empty = [at for at, entry in enumerate(data, 1) if isinstance(entry, Mapping) and entry and _is_empty(entry)]
        empty = empty if len(empty) < len(data) else []
        turns = [_parse_turn(entry, number) for number, entry in enumerate(data, 1) if number not in empty]
        unknown = sum(turn.speaker == _UNKNOWN for turn in turns)
        system = {"system", "user"} <= {turn.speaker.lower() for turn in turns}
        noted = {
            f"{unknown} of the turns name no speaker and are read as turns of “{_UNKNOWN}”": unknown,
            "entries with neither a speaker nor words are left out: "
            + ", ".join(f"{at} ({', '.join(map(str, data[at - 1]))[:60]})" for at in empty[:5]): empty,
            "the text of the role “system” is left out": system,
        }
        spoken = [(turn.speaker, turn.text) for turn in turns if not (system and turn.speaker.lower() == "system")]
        return cls.from_turns(spoken, [note for note, is_so in noted.items() if is_so])

    @classmethod
    def from_turns(cls, turns: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> "Script":
        """Create a script from speakers and texts, and note parts that another program could not interpret correctly.

        Raises:
            BadInput: there are no words at all, or more characters than podeval reads.
        """
        refuse_longer(sum(len(text) for _, text in turns))
        turns = [(speaker, strip_tags(text)) for speaker, text in turns]
        if all(is_missing(text) for _, text in turns):
            raise BadInput("the script contains no words; give at least one turn with text")
        lost = sum(text.count("\ufffd") for _, text in turns)
        note = f"{lost} characters of the text are \ufffd, because a program could not read them; export it again"
        return cls(tuple(Turn(*turn) for turn in turns), (*notes, note) if lost else tuple(notes))


def normalise_speaker(name: str) -> str:
    """Return a speaker's name for comparison, ignoring case, character width, invisible characters and extra spaces."""
    return " ".join(fold_letters(name).split())


def read_source(source: "str | Mapping[str, Any] | Iterable[Any]") -> "str | list[Any]":
    """Return the entries for the turns in a source, or its cleaned plain text if it does not contain turns as data.

    Raises:
        BadInput: the JSON is broken, or the text is longer than podeval reads (`podeval.text.longest`).
    """
    if isinstance(source, str):
        refuse_longer(len(source))
    data = _read(source) if isinstance(source, str) else source
    if isinstance(data, str):
        return data
    entries = _find_entries(data if isinstance(data, Mapping) else list(data))
    if entries is not None:
        return entries
    return [data] if isinstance(data, Mapping) else list(data)


def _name_fields(entry: Mapping[Any, Any]) -> dict[str, Any]:
    return {re.sub(r"[\W_]+", "", str(key)).lower(): value for key, value in entry.items()}


def _find_entries(data: Any) -> "str | list[Any] | None":
    """Find the turns in data, or their text if they have no speakers; None if the data contains no turns."""
    if isinstance(data, list | tuple):
        data = _open_sections(data)
        if any(
            isinstance(one, Turn)
            or (isinstance(one, Mapping) and (_find_speaker(one) is not None or _is_name_with_words(one)))
            for one in data
        ):
            return list(data)
        timed = all(isinstance(one, Mapping) and not _TIMES.isdisjoint(_name_fields(one)) for one in data)
        if timed and (text := _join_texts(data)):
            return text
        nested = (one for one in data if isinstance(one, Mapping) and {"text", "content"}.isdisjoint(_name_fields(one)))
        parts = [part for one in nested if (part := _find_entries(one))]
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) == len(parts):
            return " ".join(texts) or None
        return [turn for part in parts for turn in ([part] if isinstance(part, str) else part)]
    if not isinstance(data, Mapping):
        return None
    fields = _name_fields(data)
    if isinstance(speakers := _find_speaker(data), list | tuple):
        # Columns of a table.
        texts = next((fields[key] for key in _TEXT_KEYS if isinstance(fields.get(key), list | tuple)), [])
        return list(zip(speakers, texts, strict=False)) if len(texts) == len(speakers) else None
    for key in _TURN_LIST_KEYS:
        if isinstance(entries := fields.get(key), list | tuple) and entries:
            entries = _open_sections(entries)
            recognised = key in _RECOGNISED and all(isinstance(one, Mapping) for one in entries)
            has_speaker = [not recognised or _find_speaker(one) is not None for one in entries]
            if not any(has_speaker):
                return _join_texts(entries)
            turns = [one if is_so else {**one, "speaker": ""} for one, is_so in zip(entries, has_speaker, strict=True)]
            beside = {name: words for name, words in fields.items() if name in _BESIDE and isinstance(words, str)}
            return [*turns, *([{**beside, "beside the turns": None}] if beside else [])]
    text = _find_text(data)
    if isinstance(text, str):
        return None if speakers is not None else clean_text(text)
    inside = [value for key, value in fields.items() if key not in _NO_TURNS and isinstance(value, Mapping | list)]
    parts = [part for value in inside if (part := _find_entries(value))]
    return next((part for part in parts if isinstance(part, list)), next(iter(parts), None))


def _open_sections(entries: Sequence[Any]) -> list[Any]:
    """Replace a section, which may have a name, with its turns if it has no text of its own."""
    opened: list[Any] = []
    for one in entries:
        fields = _name_fields(one) if isinstance(one, Mapping) else {}
        lists = (value for key, value in fields.items() if key not in _NO_TURNS and isinstance(value, list))
        has_text = any(isinstance(fields.get(key), str) for key in _TEXT_KEYS)
        opened += next((turns for turns in lists if not has_text and any(map(_is_turn, turns))), [one])
    return opened


def _is_turn(entry: Any) -> bool:
    return isinstance(entry, Mapping) and _find_speaker(entry) is not None


def _find_speaker(entry: Mapping[Any, Any]) -> Any:
    fields = _name_fields(entry)
    return next((fields[key] for key in _SPEAKER_KEYS if key in fields), None)


def _find_text(entry: Mapping[Any, Any]) -> Any:
    """Find the text of a turn, which may be in parts; return a value that is not text unchanged."""
    fields = _name_fields(entry)
    for key in _ALTERNATIVES:
        if isinstance(best := fields.get(key), list) and best and isinstance(best[0], Mapping):
            return _find_text(best[0])
    for key in _PARTS:
        if isinstance(fields.get(key), list):
            return "".join(str(_find_text(part) or "") for part in fields[key] if isinstance(part, Mapping))
    text = next((fields[key] for key in (*_TEXT_KEYS, *_TURN_LIST_KEYS) if key in fields), None)
    parts = [_find_text(part) if isinstance(part, Mapping) else part for part in text] if isinstance(text, list) else []
    return " ".join(parts) if parts and all(isinstance(part, str) for part in parts) else text


def _is_name_with_words(entry: Mapping[Any, Any]) -> bool:
    return (
        len(entry) == 1
        and {*_TEXT_KEYS, *_SPEAKER_KEYS}.isdisjoint(_name_fields(entry))
        and isinstance(next(iter(entry.values())), str)
    )


def _is_empty(entry: Mapping[Any, Any]) -> bool:
    return _find_speaker(entry) is None and _find_text(entry) is None and len(entry) > 1


def _join_texts(entries: Iterable[Mapping[Any, Any]]) -> str | None:
    texts = [text for one in entries if (text := _find_text(one)) is not None]
    return clean_text(" ".join(map(str.strip, texts))) if all(isinstance(text, str) for text in texts) else None


def _read(text: str) -> Any:
    """Read a text as JSON or JSON lines; return any other text cleaned."""
    text = text.lstrip("\ufeff")
    if text.lstrip().startswith(('"', '["')):
        # A text, or one list of texts or pairs per line, that a program has written as JSON; or a quotation.
        try:
            data = [json.loads(line) for line in re.split(r"[\r\n]+", text) if line.strip()]
        except (ValueError, RecursionError):
            return clean_text(text)
        if all(isinstance(one, str) for one in data):
            return _read("\n".join(data)) if len(data) > 1 or data[0] != text else clean_text(text)
        return data if len(data) > 1 else data[0]  # a single list of texts does not name a speaker
    if not (before := _EMBEDDED.match(text)):
        return clean_text(text)
    looks, broken = _LOOKS_LIKE_JSON.match(text) is not None, None
    try:
        data, end = json.JSONDecoder().raw_decode(text, before.end())
        has_turns = bool(_find_entries(data))
        if len(text[end:].strip()) <= (_MOST_BEHIND if has_turns else 0) and not _MORE.search(text, end):
            return data
        # Text next to turns may contain more turns, and turns with their brackets are not words.
        looks = looks or has_turns
    except (ValueError, RecursionError) as error:  # ValueError is also raised for a number with thousands of digits
        broken = error
    try:
        # Other line endings may occur in a text, but a carriage return must not.
        return [json.loads(line) for line in re.split(r"[\r\n]+", text) if line.strip()]
    except (ValueError, RecursionError) as error:
        if not looks:
            return clean_text(text)
        # Broken JSON is never read as words, because the brackets and keys of a truncated script would count as
        # vocabulary.
        raise BadInput(f"the script looks like JSON, but is not valid JSON: {broken or error}") from None


def _parse_turn(entry: Any, number: int) -> Turn:
    if isinstance(entry, Turn):
        return Turn(clean_text(entry.speaker), clean_text(entry.text))
    if isinstance(entry, list | tuple) and len(entry) == 2:
        entry = dict(zip(("speaker", "text"), entry, strict=True))
    if not isinstance(entry, Mapping):
        raise BadInput(f"turn {number} of the script is not an object with a speaker and a text: {repr(entry)[:80]}")
    speaker, text = _find_speaker(entry), _find_text(entry)
    if _is_name_with_words(entry):
        speaker, text = next(iter(entry.items()))
    if isinstance(speaker, Mapping):
        speaker = _find_speaker(speaker)
    names_one = not {*_SPEAKER_KEYS}.isdisjoint(_name_fields(entry))
    if names_one and (speaker is None or is_missing(speaker)):
        speaker = _UNKNOWN
    if isinstance(speaker, float) and speaker.is_integer():
        speaker = int(speaker)
    if speaker is not None and is_missing(text) and str(text).strip():
        raise BadInput(f"turn {number} of the script has no text: {str(speaker)[:40]!r} is followed by {text!r}")
    if speaker is None or isinstance(speaker, Mapping | list) or not isinstance(text, str):
        raise BadInput(
            f"turn {number} of the script needs a speaker ({', '.join(_SPEAKER_KEYS)}) and a text "
            f"({', '.join(_TEXT_KEYS)}); it has {', '.join(sorted(map(str, entry))) or 'nothing'}"
        )
    # Recognisers begin the text of a segment with a space.
    return Turn(clean_text(str(speaker)), clean_text(text).lstrip())
