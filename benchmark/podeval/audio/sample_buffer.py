"""Growing sample arrays that do not fill memory: large ones continue in an anonymous temporary file."""

import mmap
import shutil
import tempfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from podeval.errors import PodevalError

MEMORY_BYTES = 256 * 2**20
"""Arrays up to this size are held in memory; larger ones in a temporary file (in `TMPDIR`)."""

FREE_BYTES = 256 * 2**20
"""Bytes that a temporary file leaves free on its disk, so that a long recording cannot starve a database there."""

BLOCK_FRAMES = 65_536
"""Number of frames processed at a time."""

_WRITE_BYTES = 4 * 2**20
_HELD_BYTES = 64 * 2**20


def let_go(samples: NDArray[np.float32]) -> None:
    """Release the memory of samples that were read from a buffer on disk; other arrays are left alone.

    Needed by code that reads the array through its memory address and so bypasses the array's own release of memory.
    """
    owner: Any = samples
    # Only a buffer's own file: in other kinds of memmap, written data could be lost.
    while owner is not None and not isinstance(owner, _OnDisk):
        owner = getattr(owner, "base", None)
    mapping = getattr(owner, "_mmap", None)
    if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


class SampleBuffer:
    """Collects blocks of samples of unknown total length into one float32 array.

    Args:
        channels: number of channels of the blocks, `(frames, channels)`; None for blocks of shape `(frames,)`.
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
        """Number of bytes collected so far."""
        return self.frames * self._row_bytes

    def append(self, block: NDArray[np.float32]) -> None:
        """Append a copy of a block.

        Args:
            block: float32 samples, `(frames,)` or `(frames, channels)`, as the buffer was created.

        Raises:
            PodevalError: the disk that holds the temporary file is full.
        """
        self._blocks.append(np.array(block, dtype=np.float32, order="C"))
        self.frames += len(block)
        self._pending += len(block) * self._row_bytes
        if self.nbytes > self._memory_bytes and self._pending >= min(self._memory_bytes, _WRITE_BYTES):
            self._spill()

    def finish(self) -> NDArray[np.float32]:
        """Return the samples: an array in memory, or an `np.memmap` of an unnamed file that is deleted with the array.

        The buffer is empty afterwards. A memmap is pickled by value: pass a path to other processes instead.
        """
        shape = (self.frames, *self._row)
        if self._file is not None:
            self._spill()
            with self._file as file:
                self._file, self.frames = None, 0
                return _OnDisk(file, dtype=np.float32, mode="r+", shape=shape)
        samples = np.empty(shape, dtype=np.float32)
        at = 0
        # Blocks are released one by one: pages of the result are touched while theirs are freed.
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


class _OnDisk(np.memmap[Any, np.dtype[np.float32]]):
    """A memmap that releases the memory of what was read, so that a long recording does not count as memory in use.

    The released data stays in the file and usually in the system's cache, so the only cost is reading it again.
    """

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        self._handed_out = 0

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        self._handed_out += getattr(part, "nbytes", 0)
        if self._handed_out > _HELD_BYTES:
            self._handed_out = 0
            let_go(self)
        return part

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return results of arithmetic as plain arrays in memory."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain
