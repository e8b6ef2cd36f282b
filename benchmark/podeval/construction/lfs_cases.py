"""The cases of an LFS-Bench dataset under construction: their scenarios, published schema, cleaning, and files.

The 17 scenarios and their numbers of speakers come from the paper and its published rows; the wording of the templates
is ours. The paper prints one of its templates (figure 5); the other templates have the same structure.

A case has the form of the authors' published cases (`content`, `num_speakers`, `theme`, `source`, `scene`, `language`),
with an id and the results of the steps, so a finished case is a row in a source of the dataset `lfs_bench`.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podeval.construction.workshop import StagedRow
from podeval.datasets.data_files import read_object_lines
from podeval.errors import BadInput, describe_validation_error
from podeval.text.tokens import count_words_or_characters

CODES: dict[str, Literal["en", "zh"]] = {"english": "en", "chinese": "zh"}

_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s，。；、）)\]】》]+")
_GARBLED = re.compile("[\ufffd\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe0e\ufe0f]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE = re.compile(r"\[([^\]\n]+)\] ?(.*)")


LANGUAGES = {"english": "English", "chinese": "Chinese"}
"""The names of languages in the published rows."""


@dataclass(frozen=True)
class Scenario:
    """The template for writing cases of a scenario.

    Attributes:
        name: name of the scenario as in the published rows.
        author: the role that the language model assumes.
        kind: the kind of text.
        hard: the difficulty that makes the text a test of long-form speech.
        speakers: possible numbers of speakers.
    """

    name: str
    author: str
    kind: str
    hard: str
    speakers: tuple[int, ...]


_VOICES = "Voices must stay the same over the whole length, so the text runs on without a break in place or time."
_LOGIC = "Where stress falls decides what is understood: long sentences, terms, contrasts, an argument in steps."
_FEELING = "The feeling changes on the way, by turns that the words alone make clear: calm, rise, height, rest."

_TEMPLATES = (
    Scenario("audiobook", "a novelist", "a passage of a story to be read aloud", _VOICES, (1, 3, 4)),
    Scenario("chat", "a writer with an ear for everyday talk", "a chat among friends", _VOICES, (2,)),
    Scenario(
        "customer_service",
        "someone who trains call-centre staff",
        "a call between a customer and an agent who settles the matter",
        _VOICES,
        (2,),
    ),
    Scenario("debate", "a debating coach", "a debate with claims and rebuttals", _VOICES, (1, 2)),
    Scenario("interview", "an interviewer", "an interview that goes deeper step by step", _VOICES, (2,)),
    Scenario("podcast", "a podcast producer", "a stretch of a podcast", _VOICES, (1, 2, 3, 4)),
    Scenario("lesson", "an experienced teacher", "a lesson as a teacher speaks it", _LOGIC, (1,)),
    Scenario("news", "a news editor", "a news report without invented facts on real people", _LOGIC, (1,)),
    Scenario("popular_science", "a science writer", "an explanation of science for everybody", _LOGIC, (1, 2)),
    Scenario("presentation", "an expert in the field", "a talk before students", _LOGIC, (1,)),
    Scenario("seminar", "a professor", "a discussion in a seminar", _LOGIC, (2, 3, 4)),
    Scenario("drama", "a playwright", "a scene in which something is at stake", _FEELING, (2,)),
    Scenario("hosting", "a host of ceremonies", "the host's words at an event", _FEELING, (1, 2, 3)),
    Scenario("live_streaming", "a live streamer", "what a streamer says on air", _FEELING, (1,)),
    Scenario("speech", "a speech writer", "a speech that moves its audience", _FEELING, (1,)),
    Scenario("sportscast", "a sports reporter", "live commentary of a match", _FEELING, (2,)),
    Scenario("talk_show", "a comedian", "a routine of a comedy talk show", _FEELING, (1, 2)),
)

BY_NAME = {scenario.name: scenario for scenario in _TEMPLATES}


class CaseTurn(BaseModel):
    """A turn: the words that one speaker says without a break."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    speaker: str = Field(description="Speaker1, Speaker2, and so on")
    text: str = Field(description="what is said, in plain words without any markup")


class Case(StagedRow):
    """A text to be spoken."""

    content: tuple[CaseTurn, ...] = Field(min_length=1)
    num_speakers: int = Field(ge=1)
    theme: str
    source: str
    scene: str
    language: Literal["english", "chinese"]
    order: str = ""
    """The order for which the case was written; "" if the case was not written for this dataset."""

    @property
    def text(self) -> str:
        """All words of the turns."""
        return " ".join(turn.text for turn in self.content)

    @property
    def lines(self) -> str:
        """One line for each turn, `[speaker] words`, as shown to people and judges."""
        return "\n".join(f"[{turn.speaker}] {turn.text}" for turn in self.content)

    @property
    def length(self) -> int:
        """Number of words (English) or characters (Chinese), excluding punctuation."""
        return count_words_or_characters(self.text, CODES[self.language])

    @property
    def part(self) -> str:
        """The published file that the case belongs to: mono, two or multi."""
        return {1: "mono", 2: "two"}.get(self.num_speakers, "multi")


def make_case(name: str, turns: Sequence[CaseTurn], **facts: Any) -> Case:
    """Make a case from turns: clean the turns, drop empty turns, and count the speakers.

    Raises:
        BadInput: the case has no words, or a fact is missing.
    """
    cleaned = [CaseTurn(speaker=clean(turn.speaker) or "Speaker1", text=clean(turn.text)) for turn in turns]
    content = tuple(turn for turn in cleaned if turn.text)
    if not content:
        raise BadInput(f"{name} has no words")
    try:
        return Case(id=name, content=content, num_speakers=len({turn.speaker for turn in content}), **facts)
    except ValidationError as error:
        raise BadInput(f"{name}: {describe_validation_error(error)}") from None


def clean(text: str) -> str:
    """Clean a text for speech: remove web addresses, emojis, control and garbled characters, and line breaks."""
    bare = _GARBLED.sub("", _ADDRESS.sub("", text))
    spoken = "".join(character for character in bare if unicodedata.category(character) not in ("So", "Co", "Cn"))
    return " ".join(spoken.split())


def parse_turns(lines: str) -> list[CaseTurn]:
    """Parse the turns of a text that has the form of `Case.lines` and may have been corrected by a person.

    Raises:
        BadInput: a line does not begin with its speaker in brackets.
    """
    turns = []
    for number, line in enumerate((line for line in lines.splitlines() if line.strip()), 1):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadInput(f"line {number} is {line[:40]!r}; write the speaker in brackets, and then the words")
        turns.append(CaseTurn(speaker=match[1].strip(), text=match[2].strip()))
    return turns


def read_cases(path: Path, prefix: str) -> list[Case]:
    """Read cases from a file in the published schema; each id consists of `prefix` and the line number.

    Raises:
        BadInput: a row is not a case; the message names the row and the fault.
    """
    cases = []
    for number, raw in read_object_lines(path):
        turns = raw.get("content")
        if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
            raise BadInput(f"{path}, row {number} has no list of turns under content")
        content = [CaseTurn(**{name: str(turn.get(name) or "") for name in ("speaker", "text")}) for turn in turns]
        facts = {name: raw.get(name) for name in ("scene", "language")}
        facts |= {name: raw.get(name) or "" for name in ("theme", "source")}
        try:
            cases.append(make_case(f"{prefix}-{number:04d}", content, **facts))
        except BadInput as error:
            raise BadInput(f"{path}, row {number}: {error}") from None
    return cases
