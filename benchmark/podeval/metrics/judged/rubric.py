"""Rubric: the share of a dialogue's criteria that the answers of a spoken dialogue system meet.

A judge answers each criterion with 1 or 0. Criteria have three levels: general, specific to the dimension (semantic,
paralinguistic, ambient), and specific to the sample. The value of a dialogue is 100 times the mean over its criteria, 0
to 100, higher is better. Values are also given for each level, for the dialogue's dimension, for `capability.…` and
`scenario.…`, and for turns (`turn_1` and so on) if criteria were written for the dialogue up to that turn. The judge
either listens to the recordings or reads transcripts with sounds and tones in brackets; these are two protocols.
Dialogues about tone of voice (`paralinguistic`) and surrounding sounds (`ambient`) are unscored if the judge reads
plain words: it must hear the answers, or a listener must have noted at least one sound or tone for every answer
(`answer_tags`). With `modality=as_needed`, the judge listens to those dialogues and reads the others. MTalk-Bench,
section 5.2.

`no_occasion` determines how a criterion is scored if the dialogue gives no occasion for it: `judged` leaves it to the
judge, as the paper's prompts do; `met` counts it as met, as the paper's form for people does ("when an opportunity was
present").

Differs from the paper's printed figures, which are pooled over criteria, although its formulas 3 and 4 take the mean
over dialogues of the mean over criteria (`variant="mtalk"` pools, and samples at temperature 0.1). Each verdict comes
with a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from pydantic import Field, model_validator

from podeval.judges import AudioClip, Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Reach, Result, Score, Unscored, facts, metric
from podeval.metrics.spoken_dialogue import (
    BRACKETS,
    LEVELS,
    Criterion,
    Level,
    Modality,
    SpokenDialogue,
    Transcripts,
)

PROTOCOL = """\
Rubrics for spoken dialogues: criteria that are met or not (MTalk-Bench, section 5.2).

There are three levels of criteria: general (for every dialogue), of the dimension, and of the sample. A judge decides
each criterion on its own and gives a reason; the first two levels are one question and the sample's another, as in the
paper's code. The judge reads a dialogue as a transcript with sounds and tones in brackets, or listens to it. For turn
scores, the dialogue is cut off at a turn, and the criteria are those written for that turn.

Differs from the paper's prompts in asking for a reason with each verdict, and in checking that every criterion has one.
"""
"""Description of the question, for the prompts page of the docs."""

NoOccasion = Literal["judged", "met"]


class Verdict(JudgeAnswer):
    """One criterion: 1 met, 0 not met."""

    criterion: str = Field(description="id of the criterion")
    reason: str = Field(default="", description="what in the dialogue decides it")
    met: int = Field(ge=0, le=1)


class Verdicts(JudgeAnswer):
    """Every criterion, in its order."""

    verdicts: list[Verdict] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _as_the_paper_writes(cls, data: Any) -> Any:
        """Read verdicts in the paper's form, `{"criteria_s_1": 1, …}`."""
        if isinstance(data, Mapping) and "verdicts" not in data and any(str(k).startswith("criteria_") for k in data):
            return {"verdicts": [{"criterion": name, "met": met} for name, met in data.items()]}
        return data


_SYSTEM = (
    "You check the answers of a spoken dialogue system against criteria. You decide each criterion on its own, by what "
    "the dialogue holds and nothing else; you do not guess what was meant."
)
_SOURCE = "MTalk-Bench figures 16 to 18, in our own words"
_TASK = """\

The criteria:
{criteria}

Decide each criterion, in the given order, under its id: what in the system's answers decides it, then
"""
_VERDICTS: Mapping[NoOccasion, str] = {
    "judged": "1 if the answers satisfy it, 0 if they do not.",
    "met": """\
1 if the answers satisfy it (also where the dialogue gives no occasion for it and nothing goes against it),
0 if there was an occasion and they do not.""",
}


@cache
def build_reading_prompt(no_occasion: NoOccasion = "judged") -> Prompt:
    """Return the prompt for a dialogue that is read."""
    return Prompt(
        name="rubric_transcript",
        version="1.1",
        system=_SYSTEM,
        template="A user speaks with a system that answers in speech. Below is what was said, turn by turn. "
        f"{BRACKETS}\n{{dialogue}}\n{_TASK}{_VERDICTS[no_occasion]}",
        answer=Verdicts,
        source=_SOURCE,
    )


