"""The two networks of DNSMOS, read from their ONNX files, with computations shared between overlapping windows.

The P.835 network is a stack of 3x3 convolutions and 2x2 maximum pools over an image of (frames, bins), a global
maximum, and dense layers. Windows of 9 s with a hop of 1 s overlap by 89 %, and a convolution has the same value in
each of them, except near a window's two ends: there the network sees zeros instead of the neighbouring frames.
So the stack runs once over the whole signal, and again only on the few frames at the ends of windows (`Seamed`).
This is no approximation: every output is the sum of the same products as in the window on its own.

The P.808 network sees each window relative to the window's own maximum, so windows share only their mel power.

The graphs are as read from the files of the DNS Challenge. Everything runs in ONNX Runtime: what windows share and what
each has for itself are built here in torch and exported once (`models.exported`); after that torch, which takes
longer to import than a short recording to score, is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from podeval.models.exported import ExportedNetwork, Network, open_session

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float32]

_FRAMES = 900
"""Frames of a window that both networks use."""


@dataclass(frozen=True)
class Convolution:
    """A 3x3 convolution with zero padding 1, followed by a rectifier.

    Attributes:
        weight: (channels out, channels in, 3, 3), channels last in memory: the fastest layout on CPUs.
        bias: (channels out,).
    """

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class MaxPool:
    """A 2x2 maximum pool with stride 2; an odd last row or column is dropped."""


Layer = Convolution | MaxPool


@dataclass(frozen=True)
class P835Network:
    """The network that estimates SIG, BAK and OVRL.

    Attributes:
        transform: real, then imaginary part of a Fourier transform of frames, (bins * 2, frame length).
        stack: convolutions and pools in order.
        dense: weight (in, out) and bias (out,) of the dense layers; all but the last are rectified.
    """

    transform: Tensor
    stack: tuple[Layer, ...]
    dense: tuple[tuple[Tensor, Tensor], ...]


def read_p835(path: Path) -> P835Network:
    """Read the P.835 network.

    Args:
        path: path of `sig_bak_ovr.onnx`.

    Returns:
        The network's weights as float32 tensors.
    """
    import onnx
    import torch

    graph = onnx.load(str(path)).graph
    tensors = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer}
    transforms: list[Tensor] = []
    stack: list[Layer] = []
    dense: list[Tensor] = []
    for node in graph.node:
        weights = [tensors[name] for name in node.input if name in tensors]
        if node.op_type == "MaxPool":
            stack.append(MaxPool())
        elif node.op_type == "Conv" and weights[0].ndim == 3:
            transforms.append(weights[0][:, :, 0])
        elif node.op_type == "Conv":
            stack.append(Convolution(weights[0].contiguous(memory_format=torch.channels_last), weights[1]))
        elif node.op_type in ("MatMul", "Add") and weights:
            dense.append(weights[0])
    return P835Network(torch.cat(transforms), tuple(stack), tuple(zip(dense[::2], dense[1::2], strict=True)))


class P835Parts:
    """The P.835 network in two exported parts: the layers that windows share, and those that each has for itself.

    Args:
        path: path of `sig_bak_ovr.onnx`.
        samples: length of a block with the margin around it.
        bounds: frames of a block at which one second ends and the next begins, multiples of 4.
        hop: number of samples from frame to frame.
    """

    def __init__(self, path: Path, *, samples: int, bounds: list[int], hop: int) -> None:
        self._shared = ExportedNetwork(
            "dnsmos-shared",
            path,
            lambda: _build_shared(read_p835(path), samples, bounds, hop),
            changes=f"1 {samples} {bounds} {hop}",
            fixed=True,
        )
        self._per_window = ExportedNetwork(
            "dnsmos-window", path, lambda: _build_per_window(read_p835(path)), changes="1"
        )

    def run_shared(self, block: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a block's shared features: (seconds, channels, frames, bins), and heads and tails of windows."""
        seconds, heads, tails = self._shared.run_for_all(block)
        return seconds, heads, tails

    def rate(self, windows: Floats) -> Floats:
        """Return raw SIG, BAK and OVRL, (windows, 3), of complete windows of shared features."""
        return self._per_window.run(windows)


