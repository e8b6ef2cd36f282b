"""UTMOS22's strong learner against utmos-pytorch, and against a direct evaluation of its architecture.

SpeechMOS is on no package index, so that its own code cannot run here; what it computes was compared once by hand
(the same to the last digit, at the published sizes). Weights are random, named as SpeechMOS names them, and reach the
model as a user's do.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nn

REPO = "k2-fsa/TTS_eval_models"
FILE = "mos/utmos22_strong_step7459_v1.pt"
FRAMES, WIDE, SIZE, HEAD, GROUPS, LAYERS, HIDDEN = 24, 96, 128, 64, 16, 2, 12
KERNELS, STRIDES = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)

State = dict[str, Any]


def make_state() -> State:
    """Random weights under the names of SpeechMOS's checkpoint, 13 times smaller in the layers' sizes."""
    torch.manual_seed(0)
    inputs = 1
    shapes: dict[str, tuple[int, ...]] = {"wav2vec2.mask_emb": (SIZE,)}
    for layer, kernel in enumerate(KERNELS):
        shapes[f"wav2vec2.feature_extractor.conv_layers.{layer}.0.weight"] = (FRAMES, inputs, kernel)
        inputs = FRAMES
    norms = {"wav2vec2.feature_extractor.conv_layers.0.2": FRAMES, "wav2vec2.layer_norm": FRAMES}
    linear = {"wav2vec2.post_extract_proj": (SIZE, FRAMES), "projection.0": (20, 2 * HIDDEN), "projection.2": (1, 20)}
    norms["wav2vec2.encoder.layer_norm"] = SIZE
    for layer in range(LAYERS):
        name = f"wav2vec2.encoder.layers.{layer}"
        norms |= {f"{name}.self_attn_layer_norm": SIZE, f"{name}.final_layer_norm": SIZE}
        linear |= {f"{name}.self_attn.{part}_proj": (SIZE, SIZE) for part in ("q", "k", "v", "out")}
        linear |= {f"{name}.fc1": (WIDE, SIZE), f"{name}.fc2": (SIZE, WIDE)}
    shapes |= {
        "wav2vec2.encoder.pos_conv.0.weight_g": (1, 1, 128),
        "wav2vec2.encoder.pos_conv.0.weight_v": (SIZE, SIZE // GROUPS, 128),
        "wav2vec2.encoder.pos_conv.0.bias": (SIZE,),
        "domain_emb": (1, 6),
        "judge_emb": (1, 6),
    }
    shapes |= {f"{name}.weight": shape for name, shape in linear.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in linear.items()}
    for way in ("", "_reverse"):
        shapes[f"blstm.weight_ih_l0{way}"], shapes[f"blstm.weight_hh_l0{way}"] = (48, SIZE + 12), (48, HIDDEN)
        shapes[f"blstm.bias_ih_l0{way}"] = shapes[f"blstm.bias_hh_l0{way}"] = (48,)
    state = {n: 1.5 * torch.randn(s) / np.sqrt(np.prod(s[1:]) if len(s) > 1 else 9) for n, s in shapes.items()}
    for name, size in norms.items():
        state |= {f"{name}.weight": 1 + 0.2 * torch.randn(size), f"{name}.bias": 0.2 * torch.randn(size)}
    return state


def evaluate_directly(state: State, window: Any) -> float:
    """The architecture step by step, with torch's functions alone."""

    def norm(x: Any, name: str) -> Any:
        return nn.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"])

    def dense(x: Any, name: str) -> Any:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    x = torch.from_numpy(window)[None, None]
    for layer, stride in enumerate(STRIDES):
        name = f"wav2vec2.feature_extractor.conv_layers.{layer}"
        x = nn.conv1d(x, state[f"{name}.0.weight"], stride=stride)
        if layer == 0:
            x = (x - x.mean(2, keepdim=True)) / (x.var(2, unbiased=False, keepdim=True) + 1e-5).sqrt()
            x = x * state[f"{name}.2.weight"][:, None] + state[f"{name}.2.bias"][:, None]
        x = nn.gelu(x)
    x = dense(norm(x[0].T, "wav2vec2.layer_norm"), "wav2vec2.post_extract_proj")

    direction = state["wav2vec2.encoder.pos_conv.0.weight_v"]
    kernel = state["wav2vec2.encoder.pos_conv.0.weight_g"] * direction / direction.norm(dim=(0, 1), keepdim=True)
    bias = state["wav2vec2.encoder.pos_conv.0.bias"]
    position = nn.conv1d(x.T[None], kernel, bias, padding=64, groups=GROUPS)[0, :, :-1]
    x = norm(x + nn.gelu(position).T, "wav2vec2.encoder.layer_norm")

    for layer in range(LAYERS):
        name = f"wav2vec2.encoder.layers.{layer}"
        parts = [dense(x, f"{name}.self_attn.{part}_proj").unflatten(1, (-1, HEAD)) for part in ("q", "k", "v")]
        query, key, value = (part.transpose(0, 1) for part in parts)
        heads = torch.softmax(query @ key.transpose(1, 2) / HEAD**0.5, dim=2) @ value
        x = norm(
            x + dense(heads.transpose(0, 1).flatten(1), f"{name}.self_attn.out_proj"), f"{name}.self_attn_layer_norm"
        )
        x = norm(x + dense(nn.gelu(dense(x, f"{name}.fc1")), f"{name}.fc2"), f"{name}.final_layer_norm")

    x = torch.cat([x, *(state[name].expand(len(x), -1) for name in ("domain_emb", "judge_emb"))], dim=1)
    both = torch.cat([run_recurrent(state, x, ""), run_recurrent(state, x.flip(0), "_reverse").flip(0)], dim=1)
    marks = dense(torch.relu(dense(both, "projection.0")), "projection.2")
    return float(marks.mean() * 2 + 3)


