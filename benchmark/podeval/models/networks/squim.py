"""SQUIM's estimate of wide-band PESQ: torchaudio's objective model, with the weights that its authors publish.

The network has a convolution over the waveform, a dual-path recurrent network (DPRNN) and, for PESQ, one transformer
layer, pooling over time and two dense layers. It is written in torch from the published architecture (Kumar et al.,
ICASSP 2023, and torchaudio's `squim_objective_base`) rather than imported, because torchaudio cannot be loaded with a
build of torch that it was not made for; if it is installed anyway, transformers fails too. Its values match those of
torchaudio's own network to within 1e-5 (tests/models/test_squim.py).
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray
from torch import Tensor

from podeval.models.chunking import run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import Samples, WindowScorer
from podeval.models.pretrained import Weights, build_recurrent, select_part

_WEIGHTS = "squim_objective_dns2020.pth"
_BRANCH = "branches.1."
"""The branch that is used, one of the network's three independent branches (STOI, PESQ, SI-SDR)."""

_SEGMENT = 71
_HALF = _SEGMENT // 2
_HEADS = 4
_GPU_BATCH, _CPU_BATCH = 32, 8
_LEVEL = 20
_NORM_EPSILON = 1e-8

_LOWEST = 1.0
# The value to which P.862.2 maps the highest narrow-band score, 4.5.
_HIGHEST = 0.999 + (4.999 - 0.999) / (1 + math.exp(-1.3669 * 4.5 + 3.8224))

Step = Callable[["Tensor"], "Tensor"]


class Squim(WindowScorer):
    """A PESQ estimator based on SQUIM.

    Args:
        files: `squim_objective_dns2020.pth`.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        weights = torch.load(files[_WEIGHTS], map_location=choose_device(), weights_only=True)
        self._encoder: Tensor = weights["encoder.conv1d.weight"]
        self._dual_path = _build_dual_path(select_part(weights, "dprnn."))
        self._answer = _build_answer(select_part(weights, _BRANCH))
        self._batch = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the estimated PESQ of each window, 1 to 4.64, shape (windows,); windows of equal length share a batch.

        Args:
            windows: mono speech at 16 kHz; none may be digital silence, because the network divides by their level.
        """
        return run_in_batches(windows, self._batch, self._estimate, "estimating PESQ")

    def _estimate(self, samples: Tensor) -> Tensor:
        """Return PESQ, (windows,), for samples, (windows, frames)."""
        samples = samples.to(self._encoder.device)
        levelled = samples / (samples.square().mean(dim=1, keepdim=True).sqrt() * _LEVEL)
        stride = self._encoder.shape[-1] // 2
        features = nn.relu(nn.conv1d(levelled.unsqueeze(1), self._encoder, stride=stride))
        return self._answer(self._dual_path(features))


def _build_dual_path(weights: Weights) -> Step:
    """Return a function that maps features (windows, channels, frames) to (windows, frames, dimensions).

    The frames are cut into segments that overlap by half; recurrent networks run along each segment and across the
    segments in turn, and the overlapping halves are added up again.
    """
    blocks = sum(name.startswith("row_norm.") and name.endswith(".weight") for name in weights)
    along = [_build_recurrent(select_part(weights, f"row_rnn.{block}.")) for block in range(blocks)]
    across = [_build_recurrent(select_part(weights, f"col_rnn.{block}.")) for block in range(blocks)]

    def normalise(values: Tensor, layer: str) -> Tensor:
        return nn.group_norm(values, 1, weights[f"{layer}.weight"], weights[f"{layer}.bias"], _NORM_EPSILON)

    def run(features: Tensor) -> Tensor:
        windows, channels, frames = features.shape
        rest = _SEGMENT - (_HALF + frames % _SEGMENT) % _SEGMENT
        padded = nn.pad(features, (_HALF, rest + _HALF))
        halves = [half.reshape(windows, channels, -1, _SEGMENT) for half in (padded[..., :-_HALF], padded[..., _HALF:])]
        # (windows, segments, frames of a segment, channels), with the two middle axes swapped in alternate layers.
        values = torch.stack(halves, dim=3).flatten(2, 3).permute(0, 2, 3, 1)
        for block in range(blocks):
            output = along[block](values.flatten(0, 1)).view_as(values)
            values = values + normalise(output.permute(0, 3, 2, 1), f"row_norm.{block}").permute(0, 3, 2, 1)
            turned = values.transpose(1, 2)
            output = across[block](turned.flatten(0, 1)).view_as(turned).transpose(1, 2)
            values = values + normalise(output.permute(0, 3, 2, 1), f"col_norm.{block}").permute(0, 3, 2, 1)
        values = nn.prelu(
            nn.linear(values, weights["conv.0.weight"].flatten(1), weights["conv.0.bias"]), weights["conv.1.weight"]
        )
        first, second = values[:, 0::2].flatten(1, 2), values[:, 1::2].flatten(1, 2)
        return (first[:, _HALF:] + second[:, :-_HALF])[:, :frames]

    return run


def _build_recurrent(weights: Weights) -> Step:
    """Return a bidirectional LSTM followed by a linear layer that restores the size of its input."""
    network = build_recurrent(select_part(weights, "rnn."))
    return lambda values: nn.linear(network(values)[0], weights["proj.weight"], weights["proj.bias"])


def _build_answer(weights: Weights) -> Step:
    """Return a function that maps (windows, frames, dimensions) to an estimate in the range of PESQ, (windows,)."""
    # Build the transformer layer, with its sizes from the weights.
    of_layer = select_part(weights, "0.")
    wide, size = of_layer["linear1.weight"].shape
    layer: Any = torch.nn.TransformerEncoderLayer(size, _HEADS, wide, dropout=0.0, batch_first=True)
    layer.load_state_dict(of_layer)
    layer.eval().to(weights["1.alpha"].device)

    def run(values: Tensor) -> Tensor:
        values = layer(values)
        pooled = (values * torch.softmax(values * weights["1.alpha"], dim=1)).sum(dim=1)
        hidden = nn.prelu(nn.linear(pooled, weights["2.0.weight"], weights["2.0.bias"]), weights["2.1.weight"])
        score = torch.sigmoid(nn.linear(hidden, weights["2.2.weight"], weights["2.2.bias"])).squeeze(1)
        return score * (_HIGHEST - _LOWEST) + _LOWEST

    return run
