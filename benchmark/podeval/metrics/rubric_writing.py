"""Criteria and checklists written by a judge, and the file in which a person decides on each of them before they are
used.

Sample-specific criteria are derived from the user's words, for the whole dialogue and, if requested, for the dialogue
cut off at each earlier turn (MTalk-Bench, section 5.2.1 and appendix D.2). Checklists are derived from requests
(PodBench). Criteria and checklists are stored in YAML files: every entry has a `decision`, which is `open` until a
person sets it to `accept` or `reject`. The wording may be changed, and entries may be added. A file cannot be used
while any entry is open.

Differs from MTalk-Bench in not showing the judge any system's answers, so the same criteria fit every system.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from podeval.errors import BadInput
from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics.checklists import derive
from podeval.metrics.spoken_dialogue import CAPABILITIES, DIMENSION, GENERAL, SpokenDialogue
from podeval.text.characters import keep_letters
from podeval.text.podcast_request import PodcastRequest
from podeval.text.yaml_text import describe_place, read_yaml_file

FEWEST, MOST = 3, 5
"""Minimum and maximum numbers of criteria to write for a sample; together with the four standing criteria, these make
seven to nine, as in the paper.
"""

_ABOUT = {
    "semantic": "what is meant: references, instructions, memory over turns, reasoning",
    "paralinguistic": "how the user speaks: feeling, tone, pace, hesitation, and whether the answers take it up",
    "ambient": "the sounds around the user, and whether the answers take them into account",
}


class WrittenCriterion(JudgeAnswer):
    """One criterion."""

    criterion: str = Field(min_length=10, description="one sentence that is true or false of the system's answers")


class WrittenCriteria(JudgeAnswer):
    """Criteria for one dialogue."""

    criteria: list[WrittenCriterion] = Field(min_length=FEWEST, max_length=MOST)


WRITE = Prompt(
    name="sample_criteria",
    version="1.0",
    system=(
        "You write marking schemes for spoken dialogue systems: criteria that two markers who have never met would "
        "decide in the same way."
    ),
    template="""\
A user says this to a system that answers each turn in speech; sounds and tones stand in brackets. What the system \
answers is not known yet.
{user_turns}

The criteria are about:
{aim}

Criteria that exist already, for every dialogue; do not repeat them:
{existing}

Write 3 to 5 further criteria for the system's answers to this user. Each
- is one sentence that is either met or not, and can be decided from the answers alone;
- names what in this dialogue it is about (which turn, which word, which sound, which feeling);
- asks for one thing only, and leaves no room for taste.""",
    answer=WrittenCriteria,
    source="MTalk-Bench section 5.2.1 and appendix C.2.2; the paper prints no prompt",
)


class ReviewedCriterion(BaseModel):
    """A criterion or requirement, with a person's decision on it."""

    model_config = ConfigDict(extra="forbid")
    text: str = Field(min_length=1)
    kind: Literal["explicit", "implied"] | None = None
    decision: Literal["open", "accept", "reject"] = "open"


class ReviewItem(BaseModel):
    """The criteria written for a dialogue, for a dialogue cut off at a turn, or for a request."""

    model_config = ConfigDict(extra="forbid")
    id: str
    turn: int | None = None
    entries: list[ReviewedCriterion]


class ReviewFile(BaseModel):
    """A file of written criteria, with a person's decision on each."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["rubrics", "checklists"]
    judge: str
    prompt: str
    items: list[ReviewItem]

    @property
    def open(self) -> int:
        """The number of entries without a decision."""
        return sum(entry.decision == "open" for item in self.items for entry in item.entries)

    def accepted(self, name: str, turn: int | None = None) -> list[ReviewedCriterion] | None:
        """Return the accepted criteria for a dialogue or request; None if the file contains none.

        Raises:
            BadInput: an entry is still open.
        """
        if self.open:
            raise BadInput(
                f"{self.open} entries of the review file are open; first set the decision of each to accept or reject"
            )
        items = [item for item in self.items if (item.id, item.turn) == (name, turn)]
        return [entry for item in items for entry in item.entries if entry.decision == "accept"] if items else None


def write_criteria(dialogue: SpokenDialogue, turn: int | None = None) -> Conversation[ReviewItem]:
    """Ask the judge to write the criteria for a dialogue, or for the dialogue cut off at a turn."""
    turns = dialogue.turns if turn is None else dialogue.turns[:turn]
    transcript = "\n".join(
        f"Turn {number}: {exchange.user}{''.join(f' [{tag}]' for tag in exchange.user_tags)}"
        for number, exchange in enumerate(turns, 1)
    )
    existing = [*GENERAL[dialogue.dimension], *DIMENSION[dialogue.dimension]]
    capability = CAPABILITIES.get(dialogue.capability or "")
    aim = _ABOUT[dialogue.dimension] + (f"; in particular {capability}" if capability else "")
    inputs = {"user_turns": transcript, "aim": aim, "existing": "\n".join(existing)}
    answers = yield [JudgeRequest(WRITE, inputs, check=partial(_require_new, existing=existing))]
    written = select_values(WrittenCriteria, answers)[0].criteria
    return ReviewItem(id=dialogue.id, turn=turn, entries=[ReviewedCriterion(text=one.criterion) for one in written])


def write_checklist(name: str, request: PodcastRequest) -> Conversation[ReviewItem]:
    """Ask the judge to write the checklist for a request."""
    requirements, _ = yield from derive(request)
    return ReviewItem(id=name, entries=[ReviewedCriterion(text=one.requirement, kind=one.kind) for one in requirements])


def _require_new(answer: Any, existing: Sequence[str]) -> None:
    texts = [keep_letters(one.criterion) for one in answer.criteria]
    if len(set(texts)) < len(texts) or not set(texts).isdisjoint(map(keep_letters, existing)):
        raise ValueError("a criterion appears twice, or already exists; write different ones")


_HEADER = """\
# Written by a judge. Nothing here is used until a person has set every `decision` to accept or reject.
# The wording of an entry may be changed, and entries may be added.
"""


def save_review(review: ReviewFile, path: Path) -> None:
    """Write a review file.

    Raises:
        BadInput: the file already exists and may contain decisions.
    """
    import yaml

    if path.exists():
        raise BadInput(
            f"{path} exists and may contain a person's decisions; choose another name or move that file elsewhere"
        )
    data = review.model_dump(exclude_none=True)
    path.write_text(_HEADER + yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=110), encoding="utf-8")


def load_review(path: Path) -> ReviewFile:
    """Read a review file.

    Raises:
        BadInput: the file is not a review file; the message says why.
    """
    try:
        return ReviewFile.model_validate(read_yaml_file(path, trusted=True))
    except pydantic.ValidationError as error:
        raise BadInput(f"{path} is not a review file: {'; '.join(_places(error, path))}") from None


def _places(error: pydantic.ValidationError, path: Path) -> Iterator[str]:
    for problem in error.errors(include_url=False)[:3]:
        position = describe_place(path, problem["loc"]).removeprefix(f"{path}, ")
        yield f"{position}: {'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}"
