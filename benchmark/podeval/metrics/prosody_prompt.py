"""How coherent the prosody of long speech is, heard by a judge (LFS-Bench, section 3 and figure 12).

One clip and its text; a score from 1 to 5 in halves, after notes on flow, on stress and melody, and on naturalness.

Differs from the paper's prompt in wording, in saying that music and the quality of the sound do not count, and in a
schema that is valid JSON. Its judge, SpeechJudge, was trained to compare two clips on another scale, so that the paper
itself can be reproduced only approximately.
"""

from collections.abc import Sequence

from pydantic import AliasChoices, Field

from podeval.judges.answer_model import HalfStep, JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.materials import AudioClip
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Conversation, values


class ProsodyNotes(JudgeAnswer):
    """What is heard, before the score."""

    flow: str = Field(validation_alias=AliasChoices("flow", "Coherence_and_Flow"))
    stress_and_melody: str = Field(validation_alias=AliasChoices("stress_and_melody", "Hierarchy_and_Layering"))
    naturalness: str = Field(validation_alias=AliasChoices("naturalness", "Naturalness"))


class Prosody(JudgeAnswer):
    """Notes and score."""

    impression: str = Field(default="", validation_alias=AliasChoices("impression", "Overall_Impression"))
    notes: ProsodyNotes = Field(validation_alias=AliasChoices("notes", "Detailed_Analysis"))
    score: HalfStep = Field(validation_alias=AliasChoices("score", "Score"))


HEAR = Prompt(
    name="prosodic_coherence",
    version="1.0",
    system=(
        "You are a phonetician who listens for prosody: how words are joined, where stress falls, how the voice rises "
        "and falls over sentences. You notice what a machine does that a person would not."
    ),
    template="""\
The text that is to be spoken:
{text}

The recording of it:
{recording}

Judge the prosody, not the quality of the sound, and not music if there is any:
- flow: does speech run on smoothly? Listen for pauses in the wrong place, words or phrases that break apart, \
intonation that does not lead from one sentence to the next.
- stress and melody: are the words that carry meaning stressed and the others not? Is there a melody, or a flat or \
repeating beat?
- naturalness: are there the small things of living speech, such as breath and slight changes of pitch?

Then give one score, in steps of 0.5:
5: cannot be told from a professional speaker; fully coherent, rich in its stress and melody.
4: smooth and pleasant; small flaws that only experts notice.
3: easy to understand, flows; but flat, or with audible artefacts of synthesis.
2: mechanical; disjointed, unnatural pauses, stress in wrong places or on every word.
1: lifeless or broken; hard to listen to.""",
    answer=Prosody,
    source="LFS-Bench figure 12, wording of our own",
)


def hear_prosody(clip: AudioClip, text: str, seeds: Sequence[int]) -> Conversation[list[Prosody]]:
    """Ask once a seed."""
    answers = yield [JudgeRequest(HEAR, {"text": text, "recording": clip}, seed) for seed in seeds]
    return values(Prosody, answers)
