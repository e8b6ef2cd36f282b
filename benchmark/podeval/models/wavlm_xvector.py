"""WavLM x-vectors (512 dimensions): the speaker encoder of LFS-Bench, through transformers.

WavLM's layers, combined with learned weights, pass through a time-delay network whose mean and deviation over time
form the vector. The clip is prepared by the model's own feature extractor.
Source: Chen et al., "WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech Processing", 2022.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from podeval.models.chunking import RATE, require_length, run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import Samples, SpeakerEncoder
from podeval.models.pretrained import load_from_folder, load_pretrained

_SHORTEST = 5_600
"""Minimum samples, 0.35 s: the time-delay network spans 15 frames of 20 ms, and a deviation needs two of them."""

_GPU_BATCH, _CPU_BATCH = 64, 4


class WavLMXVector(SpeakerEncoder):
    """A speaker encoder with WavLM x-vectors.

    Args:
        files: the folder of the model, by its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        (folder,) = files.values()
        self._extractor = load_from_folder("AutoFeatureExtractor", folder)
        self._model = load_pretrained("WavLMForXVector", folder, dtype=torch.float32)
        self._batch = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 512); clips of equal length share a batch.

        Raises:
            CannotScore: a clip is shorter than 0.35 s.
        """
        require_length(clips, _SHORTEST)
        return run_in_batches(clips, self._batch, self._embed_batch, "voices", (self._model.config.xvector_output_dim,))

    def _embed_batch(self, clips: Any) -> Any:
        values = self._extractor(list(clips.numpy()), sampling_rate=RATE, return_tensors="pt").input_values
        return self._model(values.to(self._model.device)).embeddings
