"""DNSMOS: predicted listener ratings of speech quality.

Mean opinion scores of 1 to 5 predicted by two networks on windows of 9.01 s every second, averaged over windows:
overall (OVRL), speech (SIG) and background (BAK) by the P.835 network, overall (P808) by the P.808 network. Higher is
better. Clean speech rarely exceeds 3.6, and a robotic voice scores little below a person's: read it as a measure of
noise and distortion, not of naturalness. Distance and reverberation count as distortion, so far-field recordings of
meetings score 1 to 3. So does music under speech: the recording is scored as it is, and if there is music, `ovrl_stem`
is the overall quality of its separated speech; this value is shown but not ranked. `source="stem"` separates the speech
of every recording and is a different protocol. The notes give the level of the speech (`speech_level`, dBov).

As with all predictors of listeners' ratings, a constant offset is removed, ends without speech are trimmed to half a
second, and windows that are more than 60 % silence or music alone are left out and counted (since version 1.3; up to
1.2 everything was rated). If no window contains enough speech, the windows with the most speech are rated. Therefore,
neither silence nor a jingle lowers the score.

Source: Reddy et al., ICASSP 2022, as used by PodEval; networks of the DNS Challenge, 16 kHz, mean of the channels.

`level="fixed"` first normalises the speech to −26 dBov, following ITU-T P.56.

Differs from the public code in rating only the parts with speech, and in keeping windows 7 to 23 and 119 to 122, which
that code drops because of a rounding error; `windows="upstream"` follows the public code, and includes silence and
offset. As in that code, noise without speech gets a score too (white noise 1.1), because voice activity detection may
miss a voice far from the microphone.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.metrics import Key, Reach, Score, Timeline, facts, metric
from podeval.metrics.predicted_opinion import note_cancelled
from podeval.models.interfaces import Samples
from podeval.recording import MODEL_RATE, Recording, speech_track
from podeval.recording.predicted_windows import choose_tracks, choose_windows, cut_to_speech

WINDOW_SECONDS = 9.01
SHORTEST = 0.5
"""Minimum length in seconds of a clip that may be looped to fill a window."""

LEVEL = -26.0
"""Level of active speech in dBov for `level="fixed"`."""

_OVRL = 3
"""Column of the overall quality in the result of `rate_samples`."""


@metric(
    name="dnsmos",
    title="DNSMOS",
    version="1.3",
    dimension="speech.quality",
    keys=(
        Key(
            "ovrl",
            "higher",
            "MOS",
            (1, 5),
            title="DNSMOS OVRL",
            about="overall quality (P.835)",
            reach=Reach(
                facts.CLIPS, people=(2.94, 3.39), systems=(3.39, 3.49), profile="embedded", version="1.3", n=85
            ),
        ),
        Key(
            "sig",
            "higher",
            "MOS",
            (1, 5),
            title="DNSMOS SIG",
            about="quality of the speech (P.835)",
            reach=Reach(
                facts.CLIPS, people=(3.44, 3.63), systems=(3.62, 3.71), profile="embedded", version="1.3", n=85
            ),
        ),
        Key(
            "bak",
            "higher",
            "MOS",
            (1, 5),
            title="DNSMOS BAK",
            about="absence of background noise (P.835)",
            reach=Reach(facts.CLIPS, people=(3.64, 4.13), systems=(4.13, 4.2), profile="embedded", version="1.3", n=85),
        ),
        Key(
            "p808",
            "higher",
            "MOS",
            (1, 5),
            title="DNSMOS P.808",
            about="overall quality (P.808)",
            reach=Reach(facts.CLIPS, people=(3.71, 4.1), systems=(3.95, 4.15), profile="embedded", version="1.3", n=85),
        ),
        Key(
            "ovrl_stem",
            "informative",
            "MOS",
            (1, 5),
            title="DNSMOS OVRL of the speech alone",
            about="overall quality of the speech once music is separated from it",
        ),
    ),
    needs=(*speech_track.NEEDS, "speech_quality"),
    paper="PodEval",
    caution=(
        "It depends on the level (turning a recording down by 10 dB gained 0.12 overall and 0.41 for the background). "
        "Music under speech counts as noise, and louder music counts more: compare systems with music only among "
        "themselves. Among 19 synthetic voices it scored the female ones 0.3 below the male ones: a difference of that "
        "size between two voices says nothing about their quality."
    ),
    intended_use="Screening for noise, codec and vocoder artefacts; comparing versions of one system.",
    limitations=(
        "Trained on English calls with noise and noise suppression, not on synthetic or long-form speech: it hardly "
        "tells a robotic voice from a person, and rates clean synthetic anchors above recordings in real rooms. Music,"
        " singing and other languages are outside its training data. Not a measure of naturalness: see distillmos and "
        "listening tests."
    ),
)
def dnsmos(
    recording: Recording,
    *,
    source: Literal["mix", "stem"] = "mix",
    windows: Literal["exact", "upstream"] = "exact",
    level: Literal["as_is", "fixed"] = "as_is",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz; channels are averaged.
        source: `mix` scores the recording as it is; `stem` scores its separated speech, even if there is no music.
        windows: `exact` scores the windows that contain speech; `upstream` scores the windows that the reference code
            scores.
        level: `as_is` keeps the level; `fixed` normalises the speech to −26 dBov.
    """
    recording.require_sound(SHORTEST)
    track, stem, notes = choose_tracks(recording, source)
    now = measure_speech_level(track)
    gain = LEVEL - now if level == "fixed" and now is not None else 0.0
    quality, left_out = _rate_windows(track, windows, gain)
    beside = quality if stem is track else _rate_windows(stem, windows, gain)[0]
    starts, columns = quality[:, 0], dict(zip(("sig", "bak", "ovrl", "p808"), quality[:, 1:].T, strict=True))
    return Score(
        values={
            **{key: float(np.mean(columns[key])) for key in ("ovrl", "sig", "bak", "p808")},
            "ovrl_stem": float(np.mean(beside[:, _OVRL])),
        },
        notes={
            "windows": len(starts),
            "windows_left_out": left_out,
            "speech_level": None if now is None else round(now, 1),
            **notes,
            **note_cancelled(recording, ("ovrl", "sig", "bak", "p808")),
        },
        timeline=Timeline(
            starts=[float(start) for start in starts],
            window=WINDOW_SECONDS,
            values={key: [round(float(v), 4) for v in column] for key, column in columns.items()},
        ),
    )


