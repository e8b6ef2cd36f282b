"""Speech over music, mixed at a known ratio: the clips for SMR in the bias study.

The speech of a voice at 44.1 kHz is mixed with music that this project plays itself (`smr_accuracy.synthesised`).
Changes of rate and room are made before the music is added at the same ratio; changes of level and codec are made to
the mix. Because the ratio is known, the study measures how far the metric is from it.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

import numpy as np

from podeval.audio.samples import resample
from studies.bias_material import CHANGES, MEDIUM, RATE, SENTENCES, SHORT_LINES, StudyClip, StudyVoice, clips, say_lines
from studies.distortions import Samples, mix_music
from studies.smr_accuracy import RATE as MUSIC_RATE
from studies.smr_accuracy import synthesised

PLAIN_RATIO, PLAIN_MUSIC = 5.0, "band"
"""In an unchanged clip, the number of LU by which the speech is louder than the music, and the kind of music."""
RATIOS = {f"{ratio:g} LU": ratio for ratio in (0.0, 10.0, 15.0)}
BEDS = ("chords", "drums", "tune")
LINES = {1: 2, MEDIUM: 4, 4: 12}
"""Number of lines, by the number of sentences in the clips of other metrics: about 10, 20 and 40 s."""
OF_SPEECH = ("rate", "room")
"""Factors that change the speech and not the mix."""


def music_clips(changed: int) -> Iterator[StudyClip]:
    """Yield the clips of the study, then the same voices over louder, softer and other music."""
    over: dict[str, StudyVoice] = {}
    for clip in clips(changed):
        yield clip
        if clip.factor == "rate":
            over[clip.voice.name] = clip.voice
    for voice in over.values():
        for level in RATIOS:
            yield StudyClip(voice, "speech over music", level, "en", MEDIUM)
        for level in BEDS:
            yield StudyClip(voice, "music", level, "en", MEDIUM)


def lines_over_music(language: str, sentences: int) -> tuple[str, ...]:
    """Return the lines that are spoken over the music."""
    return (*SENTENCES[language], *SHORT_LINES[language])[: LINES[sentences]]


def say_over_music(clip: StudyClip) -> Samples:
    """Speak, change the speech, add the music, and change the mix; the result is mono, at the music's rate."""
    speech = _say(clip.voice, clip.language, clip.sentences)
    change = CHANGES[clip.factor][clip.level] if clip.factor in CHANGES else None
    if change and clip.factor in OF_SPEECH:
        speech = change(speech, RATE)
    music = _play(clip.level if clip.factor == "music" else PLAIN_MUSIC)
    mixed = mix_music(resample(speech, RATE, MUSIC_RATE), music, MUSIC_RATE, ratio_of(clip))
    return change(mixed, MUSIC_RATE) if change and clip.factor not in OF_SPEECH else mixed


def ratio_of(clip: StudyClip) -> float:
    """Return the number of LU by which the speech of a clip is louder than its music."""
    return RATIOS.get(clip.level, PLAIN_RATIO)


def subtract_ratio(values: Mapping[str, str], clip: StudyClip) -> dict[str, str]:
    """Return the difference between SMR and the known ratio, as `smr.smr − true ratio`."""
    return {
        f"{key} − true ratio": f"{float(value) - ratio_of(clip):.5f}" if value else "" for key, value in values.items()
    }


@lru_cache(maxsize=1)
def _say(voice: StudyVoice, language: str, sentences: int) -> Samples:
    return say_lines(voice, language, lines_over_music(language, sentences))


@cache
def _play(bed: str) -> Samples:
    return np.asarray(synthesised(bed, 0).mean(axis=1), np.float32)
