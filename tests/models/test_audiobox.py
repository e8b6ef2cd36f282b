"""Audiobox Aesthetics against its package on a tiny model that the package saved, loaded as users load it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.analysis import Recording
from podeval.analysis.cache import Cache
from podeval.errors import ModelMissing
from podeval.metrics import catalogue
from podeval.models import registry

REPO = "facebook/audiobox-aesthetics"
RATE = 16_000

# The package's network, small, saved as the authors saved theirs; and what its predictor says of two recordings.
REFERENCE = """
import sys
sys.path.insert(0, {references!r})
import json
import numpy as np, torch
from audiobox_aesthetics import infer
from audiobox_aesthetics.model import aes

folder = {folder!r}
aes.DEFAULT_AUDIO_CFG.update({{
    "encoder_layers": 2, "encoder_embed_dim": 32, "encoder_ffn_embed_dim": 48, "encoder_attention_heads": 2,
    "conv_feature_layers": "[(24,10,5)] + [(24,3,2)] * 4 + [(24,2,2)] * 2",
}})
torch.manual_seed(0)
scales = {{axis: {{"mean": 5.0 + number, "std": 1.0 + number / 4}} for number, axis in enumerate(aes.AXES_NAME)}}
model = aes.AesMultiOutput(proj_num_layer=3, proj_ln=True, nth_layer=3, precision="bf16", target_transform=scales)
with torch.no_grad():
    for weight in model.parameters():
        weight.copy_(2 * weight + 0.2 * torch.randn_like(weight))
model.eval().save_pretrained(folder + "/repo")
predictor = infer.AesPredictor.__new__(infer.AesPredictor)
predictor.device, predictor.model, predictor.data_col, predictor.sample_rate = torch.device("cpu"), model, "path", 16000
predictor.target_transform = {{axis: aes.Normalize(**scales[axis]) for axis in aes.AXES_NAME}}
sounds = np.load(folder + "/in.npz").values()
recordings = [{{"path": torch.from_numpy(samples)[None], "sample_rate": 16000}} for samples in sounds]
json.dump([predictor.forward([recording])[0] for recording in recordings], open(folder + "/answers.json", "w"))
"""


@pytest.fixture(scope="module")
def reference(
    ask_reference: Any, reference_packages: Path, tiny_models: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if not (reference_packages / "audiobox_aesthetics").is_dir():
        pytest.skip("no audiobox_aesthetics among the reference packages; `make reference-packages` gets it")
    folder = tmp_path_factory.mktemp("audiobox")
    np.savez(folder / "in.npz", short=tiny_models.voice(1.3, 1), long=tiny_models.voice(23.7, 2))
    ask_reference(REFERENCE.format(references=str(reference_packages), folder=str(folder)), folder)
    return folder


def test_a_recording_has_the_package_s_marks(
    load_reference: Callable[..., Any], reference: Path, tmp_path: Path
) -> None:
    """Reference: audiobox_aesthetics 0.0.4's predictor, 1e-4: less than a window, and windows of which one is short."""
    load_reference("aesthetics", {REPO: reference / "repo"})
    answers = json.loads((reference / "answers.json").read_text())
    for samples, marks in zip(np.load(reference / "in.npz").values(), answers, strict=True):
        recording = Recording.from_samples(samples, RATE, profile="reference", cache=Cache(tmp_path))
        score = catalogue.get("audiobox_aesthetics")({"recording": recording})
        assert score.values == pytest.approx({axis.lower(): mark for axis, mark in marks.items()}, abs=1e-4)
        assert list(score.timeline.starts) == [10.0 * k for k in range(len(score.timeline.values["pq"]))]
    assert all(abs(short - long) > 1e-3 for short, long in zip(*(a.values() for a in answers), strict=True))
    assert np.average(score.timeline.values["ce"], weights=[10, 10, 3.7]) == pytest.approx(score.values["ce"], abs=1e-3)


def test_a_window_has_the_same_marks_alone_and_beside_others(
    load_reference: Callable[..., Any], reference: Path, tiny_models: Any
) -> None:
    model = load_reference("aesthetics", {REPO: reference / "repo"})
    windows = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((10, 2.5, 0.02))]
    np.testing.assert_allclose(model.score(windows), np.concatenate([model.score([w]) for w in windows]), atol=1e-4)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_other_files_are_refused_with_a_reason(
    load_reference: Callable[..., Any], reference: Path, tmp_path: Path, file: str
) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((reference / "repo" / name).read_bytes())
    if file == "config.json":
        (tmp_path / file).write_text('{"target_transform": {"CE": {"mean": 1}}}')
    else:
        from safetensors.torch import load_file, save_file

        weights = load_file(tmp_path / file)
        del weights["wavlm_model.encoder.layers.1.self_attn.grep_a"]
        save_file(weights, tmp_path / file)
    with pytest.raises(ModelMissing, match=r"does not hold Audiobox Aesthetics .*please report it"):
        load_reference("aesthetics", {REPO: tmp_path})


def test_the_published_files_are_pinned_and_their_licence_is_on_the_card() -> None:
    card = registry.get_card("aesthetics", "reference")
    assert card.licence == "CC BY 4.0"
    assert card.identity["sha256"] == {"config.json": "0b8eabc5ced92cef", "model.safetensors": "a5a3c2412649cc23"}