def _rate_windows(track: Recording, windows: str, gain: float) -> tuple[NDArray[np.float64], int]:
    """Return the quality of the rated windows, in the form that `rate_samples` returns, and the number left out."""
    if windows == "upstream":
        return rate_samples(track, windows, gain), 0
    part = cut_to_speech(track)
    quality = rate_samples(track, windows, gain, part.samples, **part.options) + np.array([part.begin, 0, 0, 0, 0])
    chosen = choose_windows(track, quality[:, 0].tolist(), WINDOW_SECONDS)
    return quality[chosen], len(quality) - len(chosen)


def rate_samples(
    track: Recording, windows: str, gain: float = 0.0, part: Samples | None = None, **options: Any
) -> NDArray[np.float64]:
    """Return the DNSMOS values of every window of 9.01 s, shape (windows, 5): start in seconds, SIG, BAK, OVRL, P.808.

    Args:
        track: the recording.
        windows: the kind of windows, as for `dnsmos`.
        gain: gain in decibels that is applied to the samples first.
        part: the samples to rate, at 16 kHz; by default the samples of the whole recording.
        options: settings that distinguish this part from other parts of the recording.
    """

    def stack_scores(model: Any) -> NDArray[Any]:
        samples = track.mono(offset=True) if part is None else part
        louder = samples if not gain else (samples * np.float32(10 ** (gain / 20))).astype(np.float32)
        return np.asarray(model.score(louder, windows=windows))

    options |= {"windows": windows, **({"gain": gain} if gain else {})}
    return track.array_from("speech_quality", stack_scores, **options)


def measure_speech_level(recording: Recording) -> float | None:
    """Return the level of the speech in dBov, the root mean square over its spans; None if there is no speech."""
    samples = recording.mono()
    spans = [samples[round(s.start * MODEL_RATE) : round(s.end * MODEL_RATE)] for s in recording.speech()]
    power = float(np.mean(np.square(np.concatenate(spans), dtype=np.float64))) if any(map(len, spans)) else 0.0
    return 10 * float(np.log10(power)) if power > 0 else None
