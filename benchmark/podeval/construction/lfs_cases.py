"""The cases of an LFS-Bench under construction: their published schema, cleaning, and the file that each belongs to.

A case is kept as the authors publish theirs (`content`, `num_speakers`, `theme`, `source`, `scene`, `language`), with
an id and the results of the steps, so that a finished case is a row of a source of the dataset `lfs_bench`.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podeval.construction.staged_rows import StagedRow, describe_validation_error
from podeval.errors import BadInput
from podeval.text.text_file import read_text
from podeval.text.tokens import tokenise

CODES: dict[str, Literal["en", "zh"]] = {"english": "en", "chinese": "zh"}

_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s，。；、）)\]】》]+")
_GARBLED = re.compile("[\ufffd\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe0e\ufe0f]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE = re.compile(r"\[([^\]\n]+)\] ?(.*)")


class CaseTurn(BaseModel):
    """A turn: what one speaker says without a break."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    speaker: str
    text: str


class Case(StagedRow):
    """A text to be spoken."""

    content: tuple[CaseTurn, ...] = Field(min_length=1)
    num_speakers: int = Field(ge=1)
    theme: str
    source: str
    scene: str
    language: Literal["english", "chinese"]
    order: str = ""
    """The order it was written to; "" where it was not written for this dataset."""

    @property
    def text(self) -> str:
        """All words of the turns."""
        return " ".join(turn.text for turn in self.content)

    @property
    def lines(self) -> str:
        """One line for each turn, `[speaker] words`, as people and judges see it."""
        return "\n".join(f"[{turn.speaker}] {turn.text}" for turn in self.content)

    @property
    def length(self) -> int:
        """Number of words in English, of characters in Chinese, without punctuation."""
        if self.language == "chinese":
            return sum(character.isalnum() for character in self.text)
        return sum(any(character.isalnum() for character in token) for token in tokenise(self.text, "en"))

    @property
    def part(self) -> str:
        """The published file it belongs to: mono, two or multi."""
        return {1: "mono", 2: "two"}.get(self.num_speakers, "multi")


def make_case(name: str, turns: Sequence[Mapping[str, Any] | CaseTurn], **facts: Any) -> Case:
    """Make a case from turns: clean them, drop empty ones, count the speakers.

    Raises:
        BadInput: it has no words, or a fact is missing.
    """
    cleaned = [
        CaseTurn(speaker=clean(str(_get(turn, "speaker"))) or "Speaker1", text=clean(str(_get(turn, "text"))))
        for turn in turns
    ]
    content = tuple(turn for turn in cleaned if turn.text)
    if not content:
        raise BadInput(f"{name} has no words")
    try:
        return Case(id=name, content=content, num_speakers=len({turn.speaker for turn in content}), **facts)
    except ValidationError as error:
        raise BadInput(f"{name}: {describe_validation_error(error)}") from None


def clean(text: str) -> str:
    """Clean a text that is to be spoken: drop web addresses, emojis, control and garbled characters, and line ends."""
    bare = _GARBLED.sub("", _ADDRESS.sub("", text))
    spoken = "".join(character for character in bare if unicodedata.category(character) not in ("So", "Co", "Cn"))
    return " ".join(spoken.split())


def parse_turns(lines: str) -> list[CaseTurn]:
    """Parse the turns of a text in the form of `Case.lines`, perhaps corrected by a person.

    Raises:
        BadInput: a line does not begin with its speaker in brackets.
    """
    turns = []
    for number, line in enumerate((line for line in lines.splitlines() if line.strip()), 1):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadInput(f"line {number} is {line[:40]!r}; it should be [speaker] and the words")
        turns.append(CaseTurn(speaker=match[1].strip(), text=match[2].strip()))
    return turns


def read_cases(path: Path, prefix: str) -> list[Case]:
    """Read cases from a file in the published schema; the id of each is made of `prefix` and its line.

    Raises:
        BadInput: a row is not a case; the message says which and what is wrong.
    """
    cases = []
    # By line feeds only: texts may hold other characters that Python takes for the end of a line.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{path}, row {number} is not JSON ({error})") from None
        if not isinstance(raw, Mapping) or not isinstance(raw.get("content"), list):
            raise BadInput(f"{path}, row {number} has no list of turns under content")
        facts = {"theme": raw.get("theme") or "", "source": raw.get("source") or ""}
        try:
            cases.append(
                make_case(
                    f"{prefix}-{number:04d}",
                    [turn for turn in raw["content"] if isinstance(turn, Mapping)],
                    **facts,
                    scene=raw.get("scene"),
                    language=raw.get("language"),
                )
            )
        except BadInput as error:
            raise BadInput(f"{path}, row {number}: {error}") from None
    return cases


def render_published(case: Case) -> str:
    """Render the case as a line of one of the published files."""
    row = case.model_dump(mode="json", include={"content", "num_speakers", "theme", "source", "scene", "language"})
    return json.dumps(row, ensure_ascii=False)


def _get(turn: Mapping[str, Any] | CaseTurn, name: str) -> Any:
    return (getattr(turn, name) if isinstance(turn, CaseTurn) else turn.get(name)) or ""
