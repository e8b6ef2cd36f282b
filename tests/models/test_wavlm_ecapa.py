"""WavLM-Large with ECAPA-TDNN equals UniSpeech's network, written here with torch's own layers (within 1e-5)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as functional
from torch import nn

from podeval.errors import CannotScore, ModelMissing
from podeval.models.wavlm import FILE

REPO = "k2-fsa/TTS_eval_models"
PROFILE = "reference,speaker_encoder=microsoft/unispeech-wavlm-large"
_OLD_NAMES = (
    ("feature_projection.projection.", "post_extract_proj."),
    ("feature_projection.layer_norm.", "layer_norm."),
    ("encoder.pos_conv_embed.conv.parametrizations.weight.original0", "encoder.pos_conv.0.weight_g"),
    ("encoder.pos_conv_embed.conv.parametrizations.weight.original1", "encoder.pos_conv.0.weight_v"),
    ("encoder.pos_conv_embed.conv.", "encoder.pos_conv.0."),
    ("masked_spec_embed", "mask_emb"),
    (".attention.gru_rel_pos_linear.", ".self_attn.grep_linear."),
    (".attention.gru_rel_pos_const", ".self_attn.grep_a"),
    (".attention.rel_attn_embed.", ".self_attn.relative_attention_bias."),
    (".attention.", ".self_attn."),
    (".feed_forward.intermediate_dense.", ".fc1."),
    (".feed_forward.output_dense.", ".fc2."),
)


class Convolved(nn.Module):
    """A convolution, rectified and normalised."""

    def __init__(self, channels: int, out: int, **options: Any) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv1d(channels, out, **options), nn.BatchNorm1d(out)

    def forward(self, x: Any) -> Any:
        return self.bn(torch.relu(self.conv(x)))


class Bands(nn.Module):
    """Eight bands of channels, of which each but the last hears the one before it."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(channels // 8, channels // 8, 3, padding=dilation, dilation=dilation) for _ in range(7)
        )
        self.bns = nn.ModuleList(nn.BatchNorm1d(channels // 8) for _ in range(7))

    def forward(self, x: Any) -> Any:
        bands, before = torch.split(x, x.shape[1] // 8, 1), 0.0
        outputs = []
        for band, conv, bn in zip(bands, self.convs, self.bns, strict=False):
            before = bn(torch.relu(conv(band + before)))
            outputs.append(before)
        return torch.cat([*outputs, bands[7]], 1)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(channels, 4), nn.Linear(4, channels)

    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(self.linear2(torch.relu(self.linear1(x.mean(2)))))[:, :, None]


class Block(nn.Module):
    """A block of ECAPA-TDNN, under the checkpoint's names."""

    def __init__(self, channels: int, out: int, dilation: int) -> None:
        super().__init__()
        self.Conv1dReluBn1, self.Conv1dReluBn2 = (
            Convolved(channels, out, kernel_size=1),
            Convolved(out, out, kernel_size=1),
        )
        self.Res2Conv1dReluBn, self.SE_Connect = Bands(out, dilation), Gate(out)
        self.shortcut = nn.Conv1d(channels, out, 1) if channels != out else None

    def forward(self, x: Any) -> Any:
        inner = self.SE_Connect(self.Conv1dReluBn2(self.Res2Conv1dReluBn(self.Conv1dReluBn1(x))))
        return inner + (self.shortcut(x) if self.shortcut else x)


class Pooling(nn.Module):
    """Mean and deviation, weighted by attention."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Conv1d(channels, 4, 1), nn.Conv1d(4, channels, 1)

    def forward(self, x: Any) -> Any:
        alpha = torch.softmax(self.linear2(torch.tanh(self.linear1(x))), 2)
        mean = (alpha * x).sum(2)
        return torch.cat([mean, ((alpha * x * x).sum(2) - mean * mean).clamp(min=1e-9).sqrt()], 1)


class Head(nn.Module):
    """The head over 32 features and 2 layers, small."""

    def __init__(self) -> None:
        super().__init__()
        self.feature_weight = nn.Parameter(torch.tensor([0.3, -0.2, 0.9]))
        self.layer1 = Convolved(32, 16, kernel_size=5, padding=2)
        self.layer2, self.layer3, self.layer4 = Block(16, 24, 2), Block(24, 24, 3), Block(24, 24, 4)
        self.conv, self.pooling = nn.Conv1d(72, 12, 1), Pooling(12)
        self.bn, self.linear = nn.BatchNorm1d(24), nn.Linear(24, 10)

    def forward(self, states: Any) -> Any:
        weights = torch.softmax(self.feature_weight, 0)[:, None, None, None]
        x = functional.instance_norm((weights * torch.stack(states)).sum(0).transpose(1, 2) + 1e-6)
        parts = [self.layer2(self.layer1(x))]
        parts += [self.layer3(parts[0])]
        parts += [self.layer4(parts[1])]
        return self.linear(self.bn(self.pooling(torch.relu(self.conv(torch.cat(parts, 1))))))


@pytest.fixture(scope="module")
def networks() -> tuple[Any, Head]:
    """transformers' WavLM and the head, with statistics that are not those of no data."""
    import transformers

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "conv_dim": [16] * 7}
    sizes |= {"intermediate_size": 64, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
    config = transformers.WavLMConfig(
        **sizes, num_buckets=32, feat_extract_norm="layer", do_stable_layer_norm=True, initializer_range=0.5
    )
    head = Head()
    for module in head.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(0, 0.3)  # type: ignore[union-attr, operator]
            module.running_var.uniform_(0.5, 2)  # type: ignore[union-attr, operator]
    return transformers.WavLMModel(config).eval(), head.eval()


@pytest.fixture
def folder(networks: tuple[Any, Head], tmp_path: Path) -> Path:
    """The checkpoint as it is published: WavLM under its first names, the head, and the loss of training."""
    front, head = networks
    state: dict[str, Any] = dict(head.state_dict()) | {"loss_calculator.projection.weight": torch.zeros(3)}
    for name, value in front.state_dict().items():
        if name.startswith("feature_extractor."):
            name = name.replace(".conv.", ".0.").replace(".layer_norm.", ".2.1.")
        elif name.startswith("encoder.layers."):
            name = name.replace(".layer_norm.", ".self_attn_layer_norm.")
        for new, old in _OLD_NAMES:
            name = name.replace(new, old)
        state[f"feature_extract.model.{name}"] = value
    (tmp_path / "hub" / FILE).parent.mkdir(parents=True)
    torch.save({"model": state}, tmp_path / "hub" / FILE)
    return tmp_path / "hub"


@pytest.fixture
def encoder(load_reference: Callable[..., Any], folder: Path) -> Any:
    return load_reference("speaker_encoder", {REPO: folder}, PROFILE)


def test_embeddings_equal_the_network_of_the_authors(encoder: Any, networks: Any, tiny_models: Any) -> None:
    clips = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((1, 0.5, 1, 0.7))]
    front, head = networks
    with torch.no_grad():
        expected = np.concatenate(
            [
                head(
                    front(functional.layer_norm(wave, wave.shape[1:]), output_hidden_states=True).hidden_states
                ).numpy()
                for wave in (torch.from_numpy(clip)[None] for clip in clips)
            ]
        )
    found = encoder.embed(clips)
    assert found.shape == (4, 10)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_a_clip_too_short_is_a_sentence(encoder: Any, tiny_models: Any) -> None:
    with pytest.raises(CannotScore, match=r"a voice of 0\.03 s is too short"):
        encoder.embed([tiny_models.voice(0.03)])
    assert encoder.embed([]).shape == (0, 10)


def test_a_checkpoint_without_the_head_is_refused(load_reference: Callable[..., Any], folder: Path) -> None:
    state = torch.load(folder / FILE, weights_only=True)["model"]
    torch.save({"model": {n: v for n, v in state.items() if n != "feature_weight"}}, folder / FILE)
    with pytest.raises(ModelMissing, match="has no weights of an ECAPA-TDNN"):
        load_reference("speaker_encoder", {REPO: folder}, PROFILE)
