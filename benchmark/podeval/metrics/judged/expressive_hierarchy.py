"""Expressive hierarchy: whether a long performance develops, rated by a judge that listens to all of it.

The judge is asked once for a score from 1 to 5 in half points for the whole recording; higher is better. LFS-Bench,
section 3.

Differs from the paper in the wording of the prompt; the paper's judge is Gemini 3 Pro. A recording longer or larger
than the judge accepts is left unscored rather than cut.
"""

from typing import Literal

from pydantic import AliasChoices, Field

from podeval.judges import AudioClip, Conversation, HalfStep, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Reach, Result, Score, facts, metric
from podeval.recording import MODEL_RATE, Recording, speech_track

PROTOCOL = """\
How a long performance develops, according to a judge that listens to all of it (LFS-Bench, figure 13).

It gives one score from 1 to 5 in half points, after notes on the course of emotion, on dynamics, and on how well the
performance fits the content.

Differs from the paper's prompt in wording, and in leaving out its recommendation, which is not used.
"""
"""Description of the question, for the prompts page of the docs."""


class HierarchyNotes(JudgeAnswer):
    """What is heard, before the score."""

    arc: str = Field(validation_alias=AliasChoices("arc", "Emotional_Arc"))
    dynamics: str = Field(validation_alias=AliasChoices("dynamics", "Dynamics_and_Rhythm"))
    fit: str = Field(validation_alias=AliasChoices("fit", "Scene_Fit"))


class Hierarchy(JudgeAnswer):
    """Notes and score."""

    impression: str = Field(default="", validation_alias=AliasChoices("impression", "Overall_Impression"))
    notes: HierarchyNotes = Field(validation_alias=AliasChoices("notes", "Hierarchy_Analysis"))
    score: HalfStep = Field(validation_alias=AliasChoices("score", "Score"))


HEAR = Prompt(
    name="expressive_hierarchy",
    version="1.0",
    system=(
        "You direct long recordings: audiobooks, documentaries. You hear at once when a voice repeats its patterns, "
        "stays on one note, or goes nowhere."
    ),
    template="""\
The whole recording:
{recording}

Judge how the performance develops over its time:
- arc: does feeling move from beginning to end, do the high points stand out from what leads to them, or is it all on \
one note?
- dynamics: do loudness and tempo change, in the small and in the large?
- fit: does the manner follow what is said and how it is built, and could one listen for long?

Then give one score, in steps of 0.5:
5: a journey, rich in variety, nothing repeats itself; made for long listening.
4: good dynamics, clear changes of feeling, no plain monotony.
3: pleasant and static; may bore in the long run.
2: the same intonation comes back with every sentence.
1: lifeless; neither dynamics nor feeling change.""",
    answer=Hierarchy,
    source="LFS-Bench figure 13, in our own words",
)


@metric(
    name="expressive_hierarchy",
    title="Expressive hierarchy",
    version="1.0",
    dimension="expressiveness.hierarchy",
    keys=(
        Key(
            "expressive_hierarchy",
            "higher",
            "",
            (1, 5),
            about="one rating of the whole recording",
            reach=Reach(facts.LFS_JUDGED, people=(3.94, 4.17), systems=(2.67, 3.76)),
        ),
    ),
    needs=speech_track.NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(prompts=lambda _: (HEAR,)),
    intended_use="Comparing how long performances develop over time, using one judge that listens to each in full.",
    limitations=(
        "Few judges can attend to several minutes of audio, and they often miss the middle. A performance "
        "can hardly develop if its text does not."
    ),
)
def expressive_hierarchy(recording: Recording, *, source: Literal["auto", "mix"] = "auto") -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` judges the speech stem if there is music; `mix` judges the recording as it is.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    answers = yield [JudgeRequest(HEAR, {"recording": AudioClip(track.mono(), MODEL_RATE)})]
    (answer,) = select_values(Hierarchy, answers)
    return Score(
        values={"expressive_hierarchy": answer.score},
        notes={"impression": answer.impression, "notes": answer.notes.model_dump(), **track.notes},
    )
