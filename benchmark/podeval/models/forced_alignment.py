"""CTC forced alignment: at which frames the tokens of a known text were said.

Of all ways in which the frames can spell the tokens (each token on one frame or more in a row, blanks anywhere between,
at least one blank between two equal tokens) the one with the highest sum of log probabilities is taken: Viterbi's
algorithm over the tokens with a blank before, between and after them.

Source: Graves et al., ICML 2006; `torchaudio.functional.forced_align` does the same in C++, which does not load beside
every build of torch.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import CannotScore


def count_frames(tokens: Sequence[int]) -> int:
    """Return how many frames tokens take at least: one each, and a blank between equal ones."""
    return len(tokens) + sum(before == after for before, after in pairwise(tokens))


def align_tokens(log_probabilities: NDArray[Any], tokens: Sequence[int], blank: int = 0) -> list[tuple[int, int]]:
    """Return of each token its first frame and the frame after its last.

    Args:
        log_probabilities: log probability of every label on every frame, shape (frames, labels).
        tokens: labels that were said, without blanks.
        blank: label of the blank.

    Raises:
        CannotScore: there are too few frames for the tokens.
    """
    frames = len(log_probabilities)
    if frames < count_frames(tokens):
        raise CannotScore(f"{len(tokens)} tokens cannot be said in {frames} frames")
    if not tokens:
        return []
    # The states of the path: a blank, the first token, a blank, the second token, … a blank.
    labels = np.full(2 * len(tokens) + 1, blank)
    labels[1::2] = tokens
    may_skip = np.zeros(len(labels), dtype=bool)
    may_skip[3::2] = labels[3::2] != labels[1:-2:2]
    scores = np.full(len(labels), -np.inf)
    scores[:2] = log_probabilities[0, labels[:2]]
    steps = np.zeros((frames, len(labels)), dtype=np.int8)
    for frame in range(1, frames):
        # From the state itself, from the one before, and from the token before over the blank.
        candidates = np.full((3, len(labels)), -np.inf)
        candidates[0] = scores
        candidates[1, 1:] = scores[:-1]
        candidates[2, 2:] = np.where(may_skip[2:], scores[:-2], -np.inf)
        steps[frame] = np.argmax(candidates, axis=0)
        scores = np.take_along_axis(candidates, steps[frame][np.newaxis], axis=0)[0] + log_probabilities[frame, labels]
    # Back from the better of the last two states.
    state = len(labels) - 1 if scores[-1] > scores[-2] else len(labels) - 2
    spans = [(0, 0)] * len(tokens)
    for frame in range(frames - 1, -1, -1):
        if state % 2:
            first = frame
            past = spans[state // 2][1] or frame + 1
            spans[state // 2] = (first, past)
        state -= int(steps[frame, state])
    return spans
