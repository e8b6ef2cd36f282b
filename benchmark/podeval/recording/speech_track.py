"""The input for metrics of words, voices and timing: the recording itself, or its speech stem if there is music.

Predictors of listeners' opinions rate the recording as it is (`podeval.recording.predicted_windows`).

Only spans of music of at least 3 s count, and music is relevant if it fills at least a twentieth of the recording. With
these thresholds, no music is found in any tested kind of speech (read, synthetic, over the telephone, far from the
microphone, in noise and hum, reverberant, distorted, faster and slower: 130 recordings, one hour). If speech is 0 to 15
dB louder than the instruments, music is found for 72 % to 100 % of the time (at 20 dB, for 24 % or more). Drums on
their own are found up to a level of 5 dB below the speech, for 13 % to 83 % of the time. Steady tones count as music.
These shares were measured in November 2026 with FireRedVAD.

If there is music under speech, the scores of the stem are closer to those of the speech alone than the scores of the
mix are, at every tested level (0 to 30 dB; DNSMOS, DistillMOS). Separating clean speech changes its DNSMOS by at most
0.1, but separating far-field speech lowers its DistillMOS by up to 0.4; therefore, music below the threshold, such as a
jingle, does not justify a separation.

A recording below the separator's rate is always upsampled for the stem, because the models that measure the stem have a
lower rate, and a band that is empty in the mix is also empty in the stem. The stem's notes record this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import find_ends, resample
from podeval.audio.windows import Clip, Span, count_seconds_inside, place_windows
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.interfaces import Samples, Separator, SpeakerTurn

NEEDS = ("music_detector", "separator", "voice_activity")
"""The jobs whose models choose and produce the scored material."""

SHORTEST_MUSIC = 3.0
"""Minimum length, in seconds, of a span of music that counts; in a recording shorter than twice that, half the length
of the recording."""

LEAST_SHARE = 0.05
"""Minimum share of music in a recording for its stem to be used."""

SHORTEST_SPEECH = 0.5
"""Minimum duration of speech, in seconds, for a stem to count as speech."""


@dataclass(frozen=True)
class Stems:
    """The speech of a recording and everything else, which add up to the recording; both are (frames, channels) at
    `rate`.
    """

    speech: Samples
    accompaniment: Samples
    rate: int


class SpokenRecording(Protocol):
    """The part of `Recording`'s interface that this module uses, declared here to avoid a circular import."""

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
        """Return the spans of music, under speech or on its own."""

    def speech(self) -> tuple[Span, ...]:
        """Return the spans of speech."""

    def stems(self) -> Stems:
        """Return the speech and everything else as separate stems."""

    def voices(self, turns: Sequence[SpeakerTurn]) -> tuple[Any, ...]:
        """Return the speakers' voices."""

    def embeddings(self, clips: Sequence[Clip]) -> NDArray[np.float32]:
        """Return speaker embeddings of clips, shape (clips, dimensions)."""

    def derive(self, samples: Samples, rate: int, step: str, by: Any, notes: dict[str, Any]) -> Any:
        """Create a recording that is derived from this one."""


R = TypeVar("R", bound=SpokenRecording)


