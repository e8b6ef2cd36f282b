"""Sound fidelity: an estimate of PESQ that needs no clean reference.

SQUIM's estimate of wide-band PESQ (ITU-T P.862.2), averaged over windows of 5 s every 2.5 s, the last one ending with
the recording. It ranges from about 1 (bad) to 4.64 (no difference); higher is better. LFS-Bench, section 3 and appendix
C.3; the model is torchaudio's (Kumar et al., ICASSP 2023), trained on English sentences at 16 kHz; channels are
averaged.

Differs from the paper, which gives the model the whole file, although the model's computing time grows with the square
of the length and the model was trained on clips of 5 s; `variant="lfs"` also gives it the whole file, including silence
(since version 1.4; before, it used the windows). A recording shorter than a window is scored as a whole. Noise or music
alone has no PESQ and is unscored. Like all predictors of listeners' ratings, it rates the recording as it is, but a
constant offset is removed, ends without speech are trimmed to half a second, and windows that are more than 60 %
silence or music alone are left out and counted (since version 1.3; up to 1.2 it rated the speech stem if there was
music). If there is music, `pesq_estimate_stem` is the value of the separated speech; this value is shown but not
ranked. `source="stem"` separates the speech of every recording and is a different protocol. The range given in the
paper, −0.5 to 4.5, is that of narrow-band PESQ, which the model does not estimate.
"""

from functools import partial
from typing import Literal

from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.metrics.predicted_opinion import rate_speech
from podeval.metrics.speech.timbre_consistency import LFS_RATE
from podeval.recording import Recording, speech_track
from podeval.recording.predicted_windows import start_windows

RATE = 16_000
WINDOW, STRIDE = 5.0, 2.5
SHORTEST = 1.0


@metric(
    name="sound_fidelity",
    title="Sound fidelity",
    version="1.4",
    dimension="acoustics.fidelity",
    keys=(
        Key(
            "pesq_estimate",
            "higher",
            "PESQ",
            (1, 4.64),
            about="wide-band PESQ as estimated by SQUIM",
            reach=Reach(facts.LFS, people=(2.94, 3.62), systems=(3.02, 3.63)),
        ),
        Key(
            "pesq_estimate_stem",
            "informative",
            "PESQ",
            (1, 4.64),
            about="the same value for the speech alone, after separation from music",
        ),
    ),
    needs=("pesq_estimator", *speech_track.NEEDS),
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
    source: Literal["mix", "stem"] = "mix",
    variant: Literal["default", "lfs"] = "default",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        source: `mix` scores the recording as it is; `stem` scores its separated speech, even if there is no music.
        variant: `lfs` scores the whole file at once, including silence, after resampling to 24 kHz, as the paper does.
    """
    whole = variant == "lfs"
    return rate_speech(
        recording,
        "pesq_estimate",
        "pesq_estimator",
        source=source,
        # The timeline may extend past the end of the recording by a rounding error.
        seconds=recording.duration + 1 if whole else WINDOW,
        list_starts=partial(start_windows, stride=round(STRIDE * RATE)),
        everything=whole,
        through=LFS_RATE if whole else None,
        shortest=SHORTEST,
        speech=0.0,
    )
