"""Speaker encoders based on WavLM: ECAPA-TDNN on WavLM-Large, and the x-vectors of LFS-Bench."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray

from podeval.errors import ModelMissing
from podeval.models.chunking import require_length, run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import RATE, Samples, SpeakerEncoder
from podeval.models.pretrained import (
    Weights,
    load_from_folder,
    load_pretrained,
    read_tensors,
    rename_weights,
    select_part,
)

# WavLM-Large with an ECAPA-TDNN head (256 dimensions): the speaker encoder of Seed-TTS's evaluation.
#
# LFS-Bench's section 4.1 names it in a footnote, under the name of its repository, UniSpeech; its appendices name
# x-vectors. The layers of WavLM-Large, combined with learned weights, pass through the head, whose attention weights
# their mean and standard deviation over time. Each clip is normalised to mean 0 and variance 1. The weights of the
# checkpoint are loaded into transformers' WavLM. Source: Chen et al., "WavLM", 2022; Desplanques et al., "ECAPA-TDNN",
# Interspeech 2020; microsoft/UniSpeech.


FILE = "speaker_similarity/wavlm_large_finetune.pth"
_SHORTEST = 720
"""Minimum number of samples: two of WavLM's frames."""
_GPU_BATCH, _CPU_BATCH = 32, 2
_NAMES = (
    (r"^(feature_extractor\.conv_layers\.\d+)\.0\.", r"\1.conv."),
    (r"^(feature_extractor\.conv_layers\.\d+)\.2\.1\.", r"\1.layer_norm."),
    (r"^post_extract_proj\.", "feature_projection.projection."),
    (r"^layer_norm\.", "feature_projection.layer_norm."),
    (r"^mask_emb$", "masked_spec_embed"),
    (r"^encoder\.pos_conv\.0\.weight_g$", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"),
    (r"^encoder\.pos_conv\.0\.weight_v$", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"),
    (r"^encoder\.pos_conv\.0\.bias$", "encoder.pos_conv_embed.conv.bias"),
    (r"\.self_attn_layer_norm\.", ".layer_norm."),
    (r"\.self_attn\.grep_linear\.", ".attention.gru_rel_pos_linear."),
    (r"\.self_attn\.grep_a$", ".attention.gru_rel_pos_const"),
    (r"\.self_attn\.relative_attention_bias\.", ".attention.rel_attn_embed."),
    (r"\.self_attn\.", ".attention."),
    (r"\.fc1\.", ".feed_forward.intermediate_dense."),
    (r"\.fc2\.", ".feed_forward.output_dense."),
)
"""Names of the original WavLM's weights in transformers."""


class WavLMEcapa(SpeakerEncoder):
    """A speaker encoder with WavLM-Large and ECAPA-TDNN.

    Args:
        files: the model's folder, under the name of its repo on the Hub.

    Raises:
        ModelMissing: the checkpoint does not contain the weights of this model.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        (folder,) = files.values()
        tensors = read_tensors(folder / FILE, "model", device=choose_device())
        self._front = _build_front(rename_weights(select_part(tensors, "feature_extract.model."), _NAMES))
        self._head = {name: value for name, value in tensors.items() if not name.startswith("feature_extract.")}
        if "feature_weight" not in self._head:
            raise ModelMissing(f"{FILE} has no weights of an ECAPA-TDNN; please report it")
        self._batch = _CPU_BATCH if choose_device() == "cpu" else _GPU_BATCH

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 256); clips of equal length share a batch.

        Raises:
            CannotScore: a clip is shorter than 45 ms.
        """
        require_length(clips, _SHORTEST)
        row = (len(self._head["linear.bias"]),)
        return run_in_batches(clips, self._batch, self._embed_batch, "voices", row)

    def _embed_batch(self, clips: Any) -> Any:
        clips = clips.to(self._head["linear.bias"].device)
        states = self._front(nn.layer_norm(clips, clips.shape[1:]), output_hidden_states=True).hidden_states
        weights = torch.softmax(self._head["feature_weight"], dim=0)
        mixed = sum(weight * state for weight, state in zip(weights, states, strict=True))
        return _run_head(nn.instance_norm(mixed.transpose(1, 2) + 1e-6), self._head)


def _build_front(weights: Weights) -> Any:
    """Build transformers' WavLM from these weights, which determine its sizes and device."""
    import transformers

    positions = weights["encoder.pos_conv_embed.conv.parametrizations.weight.original1"]
    attention = "encoder.layers.0.attention."
    convolutions = [value for name, value in sorted(weights.items()) if name.endswith(".conv.weight")]
    hidden = len(positions)
    config = transformers.WavLMConfig(
        hidden_size=hidden,
        num_hidden_layers=sum(name.endswith("gru_rel_pos_const") for name in weights),
        num_attention_heads=weights[f"{attention}gru_rel_pos_const"].shape[1],
        intermediate_size=len(weights["encoder.layers.0.feed_forward.intermediate_dense.weight"]),
        conv_dim=[len(value) for value in convolutions],
        num_conv_pos_embeddings=positions.shape[2],
        num_conv_pos_embedding_groups=hidden // positions.shape[1],
        num_buckets=len(weights[f"{attention}rel_attn_embed.weight"]),
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
    )
    front: Any = transformers.WavLMModel(config)
    front.load_state_dict(weights)
    return front.to(positions.device).eval()


def _run_head(x: Any, weights: Weights) -> Any:
    """Return the embeddings of features, (clips, channels, frames)."""
    first = _normalise(_convolve(x, weights, "layer1.conv", padding=2), weights, "layer1.bn")
    second = _run_block(first, weights, "layer2", 2)
    third = _run_block(second, weights, "layer3", 3)
    fourth = _run_block(third, weights, "layer4", 4)
    x = nn.relu(_convolve(torch.cat([second, third, fourth], dim=1), weights, "conv"))
    # Attention over time weights the mean and the standard deviation.
    attention = torch.tanh(_convolve(x, weights, "pooling.linear1"))
    attention = torch.softmax(_convolve(attention, weights, "pooling.linear2"), dim=2)
    mean = (attention * x).sum(dim=2)
    deviation = ((attention * x**2).sum(dim=2) - mean**2).clamp(min=1e-9).sqrt()
    pooled = _normalise(torch.cat([mean, deviation], dim=1), weights, "bn", relu=False)
    return nn.linear(pooled, weights["linear.weight"], weights["linear.bias"])


def _run_block(x: Any, weights: Weights, name: str, dilation: int) -> Any:
    """Run a squeeze-and-excitation block, in which each group of channels also gets the output of the previous one."""
    convolved = _convolve(x, weights, f"{name}.Conv1dReluBn1.conv")
    inner = _normalise(convolved, weights, f"{name}.Conv1dReluBn1.bn")
    count = sum(key.startswith(f"{name}.Res2Conv1dReluBn.convs.") and key.endswith(".weight") for key in weights)
    *bands, rest = inner.chunk(count + 1, dim=1)
    outputs: list[Any] = []
    for number, band in enumerate(bands):
        band = band + outputs[-1] if outputs else band
        part = f"{name}.Res2Conv1dReluBn."
        band = _convolve(band, weights, f"{part}convs.{number}", padding=dilation, dilation=dilation)
        outputs.append(_normalise(band, weights, f"{part}bns.{number}"))
    convolved = _convolve(torch.cat([*outputs, rest], dim=1), weights, f"{name}.Conv1dReluBn2.conv")
    inner = _normalise(convolved, weights, f"{name}.Conv1dReluBn2.bn")
    squeeze = f"{name}.SE_Connect.linear"
    gate = nn.relu(nn.linear(inner.mean(dim=2), weights[f"{squeeze}1.weight"], weights[f"{squeeze}1.bias"]))
    gate = torch.sigmoid(nn.linear(gate, weights[f"{squeeze}2.weight"], weights[f"{squeeze}2.bias"]))
    shortcut = f"{name}.shortcut"
    return inner * gate[:, :, None] + (_convolve(x, weights, shortcut) if f"{shortcut}.weight" in weights else x)


def _convolve(x: Any, weights: Weights, name: str, **options: int) -> Any:
    return nn.conv1d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], **options)


