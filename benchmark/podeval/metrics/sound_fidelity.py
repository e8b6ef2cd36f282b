"""Sound fidelity: an estimate of PESQ that needs no clean reference.

SQUIM's estimate of wide-band PESQ (ITU-T P.862.2), averaged over windows of 5 s every 2.5 s, the last one ending with
the recording. It ranges from about 1 (bad) to 4.64 (no difference); higher is better. LFS-Bench, section 3 and appendix
C.3; the model is torchaudio's (Kumar et al., ICASSP 2023), trained on English sentences at 16 kHz; channels are
averaged.

Differs from the paper, which gives the model the whole file, although its cost grows with the square of the length and
it was trained on 5 s. A recording shorter than a window is scored as a whole. Windows more than 40 dB below the loudest
are pauses, which have no PESQ; they are left out and counted. Noise or music alone has none either, and is unscored.
The range given in the paper, −0.5 to 4.5, is that of narrow-band PESQ, which the model does not estimate.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.analysis import Recording
from podeval.analysis.speech_track import NEEDS
from podeval.analysis.speech_windows import require_speech
from podeval.metrics.cancelled_channels import note_cancelled
from podeval.metrics.declaration import Key, metric
from podeval.metrics.reach import LFS, Reach
from podeval.metrics.score import Score, Timeline
from podeval.metrics.timbre_consistency import LFS_RATE
from podeval.models import registry
from podeval.models.interfaces import Samples, WindowScorer

RATE = 16_000
WINDOW, STRIDE = 5.0, 2.5
SHORTEST = 1.0
QUIET = -40.0
"""Decibels below the loudest window at which a window counts as a pause."""


@metric(
    name="sound_fidelity",
    title="Sound fidelity",
    version="1.2",
    dimension="acoustics.fidelity",
    about_zh="无需干净的参考录音，估计 PESQ。",
    dimension_zh="保真度",
    keys=(
        Key(
            "pesq_estimate",
            "higher",
            "PESQ",
            (1, 4.64),
            about="wide-band PESQ as estimated by SQUIM",
            about_zh="SQUIM 估计的宽带 PESQ",
            zh="声音保真度",
            reach=Reach(LFS, people=(2.94, 3.62), systems=(3.02, 3.63)),
        ),
        Key(
            "pesq_estimate_mix",
            "informative",
            "PESQ",
            (1, 4.64),
            about="the same for the recording as it is, including music",
            about_zh="录音原样（含音乐）的估计值",
            zh="声音保真度（含音乐）",
        ),
    ),
    needs=("pesq_estimator", *NEEDS),
    paper="LFS-Bench",
    intended_use="Screening for distortion without a clean reference.",
    limitations=(
        "It is an estimate by a network (SQUIM) trained on English speech with simulated noise, not PESQ itself, and "
        "its error on synthetic speech is unknown. Differences below 0.2 are not meaningful."
    ),
)
def sound_fidelity(
    recording: Recording,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["default", "lfs"] = "default",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
        variant: `lfs` resamples to 24 kHz first, as the paper does with all audio.
    """
    recording.require_sound(SHORTEST)
    # Nothing is separated where there is no model for what follows.
    registry.get_card("pesq_estimator", recording.profile)
    track = recording.speech_track(source)
    require_speech(track)
    estimates = _estimate(track, variant)
    mix = estimates if track is recording else _estimate(recording, variant)
    starts, values = estimates[np.isfinite(estimates[:, 1])].T
    return Score(
        values={"pesq_estimate": float(values.mean()), "pesq_estimate_mix": float(np.nanmean(mix[:, 1]))},
        notes={"windows": len(values), "windows_left_out": len(estimates) - len(values), **track.notes}
        | note_cancelled(recording, ("pesq_estimate",)),
        timeline=Timeline(
            starts=[round(float(start), 3) for start in starts],
            window=min(WINDOW, round(track.duration, 3)),
            values={"pesq_estimate": [round(float(value), 4) for value in values]},
        ),
    )


def _estimate(track: Recording, variant: str) -> NDArray[np.float64]:
    """Return for each window of a recording its start in seconds and its estimate, NaN for pauses."""
    recording = track.through(LFS_RATE) if variant == "lfs" else track
    return recording.array_from(
        "pesq_estimator", lambda model: _windows(model, recording.mono(RATE)), window=WINDOW, stride=STRIDE, quiet=QUIET
    )


def _windows(model: WindowScorer, samples: Samples) -> NDArray[np.float64]:
    """Return for each window its start in seconds and its estimate, NaN for pauses; shape (windows, 2)."""
    size, stride = round(WINDOW * RATE), round(STRIDE * RATE)
    last = max(0, len(samples) - size)
    starts = [*range(0, last, stride), last]
    windows = [samples[start : start + size] for start in starts]
    level = np.array([np.sqrt(np.mean(np.square(window, dtype=np.float64))) for window in windows])
    loud = np.flatnonzero(level >= level.max() * 10 ** (QUIET / 20))
    estimates = np.full((len(starts), 2), np.nan)
    estimates[:, 0] = np.array(starts) / RATE
    estimates[loud, 1] = model.score([windows[index] for index in loud])
    return estimates
