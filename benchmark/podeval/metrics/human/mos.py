"""How listeners experience a podcast: seven questions of PodEval's questionnaire, rated 1 to 5, higher is better.

For each question, Q is the mean rating of the listeners, and J is the rating that a judge infers from their written
reasons (one call per question over all systems). The value is the mean of the two, or Q alone if there is no J. `mos`
is the mean over the six questions that apply to every clip, with an interval clustered by listener; music is reported
separately. PodEval section 6. Listeners are excluded if they miscount the speakers, rate music when there is none, give
ratings without a reason, or give the same reason for most of their ratings.

Differs from the paper in not counting the music question for a clip without music (the rating is missing rather than a
3), and in leaving the question out of `mos` altogether: with it included, identical ratings gave 3.71 with music and
4.00 without.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic import Field

from podeval.errors import CannotScore
from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.metrics.human_records import QuestionnaireAnswers
from podeval.stats.questionnaire_scores import (
    MUSIC,
    RATED,
    ClipFacts,
    QuestionnaireAnswer,
    by_listener,
    scores,
    screen_answers,
)

PROTOCOL = """\
Scores from listeners' reasons: one judge call per question, over all systems (PodEval, section 7.3).

The reasons that listeners gave are grouped by system, and the systems are shuffled and numbered, so the judge sees no
names and no fixed order. It summarises the reasons for each system in a sentence and gives a score of 1 to 5.

Differs from the paper, which prints only a prompt of one sentence, in shuffling, in naming the ends of the scale, and
in checking that every system has a score.
"""
"""Description of the question, for the prompts page of the docs."""


class SystemScore(JudgeAnswer):
    """What listeners say of one system."""

    system: int = Field(ge=1, description="number of the system")
    summary: str = Field(min_length=1, description="the comments in one sentence")
    score: float = Field(ge=1, le=5)


class SystemScores(JudgeAnswer):
    """Every system, in its order."""

    systems: list[SystemScore] = Field(min_length=1)


SUMMARISE = Prompt(
    name="justification_scores",
    version="1.0",
    system="You read what listeners wrote about audio they heard, and turn it into figures without adding anything.",
    template="""\
Listeners answered this question about several systems, and gave reasons:
{question}

Their reasons, by system:
{comments}

