"""CASP: how well background audio fits the speech over it, as judged by two BEATs encoders trained on podcasts.

The patches of each encoder are pooled by attention and projected; harmony is the cosine similarity of the two vectors.
The model is that of Tian et al., ACM MM 2025 (DualDub), with the checkpoint that PodEval uses, which was trained on
clips of 10 s.

BEATs is a transformer over patches of a log mel spectrogram (Chen et al., ICML 2023, arXiv 2212.09058), here the
published iteration 3: Kaldi filter banks, patches of 16 frames by 16 bands, a convolution for their position, and
layers with DeepNet's residual weights and attention that is biased by gated relative positions. Sizes are read from the
weights. The code is written from the published architecture, and its values match those of an independent
implementation to within 1e-4 (tests/models/test_casp.py).
"""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray
from torch import Tensor

from podeval import progress
from podeval.models.device import choose_device
from podeval.models.interfaces import RATE, Harmony, Samples
from podeval.models.pretrained import Weights, read_tensors, select_part

"""Sample rate of the input, in Hz."""

BANDS = 128
FRAME, HOP = 400, 160
"""Length and hop of the filter banks' frames in samples: 25 ms every 10 ms."""

_FFT = 512
_LOWEST_HZ = 20.0
_PREEMPHASIS = 0.97
_WINDOW_POWER = 0.85
_FULL_SCALE = 2.0**15
_MEAN, _DEVIATION = 15.41663, 6.55582
_GATES = 2
"""Number of gates for relative positions; each is the sum of a few outputs of one linear layer."""


