"""Forced alignment against a look at every path there is."""

from itertools import groupby, product

import numpy as np
import pytest

from podeval.errors import CannotScore
from podeval.models.forced_alignment import align_tokens, count_frames


def try_every_path(log_probabilities: np.ndarray, tokens: list[int]) -> tuple[float, list[tuple[int, int]]]:
    """The best path of all that spell the tokens: its score and the frames of each token."""
    frames, labels = log_probabilities.shape
    best: tuple[float, list[tuple[int, int]]] = (-np.inf, [])
    for path in product(range(labels), repeat=frames):
        runs = [(label, [frame for frame, _ in run]) for label, run in groupby(enumerate(path), lambda each: each[1])]
        if [label for label, _ in runs if label] == tokens:
            score = float(sum(log_probabilities[frame, label] for frame, label in enumerate(path)))
            best = max(best, (score, [(run[0], run[-1] + 1) for label, run in runs if label]))
    return best


@pytest.mark.parametrize("frames", [1, 3, 5])
def test_the_alignment_is_the_best_of_all_paths(frames: int) -> None:
    random = np.random.default_rng(frames)
    tried = 0
    for _ in range(30):
        log_probabilities = np.log(random.dirichlet(np.full(3, 0.5), size=frames))
        tokens = random.integers(1, 3, size=random.integers(1, 4)).tolist()
        if count_frames(tokens) > frames:
            with pytest.raises(CannotScore, match="cannot be said in"):
                align_tokens(log_probabilities, tokens)
            continue
        tried += 1
        score, spans = try_every_path(log_probabilities, tokens)
        assert align_tokens(log_probabilities, tokens) == spans
        assert np.isfinite(score)
    assert tried > 2


def test_equal_tokens_in_a_row_are_kept_apart_by_a_blank() -> None:
    sure = np.log(np.array([[0.1, 0.9], [0.1, 0.9], [0.4, 0.6], [0.1, 0.9]]))
    assert align_tokens(sure, [1, 1]) == [(0, 2), (3, 4)]
    assert count_frames([1, 1]) == 3


def test_no_tokens_take_no_frames() -> None:
    assert align_tokens(np.zeros((2, 3)), []) == []
