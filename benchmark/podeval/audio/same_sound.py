"""Whether a recording holds a piece of another one, sample by sample: a reference played back, not spoken anew.

The loudest two seconds of the other are laid over the recording at every offset, at 4 kHz. The correlation of a copy
stays above 0.9 through codecs, another level or a little noise; that of the same words spoken again is near 0.
"""

import numpy as np
from numpy.typing import NDArray

RATE = 4_000
"""Hz at which sounds are compared."""
PIECE = 2.0
"""Seconds of the other recording that are looked for."""
COPY = 0.8
"""Correlation from which on a piece is a copy."""


def holds_copy(samples: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    """Return whether a recording holds a copy of the loudest piece of another; both at `RATE`, shape (frames,)."""
    return bool(correlate_with(samples, other) >= COPY)


def correlate_with(samples: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return the highest correlation, over all offsets, of the loudest piece of another recording with this one.

    It is 0 where either is shorter than a piece, or silent.
    """
    from scipy.signal import oaconvolve

    size = round(PIECE * RATE)
    if min(len(samples), len(other)) < size:
        return 0.0
    power = np.cumsum(np.concatenate([[0.0], np.square(other, dtype=np.float64)]))
    start = int(np.argmax(power[size:] - power[:-size]))
    piece = other[start : start + size].astype(np.float64)
    piece -= piece.mean()
    norm = float(np.linalg.norm(piece))
    if norm == 0:
        return 0.0
    sound = samples.astype(np.float64)
    products = oaconvolve(sound, piece[::-1], mode="valid")
    energy = np.cumsum(np.concatenate([[0.0], np.square(sound)]))
    norms = np.sqrt(np.maximum(energy[size:] - energy[:-size], 0.0))
    audible = norms > 1e-3 * norms.max() if norms.max() > 0 else np.zeros(len(norms), dtype=bool)
    return float(np.abs(products[audible] / (norms[audible] * norm)).max()) if audible.any() else 0.0
