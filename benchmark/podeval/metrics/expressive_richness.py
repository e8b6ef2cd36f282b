"""Expressive richness: how much feeling, character and telling there is in speech, by a judge that hears it.

Score from 1 to 5 in halves for each stretch of 10 s, once, and the mean over stretches, higher is better. What is left
at the end is a stretch of its own from 3 s on, and belongs to the one before it otherwise. An item has a value only
when every stretch was answered. LFS-Bench, section 3.

Differs from the paper in the prompt's wording, and in saying what becomes of the end; it judges with Gemini 3 Pro.
"""

from typing import Literal

from podeval.analysis import Recording
from podeval.analysis.speech_track import NEEDS
from podeval.judges.materials import AudioClip
from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.richness_prompt import HEAR, hear_richness
from podeval.metrics.score import Result, Score, Timeline

RATE = 16_000
STRETCH, SHORTEST = 10.0, 3.0


@metric(
    name="expressive_richness",
    title="Expressive richness",
    version="1.0",
    dimension="expressiveness.richness",
    keys=(Key("expressive_richness", "higher", "", (1, 5), about="the mean over stretches of 10 s"),),
    needs=NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(prompts=lambda _: (HEAR,)),
)
def expressive_richness(recording: Recording, *, source: Literal["auto", "mix"] = "auto") -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` judges the speech stem where there is music; `mix` the recording as it is.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    samples = track.mono(RATE)
    bounds = stretches(len(samples), RATE)
    heard = yield from hear_richness([AudioClip(samples[start:end], RATE) for start, end in bounds])
    scores = [answer.score for answer in heard]
    return Score(
        values={"expressive_richness": sum(scores) / len(scores)},
        notes={"stretches": len(scores), "impressions": [answer.impression for answer in heard], **track.notes},
        timeline=Timeline(
            starts=[start / RATE for start, _ in bounds],
            window=max(end - start for start, end in bounds) / RATE,
            values={"expressive_richness": scores},
        ),
    )


def stretches(frames: int, rate: int) -> list[tuple[int, int]]:
    """First and last frame of each stretch; together they are the whole recording."""
    size = round(STRETCH * rate)
    starts = list(range(0, frames, size))
    if len(starts) > 1 and frames - starts[-1] < SHORTEST * rate:
        starts.pop()
    return list(zip(starts, [*starts[1:], frames], strict=True))
