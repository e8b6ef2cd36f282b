"""DistillMOS: an estimate, by one small network, of listeners' opinions of speech quality on a scale of 1 to 5.

Compressed complex spectra (20 ms every 10 ms, magnitudes to the power of 0.3) pass through six convolutions, which
halve the frequency axis five times and the time axis once, then through a transformer of seven layers, and are pooled
by attention. Source: Stahl and Gamper, "Distillation and pruning for scalable self-supervised representation-based
speech quality assessment", ICASSP 2025; package `distillmos` 0.9.1, whose weights (variant 7) are used. This is a
separate implementation of the package's network; values agree to within float32 rounding. On a CPU, the part after the
spectra runs in ONNX Runtime (`models.exported`).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import Module

from podeval import progress
from podeval.models.device import choose_device
from podeval.models.exported import ExportedNetwork, Network
from podeval.models.interfaces import Samples, WindowScorer
from podeval.models.pretrained import rename_weights

WINDOW = 122_880
"""Number of samples in the network's input: 7.68 s."""

_FRAME, _HOP = 320, 160
_CHANNELS = (2, 64, 64, 128, 256, 256, 256)
_FEATURES = 1024
_STEPS = 384
_WIDTH, _HEADS, _LAYERS = 200, 8, 7
_COMPRESSION = 0.3
_SMALLEST = 1e-12
_GPU_BATCH = 8

# The name under which the package stores the weights of each part of the network.
_NAMES = (
    (r"^cnn\.cnn\.", "convolutions."),
    (r"^transformer_pool_attn\.norm_input\.", "norm_features."),
    (r"^transformer_pool_attn\.transformer\.norm\.", "norm_again."),
    (r"^transformer_pool_attn\.transformer\.linear_proj\.", "project."),
    (r"^transformer_pool_attn\.transformer\.position_encoding\.", "positions."),
    (r"^transformer_pool_attn\.transformer\.transformer_encoder\.", "encoder."),
    (r"^transformer_pool_attn\.norm_trans\.", "norm_encoded."),
    (r"^transformer_pool_attn\.pool\.linear1\.", "attend.0."),
    (r"^transformer_pool_attn\.pool\.linear2\.", "attend.2."),
    (r"^transformer_pool_attn\.pool\.linear3\.", "judge."),
)


class DistillMos(WindowScorer):
    """A window scorer based on DistillMOS.

    Args:
        files: `distill_mos_v7.pt`, the weights.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        weights = files["distill_mos_v7.pt"]
        self._device = choose_device()
        if self._device == "cpu":
            self._exported = ExportedNetwork("distillmos", weights, partial(_build_example, weights), changes="1")
        else:
            self._network = _load_network(weights).to(self._device)

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one value per window, 1..5, shape (windows,).

        Args:
            windows: mono, 16 kHz; a window shorter than 7.68 s is zero-padded at its end, and a longer one is
                truncated.
        """
        values: list[float] = []
        for scores in self._run_on_cpu(windows) if self._device == "cpu" else self._run_on_gpu(windows):
            values.extend(scores)
            progress.report("naturalness, windows", len(values), len(windows))
        return np.array(values, dtype=np.float32)

    def _run_on_cpu(self, windows: Sequence[Samples]) -> Iterator[NDArray[np.float32]]:
        """Yield the value of one window at a time."""
        return self._exported.run_each(_compute_spectra([window], self._device).numpy() for window in windows)

    def _run_on_gpu(self, windows: Sequence[Samples]) -> Iterator[NDArray[np.float32]]:
        """Yield the values of `_GPU_BATCH` windows at a time."""
        for first in range(0, len(windows), _GPU_BATCH):
            batch = windows[first : first + _GPU_BATCH]
            with torch.inference_mode():
                yield self._network(_compute_spectra(batch, self._device)).cpu().numpy()


def _load_network(weights: Path) -> Any:
    stored = torch.load(weights, map_location="cpu", weights_only=True)["model"]
    network: Any = _build_network()
    network.load_state_dict(rename_weights(stored, _NAMES))
    return network.eval()


def _build_example(weights: Path) -> Network:
    """Return the network, and spectra in the shape of its input."""
    return _load_network(weights), _compute_spectra([np.zeros(WINDOW, np.float32)] * 2, "cpu").contiguous()


def _build_network() -> Module:
    """Build the network's modules with untrained weights."""
    # All convolutions but the first halve the frequency axis; the last one also halves the time axis.
    convolutions: list[Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(_CHANNELS)):
        stride = (1 if number == 0 else 2, 2 if number == len(_CHANNELS) - 2 else 1)
        convolutions += [nn.Conv2d(inputs, outputs, 3, stride, padding=(0, 1)), nn.LeakyReLU(0.1)]
    # The transformer and the pooling after it.
    layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, batch_first=True)
    positions = nn.Module()
    positions.register_buffer("pe", torch.empty(1, _STEPS, _WIDTH))

    class Judging(nn.ModuleDict):
        def forward(self, spectra: Tensor) -> Tensor:
            """Return the values, 1..5, of `(windows, 2, bins, frames)` spectra."""
            maps = self["convolutions"](spectra)
            # Make one vector per time step: the frequencies of the first channel, then of the next.
            features = self["norm_again"](self["norm_features"](maps.flatten(1, 2))).transpose(1, 2)
            encoded = self["encoder"](self["project"](features) + self["positions"].pe)
            encoded = self["norm_encoded"](encoded.transpose(1, 2)).transpose(1, 2)
            weights = torch.softmax(self["attend"](encoded), dim=1)
            pooled = (weights * encoded).sum(dim=1)
            return 1 + 4 * torch.sigmoid(self["judge"](pooled))[:, 0]

    return Judging(
        {
            "convolutions": nn.Sequential(*convolutions),
            "norm_features": nn.BatchNorm1d(_FEATURES),
            "norm_again": nn.BatchNorm1d(_FEATURES),
            "project": nn.Linear(_FEATURES, _WIDTH),
            "positions": positions,
            "encoder": nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
            "norm_encoded": nn.BatchNorm1d(_WIDTH),
            "attend": nn.Sequential(nn.Linear(_WIDTH, 2 * _WIDTH), nn.ReLU(), nn.Linear(2 * _WIDTH, 1)),
            "judge": nn.Linear(_WIDTH, 1),
        }
    )


def _fit_to_window(window: Samples) -> Samples:
    fitted = np.zeros(WINDOW, dtype=np.float32)
    beginning = window[:WINDOW]
    fitted[: len(beginning)] = beginning
    return fitted


def _compute_spectra(windows: Sequence[Samples], device: str) -> Tensor:
    """Return the real and imaginary parts of spectra with compressed magnitudes: `(windows, 2, bins, frames)`."""
    # Scale each window to a peak of 1.
    samples = torch.from_numpy(np.stack([_fit_to_window(window) for window in windows])).to(device)
    samples = samples / (samples.abs().amax(dim=1, keepdim=True) + 1e-8)
    # Compress its spectra.
    edge = (_FRAME - _HOP) // 2
    padded = torch.nn.functional.pad(samples, (edge, edge), mode="reflect")
    hann = torch.hann_window(_FRAME, device=device)
    spectra = torch.stft(padded, _FRAME, _HOP, window=hann, center=False, return_complex=True)
    magnitudes = spectra.abs().clamp(min=_SMALLEST)
    return torch.view_as_real(spectra * magnitudes ** (_COMPRESSION - 1)).permute(0, 3, 1, 2)