@cache
def build_hearing_prompt(turns: int, no_occasion: NoOccasion = "judged") -> Prompt:
    """Return the prompt for a dialogue that is heard, with this many turns."""
    turns_text = "\n".join(
        f"Turn {n}, user:\n{{user_{n}}}\nTurn {n}, system:\n{{answer_{n}}}" for n in range(1, turns + 1)
    )
    return Prompt(
        name=f"rubric_audio_{turns}",
        version="1.1",
        system=_SYSTEM,
        template="A user speaks with a system that answers in speech. Listen to all of it, turn by turn: the words, "
        f"how they are said, and what else can be heard.\n{turns_text}\n{_TASK}{_VERDICTS[no_occasion]}",
        answer=Verdicts,
        source=_SOURCE,
        passages=(("turns", turns_text),),
    )


@dataclass(frozen=True)
class Assessment:
    """The verdicts on the criteria of a dialogue, or of the dialogue cut off at a turn."""

    verdicts: Mapping[Criterion, Verdict]
    turns: Mapping[int, Mapping[Criterion, Verdict]]
    records: tuple[str, ...]


def count_met(verdicts: Mapping[Criterion, Verdict], level: Level | None = None) -> tuple[int, int]:
    """Count the criteria that are met, and all criteria, at one level or at all levels."""
    marks = [verdict.met for criterion, verdict in verdicts.items() if level in (None, criterion.level)]
    return sum(marks), len(marks)


def assess(
    dialogue: SpokenDialogue, modality: Modality = "transcript", no_occasion: NoOccasion = "judged"
) -> Conversation[Assessment]:
    """Ask the judge about the whole dialogue, and about each turn that has criteria of its own."""
    parts = [dialogue, *(dialogue.until(turn) for turn in dialogue.turn_criteria if turn < len(dialogue.turns))]
    questions = [(part, group) for part in parts for group in _groups(part.criteria)]
    clips = dialogue.clips() if modality == "audio" else {}
    answers = yield [_question(part, group, modality, clips, no_occasion) for part, group in questions]
    by_turns: dict[int, dict[Criterion, Verdict]] = {}
    for (part, group), answer in zip(questions, select_values(Verdicts, answers), strict=True):
        by_turns.setdefault(len(part.turns), {}).update(zip(group, answer.verdicts, strict=True))
    last = len(dialogue.turns)
    by_turn = {turn: by_turns[turn] for turn in sorted(by_turns)} if dialogue.turn_criteria else {}
    return Assessment(by_turns[last], by_turn, tuple(answer.record_id for answer in answers))


def _groups(criteria: Sequence[Criterion]) -> list[list[Criterion]]:
    """Group the criteria that are judged together: the standing criteria, and those for the sample."""
    standing = [criterion for criterion in criteria if criterion.level != "sample"]
    sample = [criterion for criterion in criteria if criterion.level == "sample"]
    return [group for group in (standing, sample) if group]


def _question(
    dialogue: SpokenDialogue,
    group: list[Criterion],
    modality: Modality,
    recordings: Mapping[str, AudioClip],
    no_occasion: NoOccasion,
) -> JudgeRequest:
    numbered = "\n".join(f"{criterion.id}: {criterion.text}" for criterion in group)
    check = partial(_require_all, ids=[criterion.id for criterion in group])
    if modality == "transcript":
        texts = {"dialogue": dialogue.transcript, "criteria": numbered}
        return JudgeRequest(build_reading_prompt(no_occasion), texts, check=check)
    prompt = build_hearing_prompt(len(dialogue.turns), no_occasion)
    clips = {name: recordings[name] for name in prompt.placeholders if name in recordings}
    return JudgeRequest(prompt, {**clips, "criteria": numbered}, check=check)


def _require_all(answer: Any, ids: list[str]) -> None:
    answered = [verdict.criterion for verdict in answer.verdicts]
    if answered != ids:
        raise ValueError(f"give a verdict for {', '.join(ids)}, each once and in this order, not {', '.join(answered)}")


def _prompts(parameters: Mapping[str, Any]) -> tuple[Prompt, ...]:
    """Return the prompts; for audio, the prompt for one turn represents the equally worded ones for more turns."""
    no_occasion, modality = parameters["no_occasion"], parameters["modality"]
    reading, hearing = build_reading_prompt(no_occasion), build_hearing_prompt(1, no_occasion)
    return {"transcript": (reading,), "audio": (hearing,), "as_needed": (reading, hearing)}[modality]


