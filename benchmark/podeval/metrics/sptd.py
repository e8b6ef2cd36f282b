"""Speaker timbre difference (SPTD): how different the voices of a recording sound.

1 minus the mean cosine similarity over all pairs of speakers, each speaker the mean embedding of windows of 3 s every
2 s over its joined speech. Range 0 to 2, higher is better. PodEval, Eq. 1.
With a script the turns come from aligning its words with what is heard, without one from diarisation; the two are
different protocols. The words are transcribed in the script's language, which the transcriber decides on where it is
neither English nor Chinese. A distance between speakers is one of the whole recording: there is no timeline.

Differs from the public code, which halves the distance, measures the reference voices where it has any, and
divides by zero with one speaker; `variant="podeval"` halves too.
"""

from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.analysis import Recording, speech_track
from podeval.analysis.who_speaks import who_speaks
from podeval.errors import CannotScore
from podeval.metrics.declaration import Key, metric
from podeval.metrics.score import Score
from podeval.text.script import Script


@metric(
    name="sptd",
    title="SPTD",
    version="1.2",
    dimension="speech.timbre_difference",
    keys=(
        Key("sptd", "higher", "1 − cosine", (0, 2), about="distance between the voices"),
        Key("speakers", "informative", "speakers", (2, None), about="speakers the pairs are made of"),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "diarizer", "speaker_encoder"),
    paper="PodEval",
)
def sptd(
    recording: Recording,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["paper", "podeval"] = "paper",
) -> Score:
    """Score one recording.

    Args:
        recording: speech of two or more people, 16 kHz.
        script: the words with their speakers, which then tell who speaks when.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
        variant: `paper` is Eq. 1; `podeval` halves the distance as the public code does.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    turns, who = who_speaks(track, script)
    voices = track.voices(turns)
    if len(voices) < 2:
        found = "no speaker" if not voices else "one speaker"
        raise CannotScore(
            f"needs at least two speakers, found {found}" + (f" of {who['speakers_asked']}" if script else "")
        )
    distance = voice_distance([voice.embedding for voice in voices])
    return Score(
        values={"sptd": distance / 2 if variant == "podeval" else distance, "speakers": len(voices)},
        notes={
            "seconds": {voice.speaker: round(voice.seconds, 2) for voice in voices},
            **who,
            **track.notes,
        },
    )


def voice_distance(embeddings: list[NDArray[np.float32]]) -> float:
    """1 minus the mean cosine over all pairs of embeddings; at least two are needed."""
    units = [vector / np.linalg.norm(vector) for vector in embeddings]
    return float(1 - np.mean([a @ b for a, b in combinations(units, 2)]))
