"""The words of a recording with their times and speakers, as they were heard: what a report and labels show.

Nothing is heard anew where scoring has heard it already: transcript and speakers are in the cache.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podeval.errors import CannotScore, ModelMissing
from podeval.recording.speaker_turns import find_speaker_turns

if TYPE_CHECKING:
    from podeval.measuring.recording_results import RecordingResults
    from podeval.models.interfaces import SpeakerTurn, Word


@dataclass(frozen=True)
class TranscribedTurn:
    """One speaker's words, with the time of each; `speaker` is empty where nobody knows who speaks."""

    speaker: str
    start: float
    end: float
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words in a row."""
        return " ".join(word.text.strip() for word in self.words)


def read_turns(scores: RecordingResults) -> tuple[TranscribedTurn, ...]:
    """The turns that were heard in a recording whose words metrics have asked for; empty for one of which none has.

    Raises:
        CannotScore: the recording's rate is too low to hear words.
        ModelMissing: the transcriber is not installed.
    """
    heard = {
        "wer",
        "content_errors",
        "speaker_attribution",
        "sptd",
        "timbre_consistency",
        "sim",
        "wsim",
        "timbre_similarity",
    } & set(scores.results)
    if scores.source is None or not ({"wer", "content_errors"} & heard or (heard and scores.script)):
        return ()
    recording = scores.source.recording
    track = recording.speech_track()
    language = getattr(scores.results.get("wer"), "notes", {}).get("language")
    words = track.transcript(language if language in ("en", "zh") else None).words
    script = scores.script if scores.script and len(scores.script.speakers) > 1 else None
    speakers: tuple[SpeakerTurn, ...] = ()
    if script or "sptd" in scores.results:
        with suppress(CannotScore, ModelMissing):
            speakers = find_speaker_turns(track, script, _count_asked(scores))[0]
    return join_turns(words, speakers)


def _count_asked(scores: RecordingResults) -> int:
    """How many speakers there should be, where more were heard; otherwise 0."""
    notes = getattr(scores.results.get("sptd"), "notes", {})
    return int(notes["speakers_asked"]) if "voices_heard" in notes else 0


def join_turns(words: tuple[Word, ...], speakers: tuple[SpeakerTurn, ...]) -> tuple[TranscribedTurn, ...]:
    """Words in turns: a new one where another speaker has most of a word, or after a pause of a second."""
    turns: list[TranscribedTurn] = []
    for word in words:
        who = _speaker_at(word, speakers, turns[-1].speaker if turns else "")
        if turns and turns[-1].speaker == who and (who or word.start - turns[-1].end < 1.0):
            last = turns[-1]
            turns[-1] = TranscribedTurn(who, last.start, max(last.end, word.end), (*last.words, word))
        else:
            turns.append(TranscribedTurn(who, word.start, word.end, (word,)))
    return tuple(turns)


def _speaker_at(word: Word, speakers: tuple[SpeakerTurn, ...], before: str) -> str:
    """Who has most of a word; who spoke before where nobody has any of it."""
    shares = {
        turn.speaker: min(word.end, turn.end) - max(word.start, turn.start)
        for turn in speakers
        if turn.end > word.start and turn.start < word.end
    }
    return max(shares, key=lambda who: shares[who]) if shares else before