def _normalise(x: Any, weights: Weights, name: str, *, relu: bool = True) -> Any:
    """Rectify channels, then normalise them by their training statistics."""
    statistics = (weights[f"{name}.running_mean"], weights[f"{name}.running_var"])
    return nn.batch_norm(nn.relu(x) if relu else x, *statistics, weights[f"{name}.weight"], weights[f"{name}.bias"])


# WavLM x-vectors (512 dimensions): the speaker encoder of LFS-Bench, through transformers.
#
# WavLM's layers, combined with learned weights, pass through a time-delay network, and the mean and standard deviation
# over time form the vector. The clip is prepared by the model's own feature extractor. Source: Chen et al., "WavLM:
# Large-Scale Self-Supervised Pre-Training for Full Stack Speech Processing", 2022.

_XVECTOR_SHORTEST = 5_600
"""Minimum number of samples, 0.35 s: the time-delay network spans 15 frames of 20 ms, and a standard deviation needs
two values.
"""

_XVECTOR_GPU_BATCH, _XVECTOR_CPU_BATCH = 64, 4


class WavLMXVector(SpeakerEncoder):
    """A speaker encoder with WavLM x-vectors.

    Args:
        files: the model's folder, under the name of its repo on the Hub.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        (folder,) = files.values()
        self._extractor = load_from_folder("AutoFeatureExtractor", folder)
        self._model = load_pretrained("WavLMForXVector", folder, dtype=torch.float32)
        self._batch = _XVECTOR_CPU_BATCH if choose_device() == "cpu" else _XVECTOR_GPU_BATCH

    def embed(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, 512); clips of equal length share a batch.

        Raises:
            CannotScore: a clip is shorter than 0.35 s.
        """
        require_length(clips, _XVECTOR_SHORTEST)
        return run_in_batches(clips, self._batch, self._embed_batch, "voices", (self._model.config.xvector_output_dim,))

    def _embed_batch(self, clips: Any) -> Any:
        values = self._extractor(list(clips.numpy()), sampling_rate=RATE, return_tensors="pt").input_values
        return self._model(values.to(self._model.device)).embeddings
