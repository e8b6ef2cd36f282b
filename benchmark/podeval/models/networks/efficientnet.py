"""EfficientNetV2-S: convolutions over pictures, here of spectrograms, with weights under timm's names.

Tan and Le, "EfficientNetV2: Smaller Models and Faster Training", ICML 2021, in the variant that pads as TensorFlow
does (`tf_efficientnetv2_s`). Sizes and the number of blocks are read from the weights; strides are the published ones.
Written here in torch from the published architecture, because timm needs torchvision; equal within 1e-4 to timm's
network (tests/models/test_utmosv2.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podeval.models.checkpoint import select_part

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

_STRIDES = (1, 2, 2, 2, 1, 2)
"""Of the first block of each stage."""

_STEM_STRIDE = 2
_NORM_EPSILON = 1e-3


class EfficientNetV2:
    """The network without its classifier.

    Args:
        weights: by their names in timm, on the device where it is to run.

    Raises:
        KeyError: a weight is absent.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._blocks = []
        for stage, stride in enumerate(_STRIDES):
            count = len({name.split(".")[2] for name in weights if name.startswith(f"blocks.{stage}.")})
            if not count:
                raise KeyError(f"blocks.{stage}")
            for number in range(count):
                self._blocks.append((select_part(weights, f"blocks.{stage}.{number}."), stride if number == 0 else 1))

    def describe(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures, (pictures, 3, height, width): 32 times smaller each way."""
        values = _norm(_convolve(pictures, self._weights["conv_stem.weight"], _STEM_STRIDE), self._weights, "bn1")
        for weights, stride in self._blocks:
            changed = _run_block(values, weights, stride)
            values = changed + values if stride == 1 and changed.shape == values.shape else changed
        return _norm(_convolve(values, self._weights["conv_head.weight"], 1), self._weights, "bn2")


def _run_block(values: Tensor, weights: Weights, stride: int) -> Tensor:
    """Run a plain convolution, a fused or a separable bottleneck, told by the names of its weights."""
    import torch
    import torch.nn.functional as nn

    if "conv.weight" in weights:
        return _norm(_convolve(values, weights["conv.weight"], stride), weights, "bn1")
    if "conv_exp.weight" in weights:
        values = _norm(_convolve(values, weights["conv_exp.weight"], stride), weights, "bn1")
        return _norm(_convolve(values, weights["conv_pwl.weight"], 1), weights, "bn2", active=False)
    values = _norm(_convolve(values, weights["conv_pw.weight"], 1), weights, "bn1")
    values = _norm(_convolve(values, weights["conv_dw.weight"], stride, groups=values.shape[1]), weights, "bn2")
    squeezed = values.mean(dim=(2, 3), keepdim=True)
    squeezed = nn.silu(nn.conv2d(squeezed, weights["se.conv_reduce.weight"], weights["se.conv_reduce.bias"]))
    gates = torch.sigmoid(nn.conv2d(squeezed, weights["se.conv_expand.weight"], weights["se.conv_expand.bias"]))
    return _norm(_convolve(values * gates, weights["conv_pwl.weight"], 1), weights, "bn3", active=False)


def _convolve(values: Tensor, kernel: Tensor, stride: int, groups: int = 1) -> Tensor:
    """Convolve with as much padding as keeps the size, divided by the stride; the odd one at the end."""
    import torch.nn.functional as nn

    padding: list[int] = []
    for length, size in zip(reversed(values.shape[2:]), reversed(kernel.shape[2:]), strict=True):
        total = max((-(-length // stride) - 1) * stride + size - length, 0)
        padding += [total // 2, total - total // 2]
    return nn.conv2d(nn.pad(values, padding), kernel, stride=stride, groups=groups)


def _norm(values: Tensor, weights: Weights, name: str, active: bool = True) -> Tensor:
    import torch.nn.functional as nn

    mean, variance, scale, shift = (
        weights[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
    )
    values = nn.batch_norm(values, mean, variance, scale, shift, eps=_NORM_EPSILON)
    return nn.silu(values) if active else values
