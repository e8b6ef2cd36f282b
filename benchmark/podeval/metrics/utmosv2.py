"""UTMOSv2: how natural synthetic speech would sound to listeners, with its chance taken out.

A mean opinion score of about 1 to 5 by a speech encoder and spectrograms, 16 kHz, channels averaged; it may leave the
range by a little. The mean over windows of 3 s side by side, the last one ending with the recording; a recording of
more than three minutes has 60 of them, spread evenly. Higher is better. It learnt from single sentences of synthetic
voices up to 2023, in English, and is told to take speech for the set `sarulab`, which is the public code's default.

Not run on real weights: those could not be had where podeval was built. The loading code was run on tiny models, and
the network compared part by part with timm and transformers and, once, as a whole with the authors' code.

Source: Baba et al., "The T05 System for The VoiceMOS Challenge 2024: Transfer Learning from Deep Image Classifier to
Naturalness MOS Prediction of High-Quality Synthetic Speech", SLT 2024; by the group of UTMOS (Interspeech 2022).

Differs from the public code, which takes one stretch of 3 s and two of 1.4 s at random from the file and mixes their
spectrograms at random: its value changes from run to run, ours never. Here each window is heard whole and seen at its
first and last 1.4 s, unmixed. The public code may also cut out whatever stays below a tenth of full scale for 0.3 s,
which would be all of a quiet recording; windows with more than 60 % of silence are left out here instead, and counted.
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
    version="1.0",
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
    ),
    needs=(*SPEECH_NEEDS, "utmosv2"),
    paper="ours",
    intended_use=(
        "Comparing with papers that print UTMOSv2; ranking how natural speech sounds where no listeners can be asked."
    ),
    limitations=(
        "Trained on short utterances of listening tests, mostly English: a window of a conversation is not "
        "what it has seen, and two voices in one window less so. It says nothing of whether the words are "
        "right."
    ),
)
def utmosv2(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    windows: Literal["spread", "all"] = "spread",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
        windows: `spread` takes 60 of a long recording; `all` takes all.
    """
    most = MOST if windows == "spread" else None
    return rate_speech(recording, "utmosv2", "utmosv2", source=source, seconds=WINDOW, most=most)
