"""Find near-duplicate rows by the cosine of sentence embeddings; the earliest row of each kind is kept."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podeval.construction.workshop import Encode, LeftOut, R, Sifted
from podeval.errors import BadInput

ALIKE = "de-duplication"

THRESHOLD = 0.8
"""Cosine from which two texts are near-duplicates; LFS-Bench, appendix A.3."""


def drop_near_duplicates(
    rows: Sequence[R], texts: Sequence[str], encode: Encode, threshold: float = THRESHOLD
) -> Sifted[R]:
    """Leave out each row whose text says nearly the same as that of an earlier row.

    Args:
        rows: the rows.
        texts: an English text for each row.
        encode: encodes texts as vectors.
        threshold: the cosine from which rows are alike.
    """
    result: Sifted[R] = Sifted()
    alike = find_near_duplicates(encode(texts), threshold) if rows else {}
    for number, row in enumerate(rows):
        if number in alike:
            of, cosine = alike[number]
            reason = f"alike {rows[of].id}, cosine {cosine:.3f}"
            result.left_out.append(LeftOut(id=row.id, step=ALIKE, reason=reason))
        else:
            result.kept.append(row)
    return result


def find_near_duplicates(
    embeddings: NDArray[np.floating], threshold: float = THRESHOLD
) -> dict[int, tuple[int, float]]:
    """Return the rows to take out, each with the kept row that is most similar and their cosine.

    Rows are taken in order. A row that was taken out causes no other to be taken out.

    Args:
        embeddings: the vectors, shape (rows, dimensions), of any norm.
        threshold: the cosine from which rows are alike.

    Raises:
        BadInput: an embedding has no direction.
    """
    units = normalise_rows(embeddings)
    kept = np.zeros(len(units), dtype=bool)
    duplicates: dict[int, tuple[int, float]] = {}
    for row, unit in enumerate(units):
        cosines = np.append(np.where(kept[:row], units[:row] @ unit, -2.0), -2.0)
        of = int(cosines.argmax())
        # Equal texts may come out a rounding error below 1.
        if cosines[of] >= threshold - 1e-6:
            duplicates[row] = of, min(float(cosines[of]), 1.0)
        else:
            kept[row] = True
    return duplicates


def normalise_rows(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale each row to norm 1.

    Raises:
        BadInput: a row has no direction (it is zero or not finite).
    """
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    if not usable.all():
        raise BadInput(f"the embedding of row {int(np.argmin(usable)) + 1} has no direction; is its text empty?")
    return np.asarray(embeddings / lengths, dtype=np.float32)
