"""UTMOSv2 against timm's EfficientNetV2, transformers' wav2vec 2.0 and torch's attention, put together as published.

The authors' package is on no index, so that it cannot run here; as a whole their code was compared once by hand, with
its chance replaced (docs/reference-profile.md). Weights are random and small, and reach the model as a user's do.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.errors import ModelMissing
from podeval.models import registry

REPO = "sarulab-speech/UTMOSv2"
FILE = "fold0_s42_best_model.pth"

# A small model made of the libraries' own parts, saved under the names of the checkpoint, and what it says of windows.
REFERENCE = """
import sys, types
sys.path.insert(0, {references!r})

class Anything(types.ModuleType):
    "A module that timm imports and its network does not use; its names are numbers in timm's data, classes elsewhere."
    __path__ = []
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return (0.5, 0.5, 0.5) if self.__name__ == "timm.data" else type(name, (), {{}})

for name in ("", ".ops", ".ops.misc", ".models", ".models.feature_extraction"):
    sys.modules["torchvision" + name] = Anything("torchvision" + name)
sys.modules["timm.data"] = Anything("timm.data")
import timm

for name in [name for name in sys.modules if name.startswith("torchvision")]:
    del sys.modules[name]
import librosa, numpy as np, torch
import torch.nn.functional as nn
from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2Model

folder = {folder!r}
torch.manual_seed(0)
encoder = Wav2Vec2Model(Wav2Vec2Config(
    hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96, conv_dim=[24] * 7
)).eval()
backbones = [
    timm.create_model("tf_efficientnetv2_s", num_classes=0, channel_multiplier=0.1, depth_multiplier=0.1)
    for _ in range(4)
]
size = backbones[0].num_features
hearing = torch.nn.MultiheadAttention(128, 8, batch_first=True).eval()
looking = torch.nn.MultiheadAttention(2 * size, 8, batch_first=True).eval()
answer = torch.nn.Linear(256 + 4 * size + 30, 1)
layers, pictures = torch.rand(3), torch.rand(4)
with torch.no_grad():
    for module in (encoder, hearing, looking, answer):
        for weight in module.parameters():
            weight.copy_(2 * weight + 0.05 * torch.randn_like(weight))
    for backbone in backbones:
        backbone.global_pool = torch.nn.Identity()
        # One look in training brings the normalisation to the range of what passes.
        for module in backbone.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
                module.bias.normal_(0, 0.3)
        backbone(torch.rand(2, 3, 128, 128))
        backbone.eval()
state = {{"ssl.weights": layers, "spec_long.weights": pictures}}
for name, module in {{
    "ssl.encoder.model": encoder, "ssl.attn.0": hearing, "spec_long.attn": looking, "fc": answer,
    **{{f"spec_long.backbones.{{k}}": backbone for k, backbone in enumerate(backbones)}},
}}.items():
    state |= {{f"{{name}}.{{key}}": value for key, value in module.state_dict().items()}}
torch.save(state, folder + "/repo/fold0_s42_best_model.pth")

def draw(samples, frame):
    levels = librosa.feature.melspectrogram(
        y=samples, sr=16000, n_fft=4096, hop_length=32, n_mels=512, win_length=frame
    )
    picture = torch.from_numpy((librosa.power_to_db(levels, ref=np.max) + 80) / 80).float()
    return nn.interpolate(picture.expand(1, 3, -1, -1), (512, 512), mode="bilinear", antialias=True)

def predict(window):
    heard = np.tile(window, 48000 // len(window) + 1)[:48000]
    values = Wav2Vec2FeatureExtractor(do_normalize=True)(heard, sampling_rate=16000, return_tensors="pt").input_values
    hidden = encoder(values, output_hidden_states=True).hidden_states
    x = sum(weight * layer for weight, layer in zip(layers, hidden))
    sound = torch.cat([hearing(x, x, x)[0].mean(1), x.max(1).values], 1)
    seen = np.tile(window, 22400 // len(window) + 1)[: max(22400, len(window))]
    looks = [
        sum(w * b(draw(s, f)) for w, b, f in zip(pictures, backbones, (4096, 2048, 1024, 512)))
        for s in (seen[:22400], seen[-22400:])
    ]
    x = torch.cat(looks, 3)
    x = torch.cat([nn.adaptive_avg_pool2d(x, (None, 1)), nn.adaptive_max_pool2d(x, (None, 1))], 1).squeeze(3)
    t = x.permute(0, 2, 1)
    sight = torch.cat([looking(t, t, t)[0].mean(1), x.max(2).values], 1)
    kind = nn.one_hot(torch.tensor([1]), 10)
    return answer(torch.cat([sound, torch.zeros(1, 10), sight, torch.zeros(1, 10), kind], 1)).item()

with torch.inference_mode():
    np.save(folder + "/answer.npy", predict(np.load(folder + "/window.npy")))
"""


@pytest.fixture(scope="module")
def reference(
    ask_reference: Any, reference_packages: Path, tiny_models: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if not (reference_packages / "timm").is_dir():
        pytest.skip("no timm among the reference packages; `make reference-packages` gets it")
    folder = tmp_path_factory.mktemp("utmosv2")
    (folder / "repo").mkdir()
    # Long enough for two stretches to look at, and too short to be heard without being repeated.
    np.save(folder / "window.npy", tiny_models.voice(1.6, 0))
    ask_reference(REFERENCE.format(references=str(reference_packages), folder=str(folder)), folder)
    return folder


@pytest.mark.long
def test_a_window_has_the_value_of_the_libraries_parts_every_time(
    load_reference: Callable[..., Any], reference: Path
) -> None:
    """Reference: timm 1.0.31, transformers and librosa, 1e-3."""
    model = load_reference("utmosv2", {REPO: reference / "repo"})
    window, answer = np.load(reference / "window.npy"), float(np.load(reference / "answer.npy"))
    first, again, backwards = model.score([window, window, window[::-1]])
    assert first == pytest.approx(answer, abs=1e-3)
    assert first == again
    assert abs(first - backwards) > 0.02


@pytest.mark.parametrize("absent", ["ssl.weights", "spec_long.backbones.2.blocks.4.0.se.conv_reduce.bias", "fc.bias"])
def test_other_weights_are_refused_with_a_reason(
    load_reference: Callable[..., Any], reference: Path, tmp_path: Path, absent: str
) -> None:
    import torch

    state = torch.load(reference / "repo" / FILE, weights_only=True)
    del state[absent]
    torch.save(state, tmp_path / FILE)
    with pytest.raises(ModelMissing, match=r"does not hold UTMOSv2 .*please report it"):
        load_reference("utmosv2", {REPO: tmp_path})


def test_the_published_weights_are_pinned_and_their_licence_is_on_the_card() -> None:
    card = registry.get_card("utmosv2", "reference")
    assert card.licence == "MIT"
    assert card.identity["sha256"] == {FILE: "c8149d988e4bbf3f"}
    assert card.identity["options"]["domain"] == "sarulab"
