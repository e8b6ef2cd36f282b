"""DistillMOS: how natural and clean speech sounds to listeners.

A mean opinion score of 1 to 5, predicted by one network on windows of 7.68 s spread evenly over the recording; the
value is the mean over windows, higher is better. Windows start at most 1 s apart in recordings of up to 39 s, which
have up to 32 windows. In longer recordings, the 32 windows are further apart; from two minutes on, more are added to
keep an overlap of half a window. From ten minutes on there are 160 windows, or more if these would leave gaps, so every
part is rated at least once. The papers do not use DistillMOS; it was added because it distinguishes a robotic voice
from a person, which DNSMOS hardly does. Of our samples, espeak-ng scores 2.3, LibriVox readers 4.3, hibari and piper
4.5, Kokoro 4.6. A recording shorter than one window is padded with silence, which lowers the score only a little: 3 s
of Kokoro score 4.4. Shifting a window by one sample can change its value by 0.1, so ignore smaller differences between
files of half a minute.

Source: Stahl and Gamper, "Distillation and pruning for scalable self-supervised representation-based speech quality
assessment", ICASSP 2025; package `distillmos` 0.9.1.

Like all predictors of listeners' ratings, it rates the recording as it is, but a constant offset is removed, ends
without speech are trimmed to half a second, and windows that are more than 60 % silence or music alone are left out and
counted (since version 1.5; up to 1.4 it rated everything, and the speech stem if there was music). If there is music,
`distillmos_stem` is the value of the separated speech; this value is shown but not ranked. `source="stem"` separates
the speech of every recording and is a different protocol.

Differs from the package in these respects and in using fewer windows for recordings over 39 s, in averaging channels
where the package takes the first one, and in refusing recordings without speech. The variant `windows="upstream"` rates
all of the recording in as many windows as the package: for ten minutes of audio it takes four times as long and changes
the mean by a few hundredths.
"""

from functools import partial
from typing import Literal

import numpy as np

from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.metrics.predicted_opinion import rate_speech
from podeval.recording import Recording, speech_track

RATE = 16_000
WINDOW = 122_880
UPSTREAM_HOP = 16_000
ENOUGH = 32
"""Minimum number of windows in a recording whose windows are more than `UPSTREAM_HOP` apart.

On 24 clips of 90 s by people and systems, the mean of 32 windows is within 0.034 of the mean of 83 windows (root mean
square 0.015), the mean of 54 within 0.027 (0.009), and the mean of 24 within 0.053 (0.019).
"""

PLENTY = 160
"""Minimum number of windows in a recording whose windows overlap by less than half: the number for ten minutes.

On eight minutes of 36 clips by people and systems (values from 2 to 5, standard deviation 0.96), the mean of windows
that overlap by half is within 0.01 of the mean of windows every second; the mean of 63 adjacent windows is within 0.07
(standard deviation 0.035 over the position of the first). An hour contains 469 adjacent windows, but hardly ever that
many voices.
"""


@metric(
    name="distillmos",
    title="DistillMOS",
    version="1.5",
    dimension="speech.naturalness",
    keys=(
        Key(
            "distillmos",
            "higher",
            "MOS",
            (1, 5),
            about="naturalness and quality of the speech",
            reach=Reach(
                facts.CLIPS, people=(3.51, 4.35), systems=(4.46, 4.67), profile="embedded", version="1.5", n=85
            ),
        ),
        Key(
            "distillmos_stem",
            "informative",
            "MOS",
            (1, 5),
            about="the same value for the speech alone, after separation from music",
        ),
    ),
    needs=(*speech_track.NEEDS, "naturalness"),
    paper="ours",
    caution=(
        "It ranks good systems above people: read it as a measure of synthesis faults. Music under speech lowers it: "
        "compare systems with music only among themselves."
    ),
    intended_use="Ranking how natural speech sounds when no listeners are available.",
    limitations=(
        "Distilled from crowdsourced ratings of mostly English, read speech; it rates expressive, accented and "
        "conversational speech lower than listeners do. It does not name artefacts. Differences below 0.1 are not "
        "meaningful."
    ),
)
def distillmos(
    recording: Recording,
    *,
    source: Literal["mix", "stem"] = "mix",
    windows: Literal["spread", "upstream"] = "spread",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz; channels are averaged.
        source: `mix` scores the recording as it is; `stem` scores its separated speech, even if there is no music.
        windows: `spread` uses only as many windows of a long recording as are needed; `upstream` uses windows at most
            one second apart over the whole recording, as the package does.
    """
    spread = windows == "spread"
    return rate_speech(
        recording,
        "distillmos",
        "naturalness",
        source=source,
        seconds=WINDOW / RATE,
        list_starts=partial(place_window_starts, spread=spread),
        everything=not spread,
    )


def place_window_starts(frames: int, size: int = WINDOW, *, spread: bool = False) -> list[int]:
    """Return the first sample of each window; the windows are evenly spread from sample 0 to the end of the recording.

    Args:
        frames: length of the recording in samples.
        size: length of a window in samples.
        spread: whether `ENOUGH` windows may be further apart than `UPSTREAM_HOP`, up to half a window, and `PLENTY` of
            them up to a whole window.
    """
    beyond = max(0, frames - size)
    count = -(-beyond // UPSTREAM_HOP) + 1
    if spread:
        half_overlapping, side_by_side = -(-2 * beyond // size) + 1, -(-beyond // size) + 1
        count = min(count, max(ENOUGH, min(PLENTY, half_overlapping), side_by_side))
    return [int(share * beyond) for share in np.linspace(0, 1, count)]
