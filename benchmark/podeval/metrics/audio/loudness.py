"""Loudness: how loud a recording is, how high it peaks and how much its loudness varies, compared with what podcast
listeners expect.

Integrated loudness (LUFS) by ITU-R BS.1770-4 over the actual channel layout, true peak (dBTP) by oversampling as in EBU
Tech 3341, and loudness range (LU) by EBU Tech 3342. Each of the three has a score from 0 to 1, with PodEval's
constants: it is 1 for −18 to −14 LUFS, for up to −1 dBTP, and for 4 to 18 LU, and falls exponentially outside these
ranges. The loudness range of less than a minute of audio does not represent a programme (clips of real podcasts score
0.2, whole episodes 0.8), so its score is shown with a note but not ranked.

Source: the standards; PodEval, Eq. 2 to 4.

Differs from the public code, which mixes to mono first (a stereo file measures about 3 LU too low), uses an ungated
percentile range over frames of 3 s, and sets the lower limit at −17 LUFS (`variant="podeval"` does all three). The
constant printed in Eq. 2 gives 0.65 at −23 LUFS; the paper says about 0.6.
"""

import math
from typing import Literal

from podeval.audio import loudness as meter
from podeval.metrics import UNRANKED, Key, Reach, Score, Timeline, facts, metric
from podeval.recording import Recording

SHORTEST_PROGRAMME = 60.0
"""Minimum length in seconds at which a loudness range describes a programme."""
SHORT = "the loudness range of less than a minute is not that of a programme"

_TIMELINE_POINTS = 600
"""Maximum number of points in a timeline."""
_BLOCK = 1 << 16


