"""NISQA-TTS against its package's own forward pass, spectrogram included, loaded as users load it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FILE = "nisqa_tts.tar"

# The package's network at its published sizes, with random weights that tell inputs apart, on files of two rates.
REFERENCE = """
import importlib.util, sys, types
import numpy as np, soundfile, torch

references, folder = {references!r}, {folder!r}
sys.modules["matplotlib"] = types.ModuleType("matplotlib")
sys.modules["matplotlib.pyplot"] = sys.modules["matplotlib"].pyplot = types.ModuleType("matplotlib.pyplot")
spec = importlib.util.spec_from_file_location("nisqa_lib", references + "/nisqa/NISQA_lib.py")
package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
torch.manual_seed(0)
network = package.NISQA(
    cnn_model="standard", cnn_kernel_size=(3, 3), cnn_fc_out_h=20, td="lstm", td_2="skip", pool="last_step_bi"
)
inputs = {{}}
for name, samples in np.load(folder + "/windows.npz").items():
    rate = int(name.split()[1])
    soundfile.write(folder + "/window.wav", samples, rate, subtype="FLOAT")
    levels = package.get_librosa_melspec(
        folder + "/window.wav", sr=None, n_fft=4096, hop_length=0.01, win_length=0.02, n_mels=48, fmax=8000
    )
    segments, count = package.segment_specs("window.wav", levels, 15, 1, 600)
    inputs[name] = segments[None].float(), torch.tensor([int(count)])
# One look at each in training brings the normalisation to the range of spectrograms.
with torch.no_grad():
    for pair in inputs.values():
        network(*pair)
    for layer in (network.cnn.model.fc_out, network.time_dependency, network.pool):
        for value in layer.parameters():
            value.mul_(4)
network.eval()
torch.save({{"args": {{"name": "NISQA_TTS_v1"}}, "model_state_dict": network.state_dict()}}, folder + "/nisqa_tts.tar")
with torch.inference_mode():
    answers = {{name: network(*pair).item() for name, pair in inputs.items()}}
np.savez(folder + "/answers.npz", **answers)
"""

Install = Callable[[str, str, Path], Any]


@pytest.fixture(scope="module")
def reference(
    ask_reference: Any, reference_packages: Path, tiny_models: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if not (reference_packages / "nisqa").is_dir():
        pytest.skip("no package nisqa among the reference packages; `make reference-packages` gets it")
    folder = tmp_path_factory.mktemp("nisqa")
    voices = {f"{seed} {rate}": tiny_models.voice(0.6 + 0.17 * seed, seed, rate) for seed, rate in RATES}
    # A click after silence: most of it lies 80 dB below the loudest.
    click = np.zeros(16_000, dtype=np.float32)
    click[12_000] = 0.9
    np.savez(folder / "windows.npz", **voices, **{"click 16000": click})
    ask_reference(REFERENCE.format(references=str(reference_packages), folder=str(folder)), folder)
    return folder


RATES = ((0, 16_000), (1, 44_100), (2, 24_000))


def test_every_window_has_the_package_s_value_at_any_rate(install: Install, reference: Path) -> None:
    """Reference: the package nisqa 2.0.post2, on the file that librosa reads, 1e-4."""
    model = install("nisqa-tts", "nisqa_tts", reference / FILE)
    windows, answers = dict(np.load(reference / "windows.npz")), np.load(reference / "answers.npz")
    for name, window in windows.items():
        rate = int(name.split()[1])
        assert model.score([window], rate)[0] == pytest.approx(float(answers[name]), abs=1e-4), name
    assert np.ptp([float(answers[name]) for name in windows]) > 0.01


def test_several_windows_have_the_values_of_each(install: Install, reference: Path) -> None:
    model = install("nisqa-tts", "nisqa_tts", reference / FILE)
    windows = [window for name, window in np.load(reference / "windows.npz").items() if name.endswith("16000")]
    np.testing.assert_array_equal(model.score(windows, 16_000), [model.score([w], 16_000)[0] for w in windows])
