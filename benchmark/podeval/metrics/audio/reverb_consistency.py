"""Reverb consistency: whether a recording sounds as if it was made in one room from beginning to end.

The spread of the speech-to-reverberation modulation energy ratio (SRMR) over windows of 3 s every 2 s; 0 or more, lower
is more consistent. `reverb_consistency` is the paper's population standard deviation. This value shrinks with the mean
of SRMR, so a system could win by adding reverberation everywhere; the value is therefore shown but not used for
ranking. Systems are ranked by `reverb_consistency_cv`, the standard deviation divided by the mean (coefficient of
variation). `reverb_consistency_norm` is the spread of normalised SRMR, which depends less on the voice. Windows that
are more than 60 % non-speech are left out and counted in the notes. `srmr` is the mean over the same windows: higher is
drier, but it also depends on the voice and its tempo. For the same reason a change of voice raises the spread about as
much as a change of room.

As with all predictors of listeners' ratings, a constant offset and silence at both ends are removed first.

If there is music, the speech stem is measured, and the value is shown without a rank (since version 1.3): the residue
of a louder music bed evens out the ratio, in the stem as well as in the mix (with a bed as loud as the speech, the
value is 0.21 instead of 0.24 for Kokoro, and 0.24 instead of 0.27 for a human reader).

Source: LFS-Bench, section 3 and appendix C.2; SRMR by Falk, Zheng and Chan, IEEE TASLP 2010, as in SRMRpy; 16 kHz, mean
of the channels.

Differs from the paper, which has no public code, only in details that it leaves open. By default, the envelopes are
SRMRpy's fast gammatonegram without normalisation (`mode="slow"` uses Hilbert envelopes and `norm=True` the normalised
form; the three have different scales), and audio is resampled directly to the rate of speech models rather than to 24
kHz first (`variant="lfs"`).
"""

from functools import partial
from typing import Annotated, Literal

import numpy as np

from podeval.audio.srmr import compute_srmr_windows
from podeval.audio.windows import Span
from podeval.errors import CannotScore
from podeval.metrics import UNRANKED, Constraint, Key, Reach, Score, Timeline, facts, metric
from podeval.metrics.speech.timbre_consistency import LFS_RATE
from podeval.recording import MODEL_RATE, Recording, speech_track
from podeval.recording.predicted_windows import SpokenPart, cut_to_speech

WINDOW, STRIDE = 3.0, 2.0
"""Length and stride of windows in seconds."""

EVENED_OUT = "there is music, and a louder bed evens out the reverberation that is measured"


@metric(
    name="reverb_consistency",
    title="Reverb consistency",
    version="1.3",
    dimension="acoustics.reverberation",
    keys=(
        Key(
            "reverb_consistency_cv",
            "lower",
            "",
            (0, None),
            title="Reverberation, variation",
            unreached=facts.NEW,
            about="spread of SRMR over time divided by its mean: how much the room seems to change",
        ),
        Key(
            "reverb_consistency",
            "lower",
            "",
            (0, None),
            about="the paper's value: spread of SRMR, which constant reverberation lowers",
            reach=Reach(
                facts.CLIPS, people=(1.26, 2.12), systems=(1.95, 4.63), profile="embedded", version="1.3", n=85
            ),
            ranked=False,
        ),
        Key(
            "reverb_consistency_norm",
            "lower",
            "",
            (0, None),
            title="Reverb consistency, normalised",
            about="the same coefficient for normalised SRMR, which depends less on the voice",
            reach=Reach(
                facts.CLIPS, people=(0.31, 0.47), systems=(0.26, 0.48), profile="embedded", version="1.3", n=85
            ),
            ranked=False,
        ),
        Key(
            "srmr",
            "informative",
            "",
            (0, None),
            title="SRMR",
            about="mean SRMR: how dry the speech sounds (higher is drier)",
            reach=Reach(facts.CLIPS, people=(4.5, 6.9), systems=(6.4, 10.5), profile="embedded", version="1.3", n=85),
        ),
    ),
    needs=speech_track.NEEDS,
    paper="LFS-Bench",
    caution=(
        "Adding the reverberation of a hall (2 s) throughout lowers the paper's spread from 0.93 to 0.27 for one "
        "voice, but raises the coefficient of variation from 0.12 to 0.19 (for whispers, both fall: 1.23 to 0.09, and "
        "0.10 to 0.07). A low value means consistent, not good."
    ),
    intended_use="Checking whether a long synthesis stays in one room; systems that generate in chunks often do not.",
    limitations=(
        "Music and noise under speech are mistaken for room sound. Dry recordings have almost no reverberation, and "
        "the ratio of two small numbers is unstable; the distortion study shows what the metric can detect."
    ),
)
def reverb_consistency(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    mode: Literal["fast", "slow"] = "fast",
    norm: bool = False,
    variant: Literal["default", "lfs"] = "default",
    window: Annotated[float, Constraint(least=0.5, added=True)] = WINDOW,
    stride: Annotated[float, Constraint(least=0.1, added=True)] = STRIDE,
) -> Score:
    """Score one recording.

    Args:
        recording: speech of at least 5 s (two windows), 16 kHz; channels are averaged.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        mode: `fast` uses envelopes from a gammatonegram; `slow` uses Hilbert envelopes and takes 20 times as long.
        norm: whether all values use normalised SRMR: modulation energies limited to a range of 30 dB, and bands up to
            30 Hz.
        variant: `lfs` resamples to 24 kHz first, as the paper does with all audio.
        window: length of a window in seconds.
        stride: seconds between the beginnings of consecutive windows.
    """
    recording.require_sound(window + stride)
    track = recording.speech_track(source)
    if variant == "lfs":
        track = track.through(LFS_RATE)
    # Measure only the windows that contain enough speech.
    speech = track.speech()
    if not speech:
        raise CannotScore("no speech is heard, and reverberation is measured on speech")
    part = cut_to_speech(track) if variant == "default" else SpokenPart(track.mono(offset=True), 0.0, {})
    srmr = partial(compute_srmr_windows, part.samples, MODEL_RATE, window, stride, fast=mode == "fast")
    starts, values = srmr(norm=norm)
    starts += part.begin
    kept = speech_track.find_sounding([(Span(start, start + window),) for start in starts.tolist()], speech)
    if kept.sum() < 2:
        few = "no window" if not kept.any() else "only one window"
        raise CannotScore(f"{few} of {window:g} s has enough speech (at least 40 %), but a spread over time needs two")
    # Compute the spread over time, including the spread of the normalised values.
    normalised = values if norm else srmr(norm=True)[1]
    starts, values, normalised = starts[kept], values[kept], normalised[kept]
    windows = int((len(part.samples) - window * MODEL_RATE) // (stride * MODEL_RATE)) + 1
    return Score(
        values={
            "reverb_consistency_cv": float(np.std(values) / np.mean(values)),
            "reverb_consistency": float(np.std(values)),
            "reverb_consistency_norm": float(np.std(normalised)),
            "srmr": float(np.mean(values)),
        },
        notes={
            "windows": len(values),
            "windows_left_out": windows - len(values),
            **track.notes,
            **({UNRANKED: {"reverb_consistency_cv": EVENED_OUT}} if "music_seconds" in track.notes else {}),
        },
        timeline=Timeline(
            starts=[round(float(start), 3) for start in starts],
            window=window,
            values={"srmr": [round(float(value), 4) for value in values]},
        ),
    )
