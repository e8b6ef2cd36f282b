"""Finds who speaks when, using the language and the number of speakers of the script if there is one.

Without a script the diariser judges by voices alone, and may take one voice for several. Who says how many people speak
gets no more of them than that: the voices that are most alike become one. A voice is never divided, so that a recording
of one voice is never taken for two.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from podeval.errors import CannotScore
from podeval.models.interfaces import SpeakerTurn
from podeval.recording.recording import Recording
from podeval.recording.speech_windows import SpeakerVoice, select_spoken_voices
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.tokens import detect_language


def find_speaker_turns(
    recording: Recording, script: Script | None, speakers: int = 0
) -> tuple[tuple[SpeakerTurn, ...], dict[str, Any]]:
    """Return the turns and the notes for a score.

    Notes are `language` and `speakers_asked` if there is a script; without one `voices_heard` and `speakers_asked`
    where the diariser hears more voices than `speakers`.

    English and Chinese are transcribed as such, and a text too short to identify its language is classified by its
    characters. If that finds less than half of the words, or the script is in another language, the transcriber
    decides.

    Args:
        recording: the recording of the speakers.
        script: the words with their speakers.
        speakers: how many people speak, where there is no script; 0 if nobody knows.

    Raises:
        CannotScore: too few of the script's words are heard to know who speaks when.
    """
    if script is None:
        turns = recording.turns()
        if not speakers or len({turn.speaker for turn in turns}) <= speakers:
            return turns, {}
        voices = select_spoken_voices(recording, turns)
        merged = _merge_voices(turns, voices, speakers)
        return merged, {"voices_heard": len(voices), "speakers_asked": speakers} if len(voices) > speakers else {}
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


def _merge_voices(
    turns: Sequence[SpeakerTurn], voices: Sequence[SpeakerVoice], speakers: int
) -> tuple[SpeakerTurn, ...]:
    """Return the turns with the voices that are most alike taken for one, until there are `speakers`.

    Groups of voices are compared by the mean cosine between them (average linkage); a group is called what the one is
    called who speaks longest. Turns of anybody else, who has too little speech for a voice, are left out.
    """
    from scipy.cluster.hierarchy import cut_tree, linkage

    groups = np.arange(len(voices))
    if len(voices) > speakers:
        groups = cut_tree(linkage([voice.embedding for voice in voices], "average", "cosine"), speakers).ravel()
    # Later ones replace earlier ones, so the longest comes last.
    by_length = sorted(zip(groups, voices, strict=True), key=lambda pair: pair[1].seconds)
    longest = {group: voice.speaker for group, voice in by_length}
    names = {voice.speaker: longest[group] for group, voice in zip(groups, voices, strict=True)}
    merged: list[SpeakerTurn] = []
    last: dict[str, int] = {}
    for turn in sorted((turn for turn in turns if turn.speaker in names), key=lambda turn: turn.start):
        name = names[turn.speaker]
        before = merged[last[name]] if name in last else None
        if before is not None and turn.start < before.end:
            # Two voices that spoke at once were one.
            merged[last[name]] = SpeakerTurn(name, before.start, max(before.end, turn.end))
        else:
            last[name] = len(merged)
            merged.append(SpeakerTurn(name, turn.start, turn.end))
    return tuple(merged)
