"""Split a long recording at its pauses into chunks for Whisper's window of 30 s, and many clips into batches."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import CannotScore
from podeval.models.interfaces import RATE, Samples


def batch_equal_lengths(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the indices of inputs of equal length, at most `most` at a time, so no input needs padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for _, same in groupby(order, key=lengths.__getitem__):
        positions = list(same)
        for start in range(0, len(positions), most):
            yield positions[start : start + most]


def run_in_batches(
    clips: Sequence[Samples], most: int, run: Callable[[Any], Any], step: str, row: tuple[int, ...] = ()
) -> NDArray[np.float32]:
    """Return a torch network's output for each clip, shape (clips, *row).

    Args:
        clips: mono samples; only clips of equal length share a batch, because padding would change values.
        most: maximum number of clips in a batch.
        run: function that maps a tensor of clips, (clips, frames), to a tensor with a row for each clip.
        step: the name of this work in progress reports.
        row: the shape of a row.
    """
    import torch

    results = np.empty((len(clips), *row), dtype=np.float32)
    done = 0
    with torch.inference_mode():
        for batch in batch_equal_lengths([len(clip) for clip in clips], most):
            stacked = np.stack([clips[number] for number in batch]).astype(np.float32, copy=False)
            results[batch] = run(torch.from_numpy(stacked)).cpu().numpy()
            done += len(batch)
            progress.report(step, done, len(clips))
    return results


_LONGEST = 29 * RATE
_USUAL = 27 * RATE
_STEP = RATE // 20
_PAUSE = 8


def require_length(clips: Sequence[Samples], least: int) -> None:
    """Refuse voice clips with fewer than `least` samples.

    Raises:
        CannotScore: a clip is shorter.
    """
    shortest = min((len(clip) for clip in clips), default=least)
    if shortest < least:
        needed = f"at least {least / RATE:.2f} s is needed"
        raise CannotScore(f"a voice of {shortest / RATE:.2f} s is too short to be compared; {needed}")


def cut_sounding(samples: Samples) -> list[slice]:
    """Return the slices of `cut_at_pauses` that are not digital silence."""
    return [piece for piece in cut_at_pauses(samples) if np.any(samples[piece])]


def cut_at_pauses(samples: Samples) -> Iterator[slice]:
    """Yield as few slices of at most 29 s as possible. Each cut is in the middle of the quietest 0.4 s of a range of at
    least 2 s.
    """
    start = 0
    while (left := len(samples) - start) > _LONGEST:
        count = -(-left // _USUAL)
        earliest = start + max(left - (count - 1) * _LONGEST, left // count * 3 // 5)
        levels = np.square(samples[earliest : start + _LONGEST], dtype=np.float64)
        steps = levels[: len(levels) // _STEP * _STEP].reshape(-1, _STEP).sum(axis=1)
        quietest = int(np.argmin(np.convolve(steps, np.ones(_PAUSE), "valid")))
        end = earliest + (quietest + _PAUSE // 2) * _STEP
        yield slice(start, end)
        start = end
    yield slice(start, len(samples))
