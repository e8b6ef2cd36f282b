"""Expressive hierarchy: whether a long performance develops, by a judge that hears it as a whole.

One score from 1 to 5 in halves for the recording, asked once, higher is better. LFS-Bench, section 3.

Differs from the paper in the prompt's wording; it judges with Gemini 3 Pro. A recording longer or larger than the
judge takes is unscored and not cut.
"""

from typing import Literal

from podeval.analysis import Recording
from podeval.analysis.speech_track import NEEDS
from podeval.judges.materials import AudioClip
from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.hierarchy_prompt import HEAR, hear_hierarchy
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.score import Result, Score

RATE = 16_000


@metric(
    name="expressive_hierarchy",
    title="Expressive hierarchy",
    version="1.0",
    dimension="expressiveness.hierarchy",
    keys=(Key("expressive_hierarchy", "higher", "", (1, 5), about="the whole recording, once"),),
    needs=NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(prompts=lambda _: (HEAR,)),
)
def expressive_hierarchy(recording: Recording, *, source: Literal["auto", "mix"] = "auto") -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` judges the speech stem where there is music; `mix` the recording as it is.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    heard = yield from hear_hierarchy(AudioClip(track.mono(RATE), RATE))
    return Score(
        values={"expressive_hierarchy": heard.score},
        notes={"impression": heard.impression, "notes": heard.notes.model_dump(), **track.notes},
    )
