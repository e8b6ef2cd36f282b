"""Hybrid Transformer Demucs: separates speech from music and everything else, through the package demucs.

The network estimates drums, bass, other and vocals for 7.8 s at a time; the vocals are the speech, and the sum of the
others is the accompaniment. The two add up to the mix only approximately. As in `demucs.api`, the mix is first
normalised to mean 0 and standard deviation 1, and chunks overlap by a quarter and are cross-faded. There is no random
shift, so a score is the same each time. Source: Rouard, Massa and Défossez, "Hybrid Transformers for Music Source
Separation", ICASSP 2023.

The values are those of `demucs.apply.apply_model` on the whole recording; only a few chunks are in memory at a time.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from podeval import progress
from podeval.audio.samples import MEMORY_BYTES, SampleBuffer
from podeval.models.device import choose_device
from podeval.models.interfaces import Samples, Separator

_CHANNELS = 2
_BLOCK = 1 << 20
_SILENCE = 1e-8
_GPU_BATCH, _CPU_BATCH = 8, 1


class HTDemucs(Separator):
    """A separator based on Hybrid Transformer Demucs.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
        weights: name of the weight file in the folder.
        overlap: share of a chunk that the next one overlaps.
    """

    def __init__(self, files: dict[str, Path], *, weights: str, overlap: float) -> None:
        from demucs.hf import load_safetensors_model

        (folder,) = files.values()
        self._device = choose_device()
        self._model: Any = load_safetensors_model(folder / weights).to(self._device).eval()
        _make_dc_real(self._model)
        self._length = int(self._model.samplerate * self._model.segment)
        self._stride = int((1 - overlap) * self._length)
        self._batch = _CPU_BATCH if self._device == "cpu" else _GPU_BATCH

    def separate(self, samples: Samples) -> tuple[Samples, Samples]:
        """Separate speech and accompaniment.

        Args:
            samples: `(frames, 1)` or `(frames, 2)` at 44.1 kHz, float32, finite; may be a memmap. A single channel
                is duplicated for the network, and the two results are averaged.

        Returns:
            Two arrays of the same shape as `samples`; large ones are memmaps of temporary files.
        """
        frames, channels = samples.shape
        stems = [SampleBuffer(channels, memory_bytes=MEMORY_BYTES // 2) for _ in range(2)]
        level = _measure_level(samples)
        # The weighted sum of estimates from the current offset on, and the sum of weights.
        pending, weight = torch.zeros(2, channels, self._length), torch.zeros(self._length)
        fade = _make_fade(self._length)
        offsets = range(0, frames, self._stride)
        with torch.inference_mode():
            for first in range(0, len(offsets), self._batch):
                batch = offsets[first : first + self._batch]
                for offset, piece in zip(batch, self._estimate(samples, batch, level), strict=True):
                    length, ready = (min(most, frames - offset) for most in (self._length, self._stride))
                    pending[..., :length] += fade[:length] * piece[..., :length]
                    weight[:length] += fade[:length]
                    for stem, part in zip(stems, pending[..., :ready] / weight[:ready], strict=True):
                        stem.append(part.T.numpy())
                    pending, weight = (pad(sums[..., self._stride :], (0, self._stride)) for sums in (pending, weight))
                    rate = self._model.samplerate
                    progress.report("separating", (offset + ready) / rate, frames / rate)
        return stems[0].finish(), stems[1].finish()

    def _estimate(self, samples: Samples, offsets: range, level: tuple[float, float]) -> list[Tensor]:
        """Return the speech and accompaniment of the chunks at these offsets, each of shape (2, channels, length).

        A chunk that reaches beyond the recording is moved back by half of the excess, and its result is shorter.
        """
        # Move back chunks that reach beyond the recording.
        mean, deviation = level
        back = [max(0, offset + self._length - len(samples)) // 2 for offset in offsets]
        pieces = [
            _read_stretch(samples, offset - moved, self._length, level)
            for offset, moved in zip(offsets, back, strict=True)
        ]
        # Return the vocals and the sum of the other sources, at the level of the mix.
        sources = self._model(torch.stack(pieces).to(self._device))
        vocals = self._model.sources.index("vocals")
        rest = [number for number in range(len(self._model.sources)) if number != vocals]
        stems = torch.stack([sources[:, vocals], sources[:, rest].sum(dim=1)], dim=1).cpu() * deviation
        stems += mean * torch.tensor([1, len(rest)])[:, None, None]
        if samples.shape[1] == 1:
            stems = stems.mean(dim=2, keepdim=True)
        return [stem[..., moved:] for stem, moved in zip(stems, back, strict=True)]


def _make_dc_real(model: Any) -> None:
    """Make the network drop the imaginary part of its spectrograms' lowest bin before the inverse transform.

    A real signal has no imaginary part there, and the transform on a CPU ignores it; the transform on a GPU does not,
    which causes an error of 0.5 %.
    """
    inverse = model._ispec

    def invert(spectrograms: Tensor, *lengths: Any, **named: Any) -> Any:
        spectrograms.imag[..., 0, :] = 0
        return inverse(spectrograms, *lengths, **named)

    model._ispec = invert


def _measure_level(samples: Samples) -> tuple[float, float]:
    """Return the mean and standard deviation of the channels' average, computed block by block."""
    total = squares = 0.0
    for start in range(0, len(samples), _BLOCK):
        block = samples[start : start + _BLOCK].mean(axis=1, dtype=np.float64)
        total, squares = total + float(block.sum()), squares + float(block @ block)
    mean = total / len(samples)
    variance = max(0.0, squares - len(samples) * mean**2) / max(1, len(samples) - 1)
    return mean, variance**0.5 + _SILENCE


def _make_fade(length: int) -> Tensor:
    """Return a triangular window, highest in the middle."""
    rising, falling = torch.arange(1, length // 2 + 1), torch.arange(length - length // 2, 0, -1)
    triangle = torch.cat([rising, falling])
    return triangle / triangle.max()


def _read_stretch(samples: Samples, start: int, length: int, level: tuple[float, float]) -> Tensor:
    """Return a chunk of the normalised mix, `(2, length)`; zeros outside the recording."""
    mean, deviation = level
    inside = torch.from_numpy(np.array(samples[max(start, 0) : start + length].T, dtype=np.float32, order="C"))
    inside = ((inside - mean) / deviation).expand(_CHANNELS, -1)
    before = max(-start, 0)
    return torch.nn.functional.pad(inside, (before, length - before - inside.shape[1]))
