"""Spleeter with 2 stems, which separates speech from music and everything else.

Two U-Nets take the magnitudes of the mix below 11 kHz and estimate those of the vocals and of the accompaniment. The
share of each in a bin is its squared estimate divided by the sum of both squares. The stems are the mix times these
shares, with the phase of the mix, so they add up to it. Source: Hennequin et al., "Spleeter: a fast and efficient music
source separation tool with pre-trained models", JOSS 2020; the U-Net is that of Jansson et al., ISMIR 2017. It was
trained on songs.

As in the original, spectra are computed at 44.1 kHz from 4096 samples every 1024 under a Hann window; the first covers
the 4096 zeros before the recording, and every 512 spectra (11.9 s) are one independent input. It differs from the
original in two choices:
- The networks receive nothing above 11 kHz. Above that, each spectrum is split by its mean share below 11 kHz
  (Spleeter's mask extension "average"); Spleeter's default silences both stems above 11 kHz, so their sum is not the
  mix.
- A single channel is passed as two equal channels, and its shares are the means of theirs.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn
from torch import Tensor

from podeval import progress
from podeval.audio.samples import MEMORY_BYTES, SampleBuffer, read_stretch
from podeval.models.device import limit_torch_to_one_thread
from podeval.models.interfaces import Samples, Separator
from podeval.models.pretrained import Weights

RATE = 44_100
"""Sample rate at which the networks were trained, in Hz."""

FRAME = 4096
HOP = 1024
BINS = FRAME // 2 + 1
SEGMENT = 512
"""Number of spectra in one input to the networks; `SEGMENT * HOP` samples are 11.9 s."""

SEEN_BINS = 1024
"""Number of bins in the networks' input: 0 to 11 kHz."""

_BLOCK = SEGMENT * HOP
_OVERLAP = FRAME - HOP
_LEVELS = 6
_LEAK = 0.2
_BATCH_NORM_EPSILON = 1e-3
# If both estimates are zero, each stem gets half.
_SHARE_EPSILON = 1e-10
# Squared Hann windows that are a quarter of their length apart add up to 3/2.
_WINDOW_GAIN = 2 / 3
# TensorFlow's "same" padding, before and after, for a kernel of 5 at stride 2 on an even length.
_BEFORE, _AFTER = 1, 2


