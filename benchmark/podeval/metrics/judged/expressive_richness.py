"""Expressive richness: how much emotion, character and storytelling there is in speech, rated by a judge that listens
to it.

Each segment of 10 s is rated once from 1 to 5 in half points, and the value is the mean over segments; higher is
better. A remainder of 3 s or more at the end is a segment of its own; a shorter one is added to the segment before it.
An item has a value only if the judge answered for every segment. LFS-Bench, section 3.

Differs from the paper in the wording of the prompt, and in adding a short remainder to the segment before it. The paper
rates the remainder by itself (`variant="lfs"`: 91.08 s are ten segments, not nine); its judge is Gemini 3 Pro.
"""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from podeval.judges import AudioClip, Conversation, HalfStep, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import Constraint, JudgeUse, Key, Reach, Result, Score, Timeline, facts, metric
from podeval.recording import MODEL_RATE, Recording, speech_track

PROTOCOL = """\
How expressive a short stretch of speech is, according to a judge that listens to it (LFS-Bench, figure 14).

It gives a score from 1 to 5 in half points to each clip of about 10 s, after a note on the performance.

Differs from the paper's prompt in wording, and in leaving out its recommendation, which is not used.
"""
"""Description of the question, for the prompts page of the docs."""


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
    source="LFS-Bench figure 14, in our own words",
)


STRETCH, SHORTEST = 10.0, 3.0


@metric(
    name="expressive_richness",
    title="Expressive richness",
    version="1.0",
    dimension="expressiveness.richness",
    keys=(
        Key(
            "expressive_richness",
            "higher",
            "",
            (1, 5),
            about="mean over segments of 10 s",
            reach=Reach(facts.LFS_JUDGED, people=(4.35, 4.42), systems=(3.03, 3.51)),
        ),
    ),
    needs=speech_track.NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(prompts=lambda _: (HEAR,)),
    intended_use="Comparing the expressiveness of systems over many texts, using one judge that listens.",
    limitations=(
        "More emotion scores higher, even where the text calls for less. The judge knows how only a few cultures "
        "express emotion. Values from two judges are not comparable."
    ),
)
def expressive_richness(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Annotated[Literal["default", "lfs"], Constraint(added=True)] = "default",
) -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` judges the speech stem if there is music; `mix` judges the recording as it is.
        variant: `lfs` rates a remainder of any length as a segment of its own, as the paper does.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    samples = track.mono()
    shortest = 0.0 if variant == "lfs" else SHORTEST
    bounds = split_into_stretches(len(samples), MODEL_RATE, shortest)
    replies = yield [
        JudgeRequest(HEAR, {"recording": AudioClip(samples[start:end], MODEL_RATE)}) for start, end in bounds
    ]
    answers = select_values(Richness, replies)
    scores = [answer.score for answer in answers]
    return Score(
        values={"expressive_richness": sum(scores) / len(scores)},
        notes={"stretches": len(scores), "impressions": [answer.impression for answer in answers], **track.notes},
        timeline=Timeline(
            starts=[start / MODEL_RATE for start, _ in bounds],
            window=max(end - start for start, end in bounds) / MODEL_RATE,
            values={"expressive_richness": scores},
        ),
    )


def split_into_stretches(frames: int, rate: int, shortest: float = SHORTEST) -> list[tuple[int, int]]:
    """Return the first and last frame of each stretch; together the stretches cover the whole recording."""
    size = round(STRETCH * rate)
    starts = list(range(0, frames, size))
    if len(starts) > 1 and frames - starts[-1] < shortest * rate:
        starts.pop()
    return list(zip(starts, [*starts[1:], frames], strict=True))
