"""UTMOSv2: how natural listeners find synthetic speech, by a speech encoder and pictures of its spectrum.

A wav2vec 2.0 encoder hears 3 s; four EfficientNets look at two stretches of 1.4 s, each as mel spectrograms with four
lengths of window. Attention pools both, and one dense layer marks them together with the kind of data. Baba et al.,
"The T05 System for The VoiceMOS Challenge 2024", SLT 2024; the configuration `fusion_stage3`.

The public code cuts all stretches at random, and mixes each spectrogram with another one in random shares, also when it
predicts, so that its value is another one every time. Here the stretches are the first and the last 1.4 s of the
window, and nothing is mixed, which is what those shares come near to most often (they follow Beta(0.4, 0.4)).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.models.checkpoint import explain_wrong_weights, read_tensors, select_part
from podeval.models.device import choose_device
from podeval.models.interfaces import Samples, WindowScorer
from podeval.models.networks.efficientnet import EfficientNetV2
from podeval.models.networks.fairseq_encoders import build_encoder

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

RATE = 16_000
WINDOW, STRETCH = 48_000, 22_400
"""Samples that the encoder hears, and that a picture shows."""

FRAMES = (4096, 2048, 1024, 512)
"""Lengths of the windows of the four spectrograms, samples."""

_DOMAINS = (
    "bvcc",
    "sarulab",
    "blizzard2008",
    "blizzard2009",
    "blizzard2010-EH1",
    "blizzard2010-EH2",
    "blizzard2010-ES1",
    "blizzard2010-ES3",
    "blizzard2011",
    "somos",
)
_FFT, _HOP, _BANDS, _SIDE = 4096, 32, 512, 512
_HEADS = 8
_FAINTEST, _RANGE_DB = 1e-10, 80.0
_LEVEL_EPSILON = 1e-7


class UtmosV2(WindowScorer):
    """The predictor.

    Args:
        files: the folder of the repo on the Hub, by its id.
        weights: path of the checkpoint within it.
        domain: the kind of data that speech is taken for, one of those it learnt from.
    """

    def __init__(self, files: dict[str, Path], weights: str, domain: str) -> None:
        import torch

        (folder,) = files.values()
        state = {name: value.to(choose_device()) for name, value in read_tensors(folder / weights, None).items()}
        try:
            self._encoder = build_encoder("Wav2Vec2", select_part(state, "ssl.encoder.model."))
            self._layers, self._pictures = state["ssl.weights"], state["spec_long.weights"]
            self._hearing = _build_attention(select_part(state, "ssl.attn.0."))
            self._looking = _build_attention(select_part(state, "spec_long.attn."))
            self._backbones = [
                EfficientNetV2(select_part(state, f"spec_long.backbones.{number}.")) for number in range(len(FRAMES))
            ]
            self._answer = state["fc.weight"], state["fc.bias"]
            for backbone in self._backbones:
                backbone.describe(self._layers.new_zeros(1, 3, 32, 32))
        except (KeyError, RuntimeError) as error:
            raise explain_wrong_weights(weights, "UTMOSv2", error) from error
        self._domain = torch.zeros(len(_DOMAINS), device=choose_device())
        self._domain[_DOMAINS.index(domain)] = 1

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the predicted MOS of each window of speech at 16 kHz, shape (windows,).

        Of a window longer than 3 s the encoder hears the beginning; a shorter one is repeated.
        """
        import torch

        scores = np.empty(len(windows), dtype=np.float32)
        with torch.inference_mode():
            for number, window in enumerate(windows):
                samples = torch.from_numpy(np.ascontiguousarray(window, dtype=np.float32)).to(choose_device())
                scores[number] = self._predict(samples).item()
                progress.report("predicting UTMOSv2", number + 1, len(windows))
        return scores

    def _predict(self, samples: Tensor) -> Tensor:
        """Return the MOS, (1,), of the samples of one window, (frames,)."""
        import torch
        import torch.nn.functional as nn

        nothing = torch.zeros_like(self._domain)
        parts = [self._hear(_repeat(samples, WINDOW)[:WINDOW]), nothing, self._look(samples), nothing, self._domain]
        return nn.linear(torch.cat(parts), *self._answer)

    def _hear(self, samples: Tensor) -> Tensor:
        """Return what the encoder makes of samples, (2 x dimensions,)."""
        import torch

        levelled = (samples - samples.mean()) / (samples.var(unbiased=False) + _LEVEL_EPSILON).sqrt()
        layers = self._encoder(levelled.unsqueeze(0), output_hidden_states=True).hidden_states
        values = torch.einsum("l,lwfd->wfd", self._layers, torch.stack(layers))
        attended = self._hearing(values, values, values)[0]
        return torch.cat([attended.mean(dim=1), values.amax(dim=1)], dim=1)[0]

    def _look(self, samples: Tensor) -> Tensor:
        """Return what the pictures of the first and the last stretch say, (4 x features,)."""
        import torch

        extended = _repeat(samples, STRETCH)
        features = []
        for stretch in (extended[:STRETCH], extended[-STRETCH:]):
            described = [
                backbone.describe(draw_spectrogram(stretch, frame).expand(1, 3, -1, -1)) * weight
                for backbone, frame, weight in zip(self._backbones, FRAMES, self._pictures, strict=True)
            ]
            features.append(torch.stack(described).sum(dim=0))
        # Over time by mean and maximum; the bands that remain are attended to.
        joined = torch.cat(features, dim=3)
        values = torch.cat([joined.mean(dim=3), joined.amax(dim=3)], dim=1)
        bands = values.transpose(1, 2)
        attended = self._looking(bands, bands, bands)[0]
        return torch.cat([attended.mean(dim=1), values.amax(dim=2)], dim=1)[0]


