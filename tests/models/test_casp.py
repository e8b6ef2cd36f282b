"""BEATs and CASP against speechbrain's BEATs and torch's own layers, on a tiny checkpoint as Lightning writes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from podeval.errors import ModelMissing
from podeval.models import registry
from podeval.models.card import HubRepo
from podeval.models.networks.casp import Beats
from podeval.models.pretrained import read_tensors

REPO = "wonderfuluuuuuuuuuuu/DualDub"
FILE = "podcast-10s.ckpt"

Load = Callable[[str, dict[str, Path]], Any]

# Two small encoders by speechbrain, pooling and projection by torch.nn as the original wrapper has them.
REFERENCE = """
import argparse, sys, types
from pathlib import Path
import numpy as np, torch
from torch import nn

references, folder = {references!r}, Path({folder!r})
sys.path.insert(0, references)
for name in ("speechbrain", "speechbrain.dataio", "speechbrain.lobes", "speechbrain.lobes.models"):
    package = types.ModuleType(name)
    package.__path__ = [references + "/" + name.replace(".", "/")]
    sys.modules[name] = package
masks = types.ModuleType("speechbrain.dataio.dataio")
masks.length_to_mask = lambda length, most, device=None: torch.arange(most)[None] < length[:, None]
sys.modules[masks.__name__] = masks
import speechbrain.lobes.models.beats as beats

sizes = dict(
    encoder_layers=3, encoder_embed_dim=32, encoder_ffn_embed_dim=48, encoder_attention_heads=4, embed_dim=24,
    conv_pos=16, conv_pos_groups=4, relative_position_embedding=True, num_buckets=32, max_distance=800,
    gru_rel_pos=True, deep_norm=True, layer_wise_gradient_decay_ratio=0.6,
)
config = beats.BEATsConfig
beats.BEATsConfig = lambda given: config(sizes)

class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 1))

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        for side in ("speech", "audio"):
            setattr(self, side + "_encoder", beats.BEATs())
            setattr(self, side + "_pooling", Pooling())
            project = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 32))
            setattr(self, side + "_proj", project)
        self.logit_scale = nn.Parameter(torch.tensor(1.0))

    def vector(self, side, samples):
        patches = getattr(self, side + "_encoder").extract_features(samples, torch.ones(len(samples)))[0]
        share = getattr(self, side + "_pooling").attention(patches).softmax(dim=1)
        return patches, nn.functional.normalize(getattr(self, side + "_proj")((share * patches).sum(dim=1)))

class Trainer:
    pass

torch.manual_seed(0)
model = Tiny().eval()
with torch.no_grad():
    for name, weight in model.named_parameters():
        kept = 1.0 if "norm" in name and name.endswith("weight") else 0.5
        weight.copy_(kept * weight + 0.2 * torch.randn_like(weight))
    speech, music = (torch.from_numpy(np.load(folder / name)) for name in ("speech.npy", "music.npy"))
    patches, spoken = model.vector("speech", speech)
    _, played = model.vector("audio", music)
np.savez(folder / "answers.npz", patches=patches.numpy(), cosines=(spoken * played).sum(dim=1).numpy())
state = {{"model." + name: value for name, value in model.state_dict().items()}}
# The names that the published checkpoint's version of torch gave to a kernel's length and direction.
for side in ("speech", "audio"):
    kernel = f"model.{{side}}_encoder.encoder.pos_conv.0."
    state[kernel + "weight_g"] = state.pop(kernel + "parametrizations.weight.original0")
    state[kernel + "weight_v"] = state.pop(kernel + "parametrizations.weight.original1")
