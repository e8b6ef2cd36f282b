"""pyannote's x-vectors (512 dimensions): the speaker encoder of PodEval, through pyannote.audio.

SincNet filters, a time-delay network, and the mean and deviation over time of the whole clip.
Source: Bredin et al., "pyannote.audio: neural building blocks for speaker diarization", ICASSP 2020.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podeval.errors import CannotScore
from podeval.models.batches import batch_equal_lengths
from podeval.models.device import choose_device
from podeval.models.interfaces import Samples, SpeakerEncoder
from podeval.models.pyannote_library import import_pyannote_audio

RATE = 16_000
_BATCH = 32


class PyannoteEmbedding(SpeakerEncoder):
    """A speaker encoder with pyannote's x-vectors.

    Args:
        files: the folder of the model, by its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        import torch

        (folder,) = files.values()
        self._device = torch.device(choose_device())
        self._model = import_pyannote_audio().Model.from_pretrained(folder).to(self._device).eval()

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 512); clips of equal length share a batch.

        Raises:
            CannotScore: a clip is shorter than the network's receptive field.
        """
        import torch

        embeddings = np.empty((len(clips), self._model.dimension), dtype=np.float32)
        shortest = self._model.receptive_field_size(2)
        with torch.inference_mode():
            for batch in batch_equal_lengths([len(clip) for clip in clips], _BATCH):
                if (length := len(clips[batch[0]])) < shortest:
                    needed = f"{shortest / RATE:.2f} s are needed"
                    raise CannotScore(f"a voice of {length / RATE:.2f} s is too short to be compared; {needed}")
                waveforms = torch.from_numpy(np.stack([clips[number] for number in batch]).astype(np.float32))
                embeddings[batch] = self._model(waveforms[:, np.newaxis].to(self._device)).cpu().numpy()
        return embeddings
