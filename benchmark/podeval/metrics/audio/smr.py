"""Speech-to-music ratio (SMR): whether speech can be heard over the music under it.

Speech and accompaniment are separated, and their loudness (ITU-R BS.1770-4, at the separator's sampling rate, over the
actual channel layout) is compared in every segment of speech of at least 3 s: SMR is the difference in LU. `smr` is its
mean over segments, and `smr_score` the share of segments above 0, in which speech is louder. A segment is speech
without a pause of more than 0.5 s; a segment counts if music is detected during at least half of it and the
accompaniment reaches −60 LUFS. `smr_reference` is the mean of PodEval's second score: 1 from 5 to 30 LU, 0 below 0,
falling exponentially between 5 and 0 and above 30. With the embedded separator, the median error on mixes of 0 to 10 LU
is 0.6 LU and the largest error is 4.4 LU; the value is usually too high (docs/smr-accuracy.md). Sampling rates below
the separator's 44.1 kHz are refused, because the higher frequencies of the music are missing, unless upsampling is
allowed; the notes then say so. The values of twelve mixes changed by at most 0.18 LU when the mixes were stored at 24
kHz (median 0.002), and by at most 0.17 LU at 16 kHz (median 0.06; the same page). Values from sampling rates below 24
kHz are not ranked.

Source: PodEval, section 6 (results in 7.3), and its code.

Differs from the public code, which measures every segment of speech, even if the accompaniment is only residue of the
speech itself, and uses mono stems at 16 kHz (`variant="podeval"` does both).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from podeval import progress
from podeval.audio import loudness
from podeval.audio.samples import mix_to_mono, resample
from podeval.audio.windows import Span, count_seconds_inside, join_spans
from podeval.errors import CannotScore
from podeval.metrics import LOW_RATE, UNRANKED, Key, Reach, Score, Timeline, facts, metric
from podeval.models import registry
from podeval.recording import Recording, speech_track

LONGEST_PAUSE = 0.5
SHORTEST_SEGMENT = 3.0
QUIETEST_MUSIC = -60.0
LEAST_MUSIC = 0.5
"""Minimum share of a segment that must be music."""

LEAST_RATE = 24_000
"""Sampling rate below which a value is not ranked, Hz."""

_PODEVAL_RATE = 16_000

Meter = Callable[[Span], float]
"""A function that returns the loudness of a stretch in LUFS, or minus infinity if it is silent."""


@metric(
    name="smr",
    title="SMR",
    version="1.2",
    dimension="audio.speech_over_music",
    keys=(
        Key(
            "smr",
            "in range",
            "LU",
            ideal=(5, 30),
            unreached=facts.VARIANT,
            about="how much louder speech is than the music under it, mean over segments",
        ),
        Key(
            "smr_score",
            "higher",
            "",
            (0, 1),
            about="share of segments in which speech is louder",
            reach=Reach(facts.PODEVAL_AUDIO, people=(0.99, 0.99), systems=(1.0, 1.0)),
        ),
        Key(
            "smr_reference",
            "higher",
            "",
            (0, 1),
            unreached=facts.VARIANT,
            about="PodEval's reference score, mean over segments",
        ),
        Key(
            "smr_min",
            "informative",
            "LU",
            about="SMR of the worst segment",
        ),
        Key(
            "smr_max",
            "informative",
            "LU",
            about="SMR of the best segment",
        ),
    ),
    needs=speech_track.NEEDS,
    paper="PodEval",
    only_for="music under the speech",
    caution=(
        "Inaudible music gives a high ratio, so systems are ranked by `smr_reference`, which is highest from 5 to 30 "
        "LU. A music bed 20 LU below the speech measures 25 with the embedded separator."
    ),
    intended_use="Checking whether speech can be understood over the music in a mix.",
    limitations=(
        "The mix is split by a separator, and any residue of the voice in the music counts as music: see "
        "docs/smr-accuracy.md. The metric does not apply to foreground music without speech."
    ),
)
def smr(recording: Recording, *, variant: Literal["standard", "podeval"] = "standard") -> Score:
    """Score one recording.

    Args:
        recording: speech with music under at least some of it, one or two channels, 44.1 kHz.
        variant: `standard` measures speech over music according to BS.1770; `podeval` measures all speech, on mono
            stems at 16 kHz.
    """
    recording.require_sound(SHORTEST_SEGMENT)
    # Find music that lasts long enough.
    music = speech_track.find_lasting_music(recording)
    if variant == "standard" and not music:
        raise CannotScore("no music is heard under speech")
    rate = registry.get_card("separator", recording.profile).rate
    recording.require_rate(rate)
    # Find segments of speech, and among them those over music.
    segments = find_speech_segments(recording.speech_stem().speech())
    if not segments:
        raise CannotScore(f"no speech lasts {SHORTEST_SEGMENT:g} s without a pause of more than {LONGEST_PAUSE:g} s")
    over = (
        segments
        if variant == "podeval"
        else [
            s
            for s, held in zip(segments, count_seconds_inside([(s,) for s in segments], music), strict=True)
            if held >= LEAST_MUSIC * s.duration
        ]
    )
    # Measure the ratio of each segment.
    measured_ratios = _ratios(recording, over, variant)
    if not measured_ratios:
        raise CannotScore("no music is heard under speech")
    ratios = np.array(list(measured_ratios.values()))
    return Score(
        values={
            "smr": float(ratios.mean()),
            "smr_score": float(np.mean(ratios > 0)),
            "smr_reference": float(np.mean([score_ratio(ratio) for ratio in ratios])),
            "smr_min": float(ratios.min()),
            "smr_max": float(ratios.max()),
        },
        notes={
            "segments": [[round(s.start, 2), round(s.end, 2), round(ratio, 2)] for s, ratio in measured_ratios.items()],
            "segments_without_music": len(segments) - len(measured_ratios),
            "music_seconds": round(sum(span.duration for span in music), 2),
            **({"upsampled_from": recording.rate} if recording.rate < rate else {}),
            **(
                {UNRANKED: dict.fromkeys(("smr_score", "smr_reference"), LOW_RATE)}
                if recording.rate < LEAST_RATE
                else {}
            ),
        },
        timeline=Timeline(
            starts=[round(segment.start, 3) for segment in measured_ratios],
            window=round(max(segment.duration for segment in measured_ratios), 3),
            values={"smr": [round(float(ratio), 3) for ratio in ratios]},
        ),
    )


def find_speech_segments(speech: Sequence[Span]) -> list[Span]:
    """Return the stretches of speech, joined across short pauses, without stretches that are too short."""
    return [span for span in join_spans(list(speech), LONGEST_PAUSE) if span.duration >= SHORTEST_SEGMENT]


def score_ratio(ratio: float) -> float:
    """Return PodEval's score of a ratio in LU: 1 from 5 to 30, 0 below 0."""
    if ratio < 0:
        return 0.0
    if ratio < 5:
        return math.exp(-0.6 * (5 - ratio))
    return math.exp(-0.1155 * max(ratio - 30, 0.0))


