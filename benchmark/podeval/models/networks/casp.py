"""CASP: how well background audio fits the speech over it, by two BEATs encoders trained on podcasts.

Each encoder's patches are pooled by attention and projected; harmony is the cosine similarity of the two. Tian
et al., ACM MM 2025 (DualDub), with the checkpoint that PodEval uses, trained on clips of 10 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.models.checkpoint import explain_wrong_weights, read_tensors, select_part
from podeval.models.device import choose_device, copy_to_device
from podeval.models.interfaces import Harmony, Samples
from podeval.models.networks.beats import Beats

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

_WEIGHTS = ("wonderfuluuuuuuuuuuu/DualDub", "podcast-10s.ckpt")


class Casp(Harmony):
    """A harmony model with two BEATs encoders.

    Args:
        files: the folder of `wonderfuluuuuuuuuuuu/DualDub`.
        furthest, deep_norm: settings of BEATs (iteration 3), which the checkpoint's weights do not state.
        batch: number of pairs of clips processed at once.
    """

    def __init__(self, files: dict[str, Path], *, furthest: int = 800, deep_norm: bool = True, batch: int = 8) -> None:
        import torch

        repo, name = _WEIGHTS
        weights = {
            key: value.to(choose_device())
            for key, value in read_tensors(files[repo] / name, "state_dict", "model.").items()
        }
        try:
            self._speech, self._music = (
                _build_tower(weights, side, furthest=furthest, deep_norm=deep_norm) for side in ("speech", "audio")
            )
        except (KeyError, ValueError) as error:
            raise explain_wrong_weights(name, "CASP", error) from error
        self._batch = batch
        self._device = torch.device(choose_device())

    def harmony(self, speech: Sequence[Samples], music: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the cosine similarity of each speech clip with its music clip, shape (clips,).

        Args:
            speech: mono at 16 kHz, all clips of one length.
            music: the accompaniment of each speech clip, of the same length.
        """
        import torch

        cosines = []
        with torch.inference_mode():
            for first in range(0, len(speech), self._batch):
                speech_vectors, music_vectors = (
                    tower(copy_to_device(torch.from_numpy(np.stack(clips[first : first + self._batch])), self._device))
                    for tower, clips in ((self._speech, speech), (self._music, music))
                )
                cosines.append(torch.cosine_similarity(speech_vectors, music_vectors).cpu().numpy())
                progress.report("comparing speech and music", min(first + self._batch, len(speech)), len(speech))
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
    import torch.nn.functional as nn

    first, scale, second = (weights[f"{layer}.weight"] for layer in (0, 1, 3))
    first_bias, shift, second_bias = (weights[f"{layer}.bias"] for layer in (0, 1, 3))

    def run(values: Tensor) -> Tensor:
        inner = nn.layer_norm(nn.linear(values, first, first_bias), scale.shape, scale, shift)
        return nn.linear(nn.gelu(inner), second, second_bias)

    return run
