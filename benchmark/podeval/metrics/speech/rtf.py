"""Real-time factor (RTF): how long a system takes to generate a second of audio.

Seconds of generation, excluding the loading of models, divided by seconds of audio; both are summed over the pieces in
the log. 0 or more, lower is better; below 1, audio is generated faster than it plays. LFS-Bench, appendix F.1.
`speech_rtf` counts only seconds of speech, so that pauses do not help; `p50` and `p95` are percentiles over the pieces.
For streamed pieces, `time_to_first_audio` is the median time until playback could begin, and `underrun` the longest
stall; each is None, and unscored, unless the log records it for every piece. Logs that claim 0 seconds of work are
refused. Values from different hardware belong to different protocols: name yours with `hardware`.

Differs from the paper in pooling all pieces of a run, so that long pieces count for more than short ones.
"""

import numpy as np

from podeval.errors import BadInput, CannotScore
from podeval.metrics.declaration import Key, metric
from podeval.metrics.generation_log import GenerationLog
from podeval.metrics.reach import HARDWARE, LFS_SPEED, Reach
from podeval.metrics.score import Score, Unscored

UNSTATED = "unstated"


@metric(
    name="rtf",
    title="RTF",
    version="1.1",
    dimension="efficiency.speed",
    keys=(
        Key(
            "rtf",
            "lower",
            "s/s",
            (0, None),
            about="seconds of computation per second of audio",
            reach=Reach(LFS_SPEED, systems=(0.17, 3.8)),
        ),
        Key(
            "speech_rtf",
            "lower",
            "s/s",
            (0, None),
            title="RTF of speech",
            unreached=HARDWARE,
            about="the same per second of speech",
        ),
        Key(
            "p50",
            "lower",
            "s/s",
            (0, None),
            title="RTF, median",
            unreached=HARDWARE,
            about="median over the pieces",
        ),
        Key(
            "p95",
            "lower",
            "s/s",
            (0, None),
            title="RTF, 95th percentile",
            unreached=HARDWARE,
            about="95th percentile over the pieces",
        ),
        Key(
            "time_to_first_audio",
            "lower",
            "s",
            (0, None),
            title="Time to first audio",
            unreached=HARDWARE,
            about="time until a stream can begin to play",
        ),
        Key(
            "underrun",
            "lower",
            "s",
            (0, None),
            title="Longest stall",
            unreached=HARDWARE,
            about="the longest stall of a stream",
        ),
    ),
    paper="LFS-Bench",
    caution=(
        "Silence at the end lowers it (a minute of silence after a minute of speech halves it); `speech_rtf` counts "
        "only speech. A log supplied by a submitter belongs to another protocol and is not ranked with our "
        "measurements."
    ),
    intended_use="Comparing the speed of systems on one kind of machine.",
    limitations=(
        "It depends on hardware, load, batch size and warm-up, of which the protocol records only the hardware class. "
        "A log supplied by a submitter is never ranked with one that was measured here."
    ),
)
def rtf(generation_log: GenerationLog, *, hardware: str = UNSTATED) -> Score:
    """Score one generation log.

    Args:
        generation_log: what was generated, and in what time.
        hardware: the hardware it ran on, such as `1 × A100`; part of the protocol.
    """
    if hardware != UNSTATED and generation_log.hardware not in (None, hardware):
        raise BadInput(f"the generation log names {generation_log.hardware}, not {hardware}")
    if generation_log.audio_seconds == 0:
        raise CannotScore("no audio was generated")
    values = {
        "rtf": generation_log.wall_seconds / generation_log.audio_seconds,
        "speech_rtf": generation_log.wall_seconds / spoken if (spoken := generation_log.speech_seconds) else None,
        "p50": float(np.percentile(ratios, 50)) if (ratios := generation_log.ratios) else None,
        "p95": float(np.percentile(ratios, 95)) if ratios else None,
        "time_to_first_audio": float(np.median(first)) if (first := generation_log.first_audio) else None,
        "underrun": max(generation_log.underruns, default=None),
    }
    return Score(
        values=values,
        notes={
            "wall_seconds": round(generation_log.wall_seconds, 3),
            "audio_seconds": round(generation_log.audio_seconds, 3),
            "pieces": generation_log.pieces,
            **({"hardware": generation_log.hardware} if generation_log.hardware else {}),
            **{
                f"{key}_unscored": Unscored(
                    f"the generation log does not state for every piece what {key} needs", "system"
                ).to_json()
                for key, value in values.items()
                if value is None
            },
        },
    )