@metric(
    name="rubric",
    title="Rubric",
    version="1.2",
    dimension="dialogue.rubric",
    keys=(
        Key(
            "rubric",
            "higher",
            "%",
            (0, 100),
            about="all criteria; for dialogues about tone and sounds, only if a judge hears them or reads noted tones",
            reach=Reach(facts.MTALK_RUBRIC, people=(51.1, 70.0)),
        ),
        Key(
            "general",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="criteria that apply to every dialogue",
        ),
        Key(
            "dimension",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="criteria of the dialogue's dimension",
        ),
        Key(
            "sample",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="criteria written for the dialogue",
        ),
        Key(
            "semantic",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="all criteria, in dialogues about meaning; judged by ear or from words",
        ),
        Key(
            "paralinguistic",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="all criteria, in dialogues about the manner of speaking; judged by ear or from noted tones",
        ),
        Key(
            "ambient",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            about="all criteria, in dialogues about surrounding sounds; judged by ear or from noted tones",
        ),
    ),
    paper="MTalk-Bench",
    caution=(
        "A transcript written by the system itself is only a claim: text in brackets is shown to the judge as quoted "
        "words, and counted in the notes (`brackets_claimed`). Whether an answer is in the user's language is not "
        "measured; only the judge, or a criterion that asks for it, can notice."
    ),
    needs=("transcriber",),
    asks=JudgeUse(
        prompts=_prompts, sampling=lambda chosen: {"temperature": 0.1} if chosen["variant"] == "mtalk" else {}
    ),
    intended_use="Comparing spoken dialogue systems by yes-or-no criteria written for each dialogue.",
    limitations=(
        "Criteria are both written and judged by language models. With `no_occasion=met`, a criterion for which a "
        "dialogue gives no occasion counts as met, which flatters passive systems. Words alone do not convey tone of "
        "voice, so dialogues about it are unscored if the judge reads nothing else."
    ),
)
def rubric(
    dialogue: SpokenDialogue,
    *,
    modality: Modality = "transcript",
    variant: Literal["default", "mtalk"] = "default",
    no_occasion: NoOccasion = "judged",
    transcripts: Transcripts = "claimed",
) -> Conversation[Result]:
    """Score one dialogue.

    Args:
        dialogue: the words of the user and the system, with the criteria.
        modality: the form in which the judge receives dialogues: `transcript` to read, `audio` to listen to; with
            `as_needed`, it reads dialogues about meaning or with noted tones, and listens to the others.
        variant: `mtalk` pools over criteria, as for the printed figures, and samples at the public code's temperature.
        no_occasion: treatment of a criterion for which there is no occasion: `judged` leaves it to the judge, `met`
            counts it as met.
        transcripts: `claimed` shows the judge the system's own transcript, marked as its claim; `heard` shows a
            transcript of the system's audio.
    """
    modality = dialogue.choose_modality(modality)
    if unheard := dialogue.explain_unheard(modality):
        return Unscored(unheard, "ours")
    if modality == "transcript" and transcripts == "heard":
        dialogue = dialogue.transcribe_answers()
    assessment = yield from assess(dialogue, modality, no_occasion=no_occasion)
    shares = _shares(dialogue, assessment)
    return Score(
        values={key: 100 * met / count for key, (met, count) in shares.items()},
        weights={key: float(count) for key, (_, count) in shares.items()} if variant == "mtalk" else {},
        notes={
            "criteria": {
                criterion.id: {"criterion": criterion.text, "met": verdict.met, "reason": verdict.reason}
                for criterion, verdict in assessment.verdicts.items()
            },
            "judged_from": dialogue.name_source(modality),
            **dialogue.claims,
            "records": list(assessment.records),
        },
    )


def _shares(dialogue: SpokenDialogue, assessment: Assessment) -> dict[str, tuple[int, int]]:
    """Count the met criteria and all criteria, by key."""
    whole = count_met(assessment.verdicts)
    shares: dict[str, tuple[int, int]] = {"rubric": whole}
    shares |= {level: count_met(assessment.verdicts, level) for level in LEVELS}
    shares[dialogue.dimension] = whole
    for name in ("capability", "scenario"):
        if value := getattr(dialogue, name):
            shares[f"{name}.{value}"] = whole
    shares |= {f"turn_{turn}": count_met(verdicts) for turn, verdicts in assessment.turns.items()}
    return {key: counted for key, counted in shares.items() if counted[1]}
