"""Timbre consistency: whether a voice stays the same from beginning to end, without voice drift.

Mean cosine similarity over all distinct pairs of speaker embeddings of windows of 3 s every 2 s. With several speakers,
each speaker's speech is joined and scored on its own, and the scores are averaged. Range −1 to 1, higher is better.
LFS-Bench, section 3 and appendix D.1, which prints "Score < 0.93: Demonstrates superior timbre maintenance"; we read
this as a misprint for above 0.93, a value specific to its encoder. Turns come from the script if there is one. Without
a script, the number of speakers must be given: with `speakers=1` the whole recording is treated as one voice; with
more, diarisation must find that many. Diarisation groups speech by similarity and so overstates consistency, which is
why its values belong to a different protocol. If diarisation finds more voices, the most similar ones are merged, and
the notes say so (since version 1.4; unscored before). With neither a script nor a number there is no score: a change of
voice would be mistaken for a second person and score higher than a voice that never changes. The words are transcribed
in the language of the script, which the transcriber detects if it is neither English nor Chinese, and are aligned with
their accents and vowel signs (since version 1.5; before, words were split at them). The notes give the number of
speakers found and, with a script of several speakers, the number expected; a recording in which no speaker is found is
unscored.

Differs from the paper in leaving out windows with more than 60 % non-speech (counted in the notes), and in not
resampling to 24 kHz first; `variant="lfs"` follows the paper. `worst_window`, the lowest mean cosine of a window with
all other windows of its speaker, is our addition. `self_repetition` in the notes is the share of windows with a
cosine similarity above 0.98 to another window that they do not overlap; it reveals looped audio, which is consistent
without being natural speech.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput, CannotScore
from podeval.metrics import Constraint, Key, Reach, Result, Score, Timeline, Unscored, facts, metric
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording, speech_track
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.recording.speech_track import VOICE_STRIDE, VOICE_WINDOW, SpeakerVoice, find_sounding, require_speech
from podeval.text.script import Script

LFS_RATE = 24_000
"""Sample rate in Hz; LFS-Bench resamples all audio to it first."""

SAME = 0.98
"""Cosine above which two windows of a voice contain the same sound rather than merely the same voice."""

UNTOLD = (
    "neither a script nor a number of speakers says whose voice should stay the same: give the script, or speakers=1 "
    "for one voice (command line: --text, --speakers or --set speakers=1)"
)


@metric(
    name="timbre_consistency",
    title="Timbre consistency",
    version="1.5",
    dimension="acoustics.timbre",
    keys=(
        Key(
            "timbre_consistency",
            "higher",
            "cosine",
            (-1, 1),
            about="similarity of a voice to itself over time",
            reach=Reach(facts.STUDY, people=(0.83, 0.89), systems=(0.85, 0.86), profile="embedded"),
        ),
        Key(
            "worst_window",
            "higher",
            "cosine",
            (-1, 1),
            unreached=facts.PART,
            about="similarity of the least similar 3 s",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "diarizer", "speaker_encoder"),
    paper="LFS-Bench",
    caution=(
        "A piece of 3 s played ten times scores 0.99, above any real voice: check `self_repetition` in the notes and "
        "the loops reported by `integrity` before trusting a high value."
    ),
    needs_speakers=True,
    intended_use="Checking whether a voice stays the same over minutes; finding drift in long syntheses.",
    limitations=(
        "Expression changes timbre too: a lively reading scores lower than a flat one, and a voice that is wrong in "
        "the same way throughout scores high. Speakers are separated by diarisation or by the script, and errors in "
        "this lower the value."
    ),
)
def timbre_consistency(
    recording: Recording,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["default", "lfs"] = "default",
    speakers: Annotated[int, Constraint(least=0)] = 0,
    window: Annotated[float, Constraint(least=0.5, added=True)] = VOICE_WINDOW,
    stride: Annotated[float, Constraint(least=0.1, added=True)] = VOICE_STRIDE,
) -> Result:
    """Score one recording.

    Args:
        recording: speech with at least 5 s by each speaker, 16 kHz; speakers with less are left out.
        script: the words with their speakers; if given, it determines who speaks when.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        variant: `default` leaves out windows that are mostly silence; `lfs` keeps them, and resamples to 24 kHz first.
        speakers: number of speakers if there is no script; 0 leaves a recording without a script unscored.
        window: length of a window in seconds.
        stride: seconds between the beginnings of consecutive windows.
    """
    if speakers < 0 or (script and speakers and speakers != len(script.speakers)):
        raise BadInput(f"speakers must be the number of speakers, as in the script if there is one, not {speakers}")
    recording.require_sound(window)
    if not script and not speakers:
        return Unscored(UNTOLD, "ours")
    track = recording.speech_track(source)
    if variant == "lfs":
        track = track.through(LFS_RATE)
    # Compare each speaker's windows with one another.
    windows = () if (window, stride) == (VOICE_WINDOW, VOICE_STRIDE) else (window, stride)
    voices, who = _voices(track, script, speakers, *windows)
    speech = track.speech() if variant == "default" else ()
    consistency: dict[str, float] = {}
    drift: list[tuple[float, float]] = []
    left_out = repeated = 0
    for voice in voices:
        audible = find_sounding(voice.clips, speech) | (variant == "lfs")
        kept = [clip for clip, sounds in zip(voice.clips, audible, strict=True) if sounds]
        left_out += len(voice.clips) - len(kept)
        if len(kept) >= 2:
            likeness = _likeness(voice.embeddings[audible])
            repeated += count_repeated(voice.embeddings[audible], [clip[0].start for clip in kept], window)
            consistency[voice.speaker] = float(likeness.mean())
            drift += [(clip[0].start, float(value)) for clip, value in zip(kept, likeness, strict=True)]
    # Average over speakers.
    if not consistency:
        raise CannotScore(f"no speaker has the two windows of {window:g} s of speech that a comparison needs")
    drift.sort()
    return Score(
        values={
            "timbre_consistency": float(np.mean(list(consistency.values()))),
            "worst_window": min(value for _, value in drift),
        },
        notes={
            "speakers": {speaker: round(value, 4) for speaker, value in consistency.items()},
            "speakers_too_short": len(voices) - len(consistency),
            **who,
            "windows": len(drift),
            "self_repetition": round(repeated / len(drift), 3),
            "windows_left_out": left_out,
            **track.notes,
        },
        timeline=Timeline(
            starts=[round(start, 3) for start, _ in drift],
            window=window,
            values={"timbre_consistency": [round(value, 4) for _, value in drift]},
        ),
    )


def _voices(
    recording: Recording, script: Script | None, speakers: int, *windows: float
) -> tuple[tuple[SpeakerVoice, ...], dict[str, Any]]:
    """Return the speakers, and notes on them.

    Raises:
        CannotScore: no speaker is found or, without a script, the number of speakers found differs from the stated
            number.
    """
    turns, notes = find_turns(recording, script, speakers)
    voices = recording.voices(turns, *windows)
    if notes is None:
        return voices, {}
    if script is None and len(voices) != speakers:
        raise CannotScore(f"there should be {speakers} speakers, but {len(voices)} are heard")
    return voices, {"speakers_found": len(voices), **notes}


def find_turns(
    recording: Recording, script: Script | None, speakers: int
) -> tuple[tuple[SpeakerTurn, ...], dict[str, Any] | None]:
    """Return who speaks when, with notes; a single speaker gets the whole recording, including pauses, without notes.

    If a script has several speakers but only one is heard, that speaker has only their own turns.

    Raises:
        CannotScore: no speaker is found.
    """
    if speakers == 1 or (script and len(script.speakers) == 1):
        require_speech(recording)
        return (SpeakerTurn("1", 0.0, recording.duration),), None
    turns, notes = find_speaker_turns(recording, script, speakers)
    if not turns:
        raise CannotScore("no speaker is found in the recording; check that it contains speech")
    return turns, notes


def count_repeated(embeddings: NDArray[np.float32], starts: Sequence[float], window: float = VOICE_WINDOW) -> int:
    """Count the windows that are nearly equal to a window that does not overlap them, as in a loop."""
    units = embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    at = np.asarray(starts)
    apart = np.abs(at[:, None] - at[None, :]) >= window
    return int(((units @ units.T > SAME) & apart).any(axis=1).sum())


def _likeness(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return each window's mean cosine with all other windows; the mean of these is the mean over distinct pairs."""
    units = embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    return np.asarray((units @ units.sum(axis=0) - 1.0) / (len(units) - 1))
