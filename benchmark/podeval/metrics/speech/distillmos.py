"""DistillMOS: how natural and clean speech sounds to listeners.

A mean opinion score of 1 to 5, predicted by one network on windows of 7.68 s spread evenly over the recording; the
value is the mean over windows, higher is better. Windows start at most 1 s apart until there are 32 of them, at 39 s.
Longer recordings have 32 windows further apart, and from two minutes on more, so that they overlap by half. From ten
minutes on there are 160, and more if they would otherwise leave gaps: everything is heard at least once. Not in the
papers; it was added because DNSMOS hardly tells a robot from a person, and DistillMOS does. Of our samples, espeak-ng
gets 2.3, LibriVox readers 4.3, hibari and piper 4.5, Kokoro 4.6. A recording shorter than one window is padded with
silence, which costs little: 4.4 for 3 s of Kokoro. Shifting a window by one sample may change its value by 0.1, so
ignore smaller differences between files of half a minute.

Source: Stahl and Gamper, "Distillation and pruning for scalable self-supervised representation-based speech quality
assessment", ICASSP 2025; package `distillmos` 0.9.1.

What it hears, as all predictors of opinion here (version 1.5; until 1.4 all of it, and the speech stem if there was
music): the recording as it is, without a constant offset, ends without speech cut to half a second, windows with more
than 60 % of silence or of music alone left out and counted. If there is music, `distillmos_stem` is the value of the
separated speech, shown and not ranked; `source="stem"` separates every recording, and is another protocol.

Differs from the package in that, in using fewer windows for recordings over 39 s, in averaging channels where the
package takes the first one, and in refusing recordings without speech. Variant `windows="upstream"` hears all of the
recording in as many windows as the package: for ten minutes it takes four times as long and changes the mean by a few
hundredths.
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
"""Number of windows that are spread over a recording before they may be more than `UPSTREAM_HOP` apart.

On 24 clips of 90 s of people and systems, 32 windows give the mean of 83 within 0.034 (root mean square 0.015), 54
within 0.027 (0.009), 24 within 0.053 (0.019).
"""

PLENTY = 160
"""Number of windows before they may overlap by less than half: that of ten minutes.

On eight minutes of 36 clips of people and systems (values from 2 to 5, standard deviation 0.96), windows half
overlapping give the mean of windows every second within 0.01, windows side by side within 0.07 (63 of them, standard
deviation 0.035 over where they begin). An hour has 469 side by side, and hardly ever so many voices.
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
            about="the same for the speech once music is separated from it",
        ),
    ),
    needs=(*speech_track.NEEDS, "naturalness"),
    paper="ours",
    caution=(
        "It ranks good systems above people: read it as a measure of synthesis faults. Music under speech lowers it: "
        "compare systems with music with one another."
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
        recording: speech; channels are averaged, 16 kHz.
        source: `mix` scores the recording as it is; `stem` the speech that is separated from it, music or not.
        windows: `spread` uses as few windows of a long recording as it needs; `upstream` uses one every second or less
            of all the recording, as the package does.
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
    """Return the first sample of each window: evenly spread, the first at 0, the last ending with the recording.

    Args:
        frames: length of the recording in samples.
        size: length of a window in samples.
        spread: `ENOUGH` windows may be further apart than `UPSTREAM_HOP`, up to half a window, and `PLENTY` of them up
            to a whole one.
    """
    beyond = max(0, frames - size)
    count = -(-beyond // UPSTREAM_HOP) + 1
    if spread:
        half_overlapping, side_by_side = -(-2 * beyond // size) + 1, -(-beyond // size) + 1
        count = min(count, max(ENOUGH, min(PLENTY, half_overlapping), side_by_side))
    return [int(share * beyond) for share in np.linspace(0, 1, count)]
