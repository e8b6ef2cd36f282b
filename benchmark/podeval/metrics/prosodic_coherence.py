"""Prosodic coherence: whether long speech is joined, stressed and intoned as a person would, by a judge that hears it.

Score from 1 to 5 in halves, the mean over ten seeded runs, higher is better; the standard deviation over runs is
`spread`. Runs are drawn at temperature 1, without which they would all be one. An item has a value only when every run
was answered. LFS-Bench, section 3.

Differs from the paper in the prompt's wording, and in taking any judge that hears: the paper's own, SpeechJudge, was
trained to compare two clips on a scale to 10. Printed aids: a difference above 1 is plain to hear, from 4 on speech is
competent, from 4.5 on like a person's.
"""

import statistics
from typing import Literal

from podeval.analysis import Recording
from podeval.analysis.speech_track import NEEDS
from podeval.judges.materials import AudioClip
from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.prosody_prompt import HEAR, hear_prosody
from podeval.metrics.score import Result, Score

RATE = 16_000


@metric(
    name="prosodic_coherence",
    title="Prosodic coherence",
    version="1.0",
    dimension="semantics.prosody",
    keys=(
        Key("prosodic_coherence", "higher", "", (1, 5), about="the mean over runs"),
        Key("spread", "informative", "", (0, 2), about="standard deviation over runs"),
    ),
    needs=NEEDS,
    paper="LFS-Bench",
    asks=JudgeUse(
        prompts=lambda _: (HEAR,), sampling=lambda chosen: {"temperature": chosen["temperature"], "top_p": None}
    ),
)
def prosodic_coherence(
    recording: Recording,
    reference_text: str,
    *,
    runs: int = 10,
    temperature: float = 1.0,
    source: Literal["auto", "mix"] = "auto",
) -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_text: the words that should be heard, as text or a script.
        runs: how often the judge is asked, with seeds from 0 on.
        temperature: at which the judge's answers are drawn.
        source: `auto` judges the speech stem where there is music; `mix` the recording as it is.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    heard = yield from hear_prosody(AudioClip(track.mono(RATE), RATE), reference_text, range(runs))
    scores = [answer.score for answer in heard]
    return Score(
        values={"prosodic_coherence": statistics.fmean(scores), "spread": statistics.pstdev(scores)},
        notes={"runs": scores, "impressions": [answer.impression for answer in heard], **track.notes},
    )
