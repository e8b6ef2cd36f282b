"""Growing sample arrays that do not fill memory: large ones continue in an anonymous temporary file."""

import shutil
import tempfile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from podeval.errors import PodevalError

MEMORY_BYTES = 256 * 2**20
"""Arrays up to this size live in memory; larger ones in a temporary file (in `TMPDIR`)."""

FREE_BYTES = 256 * 2**20
"""What a temporary file leaves free on its disk, so that a long recording cannot starve a database beside it."""

BLOCK_FRAMES = 65_536
"""Frames that are worked on at a time."""

_WRITE_BYTES = 4 * 2**20


class SampleBuffer:
    """Collects blocks of samples of unknown total length into one float32 array.

    Args:
        channels: the blocks are `(frames, channels)`; with None they are `(frames,)`.
        memory_bytes: from this size on, the samples are written to a temporary file.
    """

    def __init__(self, channels: int | None = None, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._row: tuple[int, ...] = () if channels is None else (channels,)
        self._row_bytes = 4 * (1 if channels is None else channels)
        self._memory_bytes = memory_bytes
        self._blocks: list[NDArray[np.float32]] = []
        self._file: IO[bytes] | None = None
        self._pending = 0
        self.frames = 0

    @property
    def nbytes(self) -> int:
        """Bytes collected so far."""
        return self.frames * self._row_bytes

    def append(self, block: NDArray[np.float32]) -> None:
        """Add a block; it is copied.

        Args:
            block: float32 samples, `(frames,)` or `(frames, channels)` as the buffer was made.

        Raises:
            ValueError: the block has another shape.
            PodevalError: the disk of the temporary file is full.
        """
        if block.shape[1:] != self._row:
            raise ValueError(f"expected blocks of shape (frames, {self._row}), got {block.shape}")
        self._blocks.append(np.array(block, dtype=np.float32, order="C"))
        self.frames += len(block)
        self._pending += len(block) * self._row_bytes
        if self.nbytes > self._memory_bytes and self._pending >= min(self._memory_bytes, _WRITE_BYTES):
            self._spill()

    def finish(self) -> NDArray[np.float32]:
        """The samples: an array in memory, or an `np.memmap` of a file that has no name and goes with the array.

        The buffer is empty afterwards. A memmap is pickled by value: pass a path to other processes instead.
        """
        shape = (self.frames, *self._row)
        if self._file is not None:
            self._spill()
            with self._file as file:
                self._file, self.frames = None, 0
                return np.memmap(file, dtype=np.float32, mode="r+", shape=shape)
        samples = np.empty(shape, dtype=np.float32)
        at = 0
        # Blocks are let go one by one: pages of the result are touched as theirs are freed.
        for index, block in enumerate(self._blocks):
            samples[at : at + len(block)] = block
            at += len(block)
            self._blocks[index] = samples[:0]
        self._blocks, self._pending, self.frames = [], 0, 0
        return samples

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="podeval-")  # noqa: SIM115 - outlives this call
        try:
            if shutil.disk_usage(tempfile.gettempdir()).free < FREE_BYTES + self._pending:
                raise OSError("too little space left")
            for block in self._blocks:
                self._file.write(block.data)
            self._file.flush()
        except OSError as error:
            self._file.close()
            raise PodevalError(
                f"The decoded audio does not fit into {tempfile.gettempdir()} ({error}): free some space "
                "there, or set TMPDIR to a folder on a larger disk."
            ) from error
        self._blocks, self._pending = [], 0
