"""Real-time factor (RTF): how long a system works for a second of audio.

Seconds of generation, without loading models, divided by seconds of audio; both summed over the pieces of the log.
0 and more, lower is better, below 1 is faster than listening. LFS-Bench, appendix F.1.
Figures from different hardware are different protocols: name yours by `hardware`.

Differs from the paper in taking every piece of a run together, so that long pieces count for more than short ones.
"""

from podeval.errors import BadInput, CannotScore
from podeval.metrics.declaration import Key, metric
from podeval.metrics.generation_log import GenerationLog
from podeval.metrics.reach import Reach
from podeval.metrics.score import Score

UNSTATED = "unstated"


@metric(
    name="rtf",
    title="RTF",
    version="1.0",
    dimension="efficiency.speed",
    dimension_zh="速度",
    keys=(
        Key(
            "rtf",
            "lower",
            "s/s",
            (0, None),
            about="seconds of work for a second of audio",
            zh="实时率",
            reach=Reach("LFS-Bench, Table 9: ten open systems, one speaker", systems=(0.17, 3.8)),
        ),
    ),
    paper="LFS-Bench",
)
def rtf(generation_log: GenerationLog, *, hardware: str = UNSTATED) -> Score:
    """Score one generation log.

    Args:
        generation_log: what was generated, and in what time.
        hardware: what it ran on, such as `1 × A100`; part of the protocol.
    """
    if hardware != UNSTATED and generation_log.hardware not in (None, hardware):
        raise BadInput(f"the generation log names {generation_log.hardware}, not {hardware}")
    if generation_log.audio_seconds == 0:
        raise CannotScore("no audio was generated")
    return Score(
        values={"rtf": generation_log.wall_seconds / generation_log.audio_seconds},
        notes={
            "wall_seconds": round(generation_log.wall_seconds, 3),
            "audio_seconds": round(generation_log.audio_seconds, 3),
            "pieces": generation_log.pieces,
            **({"hardware": generation_log.hardware} if generation_log.hardware else {}),
        },
    )
