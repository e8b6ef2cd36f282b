"""UTMOS22: how natural synthetic speech would sound to listeners; many papers on speech synthesis report it.

A mean opinion score of about 1 to 5 by UTMOS's strong learner, without its phoneme encoder, as SpeechMOS packages it;
16 kHz, with channels averaged. The value is the mean over consecutive windows of 10 s, the last one ending with the
recording; higher is better. The network was trained on single English sentences spoken by synthetic voices up to 2020
and by people, so it says little about turn-taking, other languages or better voices. Values may be slightly outside the
range.

The metric has not yet been run with the real weights, which were not available where podeval was built. The loading
code was run on tiny models. The network's values were compared with those of a direct evaluation of the architecture
and, once, with those of SpeechMOS's code; they were the same.

Source: Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022", Interspeech 2022; SpeechMOS 1.2.0.

Differs from SpeechMOS because it uses windows, where SpeechMOS processes the whole file at once; for recordings of up
to 10 s, both give the same value.

Like all predictors of listeners' ratings, it rates the recording as it is, but a constant offset is removed, ends
without speech are trimmed to half a second, and windows that are more than 60 % silence or music alone are left out and
counted (since version 1.1; 1.0 rated the speech stem if there was music). If there is music, `utmos22_stem` is the
value of the separated speech; this value is shown but not ranked. `source="stem"` separates the speech of every
recording and is a different protocol.
"""

from typing import Literal

from podeval.metrics import Key, Score, facts, metric
from podeval.metrics.predicted_opinion import rate_speech
from podeval.recording import Recording, speech_track

WINDOW = 10.0


@metric(
    name="utmos22",
    title="UTMOS22",
    version="1.1",
    dimension="speech.naturalness",
    keys=(
        Key(
            "utmos22",
            "higher",
            "MOS",
            (1, 5),
            unreached=facts.UNRUN,
            about="naturalness of the speech, by UTMOS22's strong learner",
        ),
        Key(
            "utmos22_stem",
            "informative",
            "MOS",
            (1, 5),
            about="the same value for the speech alone, after separation from music",
        ),
    ),
    needs=(*speech_track.NEEDS, "utmos22"),
    paper="ours",
    intended_use=(
        "Comparing with papers that report UTMOS; ranking how natural speech sounds when no listeners are available."
    ),
    limitations=(
        "Trained on short English sentences by synthesisers up to 2020: long talk, other languages and today's best "
        "systems are outside its data, and it rates expressive speech lower than listeners do. It does not tell "
        "whether the words are right."
    ),
)
def utmos22(recording: Recording, *, source: Literal["mix", "stem"] = "mix") -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `mix` scores the recording as it is; `stem` scores its separated speech, even if there is no music.
    """
    return rate_speech(recording, "utmos22", "utmos22", source=source, seconds=WINDOW)
