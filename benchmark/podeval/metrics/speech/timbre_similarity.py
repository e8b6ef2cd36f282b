"""Timbre similarity: whether a voice stays close to its reference voice from beginning to end.

Mean cosine between the embedding of the reference recording and those of windows of 3 s every 2 s; with several
speakers, each speaker's speech is joined and scored on its own, and the scores are averaged. Range −1 to 1, higher is
better. LFS-Bench, appendix F.3. References are assigned to speakers as in `sim`.

Differs from the paper in leaving out windows with more than 60 % non-speech (the notes count those left out of the
recording), and in not resampling to 24 kHz first; `variant="lfs"` treats the recording as the paper does.
`worst_window`, the lowest cosine of any window, is our addition.
"""

from typing import Literal

import numpy as np

from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.metrics.speech.timbre_consistency import LFS_RATE
from podeval.metrics.voice_match import NEEDS, compare_voices
from podeval.recording import Recording
from podeval.recording.reference_voices import ReferenceVoices
from podeval.text.script import Script


@metric(
    name="timbre_similarity",
    title="Timbre similarity",
    version="1.1",
    dimension="acoustics.timbre",
    keys=(
        Key(
            "timbre_similarity",
            "higher",
            "cosine",
            (-1, 1),
            about="similarity to the reference voice over time",
            reach=Reach(facts.STUDY, people=(0.84, 0.88), systems=(0.86, 0.9), profile="embedded"),
        ),
        Key(
            "worst_window",
            "higher",
            "cosine",
            (-1, 1),
            unreached=facts.PART,
            about="similarity of the least similar 3 s",
        ),
    ),
    needs=NEEDS,
    paper="LFS-Bench",
    intended_use="Checking whether a cloned voice stays close to its reference over minutes.",
    limitations=(
        "Like sim, it depends on the room and channel of the reference. Short references give unreliable embeddings."
    ),
)
def timbre_similarity(
    recording: Recording,
    reference_voices: ReferenceVoices,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["default", "lfs"] = "default",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_voices: a recording of each speaker's voice.
        script: the words with their speakers; if given, it determines who speaks when.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        variant: `default` leaves out windows that are mostly silence; `lfs` keeps them, and resamples to 24 kHz first.
    """
    lfs = variant == "lfs"
    comparison = compare_voices(
        recording, reference_voices, script, source, silence=lfs, through=LFS_RATE if lfs else None
    )
    similarity = {match.voice.speaker: float(match.over_time.mean()) for match in comparison.matches}
    value = float(np.mean(list(similarity.values())))
    return comparison.score({"timbre_similarity": value, "worst_window": comparison.worst_window}, similarity)
