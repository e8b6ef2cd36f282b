"""Whisper's encoder from the weights of CTranslate2 in ONNX Runtime, which takes three quarters of CTranslate2's time.

The encoder is built in torch and exported once (`models.exported`); its output is within float32 rounding of what
CTranslate2 computes from the same weights. Decoding stays with CTranslate2.
Source: Radford et al., "Robust speech recognition via large-scale weak supervision", 2022.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from podeval.errors import ModelMissing
from podeval.models.exported import ExportedNetwork, Network

if TYPE_CHECKING:
    from torch import Tensor

_FORM, _SPEC = 6, "WhisperSpec"
_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
_FRAMES = 3000
"""Of features in a window of 30 s."""


def open_encoder(path: Path) -> ExportedNetwork:
    """Return the encoder, which maps features, (windows, bands, 3000), to (windows, 1500, width).

    Args:
        path: `model.bin` of CTranslate2.

    Raises:
        ModelMissing: the file is absent, damaged or of another network.
    """
    if not path.is_file():
        raise ModelMissing(f"Whisper's weights are missing at {path}. Run: podeval models install --profile embedded")
    return ExportedNetwork("whisper-encoder", path, lambda: _build(read_weights(path)), changes="1")


def read_weights(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a file of CTranslate2 by name.

    Raises:
        ModelMissing: the file is damaged or of another network.
    """
    try:
        with path.open("rb") as file:
            if (_read_number(file, "I"), _read_text(file)) != (_FORM, _SPEC):
                raise ValueError("another form")
            _read_number(file, "I")
            return dict(_read_array(file) for _ in range(_read_number(file, "I")))
    except (ValueError, IndexError, struct.error) as error:
        raise ModelMissing(
            f"{path} is not a Whisper of CTranslate2 in form {_FORM}. Run: podeval models install --profile embedded"
        ) from error


def _read_number(file: BinaryIO, kind: str) -> int:
    return int(struct.unpack("<" + kind, file.read(struct.calcsize(kind)))[0])


def _read_text(file: BinaryIO) -> str:
    return file.read(_read_number(file, "H")).rstrip(b"\0").decode()


def _read_array(file: BinaryIO) -> tuple[str, NDArray[np.generic]]:
    name = _read_text(file)
    shape = [_read_number(file, "I") for _ in range(_read_number(file, "B"))]
    kind, size = _TYPES[_read_number(file, "B")], _read_number(file, "I")
    return name, np.frombuffer(file.read(size), dtype=kind).reshape(shape)


def _build(weights: dict[str, NDArray[np.generic]]) -> Network:
    """Return the encoder as a module of torch, and silent features."""
    import torch
    from torch.nn import functional

    tensors = {
        name.removeprefix("encoder/"): torch.from_numpy(value.astype(np.float32))
        for name, value in weights.items()
        if name.startswith("encoder/")
    }
    layers = sum(name.endswith("/ffn/linear_0/weight") for name in tensors)
    heads = int(tensors["num_heads"])

    class Attention(torch.autograd.Function):
        """One operation of ONNX Runtime, which holds no frame's attention to all others in memory."""

        @staticmethod
        def forward(_: Any, *parts: Tensor) -> Tensor:
            queries, keys, values = (part.reshape(*part.shape[:2], heads, -1).transpose(1, 2) for part in parts)
            return functional.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(2)

        @staticmethod
        def symbolic(graph: Any, *parts: Any) -> Any:
            attended = graph.op("com.microsoft::MultiHeadAttention", *parts, num_heads_i=heads)
            return attended.setType(parts[0].type())

    attend: Any = Attention.apply

    def linear(name: str, features: Tensor) -> Tensor:
        return functional.linear(features, tensors[f"{name}/weight"], tensors[f"{name}/bias"])

    def normalise(name: str, features: Tensor) -> Tensor:
        scale, shift = tensors[f"{name}/gamma"], tensors[f"{name}/beta"]
        return functional.layer_norm(features, scale.shape, scale, shift)

    def convolve(name: str, features: Tensor, stride: int) -> Tensor:
        weight, bias = tensors[f"{name}/weight"], tensors[f"{name}/bias"]
        return functional.gelu(functional.conv1d(features, weight, bias, stride=stride, padding=1))

    class Encoder(torch.nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            features = convolve("conv2", convolve("conv1", features, 1), 2).transpose(1, 2)
            features = features + tensors["position_encodings/encodings"]
            for layer in range(layers):
                attention, ffn = f"layer_{layer}/self_attention", f"layer_{layer}/ffn"
                parts = linear(f"{attention}/linear_0", normalise(f"{attention}/layer_norm", features)).chunk(3, dim=2)
                features = features + linear(f"{attention}/linear_1", attend(*parts))
                hidden = functional.gelu(linear(f"{ffn}/linear_0", normalise(f"{ffn}/layer_norm", features)))
                features = features + linear(f"{ffn}/linear_1", hidden)
            return normalise("layer_norm", features)

    return Encoder(), torch.zeros(1, tensors["conv1/weight"].shape[1], _FRAMES)
