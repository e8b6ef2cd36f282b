"""Pieces of a recording: they cover it, fit Whisper's window, and are cut in pauses."""

import itertools

import numpy as np
import pytest

from podeval.models.chunking import batch_equal_lengths, cut_at_pauses
from podeval.models.interfaces import RATE


@pytest.mark.parametrize(
    "seconds", [0.2, 28.9, 29.1, 30, 52, 57.9, 60, 91, pytest.param(1200.5, marks=pytest.mark.long)]
)
def test_pieces_cover_the_recording_and_fit_whisper_s_window(seconds: float) -> None:
    samples = np.random.default_rng(0).normal(size=int(seconds * RATE)).astype(np.float32)
    found = list(cut_at_pauses(samples))
    assert found[0].start == 0
    assert found[-1].stop == len(samples)
    assert all(a.stop == b.start for a, b in itertools.pairwise(found))
    assert all(0 < piece.stop - piece.start <= 29 * RATE for piece in found)
    assert len(found) <= seconds / 16 + 1


def test_a_cut_falls_into_the_pause() -> None:
    samples = np.random.default_rng(0).normal(size=40 * RATE).astype(np.float32)
    samples[int(21.3 * RATE) : int(21.9 * RATE)] = 0
    first, second = cut_at_pauses(samples)
    assert 21.3 * RATE < first.stop < 21.9 * RATE
    assert second.start == first.stop


def test_every_input_once_with_others_of_its_length() -> None:
    lengths = [3, 1, 3, 3, 2, 3, 1]
    found = list(batch_equal_lengths(lengths, 2))
    assert sorted(position for batch in found for position in batch) == list(range(7))
    assert all(len({lengths[position] for position in batch}) == 1 for batch in found)
    assert [len(batch) for batch in found] == [2, 1, 2, 2]
    assert list(batch_equal_lengths([], 4)) == []
