"""Chunks of a segmentation brought together under the speakers of a diarisation."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from podeval.models.interfaces import SEGMENTATION_FRAME, SpeakerTurn
from podeval.recording.speaker_turns import find_overlapping_turns, list_runs, name_speakers

FRAMES = 589


def chunk(begin: float, *spoken: tuple[int, float, float]) -> np.ndarray[Any, Any]:
    """A chunk that begins at `begin`, with who is active from when to when in the recording."""
    frames = np.zeros((FRAMES, 3), np.uint8)
    times = begin + np.arange(FRAMES) * SEGMENTATION_FRAME + 0.031
    for speaker, start, end in spoken:
        frames[(times >= start) & (times < end), speaker] = 1
    return frames


def recording(duration: float, diarised: list[tuple[str, float, float]], *chunks: np.ndarray[Any, Any]) -> Any:
    return SimpleNamespace(
        duration=duration,
        diarization=lambda: tuple(SpeakerTurn(*turn) for turn in diarised),
        array_from=lambda job, ask: np.stack(chunks),
    )


def rounded(turns: tuple[SpeakerTurn, ...]) -> list[tuple[str, float, float]]:
    return [(turn.speaker, round(turn.start, 1), round(turn.end, 1)) for turn in turns]


def test_a_chunk_s_speakers_are_those_in_whose_turns_they_are_heard_and_may_overlap() -> None:
    found = find_overlapping_turns(recording(10, [("A", 0, 5), ("B", 5, 10)], chunk(0, (2, 0.5, 5.6), (0, 4.9, 9.5))))
    assert rounded(found) == [("A", 0.5, 5.6), ("B", 4.9, 9.5)]


def test_labels_that_change_from_chunk_to_chunk_are_one_speaker_across_the_seam() -> None:
    """Two chunks, of 0 to 10 and 5 to 15 s, whose labels are swapped; each is used up to 7.5 s and from there."""
    first, second = chunk(0, (0, 0, 9), (1, 9.5, 10)), chunk(5, (1, 5, 9), (0, 9.5, 14))
    found = find_overlapping_turns(recording(15, [("A", 0, 9), ("B", 9.5, 14)], first, second))
    assert rounded(found) == [("A", 0.0, 9.0), ("B", 9.5, 14.0)]


def test_a_listener_s_short_sound_in_another_s_turn_goes_to_the_nearest_other_speaker() -> None:
    diarised = [("A", 0, 8), ("B", 20, 25), ("C", 8.5, 10)]
    found = find_overlapping_turns(recording(10, diarised, chunk(0, (0, 0, 8), (1, 3, 3.5))))
    assert rounded(found) == [("A", 0.0, 8.0), ("C", 3.0, 3.5)]


def test_without_another_speaker_what_overlaps_is_left_out() -> None:
    runs = list_runs(chunk(0, (0, 0, 8), (1, 3, 3.5)), 0.0)
    assert [name for name, _, _ in name_speakers(runs, [SpeakerTurn("A", 0, 8)])] == ["A"]


def test_one_voice_taken_for_two_in_a_chunk_stays_one_speaker() -> None:
    found = find_overlapping_turns(recording(10, [("A", 0, 9)], chunk(0, (0, 0, 4), (1, 5, 9))))
    assert [turn.speaker for turn in found] == ["A", "A"]


@pytest.mark.parametrize("diarised", [[], [("A", 0, 9)]])
def test_nothing_is_said_by_nobody(diarised: list[tuple[str, float, float]]) -> None:
    assert find_overlapping_turns(recording(10, diarised, chunk(0))) == ()
