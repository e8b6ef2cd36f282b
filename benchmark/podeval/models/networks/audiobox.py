"""Audiobox Aesthetics: four marks that listeners would give to any sound, with the weights its authors publish.

A WavLM encoder, whose layers are combined with learnt weights, averaged over time and brought to length 1, once for
each mark; dense layers turn each vector into the mark. Tjandra et al., "Meta Audiobox Aesthetics: Unified Automatic
Quality Assessment for Speech, Music, and Sound", 2025. The encoder is run by transformers; equal within 1e-4 to the
package `audiobox_aesthetics` 0.0.4 (tests/models/test_audiobox.py). In float32, as there: the package reads a lower
precision from its configuration, and never turns it on.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.models.checkpoint import explain_wrong_weights, select_part
from podeval.models.device import choose_device, copy_to_device
from podeval.models.interfaces import Aesthetics, Samples
from podeval.models.networks.fairseq_encoders import build_encoder

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

AXES = ("CE", "CU", "PC", "PQ")
"""The marks in the model's order: content enjoyment, content usefulness, production complexity, production quality."""

WINDOW = 160_000
"""Samples of a window, 10 s."""

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"
_GPU_BATCH, _CPU_BATCH = 8, 2


class AudioboxAesthetics(Aesthetics):
    """The predictor.

    Args:
        files: the folder of the repo on the Hub, by its id.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        import torch
        from safetensors.torch import load_file

        (folder,) = files.values()
        try:
            weights = load_file(folder / _WEIGHTS)
            scales = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))["target_transform"]
            self._encoder = build_encoder("WavLM", select_part(weights, "wavlm_model."))
            weights = {name: value.to(choose_device()) for name, value in weights.items()}
            self._scales = {axis: (float(scales[axis]["mean"]), float(scales[axis]["std"])) for axis in AXES}
            self._layers = {axis: torch.softmax(weights[f"layer_weights.{axis}"], dim=0) for axis in AXES}
            self._heads = {axis: _build_head(select_part(weights, f"proj_layer.{axis}.")) for axis in AXES}
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise explain_wrong_weights(_WEIGHTS, "Audiobox Aesthetics", error) from error
        self._batch = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the marks of each window, about 1 to 10, in the order of `AXES`; shape (windows, 4).

        Args:
            windows: mono sound at 16 kHz, 10 s or less; a shorter one is followed by silence that is not looked at.
        """
        import torch

        scores = np.empty((len(windows), len(AXES)), dtype=np.float32)
        with torch.inference_mode():
            for first in range(0, len(windows), self._batch):
                batch = windows[first : first + self._batch]
                samples = torch.zeros(len(batch), WINDOW)
                for row, window in zip(samples, batch, strict=True):
                    row[: len(window)] = torch.from_numpy(np.ascontiguousarray(window, dtype=np.float32))
                lengths = torch.tensor([len(window) for window in batch])
                scores[first : first + len(batch)] = self._rate(
                    copy_to_device(samples, choose_device()), lengths.to(choose_device())
                ).cpu()
                progress.report("rating aesthetics", first + len(batch), len(windows))
        return scores

    def _rate(self, samples: Tensor, lengths: Tensor) -> Tensor:
        """Return the marks, (windows, 4), of samples, (windows, frames), of which so many count."""
        import torch
        import torch.nn.functional as nn

        features = self._encoder.feature_extractor(samples).transpose(1, 2)
        # A vector counts if any sample of its share of the window does.
        share = samples.shape[1] // features.shape[1]
        counts = torch.arange(features.shape[1], device=samples.device) * share < lengths.unsqueeze(1)
        layers = self._run_layers(self._encoder.feature_projection(features)[0], counts)
        marks = []
        for axis in AXES:
            combined = torch.einsum("l,lwfd->wfd", self._layers[axis], layers) * counts.unsqueeze(2)
            vector = nn.normalize(combined.sum(dim=1) / counts.sum(dim=1, keepdim=True).clamp(min=1), dim=1)
            mean, deviation = self._scales[axis]
            marks.append(self._heads[axis](vector).squeeze(1) * deviation + mean)
        return torch.stack(marks, dim=1)

    def _run_layers(self, features: Tensor, counts: Tensor) -> Tensor:
        """Return the input and the output of every layer, (layers + 1, windows, vectors, dimensions)."""
        import torch

        encoder, outputs = self._encoder.encoder, []

        def keep(module: Any, inputs: Any, output: Any) -> None:
            outputs.append(output[0] if isinstance(output, tuple) else output)

        # The encoder's model would derive another mask from the samples'; called alone it keeps no layer's output.
        hooks = [module.register_forward_hook(keep) for module in (encoder.layer_norm, *encoder.layers)]
        try:
            with warnings.catch_warnings():
                # Of torch to transformers, about the types of its two masks.
                warnings.simplefilter("ignore")
                encoder(features, attention_mask=None if counts.all() else counts)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(outputs)


def _build_head(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return the dense layers of one mark: each but the last is normalised, if its weights say so, and through GELU."""
    import torch.nn.functional as nn

    numbers = sorted({int(name.partition(".")[0]) for name in weights})
    layers = [(weights[f"{number}.weight"], weights[f"{number}.bias"]) for number in numbers]
    dense = [index for index, (weight, _) in enumerate(layers) if weight.ndim == 2]

    def run(values: Tensor) -> Tensor:
        for index, (weight, bias) in enumerate(layers):
            if index in dense:
                values = nn.linear(values, weight, bias)
            else:
                values = nn.layer_norm(values, weight.shape, weight, bias)
            if index != dense[-1] and (index + 1 in dense):
                values = nn.gelu(values)
        return values

    return run
