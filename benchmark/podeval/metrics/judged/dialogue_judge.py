"""Dialogue judge: whether a judge rates a script above or below a reference script.

Ratings from −3 to 3 for coherence, engagingness, diversity, informativeness, difference of views between the speakers
(excluding the host), and overall; the reference counts as 0, and a script with a value above 0 is better than the
reference. The judge is asked in both orders and the value is half the difference, so a judge that merely prefers a
position yields 0. An item has a value only if the judge answered in both orders. PodEval, section 4, after PodAgent.

Differs from the public code, which sets neither temperature nor seed (we use temperature 0 and a fixed seed), in the
wording of the prompt (`docs/judge-prompts.md`), and in asking again if an answer cannot be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Result, Score, facts, metric
from podeval.text.script import Script

PROTOCOL = """\
A judge compares two scripts, the first of which counts as 0 (PodEval, section 4, after PodAgent).

It writes an analysis, then gives six ratings from −3 to 3, which are positive if the second is better. It is asked in
both orders, and the value is half the difference, which does not depend on the order: a judge that prefers a position
rather than a script yields 0.

Differs from the public prompt in wording, in defining every rating, in a system text that says what is material, and in
validation: for a rating outside the scale, the judge is asked again.
"""
"""Description of the question, for the prompts page of the docs."""

Rating = Annotated[float, Field(ge=-3, le=3)]


class Comparison(JudgeAnswer):
    """How the second dialogue compares with the first."""

    analysis: str = Field(description="what each dialogue does well and badly, with words from it, before any rating")
    coherence: Rating
    engagingness: Rating
    diversity: Rating
    informativeness: Rating
    speaker_difference: Rating
    overall: Rating


KEYS = ("overall", "coherence", "engagingness", "diversity", "informativeness", "speaker_difference")

COMPARE = Prompt(
    name="dialogue_compare",
    version="1.0",
    system=(
        "You compare written podcast dialogues. You weigh what is on the page, explain yourself before you rate, and "
        "neither the order in which dialogues are shown nor their length counts for anything by itself."
    ),
    template="""\
Here are two podcast dialogues on the same topic.

First dialogue, the reference; it counts as 0 in every rating:
{first}

Second dialogue:
{second}

Rate how the second dialogue compares with the first, from -3 (far worse) over 0 (equally good) to 3 (far better):

- coherence: turns follow from one another, and the whole keeps to a thread.
- engagingness: a listener wants to go on listening.
- diversity: words, ideas and ways of putting them vary.
- informativeness: offers something to learn, and it is substantial.
- speaker_difference: those who speak, the host left out, hold views that differ from one another.
- overall: the quality of the dialogue as a whole; a rating of its own, not a mean of the others.

Write your analysis of both dialogues first, then the six ratings.""",
    answer=Comparison,
    source="PodEval section 4 and its public prompt for comparing dialogues (PodAgent)",
)


@dataclass(frozen=True)
class BothOrders:
    """A candidate compared with a reference: `forward` with the reference first, `backward` with it second."""

    forward: Comparison
    backward: Comparison
    records: tuple[str, ...]

    @property
    def ratings(self) -> Mapping[str, float]:
        """Half the difference between the two orders' ratings by key, −3 to 3, positive if the candidate is better."""
        return {key: (getattr(self.forward, key) - getattr(self.backward, key)) / 2 for key in KEYS}

    @property
    def disagreeing(self) -> tuple[str, ...]:
        """The keys for which the two orders prefer different scripts."""
        return tuple(key for key in KEYS if getattr(self.forward, key) * getattr(self.backward, key) > 0)


def compare(candidate: Script, reference: Script, seed: int = 0) -> Conversation[BothOrders]:
    """Ask the judge to compare two scripts, in both orders."""
    answers = yield [
        JudgeRequest(COMPARE, {"first": first.lines, "second": second.lines}, seed)
        for first, second in ((reference, candidate), (candidate, reference))
    ]
    forward, backward = select_values(Comparison, answers)
    return BothOrders(forward, backward, tuple(answer.record_id for answer in answers))


_ABOUT = {
    "overall": "overall rating, given separately",
    "coherence": "turns follow from one another",
    "engagingness": "makes one want to keep listening",
    "diversity": "variety of words and ideas",
    "informativeness": "offers something to learn",
    "speaker_difference": "how much the speakers' views differ, excluding the host",
}


@metric(
    name="dialogue_judge",
    title="Dialogue judge",
    version="1.0",
    dimension="script.judged",
    keys=tuple(
        Key(
            key,
            "higher",
            "",
            (-3, 3),
            unreached=facts.ZERO,
            about=_ABOUT[key],
        )
        for key in KEYS
    ),
    paper="PodEval",
    asks=JudgeUse(prompts=lambda _: (COMPARE,)),
    intended_use=(
        "Comparing scripts with references on the same topics, averaged over many scripts; not for single scripts."
    ),
    limitations=(
        "The judge is a language model: it may prefer long or polished writing and that of its own model family, and "
        "judges disagree. Values from two judges belong to two protocols. Check its agreement with people (`podeval "
        "judge`) before relying on it."
    ),
)
def dialogue_judge(script: Script, reference_script: Script) -> Conversation[Result]:
    """Score one script.

    Args:
        script: the script that is judged.
        reference_script: the script that it is compared with; it counts as 0.
    """
    comparison = yield from compare(script, reference_script)
    return Score(
        values=comparison.ratings,
        notes={
            "reference_first": {key: getattr(comparison.forward, key) for key in KEYS},
            "script_first": {key: getattr(comparison.backward, key) for key in KEYS},
            "orders_disagree": list(comparison.disagreeing),
            "analyses": [comparison.forward.analysis, comparison.backward.analysis],
            "records": list(comparison.records),
        },
    )