def separate_stems(recording: SpokenRecording) -> Stems:
    """Separate a recording at the separator's rate.

    Raises:
        CannotScore: the recording has more than two channels.
        ModelMissing: the profile has no separator, or it is not installed.
    """
    if (channels := recording.samples.shape[1]) > 2:
        raise CannotScore(
            f"speech and music can be separated in one or two channels, not {channels}; mix down to stereo or mono"
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
    """Return whether there is enough music for the speech stem to be scored instead of the mix."""
    return sum(span.duration for span in find_lasting_music(recording)) >= LEAST_SHARE * _measure_heard(recording)


def _measure_heard(recording: SpokenRecording) -> float:
    """Return the length in seconds without the zeros at the ends, so appended silence changes nothing."""
    samples = recording.mono()
    first, last = find_ends(samples)
    return recording.duration * (1 - (first + len(samples) - (last or len(samples))) / max(1, len(samples)))


def separate_speech_stem(recording: R) -> R:
    """Return a recording's speech as a separate recording, at the separator's rate, with notes about it.

    Raises:
        CannotScore: the stem contains no speech, or the recording has more than two channels.
        ModelMissing: the separator or the voice activity detector is not installed.
    """
    stems = recording.stems()
    made_by: dict[str, Any] = {
        "separator": registry.get_card("separator", recording.profile).identity,
        "rate": stems.rate,
    }
    # The notes describe the stem.
    music = sum(span.duration for span in find_lasting_music(recording))
    notes = {
        "scored": "speech stem",
        "music_seconds": round(music, 2),
        **({"upsampled_from": recording.rate} if recording.rate < stems.rate else {}),
    }
    stem: R = recording.derive(stems.speech, stems.rate, "speech stem", made_by, notes)
    if sum(span.duration for span in stem.speech()) < SHORTEST_SPEECH:
        raise CannotScore("the recording contains no speech" + (f", only {music:.1f} s of music" if music else ""))
    return stem


# Windows of speech: whether a recording contains speech, which windows contain enough, and the voices of its speakers.
#
# A speaker's speech is joined and cut into windows, each of which has an embedding.

VOICE_WINDOW, VOICE_STRIDE = 3.0, 2.0
"""Length and stride of the windows over a speaker's speech, in seconds."""

SHORTEST_VOICE = 0.5
"""Minimum duration of speech, in seconds, for a voice to be reported."""

LONG_SEGMENT, SHORT_SEGMENT = 10.0, 3.0
"""Length in seconds beyond which a segment is complete, and maximum length of a segment that is left out, as in
PodEval's public code."""

MOST_SILENCE = 0.6
"""Maximum share of silence in a window for it to be used (LFS-Bench's rule for reverberation)."""


@dataclass(frozen=True, eq=False)
class SpeakerVoice:
    """The voice of one speaker in a recording.

    Attributes:
        speaker: label of the speaker, valid only in this recording.
        clips: windows over the speaker's joined speech.
        embeddings: one per window, shape (windows, dimensions), not normalised.
        seconds: duration of the speaker's speech in seconds.
        left_out: number of windows that were excluded because they are mostly silence.
    """

    speaker: str
    clips: tuple[Clip, ...]
    embeddings: NDArray[np.float32]
    seconds: float
    left_out: int = 0

    @property
    def embedding(self) -> NDArray[np.float32]:
        """The mean embedding over windows, shape (dimensions,)."""
        return np.asarray(self.embeddings.mean(axis=0))


def find_voices(
    turns: Sequence[SpeakerTurn],
    duration: float,
    embed: Callable[[Sequence[Clip]], NDArray[np.float32]],
    window: float = VOICE_WINDOW,
    stride: float = VOICE_STRIDE,
) -> tuple[SpeakerVoice, ...]:
    """Find the voice of each speaker, in order of appearance; those with less than 0.5 s of speech are left out.

    A speaker's speech is joined and divided into windows, by default of 3 s every 2 s, or used whole if it is shorter.

    Args:
        turns: the turns of all speakers.
        duration: length of the recording in seconds; later turns are left out.
        embed: function that returns an embedding of each clip, shape (clips, dimensions).
        window: length of a window in seconds.
        stride: seconds between the beginnings of consecutive windows.
    """
    spans: dict[str, list[Span]] = {}
    for turn in turns:
        if min(turn.end, duration) > turn.start:
            spans.setdefault(turn.speaker, []).append(Span(turn.start, min(turn.end, duration)))
    seconds = {speaker: sum(span.duration for span in of_speaker) for speaker, of_speaker in spans.items()}
    windows = {
        speaker: place_windows(of_speaker, window, stride) or [tuple(of_speaker)]
        for speaker, of_speaker in spans.items()
        if seconds[speaker] >= SHORTEST_VOICE
    }
    vectors = iter(embed([clip for clips in windows.values() for clip in clips]) if windows else ())
    return tuple(
        SpeakerVoice(speaker, tuple(clips), np.stack([next(vectors) for _ in clips]), seconds[speaker])
        for speaker, clips in windows.items()
    )


def join_segments(turns: Sequence[SpeakerTurn]) -> list[SpeakerTurn]:
    """Return the segments that PodEval's public code embeds whole.

    Consecutive turns of one speaker form a segment, which ends with the turn that makes it longer than 10 s; segments
    of 3 s or less are left out.
    """
    segments: list[SpeakerTurn] = []
    full = True
    for turn in sorted(turns, key=lambda one: (one.start, one.end)):
        if full or turn.speaker != segments[-1].speaker:
            segments.append(turn)
            full = False
        else:
            segments[-1] = replace(segments[-1], end=max(segments[-1].end, turn.end))
            full = segments[-1].end - segments[-1].start > LONG_SEGMENT
    return [one for one in segments if one.end - one.start > SHORT_SEGMENT]


def embed_segments(recording: SpokenRecording, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
    """Return each speaker's voice with an embedding of every whole segment, in order of appearance.

    Speakers without a segment are left out; see `join_segments`.
    """
    spans: dict[str, list[Span]] = {}
    for one in join_segments(turns):
        if min(one.end, recording.duration) > one.start:
            spans.setdefault(one.speaker, []).append(Span(one.start, min(one.end, recording.duration)))
    if not spans:
        return ()
    vectors = iter(recording.embeddings([(span,) for of_speaker in spans.values() for span in of_speaker]))
    return tuple(
        SpeakerVoice(
            speaker,
            tuple((span,) for span in of_speaker),
            np.stack([next(vectors) for _ in of_speaker]),
            sum(span.duration for span in of_speaker),
        )
        for speaker, of_speaker in spans.items()
    )


class JoinedClips(Sequence[Samples]):
    """Clips of joined spans, created on access because together they are longer than the recording."""

    def __init__(self, samples: Samples, bounds: list[list[tuple[int, int]]]) -> None:
        self._samples, self._bounds = samples, bounds

    def __len__(self) -> int:
        return len(self._bounds)

    @overload
    def __getitem__(self, index: int) -> Samples: ...
    @overload
    def __getitem__(self, index: slice) -> JoinedClips: ...
    def __getitem__(self, index: int | slice) -> Samples | JoinedClips:
        if isinstance(index, slice):
            return JoinedClips(self._samples, self._bounds[index])
        return np.concatenate([self._samples[start:end] for start, end in self._bounds[index]])


def require_speech(recording: SpokenRecording, shortest: float = 0.0) -> None:
    """Refuse a recording with less than `shortest` seconds of speech; speech in noise is accepted.

    Raises:
        CannotScore: there is no speech, or less than `shortest` seconds of it.
    """
    seconds = sum(span.duration for span in recording.speech())
    if seconds >= 1 and seconds < shortest:
        raise CannotScore(f"{seconds:.1f} s of speech were found; at least {shortest:g} s are needed")
    if seconds == 0 or seconds < shortest:
        raise CannotScore("the recording contains no speech")


def find_sounding(clips: Sequence[Clip], speech: Sequence[Span]) -> NDArray[np.bool_]:
    """Return which windows contain enough speech, shape (windows,)."""
    lengths = np.array([sum(span.duration for span in clip) for clip in clips])
    return np.asarray(count_seconds_inside(clips, speech) >= (1 - MOST_SILENCE) * lengths - 1e-9)


def select_spoken_voices(recording: SpokenRecording, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
    """Return each speaker's voice with only the windows that contain enough speech; speakers without such windows are
    left out.

    `seconds` counts the speech within the turns, and `left_out` counts the excluded windows.
    """
    speech = recording.speech()
    voices = []
    for voice in recording.voices(turns):
        enough = find_sounding(voice.clips, speech)
        if enough.any():
            spans = tuple(Span(turn.start, turn.end) for turn in turns if turn.speaker == voice.speaker)
            voices.append(
                replace(
                    voice,
                    clips=tuple(clip for clip, sounds in zip(voice.clips, enough, strict=True) if sounds),
                    embeddings=voice.embeddings[enough],
                    seconds=float(count_seconds_inside([spans], speech)[0]),
                    left_out=int((~enough).sum()),
                )
            )
    return tuple(voices)