def draw_spectrogram(samples: Tensor, frame: int) -> Tensor:
    """Return a mel spectrogram as a picture, from 0 (80 dB below the loudest) to 1, shape (512, 512)."""
    import torch
    import torch.nn.functional as nn

    spectrum = torch.stft(
        samples,
        _FFT,
        hop_length=_HOP,
        win_length=frame,
        window=torch.hann_window(frame, device=samples.device),
        pad_mode="constant",
        return_complex=True,
    )
    powers = (_make_filters().to(samples.device) @ spectrum.abs().square()).clamp(min=_FAINTEST)
    levels = 10 * (powers.log10() - powers.max().log10())
    picture = (levels.clamp(min=-_RANGE_DB) + _RANGE_DB) / _RANGE_DB
    return nn.interpolate(picture[None, None], size=(_SIDE, _SIDE), mode="bilinear", antialias=True)[0, 0]


@functools.cache
def _make_filters() -> Tensor:
    """Return triangular filters of equal area on Slaney's mel scale, shape (bands, bins)."""
    import torch
    from transformers.audio_utils import mel_filter_bank

    with warnings.catch_warnings():
        # Of filters between two bins, which are empty there too.
        warnings.simplefilter("ignore")
        filters = mel_filter_bank(
            num_frequency_bins=_FFT // 2 + 1,
            num_mel_filters=_BANDS,
            min_frequency=0.0,
            max_frequency=RATE / 2,
            sampling_rate=RATE,
            norm="slaney",
            mel_scale="slaney",
        )
    return torch.from_numpy(filters.T.astype(np.float32))


def _repeat(samples: Tensor, length: int) -> Tensor:
    """Return samples one after the other as often as `length` needs."""
    return samples if len(samples) > length else samples.repeat(length // len(samples) + 1)[: max(length, len(samples))]


def _build_attention(weights: Weights) -> Any:
    import torch

    network: Any = torch.nn.MultiheadAttention(weights["out_proj.weight"].shape[0], _HEADS, batch_first=True)
    network.load_state_dict(weights)
    return network.to(weights["out_proj.weight"].device).eval()
