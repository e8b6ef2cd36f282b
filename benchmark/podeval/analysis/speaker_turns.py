"""Finds who speaks when, using the language and the number of speakers of the script if there is one."""

from typing import Any

from podeval.analysis.recording import Recording
from podeval.errors import CannotScore
from podeval.models.interfaces import SpeakerTurn
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.tokens import detect_language


def find_speaker_turns(recording: Recording, script: Script | None) -> tuple[tuple[SpeakerTurn, ...], dict[str, Any]]:
    """Return the turns and the notes for a score: `language` and `speakers_asked` if there is a script.

    English and Chinese are transcribed as such, and a text too short to identify its language is classified by its
    characters. If that finds less than half of the words, or the script is in another language, the transcriber
    decides.

    Raises:
        CannotScore: too few of the script's words are heard to know who speaks when.
    """
    if script is None:
        return recording.turns(), {}
    written = read_as(script.text)
    language = None if written == "other" else written or detect_language(script.text)
    try:
        turns = recording.turns(script, language)
    except CannotScore:
        if language is None:
            raise
        language, turns = None, recording.turns(script)
    return turns, {
        "language": language or recording.transcript().language,
        "speakers_asked": len(script.speakers),
    }