For each system in the given order: sum up what its listeners say in one sentence, and give a score from 1 (they are \
thoroughly dissatisfied) to 5 (they are thoroughly satisfied) for this question, by these reasons alone. Fractions are \
allowed.""",
    answer=SystemScores,
    source="PodEval section 7.3 (score J), in our own words",
)


QUESTIONS: Mapping[str, str] = {
    "quality": "How satisfied are listeners with the quality of the audio?",
    "expression": "Do listeners like how the speakers express themselves?",
    "delivery": "Is the information delivered well?",
    "music": "Do music and sound effects help or disturb?",
    "engagement": "How engaging is the podcast?",
    "full_episode": "Would listeners like to hear the whole episode?",
    "human_likeness": "Does it sound as if people made it, or a machine?",
}
"""The question for each item of the questionnaire, as the judge reads it."""


def group_reasons(
    answers: Sequence[QuestionnaireAnswer], clips: Mapping[tuple[str, str], ClipFacts]
) -> dict[str, dict[str, list[str]]]:
    """Return the reasons given by listeners who pass the screening, by question and system, except reasons about music
    in clips that have none.

    A question is included only if there is a reason for every system.
    """
    dropped = screen_answers(answers, clips)
    systems = sorted({answer.system for answer in answers})
    reasons: dict[str, dict[str, list[str]]] = {question: {system: [] for system in systems} for question in QUESTIONS}
    for answer in answers:
        no_music = clips.get((answer.item, answer.system), ClipFacts()).music is False
        if answer.rater in dropped or answer.question not in reasons or (answer.question == MUSIC and no_music):
            continue
        if answer.mark is not None and answer.reason.strip():
            reasons[answer.question][answer.system].append(answer.reason)
    return {question: texts for question, texts in reasons.items() if all(texts.values())}


@dataclass(frozen=True)
class Justified:
    """The score that the judge infers from the reasons given for one system, and its summary of them."""

    score: float
    summary: str
    record: str


def judge_justifications(
    question: str, comments: Mapping[str, Sequence[str]], seed: int = 0
) -> Conversation[dict[str, Justified]]:
    """Ask the judge for a score of every system on one question.

    Args:
        question: the question as listeners read it.
        comments: the listeners' reasons, by system.
        seed: seed of the shuffle and of the judge.

    Returns:
        Scores and summaries by system, in the order of `comments`.

    Raises:
        CannotScore: no reasons at all are given for a system.
    """
    reasons = {system: [" ".join(text.split()) for text in texts if text.strip()] for system, texts in comments.items()}
    if bare := [system for system, texts in reasons.items() if not texts]:
        raise CannotScore(f"no listener gave a reason for a mark of {', '.join(bare)}")
    shuffled = _shuffle(question, reasons, seed)
    numbered = "\n\n".join(
        f"System {number}:\n" + "\n".join(f"- {text}" for text in sorted(reasons[system]))
        for number, system in enumerate(shuffled, 1)
    )
    inputs = {"question": question, "comments": numbered}
    answers = yield [JudgeRequest(SUMMARISE, inputs, seed, check=partial(_require_all, count=len(shuffled)))]
    by_number = select_values(SystemScores, answers)[0].systems
    by_system = {
        system: Justified(score.score, score.summary, answers[0].record_id)
        for system, score in zip(shuffled, by_number, strict=True)
    }
    return {system: by_system[system] for system in comments}


def _shuffle(question: str, systems: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """Return the systems in an order that reveals neither their names nor their order in the table."""
    digest = hashlib.sha256("\n".join([str(seed), question, *sorted(systems)]).encode()).digest()
    order = sorted(systems)
    random.Random(digest).shuffle(order)  # noqa: S311
    return order


def _require_all(answer: Any, count: int) -> None:
    numbers = [score.system for score in answer.systems]
    if numbers != list(range(1, count + 1)):
        raise ValueError(f"there are systems 1 to {count}; give each once, in this order, not {numbers}")


_ABOUT = {
    "quality": "audio quality",
    "expression": "how the speakers express themselves",
    "delivery": "how well the information is delivered",
    "music": "whether music and effects help; none if there is no music",
    "engagement": "how engaging it is",
    "full_episode": "interest in hearing the whole episode",
    "human_likeness": "how human it sounds, rather than machine-made",
}


@metric(
    name="mos",
    title="Questionnaire MOS",
    version="1.1",
    dimension="human.experience",
    keys=(
        Key(
            "mos",
            "higher",
            "",
            (1, 5),
            about="mean over the six questions that apply to every clip, without music",
            reach=Reach(
                facts.PODEVAL_QUESTIONS,
                people=(3.6, 3.6),
                systems=(3.5, 3.5),
            ),
        ),
        *(
            Key(
                name,
                "higher",
                "",
                (1, 5),
                unreached=facts.PART,
                only_for="listeners who were asked the question",
                about=_ABOUT[name],
            )
            for name in RATED
        ),
        Key(
            "mos_low",
            "informative",
            "",
            (1, 5),
            only_for="answers of two or more listeners",
            about="lower end of the 95 % interval of mos, by listener",
        ),
        Key(
            "mos_high",
            "informative",
            "",
            (1, 5),
            only_for="answers of two or more listeners",
            about="upper end of the 95 % interval of mos, by listener",
        ),
    ),
    paper="PodEval",
    intended_use="Assessing the experience of a whole podcast by questionnaire.",
    limitations=(
        "These are opinions of recruited listeners with their own expectations; the questions are PodEval's, in "
        "English. On topics that a listener dislikes, every system is rated lower."
    ),
    no_benchmark="It is computed from the answers of listeners, which a listening test collects after a run.",
)
def mos(
    system: str,
    reference_answers: QuestionnaireAnswers,
    *,
    variant: Literal["default", "q"] = "default",
    screening: bool = True,
) -> Score:
    """Score one system.

    Args:
        system: its name.
        reference_answers: all answers, the facts about the clips, and J.
        variant: `default` is the mean of Q and J; `q` is Q alone.
        screening: whether to exclude listeners who fail the checks.
    """
    dropped = screen_answers(reference_answers.answers, reference_answers.clips) if screening else {}
    kept = [answer for answer in reference_answers.answers if answer.rater not in dropped]
    by_question = scores(kept, reference_answers.clips, reference_answers.judged if variant == "default" else {}).get(
        system
    )
    means = {question: score.mean for question, score in (by_question or {}).items() if score.mean is not None}
    common = [value for question, value in means.items() if question != MUSIC]
    if not by_question or not common:
        raise CannotScore(f"no listener who rated {system} passed the screening")
    spread = by_listener([answer for answer in kept if answer.system == system])
    value = sum(common) / len(common)
    # J does not come from listeners, so use the interval of Q, shifted to the mean of Q and J.
    low, high = (
        (None, None)
        if spread is None or spread.low is None or spread.high is None
        else (max(1.0, value + spread.low - spread.mean), min(5.0, value + spread.high - spread.mean))
    )
    intervals = {question: score.q for question, score in by_question.items() if score.q}
    return Score(
        values={
            "mos": value,
            **{question: means.get(question) for question in RATED},
            "mos_low": low,
            "mos_high": high,
        },
        notes={
            "q": {name: {"mean": q.mean, "ci95": [q.low, q.high], "answers": q.n} for name, q in intervals.items()},
            "j": {name: score.j for name, score in by_question.items() if score.j is not None},
            "listeners": len({answer.rater for answer in kept if answer.system == system}),
            "left_out": dropped,
        },
    )
