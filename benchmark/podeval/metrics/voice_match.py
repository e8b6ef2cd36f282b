"""Match the speakers of a recording with the reference voices that they should have.

`sim`, `wsim` and `timbre_similarity` all match speakers with references as in this module, but average different
values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.errors import BadInput, CannotScore
from podeval.metrics.score import UNRANKED, Score, Timeline
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording
from podeval.recording.reference_voices import ONLY, ReferenceVoices, match_names
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.recording.speech_track import (
    SHORTEST_VOICE,
    VOICE_WINDOW,
    SpeakerVoice,
    embed_segments,
    require_speech,
    select_spoken_voices,
)
from podeval.text.script import Script

# Detect a recording that plays back a reference instead of speaking anew: the reference's loudest two seconds are
# compared with the recording at every offset. The correlation with a copy stays above 0.9 after encoding, a change in
# level or a little added noise; the correlation with the same words spoken again is near 0.
RATE = 4_000
"""Sample rate, in Hz, at which sounds are compared."""
PIECE = 2.0
"""Length, in seconds, of the piece of a reference that is searched for in the recording."""
COPY = 0.8
"""Minimum correlation at which a piece counts as a copy."""


def holds_copy(samples: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Return whether a recording contains a copy of another's loudest piece, both at the rate `RATE`, (frames,)."""
    return bool(correlate_with(samples, other) >= COPY)


