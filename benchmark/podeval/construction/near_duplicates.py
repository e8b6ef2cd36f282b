"""Find near-duplicate rows by the cosine of sentence embeddings; the earliest row of each kind is kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput

THRESHOLD = 0.8
"""Cosine from which two texts are near-duplicates; LFS-Bench, appendix A.3."""

_BLOCK = 512


@dataclass(frozen=True)
class Duplicate:
    """A duplicate and the kept row it resembles: their numbers, and the cosine."""

    row: int
    of: int
    cosine: float


def find_near_duplicates(embeddings: NDArray[np.floating], threshold: float = THRESHOLD) -> list[Duplicate]:
    """Return the rows to take out, so that no two of the others are alike.

    Rows are taken in order; a row is taken out where its cosine with a kept row reaches the threshold, and the kept row
    that is most similar is recorded with it. A row that was taken out causes no other to be taken out.

    Args:
        embeddings: shape (rows, dimensions), of any norm.
        threshold: cosine from which rows are alike.

    Raises:
        BadInput: an embedding has no direction.
    """
    if not len(embeddings):
        return []
    units = normalise_rows(embeddings)
    kept = np.empty(0, dtype=np.int64)
    duplicates: list[Duplicate] = []
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK]
        before = block @ units[kept].T if len(kept) else np.full((len(block), 1), -2.0)
        nearest, best = before.argmax(axis=1), before.max(axis=1)
        inside = block @ block.T
        stays = np.zeros(len(block), dtype=bool)
        for row in range(len(block)):
            cosine, of = float(best[row]), int(kept[nearest[row]]) if len(kept) else -1
            if stays[:row].any():
                among = np.where(stays[:row], inside[row, :row], -2.0)
                if among.max() > cosine:
                    cosine, of = float(among.max()), start + int(among.argmax())
            # Equal texts may come out a rounding error below 1.
            if cosine >= threshold - 1e-6:
                duplicates.append(Duplicate(start + row, of, min(cosine, 1.0)))
            else:
                stays[row] = True
        kept = np.concatenate([kept, start + np.flatnonzero(stays)])
    return duplicates


def normalise_rows(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale each row to norm 1.

    Raises:
        BadInput: a row has no direction (it is zero or not finite).
    """
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        number = int(np.argmin((np.isfinite(lengths) & (lengths > 0)).ravel())) + 1
        raise BadInput(f"the embedding of row {number} has no direction; is its text empty?")
    return np.asarray(embeddings / lengths, dtype=np.float32)