def run_recurrent(state: State, x: Any, way: str) -> Any:
    """One direction of the LSTM, moment by moment."""
    hidden, cell, outputs = torch.zeros(HIDDEN), torch.zeros(HIDDEN), []
    for moment in x:
        gates = state[f"blstm.weight_ih_l0{way}"] @ moment + state[f"blstm.bias_ih_l0{way}"]
        gates = gates + state[f"blstm.weight_hh_l0{way}"] @ hidden + state[f"blstm.bias_hh_l0{way}"]
        take, keep, new, give = gates.chunk(4)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
        hidden = torch.sigmoid(give) * torch.tanh(cell)
        outputs.append(hidden)
    return torch.stack(outputs)


def publish(state: State, folder: Path) -> Path:
    (folder / FILE).parent.mkdir(parents=True)
    torch.save(state, folder / FILE)
    return folder


def test_every_window_has_the_value_of_the_architecture(
    load_reference: Callable[..., Any], tiny_models: Any, tmp_path: Path
) -> None:
    state = make_state()
    windows = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((0.5, 0.3, 0.5, 0.5))]
    scores = load_reference("utmos22", {REPO: publish(state, tmp_path / "repo")}).score(windows)
    expected = [evaluate_directly(state, window) for window in windows]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.ptp(expected) > 0.01


JUDGE = 288
"""The listener whose marks the published learner predicts."""


def name_as_speechmos(state: State) -> State:
    """The weights of the original's own names under those of SpeechMOS, which keeps one listener and one domain."""
    parts = {
        "feature_extractors.0.ssl_model": "wav2vec2",
        "output_layers.0.decoder_rnn": "blstm",
        "output_layers.1.net.0": "projection.0",
        "output_layers.1.net.3": "projection.2",
    }
    named = {
        name.replace(old, new, 1): values
        for name, values in state.items()
        for old, new in parts.items()
        if name.startswith(old)
    }
    domain, judge = (
        state[f"{name}.weight"] for name in ("feature_extractors.1.embedding", "output_layers.0.judge_embedding")
    )
    return named | {"domain_emb": domain[:1].clone(), "judge_emb": judge[JUDGE : JUDGE + 1].clone()}


def test_values_are_those_of_utmos_pytorch(
    load_reference: Callable[..., Any],
    reference_packages: Path,
    tiny_models: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the published widths, with 2 of its 12 layers."""
    if not (reference_packages / "utmos_pytorch").is_dir():
        pytest.skip("utmos-pytorch is not among the reference packages; `make reference-packages` gets it")
    # At the end of the path: nothing that podeval uses comes from there.
    monkeypatch.setattr(sys, "path", [*sys.path, str(reference_packages)])
    from utmos_pytorch import utmos_torch
    from utmos_pytorch.wav2vec2 import Wav2Vec2Config

    monkeypatch.setattr(utmos_torch, "Wav2Vec2Config", lambda: Wav2Vec2Config(encoder_layers=2))
    torch.manual_seed(1)
    model = utmos_torch.UTMOSModel()
    torch.save(model.state_dict(), tmp_path / "state.pt")
    windows = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((1.0, 0.7, 1.0))]
    scorer = utmos_torch.UTMOSScoreTorch(str(tmp_path / "state.pt"))
    expected = [float(scorer.score(torch.from_numpy(window))) for window in windows]
    state = name_as_speechmos(model.state_dict())
    scores = load_reference("utmos22", {REPO: publish(state, tmp_path / "repo")}).score(windows)
    assert list(scores) == pytest.approx(expected, abs=1e-4)
    assert np.ptp(expected) > 1e-3
