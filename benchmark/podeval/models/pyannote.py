"""Three models from pyannote.audio, which is imported only when one of them is loaded.

Diarisation uses the library's community-1 pipeline: segmentation every second, embeddings of local speakers, and VBx
(Bredin, "pyannote.audio 2.1 speaker diarization pipeline", Interspeech 2023, and pyannote.audio 4). PodEval's diarizer
is the pipeline 3.0: a segmentation network, WeSpeaker's embeddings as ONNX, and centroid linkage. PodEval's speaker
encoder computes x-vectors of 512 dimensions: SincNet filters, a time-delay network, and the mean and standard deviation
over the whole clip (Bredin et al., "pyannote.audio: neural building blocks for speaker diarization", ICASSP 2020).
"""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from podeval import progress
from podeval.models.chunking import require_length, run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import RATE, Diarizer, Samples, SpeakerEncoder, SpeakerTurn


def import_pyannote_audio() -> Any:
    """Import the library without the usage reports that it sends by default; `PYANNOTE_METRICS_ENABLED=1` allows them.

    Raises:
        ImportError: the library, or torchaudio, which it uses, is missing or broken.
    """
    os.environ.setdefault("PYANNOTE_METRICS_ENABLED", "false")
    with warnings.catch_warnings():
        # The library warns if it cannot decode files, but here it only receives samples.
        warnings.simplefilter("ignore")
        import pyannote.audio
    return pyannote.audio


class PyannoteDiarizer(Diarizer):
    """A diarizer that estimates the number of speakers.

    Args:
        files: the pipeline's folder, under the name of its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        (folder,) = files.values()
        self._pipeline = import_pyannote_audio().Pipeline.from_pretrained(folder)
        self._pipeline.to(torch.device(choose_device()))

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Return turns in chronological order, numbered by first appearance; empty if no speaker is found.

        Turns overlap if speakers do.
        """
        waveform = torch.from_numpy(np.array(samples, dtype=np.float32))[np.newaxis]
        annotation = self._pipeline({"waveform": waveform, "sample_rate": RATE}, hook=_report).speaker_diarization
        turns = sorted((turn.start, turn.end, label) for turn, _, label in annotation.itertracks(yield_label=True))
        names: dict[str, str] = {}
        for _, _, label in turns:
            names.setdefault(label, f"SPEAKER_{len(names) + 1:02d}")
        return tuple(SpeakerTurn(names[label], float(start), float(end)) for start, end, label in turns)


class Pyannote3Diarizer(PyannoteDiarizer):
    """The pipeline 3.0, assembled from its two networks with its published settings.

    Args:
        files: the folders of the segmentation and embedding networks, under the names of their repos on the Hub.
        clustering: the linkage for the embeddings.
        threshold: the distance above which two clusters are not merged.
        min_cluster_size: the minimum number of embeddings per speaker.
    """

    def __init__(self, files: dict[str, Path], *, clustering: str, threshold: float, min_cluster_size: int) -> None:
        import_pyannote_audio()
        from pyannote.audio.core.plda import PLDA
        from pyannote.audio.pipelines import SpeakerDiarization

        segmentation, embedding = files.values()
        self._pipeline = SpeakerDiarization(
            segmentation=str(segmentation),
            embedding=str(embedding / "speaker-embedding.onnx"),
            embedding_exclude_overlap=True,
            clustering="AgglomerativeClustering",
            segmentation_batch_size=_BATCH,
            embedding_batch_size=_BATCH,
            # This parameter is always required, although only a different clustering method uses it.
            plda=PLDA.__new__(PLDA),
        )
        settings = {"method": clustering, "threshold": threshold, "min_cluster_size": min_cluster_size}
        self._pipeline.instantiate({"segmentation": {"min_duration_off": 0.0}, "clustering": settings})
        self._pipeline.to(torch.device(choose_device()))


def _report(step: str, _: Any, *, completed: int | None = None, total: int | None = None, **__: Any) -> None:
    """Forward the progress that the pipeline reports."""
    if completed is not None and total:
        progress.report(f"telling speakers apart ({step})", completed, total)


_BATCH = 32


class PyannoteEmbedding(SpeakerEncoder):
    """A speaker encoder with pyannote's x-vectors.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        (folder,) = files.values()
        self._device = torch.device(choose_device())
        self._model = import_pyannote_audio().Model.from_pretrained(folder).to(self._device).eval()

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 512); clips of equal length share a batch.

        Raises:
            CannotScore: a clip is shorter than the network's receptive field.
        """
        require_length(clips, self._model.receptive_field_size(2))
        return run_in_batches(clips, _BATCH, self._embed_batch, "voices", (self._model.dimension,))

    def _embed_batch(self, clips: Any) -> Any:
        return self._model(clips[:, np.newaxis].to(self._device))