def _ratios(recording: Recording, segments: Sequence[Span], variant: str) -> dict[Span, float]:
    """Return the SMR, in LU, of every segment with any sound under the speech."""
    stems = recording.stems()
    speech, accompaniment = (
        _podeval_meter(stem, stems.rate) if variant == "podeval" else _meter(stem, stems.rate, recording.layout)
        for stem in (stems.speech, stems.accompaniment)
    )
    ratios = {}
    for number, segment in enumerate(segments, 1):
        below = accompaniment(segment)
        above = speech(segment)
        if below >= QUIETEST_MUSIC and math.isfinite(above):
            ratios[segment] = above - below
        progress.report("speech over music, segments", number, len(segments))
    return ratios


def _meter(stem: Any, rate: int, layout: str | None) -> Meter:
    return lambda segment: measure_stem(_cut(stem, rate, segment), rate, layout)


def measure_stem(samples: Any, rate: int, layout: str | None = None) -> float:
    """Return the integrated loudness of a stem in LUFS, or minus infinity if it is silent."""
    try:
        return loudness.measure(samples, rate, layout).integrated
    except CannotScore:
        return -math.inf


def _podeval_meter(stem: Any, rate: int) -> Meter:
    import pyloudnorm

    samples = resample(mix_to_mono(stem), rate, _PODEVAL_RATE)
    meter = pyloudnorm.Meter(_PODEVAL_RATE)
    return lambda segment: float(meter.integrated_loudness(np.asarray(_cut(samples, _PODEVAL_RATE, segment))))


def _cut(samples: Any, rate: int, segment: Span) -> Any:
    return samples[round(segment.start * rate) : round(segment.end * rate)]
