"""The P.835 network of DNSMOS, from its ONNX file: a part that overlapping windows share, and a part for each window.

The P.835 network is a stack of 3x3 convolutions and 2x2 maximum pools over an image of (frames, bins), a global
maximum, and dense layers. Windows of 9 s with a hop of 1 s overlap by 89 %, and a convolution has the same value in
each of them, except near a window's two ends: there, the network receives zeros instead of the neighbouring frames.
So the stack runs once over the whole signal, and again only on the few frames at the ends of windows (`Seamed`). This
is not an approximation: every output is the sum of the same products as for a separate window.

The graph is read from the file of the DNS Challenge. Both parts are built here in torch and exported once
(`models.exported`). After that, neither this module nor torch is imported; importing torch takes longer than scoring a
short recording.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv2d, max_pool2d

from podeval.models.exported import Network

_FRAMES = 900
"""Number of frames in a window that both networks use."""


@dataclass(frozen=True)
class Convolution:
    """A 3x3 convolution with zero padding 1, followed by a rectifier.

    Attributes:
        weight: (channels out, channels in, 3, 3), channels last in memory, which is the fastest layout on CPUs.
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
        transform: the real part, then the imaginary part of a Fourier transform of frames, (bins * 2, frame length).
        stack: convolutions and pools in order.
        dense: weight (in, out) and bias (out,) of the dense layers; all outputs but the last are rectified.
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


def _split_stack(network: P835Network) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
    """Return the layers up to the second pool, which windows share, and the other layers: the frames of a second can be
    halved only twice.
    """
    pools = [index for index, layer in enumerate(network.stack) if isinstance(layer, MaxPool)]
    return network.stack[: pools[1] + 1], network.stack[pools[1] + 1 :]


def build_shared(network: P835Network, samples: int, bounds: list[int], hop: int) -> Network:
    """Return a function that runs the shared layers over a block, and a silent block as an example of its input."""

    def run(block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        frames = torch.tensor(bounds)
        features = compute_log_power(network.transform, block, hop)
        shared = run_seamed(_split_stack(network)[0], wrap_seamless(features, frames[:-1], frames[1:]))
        kept = shared.whole[0, :, int(shared.starts[0]) : int(shared.ends[-1])]
        return torch.stack(kept.tensor_split(len(bounds) - 1, dim=1)), shared.heads, shared.tails

    return run, torch.zeros(samples)


def build_per_window(network: P835Network) -> Network:
    """Return a function that runs the layers after the shared ones, and features of two windows as an example input."""
    shared, remaining = _split_stack(network)
    last = [layer for layer in shared if isinstance(layer, Convolution)][-1]
    bins = network.transform.shape[0] // 2 // 4
    example = torch.zeros(2, len(last.bias), _FRAMES // 4, bins)
    return lambda windows: run_dense(network, run_stack(remaining, windows)), example


@dataclass(frozen=True)
class Seamed:
    """A continuous signal inside a stack of layers, with the frames that differ from it at the ends of windows.

    Attributes:
        whole: (1, channels, frames, bins), as if the signal had no ends.
        heads: (windows, channels, n, bins), a window's own first n frames.
        tails: (windows, channels, n, bins), a window's own last n frames.
        starts: frames of `whole` at which the windows of `heads` start.
        ends: frames of `whole` before which the windows of `tails` end.
    """

    whole: Tensor
    heads: Tensor
    tails: Tensor
    starts: Tensor
    ends: Tensor


def wrap_seamless(whole: Tensor, starts: Tensor, ends: Tensor) -> Seamed:
    """Wrap features, (1, channels, frames, bins), that the ends of windows have not affected yet."""
    _, channels, _, bins = whole.shape
    return Seamed(
        # With one channel, both layouts are the same; without a hint, torch chooses the slow one and keeps it.
        whole.to(memory_format=torch.channels_last),
        whole.new_empty((len(starts), channels, 0, bins)),
        whole.new_empty((len(ends), channels, 0, bins)),
        starts,
        ends,
    )


def run_seamed(stack: tuple[Layer, ...], signal: Seamed) -> Seamed:
    """Run layers over a continuous signal and keep the ends of its windows exact.

    Args:
        stack: convolutions and pools.
        signal: the signal, in which every start and end must be a multiple of the stack's total pooling factor, with
            enough frames of `whole` on the inner side.

    Returns:
        The signal after the stack; the frames at the two ends of `whole` are not meaningful.
    """
    for layer in stack:
        signal = _convolve(signal, layer) if isinstance(layer, Convolution) else _pool(signal)
    return signal


def _convolve(signal: Seamed, layer: Convolution) -> Seamed:
    changed = signal.heads.shape[2]
    ends = torch.cat([_extend_inwards(signal, 2, head=True), _extend_inwards(signal, 2, head=False)])
    ends = run_stack((layer,), ends)
    heads, tails = ends.tensor_split([len(signal.starts)])
    # The inner edge of a strip was padded with zeros that the signal does not have, so cut off its last row again.
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
    """Return the heads (or tails), extended by `count` frames towards the inside of their windows."""
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
    for layer in stack:
        if isinstance(layer, Convolution):
            features = conv2d(features, layer.weight, layer.bias, padding=1).relu_()
        else:
            features = max_pool2d(features, 2)
    return features


def run_dense(network: P835Network, features: Tensor) -> Tensor:
    """Take the maximum over time and frequency and run the dense layers.

    Args:
        network: the network whose dense layers are run.
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
    """Compute the input of the P.835 stack: log10 of the power of each frame's spectrum, but at least 1e-12.

    Args:
        transform: (bins * 2, frame length), with the real part first.
        samples: (samples,), without padding; frames that do not fit are left out.
        hop: number of samples between the beginnings of consecutive frames.

    Returns:
        (1, 1, frames, bins).
    """
    spectrum = conv1d(samples[None, None], transform[:, None], stride=hop)[0].T
    real, imaginary = spectrum.chunk(2, dim=1)
    return (real.square() + imaginary.square()).clamp_min(1e-12).log10()[None, None]
