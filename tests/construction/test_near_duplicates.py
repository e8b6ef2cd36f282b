"""No two rows that stay are alike, the earliest stays, and blocks make no difference."""

import numpy as np
import pytest

from podeval.construction.workshop import find_near_duplicates
from podeval.errors import BadInput


def one_by_one(embeddings: np.ndarray, threshold: float) -> list[tuple[int, int]]:
    """The same by the definition, a pair at a time."""
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    kept: list[int] = []
    found = []
    for row in range(len(units)):
        cosines = [float(units[row] @ units[other]) for other in kept]
        if cosines and max(cosines) >= threshold:
            found.append((row, kept[int(np.argmax(cosines))]))
        else:
            kept.append(row)
    return found


def test_it_is_the_definition() -> None:
    draws = np.random.default_rng(3)
    centres = draws.normal(size=(12, 8))
    rows = centres[draws.integers(0, 12, 150)] + draws.normal(scale=0.35, size=(150, 8))
    found = find_near_duplicates(rows, 0.8)
    assert [(row, of) for row, (of, _) in found.items()] == one_by_one(rows, 0.8)
    assert 20 < len(found) < 140


def test_what_goes_takes_nothing_with_it() -> None:
    """B is alike A and C alike B, but C is not alike A: B goes, C stays."""
    at = np.radians([0, 30, 60])
    found = find_near_duplicates(np.stack([np.cos(at), np.sin(at)], axis=1), 0.8)
    assert {row: (of, round(cosine, 3)) for row, (of, cosine) in found.items()} == {1: (0, 0.866)}


def test_equal_rows_are_alike_at_a_threshold_of_one() -> None:
    row = np.random.default_rng(0).normal(size=384).astype(np.float32)
    assert list(find_near_duplicates(np.stack([row, 3 * row]), 1.0)) == [1]


def test_a_row_without_direction_is_refused() -> None:
    with pytest.raises(BadInput, match="row 2 is zero or not finite"):
        find_near_duplicates(np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert find_near_duplicates(np.empty((0, 3))) == {}
