"""Find who speaks when, with at most two simultaneous speakers, and who speaks each line.

If there is a script, its language and number of speakers are used. Without one, the diariser uses only the voices, and
may mistake one voice for several. If a caller states the number of speakers, the most similar voices are merged until
at most that number is left. A voice is never split, so a recording of one voice is never given two speakers.

To find two simultaneous speakers, diarisation and segmentation are combined. The diarisation assigns every point in
time to one speaker. The segmentation finds speakers who overlap, but its labels are valid only within 10 s. Each
speaker that it finds in a chunk is identified with the speaker of the diarisation whose turns overlap longest. If two
simultaneous speakers would be identified with the same speaker, the one with the shorter stretch is identified with the
other speaker who is nearest in time. Of two overlapping chunks, the first is used up to the middle of the overlap, and
the second from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import find_runs
from podeval.errors import BadInput, CannotScore
from podeval.models.interfaces import (
    SEGMENTATION_CHUNK,
    SEGMENTATION_FRAME,
    SEGMENTATION_START,
    SEGMENTATION_STEP,
    SpeakerTurn,
    Transcript,
)
from podeval.recording.recording import Recording
from podeval.recording.speech_track import SpeakerVoice, select_spoken_voices
from podeval.text.comparison.alignment import locate_speaker_turns
from podeval.text.dialogue_segments import Segment, Utterance, attribute_to_speakers, join_utterances
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.tokens import detect_language


def find_speaker_turns(
    recording: Recording, script: Script | None, speakers: int = 0
) -> tuple[tuple[SpeakerTurn, ...], dict[str, Any]]:
    """Return the turns and the notes for a score.

    The notes are `language` and `speakers_asked` if there is a script; otherwise, `voices_heard` and `speakers_asked`
    if the diariser finds more voices than `speakers`.

    The recording of an English or Chinese script is transcribed in that language; if the text is too short to identify
    its language, its characters decide. If less than half of the words are found, or the script is in neither language,
    the transcriber detects the language.

    Args:
        recording: the recording of the speakers.
        script: the words with their speakers.
        speakers: number of speakers if there is no script; 0 if unknown.

    Raises:
        CannotScore: too few of the script's words are recognised to find the speakers.
    """
    if script is None:
        turns = recording.diarization()
        if not speakers or len({turn.speaker for turn in turns}) <= speakers:
            return turns, {}
        voices = select_spoken_voices(recording, turns)
        merged = _merge_voices(turns, voices, speakers)
        return merged, {"voices_heard": len(voices), "speakers_asked": speakers} if len(voices) > speakers else {}
    written = read_as(script.text)
    language = None if written == "other" else written or detect_language(script.text)
    try:
        turns = align_turns(recording, script, language)
    except CannotScore:
        if language is None:
            raise
        language, turns = None, align_turns(recording, script)
    return turns, {
        "language": language or recording.transcript().language,
        "speakers_asked": len(script.speakers),
    }


def align_turns(recording: Recording, script: Script, language: str | None = None) -> tuple[SpeakerTurn, ...]:
    """Return the speakers with their times, found by aligning the script with the recognised words.

    Raises:
        CannotScore: too few of the script's words are recognised to find the speakers.
    """
    words = [(word.text, word.start, word.end) for word in recording.transcript(language).words]
    aligned = locate_speaker_turns(script, words, recording.duration)
    if not aligned.trusted:
        raise CannotScore("less than half of the script's words were recognised, so it is unknown who speaks when")
    return tuple(SpeakerTurn(turn.speaker, turn.start, turn.end) for turn in aligned.turns)


def _merge_voices(
    turns: Sequence[SpeakerTurn], voices: Sequence[SpeakerVoice], speakers: int
) -> tuple[SpeakerTurn, ...]:
    """Merge the most similar voices until `speakers` remain, and return the turns.

    Groups of voices are compared by the mean cosine between them (average linkage), and a group is named after the
    voice that speaks longest. Turns of speakers who have too little speech for a voice are left out.
    """
    from scipy.cluster.hierarchy import cut_tree, linkage

    groups = np.arange(len(voices))
    if len(voices) > speakers:
        groups = cut_tree(linkage([voice.embedding for voice in voices], "average", "cosine"), speakers).ravel()
    # Later entries replace earlier entries, so the longest voice comes last.
    by_length = sorted(zip(groups, voices, strict=True), key=lambda pair: pair[1].seconds)
    longest = {group: voice.speaker for group, voice in by_length}
    names = {voice.speaker: longest[group] for group, voice in zip(groups, voices, strict=True)}
    merged: list[SpeakerTurn] = []
    last: dict[str, int] = {}
    for turn in sorted((turn for turn in turns if turn.speaker in names), key=lambda turn: turn.start):
        name = names[turn.speaker]
        before = merged[last[name]] if name in last else None
        if before is not None and turn.start < before.end:
            # Overlapping turns of merged voices become one turn.
            merged[last[name]] = SpeakerTurn(name, before.start, max(before.end, turn.end))
        else:
            last[name] = len(merged)
            merged.append(SpeakerTurn(name, turn.start, turn.end))
    return tuple(merged)


@dataclass(frozen=True)
class DiarisedTranscript:
    """A transcript in segments with speakers and times.

    Attributes:
        segments: the transcribed segments in chronological order.
        nobody: utterances during which no speaker was found; they are not among the segments.
        language: the spoken language, given by the caller or detected by the transcriber.
    """

    segments: tuple[Segment, ...]
    nobody: tuple[Utterance, ...]
    language: str


def transcribe_and_diarise(recording: Recording, language: str | None = None) -> DiarisedTranscript:
    """Transcribe and diarise a recording; each segment is attributed to the speaker whose turns overlap it longest.

    Segments end with a sentence or before a pause; see `podeval.text.dialogue_segments`.

    Args:
        recording: a recording of speech, at 16 kHz or more unless it allows upsampling.
        language: language code, such as `en`; if None, the transcriber detects the language.

    Raises:
        CannotScore: the audio is defective, or contains no speech or no speaker.
        BadInput: the transcriber does not support the language.
        ModelMissing: the profile's transcriber or diarizer is not installed.
    """
    recording.require_sound()
    transcript = _transcribe(recording, language)
    spoken = join_utterances((word.text, word.start, word.end) for word in transcript.words)
    if not spoken:
        raise CannotScore(f"no words were recognised in {recording.name}; check that it contains speech")
    turns = recording.diarization()
    if not turns:
        raise CannotScore(f"no speaker was found in {recording.name}; check that it contains speech")
    segments, nobody = attribute_to_speakers(spoken, ((turn.speaker, turn.start, turn.end) for turn in turns))
    return DiarisedTranscript(tuple(segments), tuple(nobody), transcript.language)


def _transcribe(recording: Recording, language: str | None) -> Transcript:
    try:
        return recording.transcript(language)
    except ValueError as error:
        if language is None or "language" not in str(error):
            raise
        raise BadInput(
            f"the transcriber does not support the language {language!r}; give its code, such as en or zh"
        ) from None


NEEDS = ("diarizer", "segmentation")
"""The jobs whose models determine who is speaking at each point in time."""

Run = tuple[int, float, float]
"""A speaker of a chunk, and the start and end of the speech in the recording, in seconds."""


def find_overlapping_turns(recording: Recording) -> tuple[SpeakerTurn, ...]:
    """Return the speakers with their times, in order; empty if no speaker is found.

    Raises:
        ModelMissing: the diarizer or the segmentation model is not installed.
    """
    diarised = recording.diarization()
    if not diarised:
        return ()
    chunks = recording.array_from("segmentation", lambda model: model.segment(recording.mono()))
    middle = (SEGMENTATION_CHUNK - SEGMENTATION_STEP) / 2
    spoken: list[SpeakerTurn] = []
    for number, frames in enumerate(chunks):
        begin = number * SEGMENTATION_STEP
        first = begin + middle if number else 0.0
        last = begin + middle + SEGMENTATION_STEP if number + 1 < len(chunks) else recording.duration
        for speaker, start, end in name_speakers(list_runs(frames, begin), diarised):
            if min(end, last) > max(start, first):
                spoken.append(SpeakerTurn(speaker, max(start, first), min(end, last)))
    return join_touching(spoken)


def list_runs(frames: NDArray[np.uint8], begin: float) -> list[Run]:
    """Return every stretch of speech in a chunk that begins at `begin` seconds."""
    runs = []
    for speaker, active in enumerate(frames.T):
        for start, end in find_runs(active > 0, 1):
            times = begin + SEGMENTATION_START + (np.array([start, end]) - 0.5) * SEGMENTATION_FRAME
            runs.append((speaker, float(times[0]), float(times[1])))
    return runs


def name_speakers(runs: Sequence[Run], diarised: Sequence[SpeakerTurn]) -> list[tuple[str, float, float]]:
    """Return the runs of a chunk, labelled with the speakers from the diarisation."""
    if not runs:
        return []
    near = [turn for turn in diarised if turn.end > runs[0][1] - 30 and turn.start < runs[0][2] + 30] or list(diarised)
    seconds: dict[int, dict[str, float]] = {}
    for speaker, start, end in runs:
        by_name = seconds.setdefault(speaker, {})
        for turn in near:
            by_name[turn.speaker] = by_name.get(turn.speaker, 0.0) + max(
                0.0, min(end, turn.end) - max(start, turn.start)
            )
    names = {speaker: max(by_name, key=lambda name: by_name[name]) for speaker, by_name in seconds.items()}
    lengths = {speaker: sum(end - start for other, start, end in runs if other == speaker) for speaker in names}
    named_runs = []
    for speaker, start, end in runs:
        name = names[speaker]
        for other, begin, until in runs:
            clashes = other != speaker and names[other] == name and min(end, until) > max(start, begin)
            if clashes and (lengths[speaker], speaker) < (lengths[other], other):
                name = _find_nearest_other(name, start, near)
                break
        if name:
            named_runs.append((name, start, end))
    return named_runs


def _find_nearest_other(name: str, time: float, turns: Sequence[SpeakerTurn]) -> str:
    """Return the speaker other than `name` whose turn is nearest to a given time; empty if there is none."""
    others = [turn for turn in turns if turn.speaker != name]
    if not others:
        return ""
    return min(others, key=lambda turn: max(turn.start - time, time - turn.end, 0.0)).speaker


def join_touching(turns: Sequence[SpeakerTurn]) -> tuple[SpeakerTurn, ...]:
    """Join turns by one speaker that have no pause between them, as at the seams of chunks; return them in
    chronological order.
    """
    joined: list[SpeakerTurn] = []
    for speaker in dict.fromkeys(turn.speaker for turn in turns):
        own = sorted((turn for turn in turns if turn.speaker == speaker), key=lambda turn: turn.start)
        current = own[0]
        for _, turn in pairwise(own):
            if turn.start <= current.end + SEGMENTATION_FRAME:
                current = SpeakerTurn(speaker, current.start, max(current.end, turn.end))
            else:
                joined.append(current)
                current = turn
        joined.append(current)
    return tuple(sorted(joined, key=lambda turn: (turn.start, turn.end)))
