"""UTMOSv2: how natural synthetic speech would sound to listeners, computed without randomness.

A mean opinion score of about 1 to 5, predicted from a speech encoder and spectrograms at 16 kHz, channels averaged;
values may lie slightly outside the range. The value is the mean over consecutive windows of 3 s, the last one ending
with the recording; recordings of more than three minutes have 60 windows, spread evenly. Higher is better. It was
trained on single English sentences by synthetic voices up to 2023, and is asked to treat speech as part of the data set
`sarulab`, the default of the public code.

Not yet run on the real weights, which were not available where podeval was built. The loading code was run on tiny
models, and the network compared part by part with timm and transformers and, once, as a whole with the authors' code.

Source: Baba et al., "The T05 System for The VoiceMOS Challenge 2024: Transfer Learning from Deep Image Classifier to
Naturalness MOS Prediction of High-Quality Synthetic Speech", SLT 2024; by the group of UTMOS (Interspeech 2022).

Differs from the public code, which takes one stretch of 3 s and two of 1.4 s at random from the file and mixes their
spectrograms at random: its value changes from run to run, ours does not. Here the encoder processes each window as a
whole, and spectrograms are taken of its first and last 1.4 s without mixing. The public code may also cut out whatever
stays below a tenth of full scale for 0.3 s, which would be all of a quiet recording; here it is windows that are left
out instead.

What is heard, as by all predictors of opinion here (version 1.1; 1.0 rated the speech stem where there was music): the
recording as it is, without a constant offset, ends without speech cut to half a second, windows with more than 60 % of
silence or of music alone left out and counted. Where there is music, `utmosv2_stem` is the value of the separated
speech, shown and not ranked; `source="stem"` separates every recording, and is another protocol.
"""

from typing import Literal

from podeval.analysis import Recording
from podeval.metrics.declaration import Key, metric
from podeval.metrics.predicted_opinion import SPEECH_NEEDS, rate_speech
from podeval.metrics.reach import UNRUN
from podeval.metrics.score import Score

WINDOW = 3.0
MOST = 60
"""Windows of a long recording: each takes some seconds of a processor."""


@metric(
    name="utmosv2",
    title="UTMOSv2",
    version="1.1",
    dimension="speech.naturalness",
    about_zh="合成语音在听众听来有多自然，并去除了预测中的随机成分。",
    keys=(
        Key(
            "utmosv2",
            "higher",
            "MOS",
            (1, 5),
            unreached=UNRUN,
            about="naturalness of the speech, by UTMOSv2",
            about_zh="语音的自然度，由 UTMOSv2 预测",
        ),
        Key(
            "utmosv2_stem",
            "informative",
            "MOS",
            (1, 5),
            about="the same for the speech once music is separated from it",
            about_zh="分离音乐之后语音的得分",
            zh="UTMOSv2（分离后的语音）",
        ),
    ),
    needs=(*SPEECH_NEEDS, "utmosv2"),
    paper="ours",
    intended_use=(
        "Comparing with papers that report UTMOSv2; ranking how natural speech sounds when no listeners are available."
    ),
    limitations=(
        "Trained on short utterances from listening tests, mostly English: it has not seen windows of a conversation, "
        "and even less two voices in one window. It does not tell whether the words are right."
    ),
)
def utmosv2(
    recording: Recording,
    *,
    source: Literal["mix", "stem"] = "mix",
    windows: Literal["spread", "all"] = "spread",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `mix` scores the recording as it is; `stem` the speech that is separated from it, music or not.
        windows: `spread` uses 60 windows of a long recording; `all` uses all.
    """
    most = MOST if windows == "spread" else None
    return rate_speech(recording, "utmosv2", "utmosv2", source=source, seconds=WINDOW, most=most)
