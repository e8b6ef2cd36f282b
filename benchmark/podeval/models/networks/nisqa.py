"""NISQA-TTS: how natural listeners find synthetic speech, with the weights its author publishes.

Segments of 15 frames of a mel spectrogram pass one by one through six convolutions, then in order through a
bidirectional LSTM, whose last step each way gives the mean opinion score. Mittag and Möller, "Deep Learning Based
Assessment of Synthetic Speech Naturalness", Interspeech 2020. Written here in torch from the published architecture;
equal within 1e-4 to the package `nisqa` 2.0 (tests/models/test_nisqa.py). The spectrogram is taken at the rate of the
recording, as there, so that speech resampled to another rate has a slightly different value.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray
from torch import Tensor
from transformers.audio_utils import mel_filter_bank

from podeval.models.chunking import run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import RateAwareScorer, Samples
from podeval.models.pretrained import build_recurrent, read_tensors, select_part

_WEIGHTS = "nisqa_tts.tar"
_FFT = 4096
_HOP_SECONDS, _FRAME_SECONDS = 0.01, 0.02
_BANDS, _HIGHEST_HZ = 48, 8000.0
_SEGMENT = 15
_FAINTEST, _RANGE_DB = 1e-4, 80.0
_CONVOLUTIONS = 6
_POOLED = {1: (0, 1), 2: (0, 0), 4: (0, 0)}
"""The convolutions after which pairs are pooled, with the padding."""


class NisqaTts(RateAwareScorer):
    """The predictor.

    Args:
        files: `nisqa_tts.tar`.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        weights = read_tensors(files[_WEIGHTS], "model_state_dict", device=choose_device())
        self._convolutions = select_part(weights, "cnn.model.")
        self._recurrent = build_recurrent(select_part(weights, "time_dependency.model.lstm."))
        self._answer = weights["pool.model.linear.weight"], weights["pool.model.linear.bias"]

    def score(self, windows: Sequence[Samples], rate: int) -> NDArray[np.float32]:
        """Return the predicted naturalness of each window of speech, shape (windows,).

        Args:
            windows: mono speech of at least 0.15 s.
            rate: their sample rate, at least 16 kHz.
        """
        device = self._answer[0].device
        return run_in_batches(
            windows, 1, lambda one: self._predict(compute_spectrogram(one[0].to(device), rate)), "predicting NISQA-TTS"
        )

    def _predict(self, spectrogram: Tensor) -> Tensor:
        """Return the score, (1,), of a spectrogram, (bands, frames)."""
        segments = spectrogram.unfold(1, _SEGMENT, 1).transpose(0, 1).unsqueeze(1)
        course = self._recurrent(self._describe(segments).unsqueeze(0))[0][0]
        forwards, backwards = course.chunk(2, dim=1)
        return nn.linear(torch.cat([forwards[-1], backwards[0]]), *self._answer)

    def _describe(self, segments: Tensor) -> Tensor:
        """Return what the convolutions make of segments, (segments, 1, bands, frames): (segments, features)."""
        weights, values = self._convolutions, segments
        for number in range(1, _CONVOLUTIONS + 1):
            values = nn.conv2d(values, weights[f"conv{number}.weight"], weights[f"conv{number}.bias"], padding=1)
            mean, variance, scale, shift = (
                weights[f"bn{number}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
            )
            values = nn.relu(nn.batch_norm(values, mean, variance, scale, shift))
            if number in _POOLED:
                values = nn.max_pool2d(values, 2, padding=_POOLED[number])
        return nn.linear(values.flatten(1), weights["fc_out.weight"], weights["fc_out.bias"])


def compute_spectrogram(samples: Tensor, rate: int) -> Tensor:
    """Return the mel spectrogram of samples in decibels, at most 80 below its loudest, shape (bands, frames)."""
    frame = int(rate * _FRAME_SECONDS)
    spectrum = torch.stft(
        samples,
        _FFT,
        hop_length=int(rate * _HOP_SECONDS),
        win_length=frame,
        window=torch.hann_window(frame, device=samples.device),
        pad_mode="reflect",
        return_complex=True,
    )
    levels = 20 * (_make_filters(rate).to(samples.device) @ spectrum.abs()).clamp(min=_FAINTEST).log10()
    return levels.clamp(min=levels.max().item() - _RANGE_DB)


@functools.cache
def _make_filters(rate: int) -> Tensor:
    """Return triangular filters of equal area on Slaney's mel scale, shape (bands, bins)."""
    filters = mel_filter_bank(
        num_frequency_bins=_FFT // 2 + 1,
        num_mel_filters=_BANDS,
        min_frequency=0.0,
        max_frequency=_HIGHEST_HZ,
        sampling_rate=rate,
        norm="slaney",
        mel_scale="slaney",
    )
    return torch.from_numpy(filters.T.astype(np.float32))
