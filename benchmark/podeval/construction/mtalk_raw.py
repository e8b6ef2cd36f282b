"""Make the semantic dialogues of an MTalk-Bench dataset from scenarios and capabilities: write, label, infer and
select.

A language model that sees only the user's last turn decides whether that turn can be answered without the earlier
turns. A language model then reads the whole dialogue and names every capability of the taxonomy that it requires, and a
smaller model names the main capability (appendix B.1, scripts 2 and 3). If the main capability differs from the ordered
capability, people decide between the two. The folder contains `orders.jsonl`, `raw.jsonl`, `labelled.jsonl`,
`candidates.jsonl` with the table `candidates.csv` for people's decisions, and then `dialogues.jsonl` for the later
steps.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from podeval.construction.mtalk_tagging import DIALOGUES, Dialogue
from podeval.construction.mtalk_writing import (
    ARENA_PROMPTS,
    CAPABILITIES,
    SCENES,
    DialogueOrder,
    Raw,
    find_user_fault,
    make_dialogue,
    place_orders,
    request_dialogue,
)
from podeval.construction.review import ReviewRow, apply_review, lay_out
from podeval.construction.workshop import (
    ALIKE,
    ORDERS,
    Encode,
    Names,
    Sifted,
    StagedRow,
    Step,
    Workshop,
    ask_each,
    drop_near_duplicates,
    write_ordered,
)
from podeval.errors import BadInput, require_known
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt

RAW, LABELLED, CANDIDATES = "raw.jsonl", "labelled.jsonl", "candidates.jsonl"
TABLE, INDEPENDENT, REVIEW = "candidates.csv", "independence", "review of candidates"

LEAST = 10
"""Minimum number of dialogues per capability in the paper."""

RETAINED = 0.19
"""Share of the candidates that the paper retains."""

OTHERS = {
    "paralinguistic_comprehension": "hearing how something is said: mood, stress, pace, who speaks",
    "paralinguistic_generation": "answering in a certain tone, pace or manner",
    "ambient_sound_perception": "making sense of sounds around the user",
    "multi_party_interaction": "talking with several people at once",
}
"""The capabilities that words alone cannot test; a dialogue that requires such a capability may be tagged for it
later.
"""

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


class Candidate(StagedRow):
    """A dialogue with its labels and reasons, most relevant first, and the main capability once it has been
    inferred.
    """

    raw: Raw
    labels: dict[str, str]
    foremost: str = ""

    @property
    def semantic(self) -> list[str]:
        """The labels that can be tested with words alone."""
        return [name for name in self.labels if name in CAPABILITIES]


ALONE_PROMPT = Prompt(
    name="mtalk_alone",
    version="1.0",
    system="You check dialogues that spoken assistants are tested with.",
    template=(
        "Somebody says this to a spoken assistant, and you know nothing of what was said before:\n{turn}\n\n"
        "Could a careful assistant answer this well, as it stands, without asking back and without guessing?"
    ),
    answer=Alone,
    source="MTalk-Bench appendix B.1 (the last turn depends on earlier ones), in our own words",
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
    source="MTalk-Bench appendix B.1 (script 2), in our own words",
)

FOREMOST_PROMPT = Prompt(
    name="mtalk_foremost",
    version="1.0",
    system="You sort dialogues that spoken assistants are tested with.",
    template=(
        "What a dialogue calls for, by somebody who read it:\n{labels}\n\nWhich one of these does it test above all?"
    ),
    answer=Foremost,
    source="MTalk-Bench appendix B.1 (script 3), in our own words",
)


def write(
    workshop: Workshop,
    judging: Asked,
    *,
    each: Annotated[int, Field(ge=1, description="candidates per scenario and capability; the paper has 33")] = 1,
    scenarios: Names = tuple(SCENES),
    capabilities: Names = tuple(CAPABILITIES),
) -> None:
    """Have a language model write dialogues between a user and an assistant.

    A later call with the same settings resumes, and replaces dialogues that have since been removed.
    """
    require_known("scenario", SCENES, *scenarios)
    require_known("semantic capability", CAPABILITIES, *capabilities)
    write_ordered(
        workshop,
        RAW,
        (DialogueOrder, Raw),
        lambda before, gone: place_orders(scenarios, capabilities, each, before, gone, judging),
        lambda orders: ask_each(judging, orders, request_dialogue, make_dialogue),
    )


def label(workshop: Workshop, judging: Asked) -> None:
    """Remove dialogues whose last turn needs no context, and label the capabilities that the remaining dialogues
    require.
    """
    rows = workshop.read(RAW, Raw, made_by="write")
    dependent = workshop.settle("independence", keep_dependent(rows, judging))
    workshop.settle("labelled", label_dialogues(dependent, judging), LABELLED)


def infer(workshop: Workshop, judging: Asked, encode: Encode) -> None:
    """Infer the main capability from the labels, remove near-duplicates, and write the table for the review."""
    labelled = workshop.read(LABELLED, Candidate, made_by="label")
    inferred = workshop.settle("inferred", infer_foremost(labelled, judging))
    texts = [" ".join(turn.user for turn in row.raw.turns) for row in inferred]
    candidates = workshop.settle(ALIKE, drop_near_duplicates(inferred, texts, encode), CANDIDATES)
    agreed = sum(row.foremost == row.raw.capability for row in candidates)
    workshop.say(f"capability as requested: {agreed} of {len(candidates)}; people decide about the others")
    workshop.say(f"review: {lay_out(workshop.folder / TABLE, [_make_entry(row) for row in candidates])}")


def select(workshop: Workshop, accept_all: bool) -> None:
    """Read the review of the candidates; later steps use only the accepted dialogues.

    If a candidate's inferred capability differs from the ordered capability, the candidate waits until a person decides
    between the two.
    """
    candidates = workshop.read(CANDIDATES, Candidate, made_by="infer")
    # A dialogue's number is its position among its scenario's orders; orders are added but never removed.
    numbers, placed = dict[str, str](), Counter[str]()
    for order in workshop.read(ORDERS, DialogueOrder):
        placed[order.scenario] += 1
        numbers[order.id] = f"{list(SCENES).index(order.scenario) + 1}-{placed[order.scenario]}"
    capabilities = Counter[str]()

    def revise(row: Candidate, edited: dict[str, str]) -> Dialogue:
        turns = tuple(" ".join(line.split()) for line in edited["user"].splitlines() if line.strip())
        capability = edited["capability"].strip()
        if fault := find_user_fault(turns):
            raise BadInput(fault)
        if capability not in CAPABILITIES:
            raise BadInput(
                f"the capability {row.raw.capability} was requested, but {row.foremost} was inferred; write the "
                f"correct one in the column `capability`"
            )
        capabilities[capability] += 1
        number, prompt = numbers[row.id], ARENA_PROMPTS[capability]
        return Dialogue(id=f"sem-{number}", type="sem", number=number, turns=turns, arena_prompt=prompt)

    review = apply_review(workshop.folder / TABLE, candidates, _make_entry, revise, REVIEW, accept_all)
    kept = workshop.settle(REVIEW, review, DIALOGUES)
    # Compare the numbers with the paper's.
    written = len(workshop.read(RAW, Raw))
    share = len(kept) / max(written, 1)
    workshop.say(f"selected: {len(kept)} of {written} dialogues ({share:.0%}); the paper keeps about {RETAINED:.0%}")
    for name in dict.fromkeys([*capabilities, *(row.raw.capability for row in candidates)]):
        if capabilities[name] < LEAST:
            workshop.say(f"  {name}: {capabilities[name]} dialogues; the paper has at least {LEAST}")


STEPS: Mapping[str, Step] = {"write": write, "label": label, "infer": infer, "select": select}


def keep_dependent(rows: Sequence[Raw], judging: Asked) -> Sifted[Raw]:
    """Keep the dialogues whose last turn cannot be answered well without the earlier turns."""
    return ask_each(
        judging,
        rows,
        lambda raw: JudgeRequest(ALONE_PROMPT, {"turn": raw.turns[-1].user}),
        lambda raw, alone: f"its last turn does not need the earlier turns: {alone.because}" if alone.enough else raw,
        INDEPENDENT,
    )


def label_dialogues(rows: Sequence[Raw], judging: Asked) -> Sifted[Candidate]:
    """Have every dialogue labelled with the capabilities that it requires."""

    def keep(raw: Raw, answer: Labels) -> Candidate:
        labels = {one.capability: " ".join(one.because.split()) for one in answer.labels}
        return Candidate(id=raw.id, raw=raw, labels=labels)

    return ask_each(
        judging, rows, lambda raw: JudgeRequest(LABELS_PROMPT, {"dialogue": raw.lines}, check=_check_labels), keep
    )


def infer_foremost(rows: Sequence[Candidate], judging: Asked) -> Sifted[Candidate]:
    """Have the main capability of every dialogue inferred; a single semantic label does not need a judge."""
    clear = [row.model_copy(update={"foremost": row.semantic[0]}) for row in rows if len(row.semantic) == 1]
    result = ask_each(
        judging,
        [row for row in rows if len(row.semantic) > 1],
        _request_foremost,
        lambda row, answer: row.model_copy(update={"foremost": answer.capability}),
    )
    order = [row.id for row in rows]
    result.kept = sorted([*clear, *result.kept], key=lambda row: order.index(row.id))
    return result


def _request_foremost(row: Candidate) -> JudgeRequest:
    labels = "\n".join(f"{name}: {row.labels[name]}" for name in row.semantic)
    return JudgeRequest(FOREMOST_PROMPT, {"labels": labels}, check=partial(_check_foremost, row))


def _check_foremost(row: Candidate, answer: Foremost) -> None:
    if answer.capability not in row.semantic:
        raise ValueError(f"{answer.capability} is not among the labels {', '.join(row.semantic)}")


def _make_entry(row: Candidate) -> ReviewRow:
    """Make the row for a reviewer, who may correct the words and who decides on the capability."""
    agreed = row.foremost == row.raw.capability
    context = {
        "scenario": row.raw.scenario,
        "ordered": row.raw.capability,
        "inferred": row.foremost,
        "agreed": "yes" if agreed else "no",
        "labels": "\n".join(f"{name}: {because}" for name, because in row.labels.items()),
        "dialogue": row.raw.lines,
        "last answer needs": f"turn {', '.join(map(str, row.raw.needs))}: {row.raw.because}",
    }
    user = "\n".join(turn.user for turn in row.raw.turns)
    return ReviewRow(row.id, context, {"user": user, "capability": row.foremost if agreed else ""})


def _check_labels(answer: Labels) -> None:
    names = [one.capability for one in answer.labels]
    if unknown := [name for name in names if name not in ALL]:
        raise ValueError(f"there is no capability {unknown[0]!r}")
    if len(set(names)) < len(names):
        raise ValueError("a capability appears twice")
    if not any(name in CAPABILITIES for name in names):
        raise ValueError(f"at least one label must be {', '.join(CAPABILITIES)}, which can be tested with words alone")