class Beats:
    """The BEATs encoder.

    Args:
        weights: weights under the names of the original code, on the device of the network.
        furthest: distance in patches from which all relative positions are treated the same.
        deep_norm: whether residuals are weighted by (2 x layers) to the power of 1/4, as in DeepNet, rather than by 1.
    """

    def __init__(self, weights: Weights, *, furthest: int, deep_norm: bool) -> None:
        self._weights = weights
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layers."))
        self._residual = (2 * self._layers) ** 0.25 if deep_norm else 1.0
        self._furthest = furthest
        self._position = _read_position_kernel(weights)
        table = weights["encoder.layers.0.self_attn.relative_attention_bias.weight"]
        self._buckets, self._heads = table.shape
        self._filters = torch.from_numpy(_make_mel_filters()).to(table.device)

    def encode(self, samples: Tensor) -> Tensor:
        """Return vectors of patches, (clips, patches, dimensions), for samples of full scale 1, (clips, frames)."""
        # Compute the patches of the normalised filter banks.
        spectra = (make_filter_banks(samples * _FULL_SCALE, self._filters) - _MEAN) / (2 * _DEVIATION)
        patch = self._weights["patch_embedding.weight"]
        values = nn.conv2d(spectra.unsqueeze(1), patch, self._weights.get("patch_embedding.bias"), patch.shape[-2:])
        values = self._normalise(values.flatten(2).transpose(1, 2), "layer_norm")
        if "post_extract_proj.weight" in self._weights:
            values = self._apply_linear(values, "post_extract_proj")
        # Run the transformer over the patches.
        values = self._normalise(values + self._encode_positions(values), "encoder.layer_norm")
        bias = self._bias_by_distance(values.shape[1])
        for number in range(self._layers):
            values = self._run_layer(values, f"encoder.layers.{number}", bias)
        return values

    def _encode_positions(self, values: Tensor) -> Tensor:
        """Encode each patch's surroundings with a wide grouped convolution over the sequence."""
        size = self._position.shape[-1]
        groups = values.shape[2] // self._position.shape[1]
        bias = self._weights["encoder.pos_conv.0.bias"]
        convolved = nn.conv1d(values.transpose(1, 2), self._position, bias, padding=size // 2, groups=groups)
        # An even kernel yields one position too many.
        return nn.gelu(convolved[..., : values.shape[1]]).transpose(1, 2)

    def _run_layer(self, values: Tensor, layer: str, bias: Tensor) -> Tensor:
        attended = self._attend(values, f"{layer}.self_attn", bias)
        values = self._normalise(values * self._residual + attended, f"{layer}.self_attn_layer_norm")
        inner = self._apply_linear(nn.gelu(self._apply_linear(values, f"{layer}.fc1")), f"{layer}.fc2")
        return self._normalise(values * self._residual + inner, f"{layer}.final_layer_norm")

    def _attend(self, values: Tensor, layer: str, bias: Tensor) -> Tensor:
        """Compute self-attention; each query weights the bias of relative positions by its own gates."""
        clips, patches, size = values.shape
        query, key, value = (
            self._apply_linear(values, f"{layer}.{role}_proj").view(clips, patches, self._heads, -1).transpose(1, 2)
            for role in ("q", "k", "v")
        )
        # Compute the gates that weight the bias of relative positions, from the query.
        gates = (
            self._apply_linear(query, f"{layer}.grep_linear").view(clips, self._heads, patches, _GATES, -1).sum(dim=-1)
        )
        update, reset = torch.sigmoid(gates).chunk(_GATES, dim=-1)
        weight = update * (reset * self._weights[f"{layer}.grep_a"] - 1.0) + 2.0
        # Compute attention with this bias.
        attended = nn.scaled_dot_product_attention(query, key, value, attn_mask=weight * bias)
        return self._apply_linear(attended.transpose(1, 2).reshape(clips, patches, size), f"{layer}.out_proj")

    def _bias_by_distance(self, patches: int) -> Tensor:
        """Return the bias of every pair of positions, (heads, patches, patches).

        Near positions are distinguished exactly, far ones logarithmically.
        """
        table = self._weights["encoder.layers.0.self_attn.relative_attention_bias.weight"]
        places = torch.arange(patches)
        offset = places[None, :] - places[:, None]
        half = self._buckets // 2
        exact = half // 2
        # Each direction has half of the buckets; half of these are exact and half logarithmic.
        distance = offset.abs()
        far = exact + (
            torch.log(distance.float() / exact) / math.log(self._furthest / exact) * (half - exact)
        ).long().clamp(max=half - 1 - exact)
        bucket = (offset > 0) * half + torch.where(distance < exact, distance, far)
        return table[bucket.to(table.device)].permute(2, 0, 1)

    def _apply_linear(self, values: Tensor, layer: str) -> Tensor:
        return nn.linear(values, self._weights[f"{layer}.weight"], self._weights.get(f"{layer}.bias"))

    def _normalise(self, values: Tensor, layer: str) -> Tensor:
        scale = self._weights[f"{layer}.weight"]
        return nn.layer_norm(values, scale.shape, scale, self._weights[f"{layer}.bias"])


def make_filter_banks(samples: Tensor, filters: Tensor) -> Tensor:
    """Compute Kaldi's log mel filter banks without dither, (clips, frames, bands), from frames within the samples.

    Args:
        samples: samples scaled to 16-bit full scale, (clips, frames) at 16 kHz.
        filters: mel filters, (bins, bands).
    """
    # Remove the mean of frames; apply pre-emphasis and window.
    frames = samples.unfold(-1, FRAME, HOP)
    frames = frames - frames.mean(dim=-1, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    window = torch.hann_window(FRAME, periodic=False, device=samples.device) ** _WINDOW_POWER
    frames = (frames - _PREEMPHASIS * before) * window
    # Compute log energies of the mel bands.
    power = torch.fft.rfft(nn.pad(frames, (0, _FFT - FRAME))).abs().square()
    banks: Tensor = (power @ filters).clamp(min=torch.finfo(torch.float32).eps).log()
    return banks


@functools.cache
def _make_mel_filters() -> NDArray[np.float32]:
    """Return Kaldi's triangular filters on its mel scale, (bins, bands)."""
    edges = np.linspace(_hertz_to_mel(_LOWEST_HZ), _hertz_to_mel(RATE / 2), BANDS + 2)
    bins = np.array([[_hertz_to_mel(number * RATE / _FFT)] for number in range(_FFT // 2 + 1)])
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)), dtype=np.float32)


def _hertz_to_mel(hertz: float) -> float:
    return 1127.0 * math.log1p(hertz / 700.0)


def _read_position_kernel(weights: Weights) -> Tensor:
    """Return the kernel of the position convolution, stored as direction and length (torch has two names for them)."""
    old, new = "encoder.pos_conv.0.weight_", "encoder.pos_conv.0.parametrizations.weight.original"
    length, direction = (
        (weights[f"{old}g"], weights[f"{old}v"]) if f"{old}g" in weights else (weights[f"{new}0"], weights[f"{new}1"])
    )
    kernel: Tensor = direction * (length / direction.norm(dim=(0, 1), keepdim=True))
    return kernel


_BATCH = 8
_WEIGHTS = ("wonderfuluuuuuuuuuuu/DualDub", "podcast-10s.ckpt")


class Casp(Harmony):
    """A harmony model that consists of two BEATs encoders.

    Args:
        files: the folder of `wonderfuluuuuuuuuuuu/DualDub`.
        furthest, deep_norm: settings of BEATs (iteration 3) that the weights in the checkpoint do not state.
    """

    def __init__(self, files: dict[str, Path], *, furthest: int, deep_norm: bool) -> None:
        repo, name = _WEIGHTS
        weights = read_tensors(files[repo] / name, "state_dict", "model.", choose_device())
        self._speech, self._music = (
            _build_tower(weights, side, furthest=furthest, deep_norm=deep_norm) for side in ("speech", "audio")
        )
        self._device = torch.device(choose_device())

    def harmony(self, speech: Sequence[Samples], music: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the cosine similarity of each speech clip with its music clip, shape (clips,).

        Args:
            speech: mono clips at 16 kHz, all of the same length.
            music: the accompaniment of each speech clip, of the same length.
        """
        cosines = []
        with torch.inference_mode():
            for first in range(0, len(speech), _BATCH):
                speech_vectors, music_vectors = (
                    tower(torch.from_numpy(np.stack(clips[first : first + _BATCH])).to(self._device))
                    for tower, clips in ((self._speech, speech), (self._music, music))
                )
                cosines.append(torch.cosine_similarity(speech_vectors, music_vectors).cpu().numpy())
                progress.report("comparing speech and music", min(first + _BATCH, len(speech)), len(speech))
        return np.concatenate(cosines)


def _build_tower(weights: Weights, side: str, *, furthest: int, deep_norm: bool) -> Callable[[Tensor], Tensor]:
    """Return a function that maps samples (clips, frames) to vectors (clips, dimensions)."""
    encoder = Beats(select_part(weights, f"{side}_encoder."), furthest=furthest, deep_norm=deep_norm)
    attend = _build_two_layers(select_part(weights, f"{side}_pooling.attention."))
    project = _build_two_layers(select_part(weights, f"{side}_proj."))

    def run(samples: Tensor) -> Tensor:
        patches = encoder.encode(samples)
        share = attend(patches).softmax(dim=1)
        return project((patches * share).sum(dim=1))

    return run


def _build_two_layers(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return a function that applies a linear layer, normalised and rectified, and a second linear layer."""
    first, scale, second = (weights[f"{layer}.weight"] for layer in (0, 1, 3))
    first_bias, shift, second_bias = (weights[f"{layer}.bias"] for layer in (0, 1, 3))

    def run(values: Tensor) -> Tensor:
        inner = nn.layer_norm(nn.linear(values, first, first_bias), scale.shape, scale, shift)
        return nn.linear(nn.gelu(inner), second, second_bias)

    return run
