"""Prosodic coherence: whether the phrasing, stress and intonation of long speech are those of a person, rated by a
judge that listens to it.

A score from 1 to 5 in half points, averaged over ten seeded runs; higher is better. `spread` is the standard deviation
over runs. The judge is sampled at temperature 1, because otherwise all runs would be the same. An item has a value only
if the judge answered in every run. LFS-Bench, section 3.

Differs from the paper in the wording of the prompt, and in accepting any judge that listens to audio: the paper's own,
SpeechJudge, was trained to compare two clips on a scale up to 10. According to the paper, a difference above 1 is
clearly audible, speech that scores 4 or more is competent, and speech that scores 4.5 or more is like a person's.
"""

import statistics
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from podeval.judges import AudioClip, Conversation, HalfStep, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import Constraint, JudgeUse, Key, Reach, Result, Score, facts, metric
from podeval.recording import MODEL_RATE, Recording, speech_track

PROTOCOL = """\
How coherent the prosody of long speech is, according to a judge that listens to it (LFS-Bench, section 3 and figure
12).

It hears one clip, reads its text, and gives a score from 1 to 5 in half points, after notes on flow, on stress and
melody, and on naturalness.

Differs from the paper's prompt in wording, in saying that music and the quality of the sound do not count, and in a
schema that is valid JSON. Its judge, SpeechJudge, was trained to compare two clips on another scale, so the paper
itself can be reproduced only approximately.
"""
"""Description of the question, for the prompts page of the docs."""


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
    source="LFS-Bench figure 12, in our own words",
)


@metric(
    name="prosodic_coherence",
    title="Prosodic coherence",
    version="1.0",
    dimension="semantics.prosody",
    keys=(
        Key(
            "prosodic_coherence",
            "higher",
            "",
            (1, 5),
            about="mean over runs",
            reach=Reach(facts.LFS_JUDGED, people=(3.95, 4.04), systems=(3.41, 3.83)),
        ),
        Key(
            "spread",
            "informative",
            "",
            (0, 2),
            about="standard deviation over runs",
        ),
    ),
    needs=speech_track.NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(
        prompts=lambda _: (HEAR,), sampling=lambda chosen: {"temperature": chosen["temperature"], "top_p": None}
    ),
    intended_use="Comparing systems over many texts, using one judge that listens.",
    limitations=(
        "Audio judges are new: their agreement with listeners on prosody is weak, and some attend mostly to the words."
        " Breaths and hesitations are rewarded as signs of life, whether genuine or not. The scale does not "
        "describe half points."
    ),
)
def prosodic_coherence(
    recording: Recording,
    reference_text: str,
    *,
    runs: Annotated[int, Constraint(least=1)] = 10,
    temperature: Annotated[float, Constraint(least=0)] = 1.0,
    source: Literal["auto", "mix"] = "auto",
) -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_text: the words that should be heard, as text or a script.
        runs: number of times that the judge is asked, with seeds counted from 0.
        temperature: temperature at which the judge's answers are sampled.
        source: `auto` judges the speech stem if there is music; `mix` judges the recording as it is.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    inputs: dict[str, str | AudioClip] = {"text": reference_text, "recording": AudioClip(track.mono(), MODEL_RATE)}
    replies = yield [JudgeRequest(HEAR, inputs, seed) for seed in range(runs)]
    answers = select_values(Prosody, replies)
    scores = [answer.score for answer in answers]
    return Score(
        values={"prosodic_coherence": statistics.fmean(scores), "spread": statistics.pstdev(scores)},
        notes={"runs": scores, "impressions": [answer.impression for answer in answers], **track.notes},
    )
