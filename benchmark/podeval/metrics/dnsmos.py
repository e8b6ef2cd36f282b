"""DNSMOS: what listeners would say about the quality of speech.

Mean opinion scores of 1 to 5 predicted by two networks on windows of 9.01 s every second, averaged over windows:
overall (OVRL), speech (SIG) and background (BAK) by the P.835 network, overall (P808) by the P.808 network. Higher is
better. Clean speech rarely passes 3.6, and a robot's voice scores little below a person's: read it as a
measure of noise and distortion, not of naturalness. Distance and reverberation count as distortion, so far-field
recordings of meetings score 1 to 3. Music does too, so where there is any the speech stem is scored.

Source: Reddy et al., ICASSP 2022, as used by PodEval; networks of the DNS Challenge, 16 kHz, mean of the channels.

Differs from the public code, whose rounding drops windows 7 to 23 and 119 to 122 (`windows="upstream"`). As there,
noise without speech has a score too (white noise 1.1), for the detector of speech may miss a voice far from the
microphone.
"""

from typing import Literal

import numpy as np

from podeval.analysis import Recording, speech_track
from podeval.metrics.declaration import Key, metric
from podeval.metrics.reach import CLIPS, Reach
from podeval.metrics.score import Score, Timeline

SHORTEST = 0.5
"""Seconds below which looping the clip to fill a window says nothing."""


@metric(
    name="dnsmos",
    title="DNSMOS",
    version="1.1",
    dimension="speech.quality",
    dimension_zh="质量",
    keys=(
        Key(
            "ovrl",
            "higher",
            "MOS",
            (1, 5),
            about="overall quality (P.835)",
            reach=Reach(CLIPS, people=(2.94, 3.39), systems=(3.39, 3.49), profile="embedded"),
        ),
        Key(
            "sig",
            "higher",
            "MOS",
            (1, 5),
            about="quality of the speech (P.835)",
            reach=Reach(CLIPS, people=(3.44, 3.63), systems=(3.62, 3.71), profile="embedded"),
        ),
        Key(
            "bak",
            "higher",
            "MOS",
            (1, 5),
            about="absence of background noise (P.835)",
            reach=Reach(CLIPS, people=(3.64, 4.13), systems=(4.13, 4.2), profile="embedded"),
        ),
        Key(
            "p808",
            "higher",
            "MOS",
            (1, 5),
            about="overall quality (P.808)",
            reach=Reach(CLIPS, people=(3.71, 4.1), systems=(3.95, 4.15), profile="embedded"),
        ),
    ),
    needs=(*speech_track.NEEDS, "speech_quality"),
    paper="PodEval",
    intended_use="Screening for noise, codec and vocoder artefacts; comparing versions of one system.",
    limitations=(
        "Trained on English calls with noise and suppressors, not on synthetic or long-form speech: it hardly "
        "tells a robot from a person, and rates clean anchors above real rooms. Music, singing and other "
        "languages are outside its data. Not for naturalness: see distillmos and listening tests."
    ),
)
def dnsmos(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    windows: Literal["exact", "upstream"] = "exact",
) -> Score:
    """Score one recording.

    Args:
        recording: speech; channels are averaged, 16 kHz.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
        windows: `exact` scores every window; `upstream` loses those the reference code loses.
    """
    recording.require_sound(SHORTEST)
    track = recording.speech_track(source)
    quality = track.speech_quality(windows)
    starts, columns = quality[:, 0], dict(zip(("sig", "bak", "ovrl", "p808"), quality[:, 1:].T, strict=True))
    return Score(
        values={key: float(np.mean(columns[key])) for key in ("ovrl", "sig", "bak", "p808")},
        notes={"windows": len(starts), **track.notes},
        timeline=Timeline(
            starts=[float(start) for start in starts],
            window=9.01,
            values={key: [round(float(v), 4) for v in column] for key, column in columns.items()},
        ),
    )
