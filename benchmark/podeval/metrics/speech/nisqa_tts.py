"""NISQA-TTS: how natural synthetic speech would sound to listeners, as predicted by the network of that name.

A mean opinion score of about 1 to 5, computed from the mel spectrogram up to 8 kHz at the recording's own sampling rate
(48 kHz at most), with channels averaged. The value is the mean over consecutive windows of 10 s, the last one ending
with the recording; higher is better. The network was trained on the sentences of 16 listening tests, such as those of
the Blizzard and Voice Conversion Challenges. The last step of its recurrent network determines the score, so the score
depends on the position of a fault in a window: half a second of noise lowered a score of 4.2 by 0 to 0.4. Resampling
the speech changes the score by up to 0.1. The weights may not be used commercially (CC BY-NC-SA 4.0).

This implementation was checked against the package with the real weights, which are in its repository: three recordings
agree within 1e-5. Of our samples, espeak-ng scores 1.7, Kokoro 4.2, a LibriVox reader 3.5, and a meeting far from the
microphone 2.2. The scores have not yet been compared with listeners' ratings.

Source: Mittag and Möller, "Deep Learning Based Assessment of Synthetic Speech Naturalness", Interspeech 2020; package
`nisqa` 2.0 with `nisqa_tts.tar`.

Differs from the package because it uses windows, where the package processes the whole file at once, up to 60 s; for
recordings of up to 10 s, both give the same value. If there are several channels, the package uses their mean, as here,
unless one channel is requested.

Like all predictors of listeners' ratings, it rates the recording as it is, but a constant offset is removed, ends
without speech are trimmed to half a second, and windows that are more than 60 % silence or music alone are left out and
counted (since version 1.1; 1.0 rated the speech stem if there was music). If there is music, `nisqa_tts_stem` is the
value of the separated speech; this value is shown but not ranked. `source="stem"` separates the speech of every
recording and is a different protocol.
"""

from typing import Literal

from podeval.metrics import Key, Score, facts, metric
from podeval.metrics.predicted_opinion import rate_speech
from podeval.recording import Recording, speech_track

WINDOW = 10.0
HIGHEST_RATE = 48_000


@metric(
    name="nisqa_tts",
    title="NISQA-TTS",
    version="1.1",
    dimension="speech.naturalness",
    keys=(
        Key(
            "nisqa_tts",
            "higher",
            "MOS",
            (1, 5),
            unreached=facts.UNMEASURED,
            about="naturalness of the speech, by NISQA-TTS",
        ),
        Key(
            "nisqa_tts_stem",
            "informative",
            "MOS",
            (1, 5),
            about="the same value for the speech alone, after separation from music",
        ),
    ),
    needs=(*speech_track.NEEDS, "nisqa_tts"),
    paper="ours",
    intended_use=("Comparing with papers that print NISQA-TTS; finding synthetic speech that sounds unnatural."),
    limitations=(
        "Trained on short samples of synthesisers up to 2020. It depends on the sampling rate, so systems with "
        "different rates are not comparable, and it takes no account of content or dialogue."
    ),
)
def nisqa_tts(recording: Recording, *, source: Literal["mix", "stem"] = "mix") -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz or more.
        source: `mix` scores the recording as it is; `stem` scores its separated speech, even if there is no music.
    """
    return rate_speech(recording, "nisqa_tts", "nisqa_tts", source=source, seconds=WINDOW, highest_rate=HIGHEST_RATE)
