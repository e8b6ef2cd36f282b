"""Windows of speech: whether a recording holds any, which windows hold enough, and the voices of its speakers.

A speaker's speech is joined and cut into windows, each with an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Clip, Span, count_seconds_inside, place_windows
from podeval.errors import CannotScore
from podeval.models.interfaces import Samples, SpeakerTurn
from podeval.recording.speech_track import SpokenRecording

VOICE_WINDOW, VOICE_STRIDE = 3.0, 2.0
"""Windows over a speaker's speech, seconds."""

SHORTEST_VOICE = 0.5
"""Seconds of speech below which nothing is said of a voice."""

LONG_SEGMENT, SHORT_SEGMENT = 10.0, 3.0
"""Seconds from which on a segment is joined to nothing more, and up to which it is left out: PodEval's public code."""

MOST_SILENCE = 0.6
"""Windows with a larger share of silence than this are left out (LFS-Bench's rule for reverberation)."""


@dataclass(frozen=True, eq=False)
class SpeakerVoice:
    """The voice of one speaker of a recording.

    Attributes:
        speaker: label, valid in this recording only.
        clips: windows over the speaker's joined speech.
        embeddings: one per window, shape (windows, dimensions), not normalised.
        seconds: seconds of speech.
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
        mean: NDArray[np.float32] = self.embeddings.mean(axis=0)
        return mean


def find_voices(
    turns: Sequence[SpeakerTurn],
    duration: float,
    embed: Callable[[Sequence[Clip]], NDArray[np.float32]],
    window: float = VOICE_WINDOW,
    stride: float = VOICE_STRIDE,
) -> tuple[SpeakerVoice, ...]:
    """Find the speakers of some turns, in order of appearance; those with less than 0.5 s of speech are left out.

    A speaker's speech is joined and looked at in windows, by default of 3 s every 2 s, or whole where it is shorter.

    Args:
        turns: the turns of all speakers.
        duration: length of the recording, seconds; what lies beyond is left out.
        embed: gives an embedding of each clip, shape (clips, dimensions).
        window: length of a window, seconds.
        stride: seconds from the beginning of a window to that of the next.
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

    What one speaker says without another between is one segment, up to the turn with which it is longer than 10 s;
    segments of 3 s or less are left out.
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
    """Spans of samples joined to clips, each on access: together they are longer than the recording."""

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
        CannotScore: there is no speech, or less.
    """
    seconds = sum(span.duration for span in recording.speech())
    if seconds >= 1 and seconds < shortest:
        raise CannotScore(f"{seconds:.1f} s of speech are heard; at least {shortest:g} s are needed")
    if seconds == 0 or seconds < shortest:
        raise CannotScore("no speech is heard in the recording")


def find_sounding(clips: Sequence[Clip], speech: Sequence[Span]) -> NDArray[np.bool_]:
    """Return which windows hold enough speech, shape (windows,)."""
    lengths = np.array([sum(span.duration for span in clip) for clip in clips])
    enough: NDArray[np.bool_] = count_seconds_inside(clips, speech) >= (1 - MOST_SILENCE) * lengths - 1e-9
    return enough


def select_spoken_voices(recording: SpokenRecording, turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
    """Return each speaker's voice with only the windows that hold enough speech; speakers without any are left out.

    `seconds` counts the speech within the turns, `left_out` the excluded windows.
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