def _split_stack(network: P835Network) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return the layers that windows share and those after: one second is divisible by two pools of 2, not by three."""
    pools = [index for index, layer in enumerate(network.stack) if isinstance(layer, MaxPool)]
    return network.stack[: pools[1] + 1], network.stack[pools[1] + 1 :]


def _build_shared(network: P835Network, samples: int, bounds: list[int], hop: int) -> Network:
    """Return a function that runs the shared layers over a block, and a silent block."""
    import torch

    def run(block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        frames = torch.tensor(bounds)
        features = compute_log_power(network.transform, block, hop)
        shared = run_seamed(_split_stack(network)[0], wrap_seamless(features, frames[:-1], frames[1:]))
        kept = shared.whole[0, :, int(shared.starts[0]) : int(shared.ends[-1])]
        return torch.stack(kept.tensor_split(len(bounds) - 1, dim=1)), shared.heads, shared.tails

    return run, torch.zeros(samples)


def _build_per_window(network: P835Network) -> Network:
    """Return a function that runs the layers after the shared ones, and features of two windows."""
    import torch

    shared, remaining = _split_stack(network)
    last = [layer for layer in shared if isinstance(layer, Convolution)][-1]
    bins = network.transform.shape[0] // 2 // 4
    example = torch.zeros(2, len(last.bias), _FRAMES // 4, bins)
    return lambda windows: run_dense(network, run_stack(remaining, windows)), example


class P808Network:
    """The network that estimates one overall quality from a mel spectrogram.

    Args:
        path: path of `model_v8.onnx`.
    """

    def __init__(self, path: Path) -> None:
        self._session = open_session(str(path))

    def run(self, pictures: Floats) -> Floats:
        """Map mel spectrograms, (windows, 900 frames, 120 bands), to qualities, (windows,)."""
        quality: Floats = self._session.run(None, {"input_1": pictures})[0][:, 0]
        return quality


@dataclass(frozen=True)
class Seamed:
    """A continuous signal inside a stack of layers, with what differs from it at the ends of windows.

    Attributes:
        whole: (1, channels, frames, bins) as if the signal had no ends.
        heads: (windows, channels, n, bins), what a window has in place of its first n frames.
        tails: (windows, channels, n, bins), what a window has in place of its last n frames.
        starts: frames of `whole` at which the windows of `heads` start.
        ends: frames of `whole` before which the windows of `tails` end.
    """

    whole: Tensor
    heads: Tensor
    tails: Tensor
    starts: Tensor
    ends: Tensor


def wrap_seamless(whole: Tensor, starts: Tensor, ends: Tensor) -> Seamed:
    """Wrap features, (1, channels, frames, bins), that the end of no window has affected yet."""
    import torch

    _, channels, _, bins = whole.shape
    return Seamed(
        # With one channel both layouts are the same: without a hint, torch chooses the slow one and keeps it.
        whole.to(memory_format=torch.channels_last),
        whole.new_empty((len(starts), channels, 0, bins)),
        whole.new_empty((len(ends), channels, 0, bins)),
        starts,
        ends,
    )


def run_seamed(stack: tuple[Layer, ...], signal: Seamed) -> Seamed:
    """Run layers over a continuous signal, keeping the ends of its windows exact.

    Args:
        stack: convolutions and pools.
        signal: every start and end must be a multiple of the stack's total pooling factor, with enough frames
            of `whole` on the inner side.

    Returns:
        The signal after the stack; frames of `whole` at its own two ends are not meaningful.
    """
    for layer in stack:
        signal = _convolve(signal, layer) if isinstance(layer, Convolution) else _pool(signal)
    return signal


def _convolve(signal: Seamed, layer: Convolution) -> Seamed:
    import torch

    changed = signal.heads.shape[2]
    ends = torch.cat([_extend_inwards(signal, 2, head=True), _extend_inwards(signal, 2, head=False)])
    ends = run_stack((layer,), ends)
    heads, tails = ends.tensor_split([len(signal.starts)])
    # A strip's inner edge was padded with zeros that the signal does not have: its last row is cut off again.
    return Seamed(
        run_stack((layer,), signal.whole),
        heads[:, :, : changed + 1],
        tails[:, :, 1:],
        signal.starts,
        signal.ends,
    )


def _pool(signal: Seamed) -> Seamed:
    fill = signal.heads.shape[2] % 2
    layer = (MaxPool(),)
    return Seamed(
        run_stack(layer, signal.whole),
        run_stack(layer, _extend_inwards(signal, fill, head=True)),
        run_stack(layer, _extend_inwards(signal, fill, head=False)),
        signal.starts // 2,
        signal.ends // 2,
    )


def _extend_inwards(signal: Seamed, count: int, *, head: bool) -> Tensor:
    """Return the heads (or tails) lengthened by `count` frames towards the inside of their windows."""
    import torch

    changed = signal.heads.shape[2]
    first = signal.starts + changed if head else signal.ends - changed - count
    inner = signal.whole[0][:, first[:, None] + torch.arange(count)].transpose(0, 1)
    return torch.cat([signal.heads, inner] if head else [inner, signal.tails], dim=2)


def run_stack(stack: tuple[Layer, ...], features: Tensor) -> Tensor:
    """Run layers over complete windows.

    Args:
        stack: convolutions and pools.
        features: (windows, channels, frames, bins).

    Returns:
        (windows, channels, frames, bins) after the last layer.
    """
    from torch.nn.functional import conv2d, max_pool2d

    for layer in stack:
        if isinstance(layer, Convolution):
            features = conv2d(features, layer.weight, layer.bias, padding=1).relu_()
        else:
            features = max_pool2d(features, 2)
    return features


def run_dense(network: P835Network, features: Tensor) -> Tensor:
    """Take the maximum over time and frequency and run the dense layers.

    Args:
        network: the network whose dense layers to run.
        features: (windows, channels, frames, bins), the output of the stack.

    Returns:
        (windows, outputs).
    """
    values = features.amax(dim=(2, 3))
    for weight, bias in network.dense[:-1]:
        values = (values @ weight + bias).relu_()
    weight, bias = network.dense[-1]
    return values @ weight + bias


def compute_log_power(transform: Tensor, samples: Tensor, hop: int) -> Tensor:
    """Compute the input of the P.835 stack: log10 of the power of each frame's spectrum, not below 1e-12.

    Args:
        transform: (bins * 2, frame length), real part first.
        samples: (samples,) without padding: frames that do not fit are left out.
        hop: number of samples from frame to frame.

    Returns:
        (1, 1, frames, bins).
    """
    from torch.nn.functional import conv1d

    spectrum = conv1d(samples[None, None], transform[:, None], stride=hop)[0].T
    real, imaginary = spectrum.chunk(2, dim=1)
    return (real.square() + imaginary.square()).clamp_min(1e-12).log10()[None, None]


def make_mel_basis(rate: int, frame: int, bands: int) -> npt.NDArray[np.float32]:
    """Return triangular mel filters on Slaney's scale, each of unit area per hertz.

    Args:
        rate: sample rate in Hz.
        frame: length of the Fourier transform in samples.
        bands: number of filters from 0 Hz to half the rate.

    Returns:
        (bands, frame // 2 + 1). Equal to `librosa.filters.mel` with its defaults, as the reference uses it.
    """
    bins = np.fft.rfftfreq(frame, 1 / rate)
    edges = _mel_to_hertz(np.linspace(0, _hertz_to_mel(rate / 2), bands + 2))
    widths = np.diff(edges)
    rising = (bins - edges[:-2, None]) / widths[:-1, None]
    falling = (edges[2:, None] - bins) / widths[1:, None]
    basis = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return basis.astype(np.float32)


# Slaney's Auditory Toolbox: linear up to 1 kHz (15 mel), then 27 mel for a factor of 6.4.
_MEL_WIDTH = 200 / 3
_LOG_STEP = np.log(6.4) / 27


def _hertz_to_mel(hertz: float) -> float:
    return hertz / _MEL_WIDTH if hertz < 1000 else 15 + float(np.log(hertz / 1000)) / _LOG_STEP


def _mel_to_hertz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(mel < 15, mel * _MEL_WIDTH, 1000 * np.exp((mel - 15) * _LOG_STEP))
