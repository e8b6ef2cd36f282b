"""A script beside what is heard of it in a recording."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.interfaces import Aligner, Transcript, Word
from podeval.recording.recording import Recording
from podeval.text.alignment import TRUSTED_COVERAGE
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.script_alignment import ScriptAlignment, align_script
from podeval.text.tokens import detect_language


def align_recording(recording: Recording, script: Script) -> tuple[ScriptAlignment, str]:
    """Lay the script beside the recording's transcript, in the language that `sptd` and `wer` transcribe it in.

    Where less than half of the words are heard in the script's language, the transcriber decides on one.

    Returns:
        The alignment, and the language that was transcribed.

    Raises:
        CannotScore: the script holds no words.
    """
    alignment, transcript = hear_script(recording, script)
    return alignment, transcript.language


def hear_script(recording: Recording, script: Script) -> tuple[ScriptAlignment, Transcript]:
    """Do as `align_recording`, and return the transcript itself."""
    written = read_as(script.text)
    attempts = []
    for language in (None,) if written == "other" else (written or detect_language(script.text), None):
        transcript = time_transcript(recording, language)
        alignment = align_script(script, ((word.text, word.start, word.end) for word in transcript.words))
        if alignment.equal_words >= TRUSTED_COVERAGE * len(alignment.written):
            return alignment, transcript
        attempts.append((alignment, transcript))
    return max(attempts, key=lambda attempt: attempt[0].equal_words)


def time_transcript(recording: Recording, language: str | None = None) -> Transcript:
    """Return what is heard, with the times of the profile's forced aligner, or the transcriber's where it has none."""
    transcript = recording.transcript(language)
    if not transcript.words or not registry.list_cards(recording.profile, ("aligner",)):
        return transcript

    def ask(model: Aligner) -> NDArray[np.float64]:
        words = model.align(recording.mono(), transcript.words, transcript.language)
        return np.array([(word.start, word.end) for word in words])

    transcriber = registry.get_card("transcriber", recording.profile).identity
    times = recording.array_from("aligner", ask, transcriber=transcriber, language=language)
    words = zip(transcript.words, times.tolist(), strict=True)
    return replace(transcript, words=tuple(Word(word.text, start, end) for word, (start, end) in words))


def require_spoken(alignment: ScriptAlignment) -> None:
    """Refuse a recording in which another text is spoken.

    Raises:
        CannotScore: less than half of the script's words are heard.
    """
    if alignment.equal_words < TRUSTED_COVERAGE * len(alignment.written):
        raise CannotScore("less than half of the script's words are heard, so it is unknown who speaks when")