def correlate_with(samples: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return the highest correlation, over all offsets, between this recording and the loudest piece of a second
    recording.

    The correlation is 0 if either recording is silent or shorter than a piece.
    """
    from scipy.signal import oaconvolve

    size = round(PIECE * RATE)
    if min(len(samples), len(other)) < size:
        return 0.0
    power = np.cumsum(np.concatenate([[0.0], np.square(other, dtype=np.float64)]))
    start = int(np.argmax(power[size:] - power[:-size]))
    piece = other[start : start + size].astype(np.float64)
    piece -= piece.mean()
    norm = float(np.linalg.norm(piece))
    if norm == 0:
        return 0.0
    sound = samples.astype(np.float64)
    products = oaconvolve(sound, piece[::-1], mode="valid")
    energy = np.cumsum(np.concatenate([[0.0], np.square(sound)]))
    norms = np.sqrt(np.maximum(energy[size:] - energy[:-size], 0.0))
    audible = norms > 1e-3 * norms.max() if norms.max() > 0 else np.zeros(len(norms), dtype=bool)
    return float(np.abs(products[audible] / (norms[audible] * norm)).max()) if audible.any() else 0.0


VOICE_KEYS = ("sim", "wsim", "timbre_similarity", "worst_window", "low_windows")
"""Keys of the metrics that compare voices with references."""

NEEDS = ("music_detector", "separator", "voice_activity", "transcriber", "diarizer", "speaker_encoder")


@dataclass(frozen=True)
class Match:
    """A speaker with the embedding of the speaker's reference voice."""

    voice: SpeakerVoice
    reference: NDArray[np.float32]

    @property
    def cosine(self) -> float:
        """Cosine between the speaker's mean embedding and the reference's."""
        return compute_cosine(self.voice.embedding, self.reference)

    @property
    def over_time(self) -> NDArray[np.float64]:
        """Cosine between every window and the reference, shape (windows,)."""
        windows, target = self.voice.embeddings.astype(np.float64), self.reference.astype(np.float64)
        return np.asarray(windows @ target / (np.linalg.norm(windows, axis=1) * np.linalg.norm(target)))


@dataclass(frozen=True)
class VoiceComparison:
    """A recording's speakers matched with their reference voices, with notes on how they were matched."""

    matches: Sequence[Match]
    notes: Mapping[str, Any]
    segments: bool = False
    """Whether whole segments of various lengths are compared instead of windows."""

    @property
    def windows(self) -> dict[str, int]:
        """The numbers of windows that were compared, and that were left out because they are mostly silence."""
        return {
            "windows": sum(len(match.voice.clips) for match in self.matches),
            "windows_left_out": sum(match.voice.left_out for match in self.matches),
        }

    @property
    def low_windows(self) -> float:
        """The 10th percentile of the cosines between a speaker's windows and the reference; the value is the lowest
        over speakers. A voice that is wrong half of the time shows up in it, although it hardly changes the mean.
        """
        return min(float(np.percentile(match.over_time, 10)) for match in self.matches)

    @property
    def worst_window(self) -> float:
        """The lowest cosine between a window and its speaker's reference."""
        return min(float(match.over_time.min()) for match in self.matches)

    @property
    def by_speaker(self) -> dict[str, float]:
        """The cosine between each speaker's mean embedding and the reference."""
        return {match.voice.speaker: match.cosine for match in self.matches}

    @property
    def times(self) -> dict[str, Any]:
        """Notes on the speaking time of each speaker."""
        return {"seconds": {match.voice.speaker: round(match.voice.seconds, 2) for match in self.matches}}

    def score(
        self,
        cosines: Mapping[str, float],
        by_speaker: Mapping[str, float],
        *,
        notes: Mapping[str, Any] | None = None,
        positive: bool = False,
    ) -> Score:
        """Return a score with these cosines, notes on the speakers, and a timeline of the first key's cosine.

        Args:
            cosines: values by key, the metric's own first.
            by_speaker: the cosine of each speaker.
            notes: additional notes.
            positive: whether values, except the values by speaker, are mapped to 0…1.
        """

        def scale(cosine: float) -> float:
            return (1 + cosine) / 2 if positive else cosine

        points = sorted(
            (clip[0].start, float(value))
            for match in self.matches
            for clip, value in zip(match.voice.clips, match.over_time, strict=True)
        )
        speakers = {speaker: round(cosine, 4) for speaker, cosine in by_speaker.items()}
        return Score(
            values={key: scale(cosine) for key, cosine in cosines.items()},
            notes={"speakers": speakers, **(notes or {}), **self.windows, **self.notes},
            timeline=None
            if self.segments
            else Timeline(
                starts=[round(start, 3) for start, _ in points],
                window=VOICE_WINDOW,
                values={next(iter(cosines)): [round(scale(value), 4) for _, value in points]},
            ),
        )


def compare_voices(
    recording: Recording,
    references: ReferenceVoices,
    script: Script | None,
    source: Literal["auto", "mix"],
    *,
    silence: bool = False,
    through: int | None = None,
    segments: bool = False,
) -> VoiceComparison:
    """Match a recording's speakers with the voices that they should have.

    Args:
        recording: the recording whose speakers are matched.
        references: the voices to match them with.
        script: a script that uses the names of the references for its speakers.
        source: `auto` uses the speech stem if there is music; `mix` uses the recording as it is.
        silence: whether windows that are mostly silence are kept.
        through: a sample rate to which the recording is resampled first.
        segments: whether whole segments and whole references are embedded, as in PodEval's public code.

    Raises:
        BadInput: the references' names differ from those of the script's speakers.
        CannotScore: there is no sound or no speech, or a speaker with a reference does not speak.
    """
    recording.require_sound()
    track = recording.speech_track(source)
    if through:
        track = track.through(through)
    matches, who = _match_speakers(track, references, script, silence=silence, segments=segments)
    return VoiceComparison(matches, {**who, **_note_playback(recording, references), **track.notes}, segments)


def _note_playback(recording: Recording, references: ReferenceVoices) -> dict[str, Any]:
    """Return notes on references that the recording plays back: similarity to them means nothing and is not ranked."""
    samples = recording.mono(RATE)
    voices = {name: voice.mono(RATE) for name, voice in references.items()}
    played = [name for name, voice in voices.items() if holds_copy(samples, voice)]
    if not played:
        return {}
    reason = "the recording plays its reference voice back"
    return {"reference_played": played, UNRANKED: dict.fromkeys(VOICE_KEYS, reason)}


def _match_speakers(
    recording: Recording,
    references: ReferenceVoices,
    script: Script | None,
    *,
    silence: bool = False,
    segments: bool = False,
) -> tuple[list[Match], dict[str, Any]]:
    """Match every reference voice with a speaker; return the matches, and notes on the number of speakers.

    Args:
        recording: the recording whose speakers are matched.
        references: the voices to match them with.
        script: a script that uses the names of the references for its speakers.
        silence: whether windows that are mostly silence are kept.
        segments: whether whole segments and whole references are embedded.

    Raises:
        BadInput: the references' names differ from those of the script's speakers.
        CannotScore: there is no speech, or a speaker with a reference does not speak.
    """
    recording.require_sound(SHORTEST_VOICE)
    targets = references.whole_embeddings if segments else references.embeddings

    def heard_in(turns: Sequence[SpeakerTurn]) -> tuple[SpeakerVoice, ...]:
        if segments:
            return embed_segments(recording, turns)
        return recording.voices(turns) if silence else select_spoken_voices(recording, turns)

    # With one voice and one reference, there is nothing to distinguish.
    if len(references) == 1 and (ONLY in references if script is None else len(script.speakers) == 1):
        require_speech(recording)
        spoken = recording.speech() if segments else (Span(0.0, recording.duration),)
        voices = heard_in([SpeakerTurn("1", span.start, span.end) for span in spoken])
        if not voices:
            what = "segment" if segments else "window"
            raise CannotScore(f"no {what} of {VOICE_WINDOW:g} s of the recording has enough speech (at least 40 %)")
        return [Match(voices[0], next(iter(targets.values())))], {}
    # Without a script, find the best assignment of speakers to references.
    if script is None:
        voices = heard_in(recording.diarization())
        return _assign_voices(voices, list(targets.values())), {"speakers_found": len(voices)}
    # With a script, speakers are matched by their names.
    script_names = match_names(references, script)
    if not script_names:
        raise BadInput(
            f"none of the reference voices ({', '.join(references) or 'none'}) is named after a speaker of the script "
            f"({', '.join(script.speakers)})"
        )
    turns, who = find_speaker_turns(recording, script)
    by_speaker = {voice.speaker: voice for voice in heard_in(turns)}
    if silent := [name for name in script_names if script_names[name] not in by_speaker]:
        raise CannotScore(f"no speech is heard from {', '.join(silent)}, for whom there is a reference voice")
    matches = [Match(by_speaker[speaker], targets[name]) for name, speaker in script_names.items()]
    return matches, {"speakers_found": len(by_speaker), **who}


def _assign_voices(voices: Sequence[SpeakerVoice], targets: Sequence[NDArray[np.float32]]) -> list[Match]:
    """Match the detected speakers with the references so as to maximise the sum of similarities."""
    from scipy.optimize import linear_sum_assignment

    if len(voices) < len(targets):
        too_few = "no speaker was" if not voices else "one speaker was" if len(voices) == 1 else f"{len(voices)} were"
        raise CannotScore(f"there are {len(targets)} reference voices, but {too_few} found in the recording")
    likeness = [[compute_cosine(voice.embedding, target) for target in targets] for voice in voices]
    rows, columns = linear_sum_assignment(likeness, maximize=True)
    return [Match(voices[row], targets[column]) for row, column in zip(rows, columns, strict=True)]


def compute_cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the cosine of the angle between two vectors."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
