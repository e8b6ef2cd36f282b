"""What metrics of words, voices and time listen to: the recording itself, or its speech stem if there is music.

Predictors of opinion rate the recording as it is (`podeval.recording.predicted_windows`).

Music counts in spans of at least 3 s, and is relevant from a twentieth of the recording. With these thresholds no music
is found in speech of any kind that was tried (read, synthetic, over the telephone, far from the microphone, in
noise and hum, reverberant, distorted, faster and slower: 130 recordings, one hour), and in speech 0 to 15 dB over
instruments it is found from 72 % of the time to all of it (20 dB: from 24 %). Bare drums are found up to 5 dB below
speech, for 13 % to 83 % of the time. Steady tones are taken for music. Measured in November 2026 with FireRedVAD.

If music lies under speech, the scores of the stem are closer to those of the speech alone than the scores of the mix
are, at every level tried (0 to 30 dB; DNSMOS, DistillMOS). The stem of clean speech keeps its DNSMOS within 0.1, that
of far-field speech loses up to 0.4 DistillMOS; hence the threshold, below which a jingle does not justify a separation.

A recording below the separator's rate is always upsampled for the stem: the models that measure the stem have a
lower rate, and a band that is empty in the mix is empty in the stem. The stem's notes say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podeval.audio.levels import find_ends
from podeval.audio.samples import resample
from podeval.audio.windows import Clip, Span
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.interfaces import Samples, Separator, SpeakerTurn

NEEDS = ("music_detector", "separator", "voice_activity")
"""The jobs whose models decide what is scored, and produce it."""

SHORTEST_MUSIC = 3.0
"""Minimum seconds for a span of music to count; half of a recording that is shorter than twice that."""

LEAST_SHARE = 0.05
"""Minimum share of music in a recording for its stem to be listened to."""

SHORTEST_SPEECH = 0.5
"""Minimum seconds of speech for a stem to count as speech."""


@dataclass(frozen=True)
class Stems:
    """A recording's speech and everything else, which add up to it: each (frames, channels) at `rate`."""

    speech: Samples
    accompaniment: Samples
    rate: int


class SpokenRecording(Protocol):
    """What is used here of a recording, by name so that `Recording` can import this module."""

    samples: Samples
    rate: int
    profile: str
    notes: dict[str, Any]

    @property
    def duration(self) -> float:
        """Duration in seconds."""

    def mono(self) -> Samples:
        """Return the mean of the channels at the rate of the speech models."""

    def music(self) -> tuple[Span, ...]:
        """Return the spans of music, under speech or alone."""

    def speech(self) -> tuple[Span, ...]:
        """Return the spans of speech."""

    def stems(self) -> Stems:
        """Return the speech and everything else as separate stems."""

    def voices(self, turns: Sequence[SpeakerTurn]) -> tuple[Any, ...]:
        """Return the speakers' voices."""

    def embeddings(self, clips: Sequence[Clip]) -> NDArray[np.float32]:
        """Return speaker embeddings of clips, shape (clips, dimensions)."""

    def derive(self, samples: Samples, rate: int, step: str, by: Any, notes: dict[str, Any]) -> Any:
        """Create a recording derived from this one."""


R = TypeVar("R", bound=SpokenRecording)


def separate_stems(recording: SpokenRecording) -> Stems:
    """Separate a recording at the separator's rate.

    Raises:
        CannotScore: the recording has more than two channels.
        ModelMissing: the profile has no separator, or it is not installed.
    """
    if (channels := recording.samples.shape[1]) > 2:
        raise CannotScore(
            f"speech and music can be separated in one or two channels, not {channels}; mix it down to stereo or mono"
        )
    rate = registry.get_card("separator", recording.profile).rate
    samples = resample(recording.samples, recording.rate, rate)
    separator: Separator
    with registry.use("separator", recording.profile) as separator:
        speech, accompaniment = separator.separate(samples)
    return Stems(speech, accompaniment, rate)


def find_lasting_music(recording: SpokenRecording) -> tuple[Span, ...]:
    """Return the spans of music that are long enough to count."""
    shortest = min(SHORTEST_MUSIC, _measure_heard(recording) / 2)
    return tuple(span for span in recording.music() if span.duration >= shortest)


def has_music(recording: SpokenRecording) -> bool:
    """Return whether there is enough music that the speech stem is scored instead of the mix."""
    return sum(span.duration for span in find_lasting_music(recording)) >= LEAST_SHARE * _measure_heard(recording)


def _measure_heard(recording: SpokenRecording) -> float:
    """Return the seconds between the zeros at the ends, so that what is appended changes nothing."""
    samples = recording.mono()
    first, last = find_ends(samples)
    return recording.duration * (1 - (first + len(samples) - (last or len(samples))) / max(1, len(samples)))


def separate_speech_stem(recording: R) -> R:
    """Return a recording's speech as a separate recording, at the separator's rate, with notes that say so.

    Raises:
        CannotScore: the stem holds no speech, or the recording has more than two channels.
        ModelMissing: the separator or the voice activity detector is not installed.
    """
    stems = recording.stems()
    made_by: dict[str, Any] = {
        "separator": registry.get_card("separator", recording.profile).identity,
        "rate": stems.rate,
    }
    # The notes say what the stem is.
    music = sum(span.duration for span in find_lasting_music(recording))
    notes = {
        "scored": "speech stem",
        "music_seconds": round(music, 2),
        **({"upsampled_from": recording.rate} if recording.rate < stems.rate else {}),
    }
    stem: R = recording.derive(stems.speech, stems.rate, "speech stem", made_by, notes)
    if sum(span.duration for span in stem.speech()) < SHORTEST_SPEECH:
        raise CannotScore("no speech is heard in the recording" + (f", only {music:.1f} s of music" if music else ""))
    return stem
