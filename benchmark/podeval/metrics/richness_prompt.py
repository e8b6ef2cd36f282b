"""How expressive a short stretch of speech is, heard by a judge (LFS-Bench, figure 14).

A score from 1 to 5 in halves for each clip of about 10 s, after a note on the performance.

Differs from the paper's prompt in wording, and in leaving out its recommendation, which is used for nothing.
"""

from collections.abc import Sequence

from pydantic import AliasChoices, Field

from podeval.judges.answer_model import HalfStep, JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.materials import AudioClip
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Conversation, values


class Richness(JudgeAnswer):
    """A note and a score."""

    impression: str = Field(default="", validation_alias=AliasChoices("impression", "Overall_Impression"))
    performance: str = Field(validation_alias=AliasChoices("performance", "Expressiveness"))
    score: HalfStep = Field(validation_alias=AliasChoices("score", "Expressiveness_Score", "Score"))


HEAR = Prompt(
    name="expressive_richness",
    version="1.0",
    system=(
        "You direct voice actors for films of the first rank, and you decide whether a take can be used. You are exact "
        "and hard to please."
    ),
    template="""\
A stretch of a longer recording:
{recording}

Judge how expressive the performance is:
- feeling: true and layered, or flat, or put on.
- character: a believable person or narrator, whose tone, age and manner fit together.
- telling: it carries the listener along and makes an atmosphere.

Leave out of account: that the stretch begins and ends abruptly, the quality of the sound, whether the voice stays the \
same, how words are pronounced, and music.

Describe the performance, then give one score, in steps of 0.5:
5: richly expressive, gripping, art.
4: very expressive, close to professional, without the last nuance.
3: does what is needed; feelings somewhat general.
2: flat; feelings weak or not believed.
1: mechanical; no colour, no life.""",
    answer=Richness,
    source="LFS-Bench figure 14, wording of our own",
)


def hear_richness(clips: Sequence[AudioClip], seed: int = 0) -> Conversation[list[Richness]]:
    """Ask once a clip."""
    answers = yield [JudgeRequest(HEAR, {"recording": clip}, seed) for clip in clips]
    return values(Richness, answers)