class Spleeter(Separator):
    """A separator with Spleeter's two networks.

    Args:
        files: `vocals.ckpt` and `accompaniment.ckpt`, the weights of the two networks.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        self._vocals = _read(files["vocals.ckpt"])
        self._accompaniment = _read(files["accompaniment.ckpt"])

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        """Separate speech and accompaniment; their sum is the input, within float32 rounding.

        The recording is processed 11.9 s at a time, so memory does not grow with its length.

        Args:
            samples: `(frames, 1)` or `(frames, 2)` at 44.1 kHz, float32, finite; may be a memmap.

        Returns:
            Two arrays of the same shape as `samples`; large ones are memmaps of temporary files.
        """
        frames, channels = samples.shape
        # Both stems together may use as much memory as one array.
        stems = [SampleBuffer(channels, memory_bytes=MEMORY_BYTES // 2) for _ in range(2)]
        with torch.inference_mode(), limit_torch_to_one_thread():
            tail = torch.zeros(2, channels, _OVERLAP)
            for start in range(-FRAME, frames, _BLOCK):
                stretch = read_stretch(samples, start, start + _BLOCK + _OVERLAP)
                spectra = _analyse(torch.from_numpy(np.ascontiguousarray(stretch.T)))
                share = self.speech_share(spectra.abs())
                block, tail = _synthesise(torch.stack([share * spectra, (1 - share) * spectra]), tail)
                for stem, part in zip(stems, block[..., max(-start, 0) : frames - start], strict=True):
                    stem.append(part.T.numpy())
                progress.report("separating", min(start + _BLOCK, frames) / RATE, frames / RATE)
        return stems[0].finish(), stems[1].finish()

    def speech_share(self, magnitudes: Tensor) -> Tensor:
        """Return the share of the mix that is speech, 0..1, bin by bin.

        Args:
            magnitudes: magnitudes of the mix, `(1 or 2 channels, SEGMENT, BINS)`.

        Returns:
            Shares of the same shape. The accompaniment's shares are 1 minus these.
        """
        seen = magnitudes[..., :SEEN_BINS].expand(2, -1, -1)
        speech = _estimate(self._vocals, seen).square()
        rest = _estimate(self._accompaniment, seen).square()
        share = (speech + _SHARE_EPSILON / 2) / (speech + rest + _SHARE_EPSILON)
        if len(magnitudes) == 1:
            share = share.mean(dim=0, keepdim=True)
        above = share.mean(dim=-1, keepdim=True).expand(-1, -1, BINS - SEEN_BINS)
        return torch.cat([share, above], dim=-1)


def _read(path: Path) -> Weights:
    """Return the tensors of a checkpoint, which contains them as pickled NumPy arrays."""
    arrays: list[Any] = [
        (np._core.multiarray._reconstruct, "numpy.core.multiarray._reconstruct"),  # type: ignore[attr-defined]
        np.ndarray,
        np.dtype,
        np.dtypes.Float32DType,
    ]
    with torch.serialization.safe_globals(arrays):
        state = torch.load(path, map_location="cpu", weights_only=True)
    return {name: torch.from_numpy(array) for name, array in state.items()}


def _estimate(weights: Weights, magnitudes: Tensor) -> Tensor:
    """Estimate the magnitudes of a source from those of the mix with one network, both `(2, SEGMENT, SEEN_BINS)`.

    Each of six convolutions halves time and frequency. Each of six transposed convolutions doubles time and frequency
    again and, except for the first, also receives the output of the convolution of the same size. A final convolution
    outputs a mask.
    """

    def normalise(values: Tensor, layer: str) -> Tensor:
        mean, variance, scale, shift = (
            weights[f"{layer}.{name}"] for name in ("running_mean", "running_var", "weight", "bias")
        )
        return nn.batch_norm(values, mean, variance, scale, shift, eps=_BATCH_NORM_EPSILON)

    # Down: run six convolutions, and keep each output for the way up.
    values = magnitudes.unsqueeze(0)
    down: list[Tensor] = []
    for level in range(1, _LEVELS + 1):
        if down:
            values = nn.leaky_relu(normalise(down[-1], f"down{level - 1}_act.0"), _LEAK)
        layer = f"down{level}_conv.1"
        padded = nn.pad(values, (_BEFORE, _AFTER, _BEFORE, _AFTER))
        down.append(nn.conv2d(padded, weights[f"{layer}.weight"], weights[f"{layer}.bias"], stride=2))
    # Up: run six transposed convolutions, each together with the output of the same size.
    values = down.pop()
    for level in range(1, _LEVELS + 1):
        if level > 1:
            values = torch.cat([down.pop(), values], dim=1)
        layer = f"up{level}"
        values = nn.conv_transpose2d(values, weights[f"{layer}.0.weight"], weights[f"{layer}.0.bias"], stride=2)
        values = normalise(nn.relu(values[..., _BEFORE:-_AFTER, _BEFORE:-_AFTER]), f"{layer}.3")
    mask = nn.conv2d(values, weights["up7.0.weight"], weights["up7.0.bias"], padding=3, dilation=2)
    return torch.sigmoid(mask[0]) * magnitudes


def _analyse(stretch: Tensor) -> Tensor:
    """Compute spectra, `(channels, SEGMENT, BINS)`, of `(channels, SEGMENT * HOP + FRAME - HOP)` samples."""
    spectra: Tensor = torch.fft.rfft(stretch.unfold(-1, FRAME, HOP) * torch.hann_window(FRAME))
    return spectra


def _synthesise(spectra: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
    """Overlap-add spectra, `(..., SEGMENT, BINS)`, to the last segment's tail; return the samples and the new tail."""
    pieces = torch.fft.irfft(spectra, n=FRAME) * (torch.hann_window(FRAME) * _WINDOW_GAIN)
    joined = torch.nn.functional.pad(tail, (0, _BLOCK))
    for at in range(0, FRAME, HOP):
        joined[..., at : at + _BLOCK] += pieces[..., at : at + HOP].flatten(-2)
    return joined[..., :_BLOCK], joined[..., _BLOCK:]
