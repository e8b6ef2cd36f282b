"""Predictors of listeners' opinions in torch: NISQA-TTS and UTMOS22."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn
import transformers
from numpy.typing import NDArray
from torch import Tensor
from transformers.audio_utils import mel_filter_bank

from podeval.models.chunking import run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import RateAwareScorer, Samples, WindowScorer
from podeval.models.pretrained import Weights, build_recurrent, read_tensors, rename_weights, select_part

# NISQA-TTS, with the weights that its author publishes: it predicts how natural synthetic speech sounds to listeners.
# Segments of 15 frames of a mel spectrogram pass one by one through six convolutions, then in order through a
# bidirectional LSTM, whose last steps in both directions give the mean opinion score. Mittag and Möller, "Deep Learning
# Based Assessment of Synthetic Speech Naturalness", Interspeech 2020. The network is written in torch from the
# published architecture, and its scores match those of the package `nisqa` 2.0 to within 1e-4
# (tests/models/test_nisqa.py). The spectrogram is computed at the rate of the recording, as in that package, so speech
# that is resampled to another rate gets a slightly different score.


_WEIGHTS = "nisqa_tts.tar"
_FFT = 4096
_HOP_SECONDS, _FRAME_SECONDS = 0.01, 0.02
_BANDS, _HIGHEST_HZ = 48, 8000.0
_SEGMENT = 15
_FAINTEST, _RANGE_DB = 1e-4, 80.0
_CONVOLUTIONS = 6
_POOLED = {1: (0, 1), 2: (0, 0), 4: (0, 0)}
"""The convolutions that are followed by pooling of pairs, with their padding."""


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
            rate: sample rate of the windows, at least 16 kHz.
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
        """Return the output of the convolutions, (segments, features), for segments (segments, 1, bands, frames)."""
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
    """Return the mel spectrogram of samples in decibels, at most 80 below its maximum, shape (bands, frames)."""
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


# UTMOS22's strong learner, as packaged by SpeechMOS: it predicts how natural synthetic speech sounds to listeners.
#
# The frames of a wav2vec 2.0 encoder, with a vector for the kind of data and a vector for the listener, pass through a
# bidirectional LSTM and two dense layers; the score is the mean over frames, mapped from -1..1 to 1..5. Like the
# package, it leaves out the original's phoneme encoder. Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS
# Challenge 2022", Interspeech 2022. The encoder is run by transformers; the values match a direct evaluation of the
# architecture to within 1e-5 (tests/models/test_utmos22.py).

_GPU_BATCH, _CPU_BATCH = 8, 2
_HALF_RANGE, _MIDDLE = 2, 3
_STRIDES = (5, 2, 2, 2, 2, 2, 2)
_HEAD = 64
"""Number of dimensions of an attention head."""

_NAMES = (
    (r"^feature_extractor\.conv_layers\.(\d+)\.0\.", r"feature_extractor.conv_layers.\1.conv."),
    (r"^feature_extractor\.conv_layers\.0\.2\.", "feature_extractor.conv_layers.0.layer_norm."),
    (r"^layer_norm\.", "feature_projection.layer_norm."),
    (r"^post_extract_proj\.", "feature_projection.projection."),
    (r"^encoder\.pos_conv\.0\.", "encoder.pos_conv_embed.conv."),
    (r"^encoder\.pos_conv_embed\.conv\.weight_g$", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"),
    (r"^encoder\.pos_conv_embed\.conv\.weight_v$", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"),
    (r"\.self_attn\.", ".attention."),
    (r"\.self_attn_layer_norm\.", ".layer_norm."),
    (r"\.fc1\.", ".feed_forward.intermediate_dense."),
    (r"\.fc2\.", ".feed_forward.output_dense."),
    (r"^mask_emb$", "masked_spec_embed"),
)


class Utmos22(WindowScorer):
    """The predictor.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
        weights: path of the checkpoint within the folder.
    """

    def __init__(self, files: dict[str, Path], weights: str) -> None:
        (folder,) = files.values()
        state = read_tensors(folder / weights, None)
        self._encoder = _build_encoder(select_part(state, "wav2vec2."))
        head = {name: value.to(choose_device()) for name, value in state.items() if not name.startswith("wav2vec2.")}
        self._context = head["domain_emb"], head["judge_emb"]
        self._recurrent = build_recurrent(select_part(head, "blstm."))
        self._dense = [(head[f"projection.{layer}.weight"], head[f"projection.{layer}.bias"]) for layer in (0, 2)]
        self._batch = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Return the predicted MOS of each window of speech at 16 kHz, shape (windows,).

        Only windows of equal length share a batch, because padding a window would change its value.
        """
        return run_in_batches(windows, self._batch, self._predict, "predicting UTMOS22")

    def _predict(self, samples: Tensor) -> Tensor:
        """Return the MOS, (windows,), of samples, (windows, frames)."""
        frames = self._encoder(samples.to(self._encoder.device)).last_hidden_state
        context = [vector.unsqueeze(1).expand(*frames.shape[:2], -1) for vector in self._context]
        values = self._recurrent(torch.cat([frames, *context], dim=2))[0]
        (first, first_bias), (last, last_bias) = self._dense
        marks = nn.linear(nn.relu(nn.linear(values, first, first_bias)), last, last_bias)
        return marks.mean(dim=1).squeeze(1) * _HALF_RANGE + _MIDDLE


def _build_encoder(weights: Weights) -> Any:
    """Build the wav2vec 2.0 encoder in transformers, in evaluation mode, on the device that models run on.

    Names in fairseq are translated, and sizes are read from the weights, so no configuration is needed.

    Args:
        weights: every weight of the encoder, by its name in fairseq or transformers.

    Raises:
        KeyError, RuntimeError: the weights do not belong to such an encoder; no layer may keep random weights.
    """
    weights = rename_weights(weights, _NAMES)
    # This vector masks frames in training; some checkpoints leave it out.
    weights.setdefault("masked_spec_embed", torch.zeros(_read_sizes(weights)["hidden_size"]))
    network: Any = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(**_read_sizes(weights)))
    network.load_state_dict(weights)
    return network.float().to(choose_device()).eval()


def _read_sizes(weights: Weights) -> dict[str, Any]:
    convolutions = [weights[f"feature_extractor.conv_layers.{layer}.conv.weight"] for layer in range(len(_STRIDES))]
    position = weights["encoder.pos_conv_embed.conv.parametrizations.weight.original1"]
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layers.")}
    wide, size = weights["encoder.layers.0.feed_forward.intermediate_dense.weight"].shape
    return {
        "conv_dim": [layer.shape[0] for layer in convolutions],
        "conv_kernel": [layer.shape[2] for layer in convolutions],
        "conv_stride": list(_STRIDES),
        "hidden_size": size,
        "intermediate_size": wide,
        "num_hidden_layers": len(layers),
        "num_attention_heads": size // _HEAD,
        "num_conv_pos_embeddings": position.shape[2],
        "num_conv_pos_embedding_groups": size // position.shape[1],
    }
