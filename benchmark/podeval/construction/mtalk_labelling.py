"""Filter raw dialogues for an MTalk-Bench: does the last turn need the others, and what does the dialogue test?

A language model that sees only the user's last turn says whether that is enough; then it names every capability of the
taxonomy that the dialogue calls for, and a smaller model the foremost of them (appendix B.1, scripts 2 and 3).
Dialogues whose users say nearly the same as others' are taken out. Where the foremost capability is not the ordered
one, people decide.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from podeval.construction.mtalk_writing import CAPABILITIES, Raw
from podeval.construction.near_duplicates import find_near_duplicates
from podeval.construction.review import ReviewRow
from podeval.construction.staged_rows import LeftOut, Sifted, StagedRow, ask_each
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked

INDEPENDENT, ALIKE = "independence", "de-duplication"

Encode = Callable[[Sequence[str]], NDArray[np.floating]]

OTHERS = {
    "paralinguistic_comprehension": "hearing how something is said: mood, stress, pace, who speaks",
    "paralinguistic_generation": "answering in a certain tone, pace or manner",
    "ambient_sound_perception": "making sense of sounds around the user",
    "multi_party_interaction": "talking with several people at once",
}
"""The capabilities that no words alone can test; a dialogue that calls for one may be tagged for it later."""

ALL: Mapping[str, str] = {name: tested.what for name, tested in CAPABILITIES.items()} | OTHERS


class Alone(JudgeAnswer):
    """Whether the last turn can be answered without the others."""

    enough: bool = Field(description="true if the last turn alone is enough for a good answer")
    because: str = Field(description="one sentence: what is missing, or why nothing is")


class Label(JudgeAnswer):
    """A capability, and what in the dialogue calls for it."""

    capability: str = Field(json_schema_extra={"enum": list(ALL)})
    because: str


class Labels(JudgeAnswer):
    """Every capability that a dialogue calls for."""

    labels: list[Label] = Field(min_length=1)


class Foremost(JudgeAnswer):
    """The capability that a dialogue tests above all."""

    capability: str = Field(json_schema_extra={"enum": list(CAPABILITIES)})


class Labelled(StagedRow):
    """A dialogue with its labels in the order they were given, most relevant first, and the reasons."""

    raw: Raw
    labels: dict[str, str]

    @property
    def semantic(self) -> list[str]:
        """The labels that words alone can test."""
        return [name for name in self.labels if name in CAPABILITIES]


class DialogueCandidate(Labelled):
    """A dialogue for people to decide on: `foremost` is the inferred capability."""

    foremost: str

    @property
    def agreed(self) -> bool:
        """Whether the inferred capability is the ordered one."""
        return self.foremost == self.raw.capability


def keep_dependent(rows: Sequence[Raw], judging: Asked) -> Sifted[Raw]:
    """Keep the dialogues whose last turn cannot be answered well without the others."""
    result: Sifted[Raw] = Sifted()
    answered, result.waiting = ask_each(judging, rows, Alone, _request_independence)
    for raw, alone in answered:
        if alone.enough:
            reason = f"its last turn needs nothing of the others: {alone.because}"
            result.left_out.append(LeftOut(id=raw.id, step=INDEPENDENT, reason=reason))
        else:
            result.kept.append(raw)
    return result


def label_dialogues(rows: Sequence[Raw], judging: Asked) -> Sifted[Labelled]:
    """Have every dialogue labelled with the capabilities that it calls for."""
    result: Sifted[Labelled] = Sifted()
    answered, result.waiting = ask_each(judging, rows, Labels, _request_labels)
    for raw, answer in answered:
        labels = {one.capability: " ".join(one.because.split()) for one in answer.labels}
        result.kept.append(Labelled(id=raw.id, raw=raw, labels=labels))
    return result


def infer_foremost(rows: Sequence[Labelled], judging: Asked) -> Sifted[DialogueCandidate]:
    """Have the foremost label of every dialogue inferred; a single label needs no judge."""
    result: Sifted[DialogueCandidate] = Sifted()
    clear = {row.id: row.semantic[0] for row in rows if len(row.semantic) == 1}
    answered, result.waiting = ask_each(
        judging, [row for row in rows if row.id not in clear], Foremost, _request_foremost
    )
    clear |= {row.id: answer.capability for row, answer in answered}
    result.kept = [DialogueCandidate(**row.model_dump(), foremost=clear[row.id]) for row in rows if row.id in clear]
    return result


def deduplicate(rows: Sequence[DialogueCandidate], encode: Encode) -> Sifted[DialogueCandidate]:
    """Take out dialogues that say nearly the same as an earlier one."""
    if not rows:
        return Sifted()
    embeddings = encode([" ".join(turn.user for turn in row.raw.turns) for row in rows])
    alike = {duplicate.row: duplicate for duplicate in find_near_duplicates(embeddings)}
    result: Sifted[DialogueCandidate] = Sifted()
    for number, row in enumerate(rows):
        if number in alike:
            reason = f"its user says nearly what that of {rows[alike[number].of].id} says ({alike[number].cosine:.2f})"
            result.left_out.append(LeftOut(id=row.id, step=ALIKE, reason=reason))
        else:
            result.kept.append(row)
    return result


def make_review_row(row: DialogueCandidate) -> ReviewRow:
    """Make the row that a reviewer sees of a candidate: its words may be corrected, and the capability is decided."""
    context = {
        "scenario": row.raw.scenario,
        "ordered": row.raw.capability,
        "inferred": row.foremost,
        "agreed": "yes" if row.agreed else "no",
        "labels": "\n".join(f"{name}: {because}" for name, because in row.labels.items()),
        "dialogue": row.raw.lines,
        "last answer needs": f"turn {', '.join(map(str, row.raw.needs))}: {row.raw.because}",
    }
    user = "\n".join(turn.user for turn in row.raw.turns)
    return ReviewRow(row.id, context, {"user": user, "capability": row.foremost if row.agreed else ""})


ALONE_PROMPT = Prompt(
    name="mtalk_alone",
    version="1.0",
    system="You check dialogues that spoken assistants are tested with.",
    template=(
        "Somebody says this to a spoken assistant, and you know nothing of what was said before:\n{turn}\n\n"
        "Could a careful assistant answer this well, as it stands, without asking back and without guessing?"
    ),
    answer=Alone,
    source="MTalk-Bench appendix B.1 (the last turn depends on earlier ones), wording of our own",
)

LABELS_PROMPT = Prompt(
    name="mtalk_labels",
    version="1.0",
    system="You label dialogues that spoken assistants are tested with.",
    template=(
        "A dialogue:\n{dialogue}\n\nName every capability that a good assistant needs here, most needed first, and "
        "what in the dialogue calls for it. The capabilities:\n"
        + "\n".join(f"- {name}: {what}" for name, what in ALL.items())
    ),
    answer=Labels,
    source="MTalk-Bench appendix B.1 (script 2), wording of our own",
)

FOREMOST_PROMPT = Prompt(
    name="mtalk_foremost",
    version="1.0",
    system="You sort dialogues that spoken assistants are tested with.",
    template=(
        "What a dialogue calls for, by somebody who read it:\n{labels}\n\nWhich one of these does it test above all?"
    ),
    answer=Foremost,
    source="MTalk-Bench appendix B.1 (script 3), wording of our own",
)


def _request_independence(raw: Raw) -> JudgeRequest:
    return JudgeRequest(ALONE_PROMPT, {"turn": raw.turns[-1].user})


def _request_labels(raw: Raw) -> JudgeRequest:
    return JudgeRequest(LABELS_PROMPT, {"dialogue": raw.lines}, check=_check_labels)


def _request_foremost(row: Labelled) -> JudgeRequest:
    def check(answer: Foremost) -> None:
        if answer.capability not in row.semantic:
            raise ValueError(f"{answer.capability} is not among the labels {', '.join(row.semantic)}")

    lines: Any = (f"{name}: {row.labels[name]}" for name in row.semantic)
    return JudgeRequest(FOREMOST_PROMPT, {"labels": "\n".join(lines)}, check=check)


def _check_labels(answer: Labels) -> None:
    names = [one.capability for one in answer.labels]
    if unknown := [name for name in names if name not in ALL]:
        raise ValueError(f"there is no capability {unknown[0]!r}")
    if len(set(names)) < len(names):
        raise ValueError("a capability is there twice")
    if not any(name in CAPABILITIES for name in names):
        raise ValueError(f"at least one should be of {', '.join(CAPABILITIES)}, which words alone can test")
