"""Tag dialogues of an MTalk-Bench dataset with the manner of speech and the surrounding sounds.

A tag is written in parentheses where it applies, as in "(anxious tone) My parcel should have come." Two annotators work
independently (a judge asked twice, or people), and a third resolves the differences in the review (paper, section 4.1
and appendix B.2). The words must not change: if the words of an answer differ from those of the dialogue, another
answer is requested.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import Field

from podeval.construction.review import ReviewRow
from podeval.construction.workshop import StagedRow, WaitingRow, ask_each
from podeval.datasets.mtalk_turns import split_tags
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt

Kind = Literal["sem", "para", "amb"]

DIALOGUES = "dialogues.jsonl"
ANNOTATORS = 2
PROMPTS = ("arena_prompt", "rubric_prompt_general", "rubric_prompt_specific")
KINDS: Mapping[str, Kind] = {"paralinguistic": "para", "ambient": "amb"}


class Dialogue(StagedRow):
    """The user's side of a dialogue; `number` combines the numbers of the scenario and the dialogue, as in `3-12`.

    `profile` names the voice profile for the audio, or is "" for the reader's own voice. `variants` contains the
    prompts of its tagged variants by type, because the prompts of the semantic dialogue ask about other aspects.
    """

    type: Kind
    number: str = Field(pattern=r"^[1-9]-[1-9]\d*$")
    turns: tuple[str, ...] = Field(min_length=1)
    arena_prompt: str = ""
    rubric_prompt_general: str = ""
    rubric_prompt_specific: str = ""
    profile: str = ""
    variants: dict[Literal["para", "amb"], dict[str, str]] = Field(default_factory=dict)

    def variant(self, kind: Kind) -> "Dialogue":
        """Return the copy of the dialogue for tags of one kind."""
        prompts = self.variants.get(kind, {}) if kind != "sem" else {}
        name = f"{kind}-{self.number}"
        return self.model_copy(
            update={**dict.fromkeys(PROMPTS, ""), **prompts, "id": name, "type": kind, "variants": {}}
        )


class Tagged(StagedRow):
    """A dialogue as the annotators tagged it, turn by turn."""

    dialogue: Dialogue
    versions: tuple[tuple[str, ...], ...]


class Tags(JudgeAnswer):
    """The turns with tags."""

    turns: list[str]


_WHAT = {
    "para": (
        "paralinguistic",
        "how the user speaks: an emotion (anxious tone), a pace or stress (slow pace), a sound of the voice (sighs, "
        "laughs), or who speaks by the voice (child's voice). Tag only what a listener can hear and what ought to "
        "change the answer; one to three tags in a dialogue.",
    ),
    "amb": (
        "ambient",
        "what is heard around the user: a single sound (phone ringing), a lasting one (cafe chatter), a fault of the "
        "line (static interruption), or other people (two people talking in background). Tag only what fits the place "
        "and ought to change the answer; one to three tags in a dialogue.",
    ),
}


def make_tagging_prompt(kind: Kind) -> Prompt:
    """Make the prompt that asks for a dialogue with tags of a kind."""
    name, what = _WHAT[kind]
    return Prompt(
        name=f"mtalk_tags_{name}",
        version="1.0",
        system="You annotate scripts that people will read into a microphone.",
        template=(
            "What the user says in a dialogue, a turn a line:\n{turns}\n\n"
            f"Add {name} tags: {what}\nA tag is one to five words in parentheses, placed where it begins. Change "
            "nothing else: every word and mark stays as it is. Give all turns, in order."
        ),
        answer=Tags,
        source="MTalk-Bench section 4.1 and appendix B.2, in our own words",
    )


def tag_dialogues(dialogues: Sequence[Dialogue], kind: Kind, judging: Asked) -> tuple[list[Tagged], list[WaitingRow]]:
    """Have each semantic dialogue tagged by two annotators.

    Args:
        dialogues: the dialogues; only those of type `sem` are tagged.
        kind: kind of the tags, `para` or `amb`.
        judging: the client for the judge that acts as both annotators, with two seeds.
    """
    plain = [dialogue for dialogue in dialogues if dialogue.type == "sem"]
    waiting: dict[str, WaitingRow] = {}
    versions: dict[str, list[tuple[str, ...]]] = {dialogue.id: [] for dialogue in plain}
    for seed in range(ANNOTATORS):
        result = ask_each(judging, plain, partial(_make_tagging_request, kind, seed), _join_turns)
        waiting |= {one.id: one for one in result.waiting}
        for name, turns in result.kept:
            versions[name].append(turns)
    tagged = [
        Tagged(id=f"{kind}-{dialogue.number}", dialogue=dialogue.variant(kind), versions=tuple(versions[dialogue.id]))
        for dialogue in plain
        if dialogue.id not in waiting
    ]
    return tagged, list(waiting.values())


def make_review_row(row: Tagged) -> ReviewRow:
    """Make the row for the third annotator, who may correct the first version, with one turn per line."""
    context = {"agreed": "yes" if len(set(row.versions)) == 1 else "no"}
    context |= {f"annotator {n}": "\n".join(version) for n, version in enumerate(row.versions, 1)}
    return ReviewRow(row.id, context, {"tagged": "\n".join(row.versions[0])})


def find_tagging_fault(plain: Sequence[str], tagged: Sequence[str]) -> str | None:
    """Return the fault of tagged turns (different turns, different words, or no tag at all), or None."""
    if len(plain) != len(tagged):
        return f"the dialogue has {len(plain)} turns, but the answer has {len(tagged)}"
    tags = 0
    for number, (before, after) in enumerate(zip(plain, tagged, strict=True), 1):
        words, turn_tags = split_tags(after)
        if words.split() != before.split():
            return f"the words of turn {number} are not those of the dialogue: {words[:60]!r}"
        if not all(tag and len(tag.split()) <= 5 for tag in turn_tags):
            return f"a tag in turn {number} is empty or longer than five words"
        tags += len(turn_tags)
    return None if tags else "no turn has a tag"


def _join_turns(dialogue: Dialogue, tags: Tags) -> tuple[str, tuple[str, ...]]:
    return dialogue.id, tuple(" ".join(turn.split()) for turn in tags.turns)


def _check_tags(dialogue: Dialogue, answer: Tags) -> None:
    if fault := find_tagging_fault(dialogue.turns, answer.turns):
        raise ValueError(fault)


def _make_tagging_request(kind: Kind, seed: int, dialogue: Dialogue) -> JudgeRequest:
    prompt = make_tagging_prompt(kind)
    return JudgeRequest(prompt, {"turns": "\n".join(dialogue.turns)}, seed, partial(_check_tags, dialogue))