trained = {{
    "epoch": 3, "global_step": 7, "pytorch-lightning_version": "2.2.0", "state_dict": state, "loops": {{}},
    "callbacks": {{"ModelCheckpoint": {{"dirpath": Path("/root/logs"), "best": torch.tensor(1.0)}}}},
    "optimizer_states": [{{"state": {{0: {{"exp_avg": torch.ones(3)}}}}}}], "lr_schedulers": [np.float64(0.1)],
    "hyper_parameters": argparse.Namespace(d_model=32), "trainer": Trainer(),
}}
torch.save(trained, folder / "podcast-10s.ckpt")
"""


@pytest.fixture(scope="module")
def published(ask_reference: Any, reference_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("casp")
    random = np.random.default_rng(0)
    time = np.arange(4 * 16_000) / 16_000
    speech = [0.3 * np.sin(2 * np.pi * 150 * n * time) * (np.sin(2 * np.pi * n * time) > 0) for n in (1, 2, 3)]
    music = [random.normal(0, 0.1, time.size) * time / 4, np.sin(2 * np.pi * 440 * time) * 0.1, 0.5 * speech[2]]
    np.save(folder / "speech.npy", np.float32(speech))
    np.save(folder / "music.npy", np.float32(music))
    ask_reference(REFERENCE.format(references=str(reference_packages), folder=str(folder)), folder, alone=True)
    return folder


def clips(folder: Path) -> tuple[list[Any], list[Any]]:
    return list(np.load(folder / "speech.npy")), list(np.load(folder / "music.npy"))


def test_cosines_are_those_of_the_reference(
    published: Path, load_reference: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reference: speechbrain 1.1.2's BEATs and torch.nn's layers, 1e-4; at once and clip by clip."""
    model = load_reference("harmony", {REPO: published})
    expected = np.load(published / "answers.npz")["cosines"]
    speech, music = clips(published)
    np.testing.assert_allclose(model.harmony(speech, music), expected, atol=1e-4)
    # As where there are more clips than fit into one batch.
    monkeypatch.setattr("podeval.models.networks.casp._BATCH", 2)
    np.testing.assert_allclose(model.harmony(speech, music), expected, atol=1e-4)
    assert expected.max() - expected.min() > 0.01


def test_the_encoder_s_vectors_are_speechbrain_s(published: Path) -> None:
    """Reference: speechbrain 1.1.2's BEATs of the same weights on torchaudio's filter banks, 1e-4."""
    state = read_tensors(published / FILE, "state_dict", "model.speech_encoder.")
    with torch.inference_mode():
        found = Beats(state, furthest=800, deep_norm=True).encode(torch.from_numpy(np.stack(clips(published)[0])))
    np.testing.assert_allclose(found.numpy(), np.load(published / "answers.npz")["patches"], atol=1e-4)


def test_the_commit_that_was_installed_is_in_the_protocol(published: Path, load_reference: Load) -> None:
    card = registry.get_card("harmony", "reference")
    assert card.identity["revision"] == {REPO: "main"}
    load_reference("harmony", {REPO: published})
    assert registry.get_card("harmony", "reference").identity["revision"] == {REPO: "c" * 40}
    assert HubRepo(REPO, "d" * 40, (FILE,)).commit == "d" * 40


# Checkpoints of strangers


def test_nothing_of_a_checkpoint_is_run(tmp_path: Path) -> None:
    class Trap:
        def __init__(self, call: Any, *given: Any) -> None:
            self.answer = (call, given)

        def __reduce__(self) -> Any:
            return self.answer

    mark, path = tmp_path / "mark", tmp_path / "trap.ckpt"
    weights = {"state_dict": {"a.b": torch.ones(2), "c": torch.zeros(1), "count": 3}}
    torch.save({**weights, "trap": Trap(eval, f"open({str(mark)!r}, 'w')")}, path)
    found = read_tensors(path, "state_dict", "a.")
    assert json.dumps({name: value.tolist() for name, value in found.items()}) == '{"b": [1.0, 1.0]}'
    import os

    torch.save({**weights, "trap": Trap(os.system, f"touch {mark}")}, path)
    with pytest.raises(ModelMissing, match=r"trap.ckpt is damaged, or contains code in addition to its weights"):
        read_tensors(path, "state_dict")
    assert not mark.exists()


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04 nor this"])
def test_what_is_no_checkpoint_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(content)
    with pytest.raises(ModelMissing, match=r"model.ckpt is damaged"):
        read_tensors(tmp_path / "model.ckpt", "state_dict")


def test_a_checkpoint_without_the_entry_is_refused(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "model.ckpt")
    with pytest.raises(ModelMissing, match=r"model.ckpt contains no weights under 'state_dict'"):
        read_tensors(tmp_path / "model.ckpt", "state_dict")
