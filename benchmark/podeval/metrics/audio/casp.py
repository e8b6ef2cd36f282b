"""CASP: how well music and sound effects suit the speech they accompany.

After source separation, two networks trained on podcasts embed the speech and everything else; the value is the mean
cosine of the two embeddings over segments of 10 s; −1 to 1, higher is better. PodEval, section 6 (results in 7.3), with
the model of Tian et al. (DualDub, ACM MM 2025), 16 kHz; both stems are normalised to a peak of 1 over the recording and
mixed to mono, and the last segment is looped to 10 s.

Differs from the public code, which counts every segment of every recording and maps the mean cosine x to (x + 1) / 2
(`variant="podeval"`; the paper states no scale, and the original work reports x). Here a segment counts only if it
contains at least 1 s of speech and at least 1 s of music that lasts 3 s or more. A recording without music is not
scored: the residue that separation leaves from clean speech is not music, even if it is louder than −60 LUFS, our
threshold for accompaniment.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import BLOCK_FRAMES, SampleBuffer, mix_to_mono, resample
from podeval.audio.windows import Span, count_seconds_inside
from podeval.errors import CannotScore
from podeval.metrics import Key, Reach, Score, Timeline, facts, metric
from podeval.metrics.audio.smr import measure_stem
from podeval.models import registry
from podeval.models.interfaces import Harmony, Samples
from podeval.recording import Recording, speech_track

RATE = 16_000
CLIP_SECONDS = 10.0
CLIP = round(CLIP_SECONDS * RATE)

SHORTEST = 3.0
"""Minimum length in seconds of sound that may be looped to fill a clip."""

LEAST = 1.0
"""Minimum seconds of speech, and of music, in a stretch that counts."""

NO_MUSIC = -60.0
"""Loudness in LUFS below which an accompaniment does not count, following PodEval's rule for the speech-to-music ratio.
"""


@metric(
    name="casp",
    title="CASP",
    version="1.0",
    dimension="audio.harmony",
    keys=(
        Key(
            "casp",
            "higher",
            "cosine",
            (-1, 1),
            about="how well speech and its accompaniment fit together",
            reach=Reach(
                facts.PODEVAL_HARMONY,
                people=(0.16, 0.16),
                systems=(0.12, 0.12),
            ),
        ),
    ),
    needs=("harmony", "separator", "music_detector", "voice_activity"),
    paper="PodEval",
    only_for="music or sound effects",
    intended_use="Ranking how well systems choose music and effects for speech.",
    limitations=(
        "The model learned what fits together from the podcasts it was trained on, mostly English talk: the "
        "conventions of other genres and cultures are outside its data. The metric needs the reference "
        "profile's weights."
    ),
)
def casp(recording: Recording, *, variant: Literal["default", "podeval"] = "default") -> Score:
    """Score one recording.

    Args:
        recording: speech with music or sound effects, 16 kHz, one or two channels.
        variant: `podeval` counts every segment and returns (x + 1) / 2 for a mean cosine x.
    """
    recording.require_sound(SHORTEST)
    # If there is no model for the comparison, do not detect or separate anything.
    registry.get_card("harmony", recording.profile)
    if variant == "default" and not speech_track.find_lasting_music(recording):
        raise CannotScore("no music is heard in the recording, so there is nothing to compare with its speech")
    separator = registry.get_card("separator", recording.profile).identity
    cosines = recording.array_from(
        "harmony", lambda model: _cosines(model, recording), separator=separator, clip=CLIP_SECONDS
    ).astype(np.float64)
    if variant == "podeval":
        cosines, kept = (cosines + 1) / 2, np.full(len(cosines), True)
    else:
        kept = _count(recording, len(cosines))
    return Score(
        values={"casp": float(cosines[kept].mean())},
        notes={"windows": int(kept.sum()), "windows_left_out": int((~kept).sum())},
        timeline=Timeline(
            starts=[float(index * CLIP_SECONDS) for index in np.flatnonzero(kept)],
            window=CLIP_SECONDS,
            values={"casp": [round(float(value), 4) for value in cosines[kept]]},
        ),
    )


def _count(recording: Recording, count: int) -> NDArray[np.bool_]:
    """Return, for every stretch of 10 s, whether it contains both speech and music.

    Raises:
        CannotScore: no stretch contains both speech and music.
    """
    clips = [(Span(index * CLIP_SECONDS, (index + 1) * CLIP_SECONDS),) for index in range(count)]
    speech, music = (
        count_seconds_inside(clips, spans) for spans in (recording.speech(), speech_track.find_lasting_music(recording))
    )
    counted: NDArray[np.bool_] = (speech >= LEAST) & (music >= LEAST)
    if not counted.any():
        raise CannotScore(
            f"speech and music are never heard within the same 10 s ({speech.sum():.1f} s of speech, "
            f"{music.sum():.1f} s of music)"
        )
    return counted


def _cosines(model: Harmony, recording: Recording) -> NDArray[np.float32]:
    """Return the cosine of every 10 s stretch, shape (stretches,).

    Raises:
        CannotScore: the accompaniment is too quiet to count.
    """
    stems = recording.stems()
    if measure_stem(stems.accompaniment, stems.rate) < NO_MUSIC:
        raise CannotScore(f"no music: after separation, the sound without speech is below {NO_MUSIC:g} LUFS")
    speech, music = (_clips(stem, stems.rate) for stem in (stems.speech, stems.accompaniment))
    return np.asarray(model.harmony(speech, music))


def _clips(stem: Samples, rate: int) -> list[Samples]:
    """Split a stem into mono clips of 10 s at 16 kHz with a peak of 1; the last clip is looped to full length."""
    samples = resample(mix_to_mono(stem), rate, RATE)
    blocks = [samples[start : start + BLOCK_FRAMES] for start in range(0, len(samples), BLOCK_FRAMES)]
    peak = max(float(np.abs(block).max()) for block in blocks) or 1.0
    levelled = SampleBuffer()
    for block in blocks:
        levelled.append(block / np.float32(peak))
    whole = levelled.finish()
    clips = [whole[start : start + CLIP] for start in range(0, len(whole), CLIP)]
    clips[-1] = np.resize(clips[-1], CLIP)
    return clips