@metric(
    name="loudness",
    title="Loudness",
    version="1.1",
    dimension="audio.loudness",
    keys=(
        Key(
            "integrated",
            "in range",
            "LUFS",
            ideal=(-18, -14),
            title="Loudness",
            about="loudness of the whole recording",
            reach=Reach(facts.CLIPS, people=(-22.4, -19.1), systems=(-25.6, -15.7), version="1.1", n=85),
        ),
        Key(
            "true_peak",
            "in range",
            "dBTP",
            ideal=(float("-inf"), -1),
            title="True peak",
            about="highest level, including between samples",
            reach=Reach(facts.CLIPS, people=(-3.3, -1.2), systems=(-5.2, 0.04), version="1.1", n=85),
        ),
        Key(
            "range",
            "in range",
            "LU",
            (0, None),
            ideal=(4, 18),
            title="Loudness range",
            only_for="a recording of 3 s or more",
            about="variation of loudness over time",
            reach=Reach(facts.CLIPS, people=(3.0, 5.4), systems=(2.3, 4.5), version="1.1", n=85),
        ),
        Key(
            "integrated_score",
            "higher",
            "",
            (0, 1),
            title="Loudness score",
            about="how well the loudness suits a podcast",
            reach=Reach(facts.CLIPS, people=(0.68, 0.91), systems=(0.52, 1.0), version="1.1", n=85),
        ),
        Key(
            "true_peak_score",
            "higher",
            "",
            (0, 1),
            title="True-peak score",
            about="how safe the peaks are",
            reach=Reach(facts.CLIPS, people=(1.0, 1.0), systems=(0.01, 1.0), version="1.1", n=85),
        ),
        Key(
            "range_score",
            "higher",
            "",
            (0, 1),
            title="Loudness-range score",
            only_for="a recording of 3 s or more",
            about="how well the range suits a podcast",
            reach=Reach(facts.CLIPS, people=(0.33, 1.0), systems=(0.15, 1.0), version="1.1", n=85),
        ),
    ),
    paper="PodEval",
    caution=(
        "Making the first 4 s quieter by 8 dB raises the range score of a clip from 0.11 to 1.0, and lowering the "
        "peaks by one decibel raises the peak score from 0.01 to 1: both show how a file was mastered, not how good it "
        "is."
    ),
    intended_use=(
        "Checking whether an episode meets the loudness targets of podcast platforms. For volume fade, see endurance."
    ),
    limitations=(
        "The targets are conventions (about −16 to −14 LUFS), not matters of taste; a radio play or an audiobook may "
        "well have a wider range. Recordings of a few seconds have no reliable range, and under the standard, "
        "appending silence to a short one widens it."
    ),
)
def loudness(recording: Recording, *, variant: Literal["standard", "podeval"] = "standard") -> Score:
    """Score one recording.

    Args:
        recording: audio of at least 0.4 s (the range needs 3 s) with up to 6 channels, at any rate from 8 kHz upwards.
        variant: `standard` follows ITU-R BS.1770-4 and EBU Tech 3342; `podeval` follows the public code.
    """
    recording.require_sound(0.4)
    if variant == "standard":
        levels = meter.measure(recording.samples, recording.rate, recording.layout)
    else:
        levels = meter.measure_podeval(recording.samples, recording.rate)
    scored = score_integrated_loudness(levels.integrated, "podeval" if variant == "podeval" else "paper")
    step = max(1, -(-len(levels.short_term) // _TIMELINE_POINTS))
    # Exclude appended silence from the length of the programme, which must be at least a minute.
    silent = sum(map(_count_zeros, (recording.samples, recording.samples[::-1]))) / recording.rate
    programme = recording.duration - (silent if silent >= 1 else 0)
    return Score(
        values={
            "integrated": levels.integrated,
            "true_peak": levels.true_peak,
            "range": levels.range,
            "integrated_score": scored,
            "true_peak_score": score_true_peak(levels.true_peak),
            "range_score": None if levels.range is None else score_loudness_range(levels.range),
        },
        notes={
            "channels": recording.channels,
            "rate": recording.rate,
            **levels.reasons,
            **({UNRANKED: dict.fromkeys(("range", "range_score"), SHORT)} if programme < SHORTEST_PROGRAMME else {}),
        },
        timeline=Timeline(
            starts=[round(float(end) - 3, 2) for end in levels.short_term_times[::step]],
            window=3.0,
            values={"integrated": [round(float(v), 2) if v > -200 else None for v in levels.short_term[::step]]},
        ),
    )


def _count_zeros(samples: meter.Samples) -> int:
    """Return the number of frames of digital silence at the beginning of the samples, shape (frames, channels)."""
    for start in range(0, len(samples), _BLOCK):
        sounding = samples[start : start + _BLOCK].any(axis=1)
        if sounding.any():
            return start + int(sounding.argmax())
    return len(samples)


def score_integrated_loudness(lufs: float, variant: Literal["paper", "podeval"] = "paper") -> float:
    """Return how suitable an integrated loudness is for a podcast, 0..1 (PodEval).

    The score is 1 in [-18, -14] LUFS (variant "podeval", as coded: [-17, -14]) and falls as exp(-0.0858 d) below and
    exp(-0.3291 d) above, where d is the distance in LU. The paper says about 0.6 at -23 LUFS; its constant gives 0.65
    if measured from -18 and 0.60 from -17. The printed constants are used.
    """
    return _plateau(lufs, -18.0 if variant == "paper" else -17.0, -14.0, 0.0858, 0.3291)


def score_true_peak(dbtp: float) -> float:
    """Return the score of a true peak, 0..1 (PodEval).

    The score is 1 up to -1 dBTP and exp(-4.605 (dbtp + 1)) above: 0.01 at 0 dBTP.
    """
    return _plateau(dbtp, -math.inf, -1.0, 0.0, 4.605)


def score_loudness_range(lu: float) -> float:
    """Return the score of a loudness range, 0..1 (PodEval).

    The score is 1 in [4, 18] LU, exp(-1.1513 d) below and exp(-0.2554 d) above, where d is the distance in LU.
    """
    return _plateau(lu, 4.0, 18.0, 1.1513, 0.2554)


def _plateau(value: float, low: float, high: float, fall_below: float, fall_above: float) -> float:
    if value < low:
        return math.exp(-fall_below * (low - value))
    return math.exp(-fall_above * max(value - high, 0.0))
