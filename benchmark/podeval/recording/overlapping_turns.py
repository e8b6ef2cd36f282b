"""Who speaks when, two at once included: the diarisation says whose voice it is, the segmentation when it is heard.

The diarisation gives every moment to one speaker. The segmentation finds speakers who overlap, but its labels hold
within ten seconds only. Each of its speakers in a chunk is the one of the diarisation during whose turns it is heard
longest. Where two of them at once would be the same, the one that is heard for less is the other speaker that is
nearest in time. Of every two chunks that overlap, each is used up to the middle of the overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from podeval.models.interfaces import (
    SEGMENTATION_CHUNK,
    SEGMENTATION_FRAME,
    SEGMENTATION_START,
    SEGMENTATION_STEP,
    SpeakerTurn,
)
from podeval.recording.recording import Recording

NEEDS = ("diarizer", "segmentation")
"""The jobs whose models decide who speaks when."""

Run = tuple[int, float, float]
"""A speaker of a chunk, and the start and end of speech in the recording, seconds."""


def find_overlapping_turns(recording: Recording) -> tuple[SpeakerTurn, ...]:
    """Return who speaks when, in order of time; empty if no speaker is found.

    Raises:
        ModelMissing: the diarizer or the segmentation is not installed.
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
        edges = np.flatnonzero(np.diff(np.concatenate([[0], active, [0]])))
        for start, end in edges.reshape(-1, 2):
            times = begin + SEGMENTATION_START + (np.array([start, end]) - 0.5) * SEGMENTATION_FRAME
            runs.append((speaker, float(times[0]), float(times[1])))
    return runs


def name_speakers(runs: Sequence[Run], diarised: Sequence[SpeakerTurn]) -> list[tuple[str, float, float]]:
    """Return the runs of a chunk by the speakers of the diarisation."""
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
    """Return another speaker than `name` whose turn is nearest to a moment; empty where there is none."""
    others = [turn for turn in turns if turn.speaker != name]
    if not others:
        return ""
    return min(others, key=lambda turn: max(turn.start - time, time - turn.end, 0.0)).speaker


def join_touching(turns: Sequence[SpeakerTurn]) -> tuple[SpeakerTurn, ...]:
    """Join what one speaker says without a pause, as at the seams of chunks; in order of time."""
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
