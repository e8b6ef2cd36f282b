"""SQUIM's PESQ against torchaudio's own forward pass on the same weights, loaded as users load it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FILE = "squim_objective_dns2020.pth"

# torchaudio's network, small and with the sizes of the published one, random weights that tell inputs apart.
REFERENCE = """
import importlib.util, sys
import numpy as np, torch

references, folder = {references!r}, {folder!r}
spec = importlib.util.spec_from_file_location("objective", references + "/torchaudio/models/squim/objective.py")
objective = importlib.util.module_from_spec(spec)
spec.loader.exec_module(objective)
torch.manual_seed(0)
small = objective.squim_objective_model(16, 64, 16, 4, 8, 2, "LSTM", 71)
windows = dict(np.load(folder + "/windows.npz"))
answers = {{}}
for name, network in (("small", small), ("published", objective.squim_objective_base())):
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(2 * weight + 0.1 * torch.randn_like(weight))
    network.eval()
    torch.save(network.state_dict(), f"{{folder}}/{{name}}.pth")
    with torch.inference_mode():
        for key, samples in windows.items():
            if name == "small" or key == "short":
                answers[f"{{name}} {{key}}"] = network(torch.from_numpy(samples)[None])[1].item()
np.savez(folder + "/answers.npz", **answers)
"""


@pytest.fixture(scope="module")
def reference(ask_reference: Any, reference_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squim")
    random = np.random.default_rng(0)
    time = np.arange(80_000) / 16_000
    windows = {
        "noise": random.normal(0, 0.1, 80_000),
        "tone": 0.5 * np.sin(2 * np.pi * 220 * time) * (time < 3),
        "rise": random.normal(0, 1e-3, 80_000) * time**2,
        "short": random.normal(0, 0.1, 16_123) + np.sin(2 * np.pi * 500 * time[:16_123]),
    }
    np.savez(folder / "windows.npz", **{key: w.astype(np.float32) for key, w in windows.items()})
    ask_reference(REFERENCE.format(references=str(reference_packages), folder=str(folder)), folder)
    return folder


Install = Callable[[str, str, Path], Any]


def test_every_window_has_torchaudio_s_estimate(install: Install, reference: Path) -> None:
    """Reference: torchaudio 2.11.0's own forward pass of a small network, 1e-5; windows of two lengths in one call."""
    model = install("squim-objective", "pesq_estimator", reference / "small.pth")
    windows, answers = dict(np.load(reference / "windows.npz")), np.load(reference / "answers.npz")
    expected = [float(answers[f"small {key}"]) for key in windows]
    np.testing.assert_allclose(model.score(list(windows.values())), expected, atol=1e-5)
    model._batch = 1
    np.testing.assert_allclose(model.score(list(windows.values())), expected, atol=1e-5)
    # A GPU takes 32 windows at once, a CPU 8: neither changes a value.
    model._batch = 32
    np.testing.assert_allclose(model.score([windows["short"]] * 33), [expected[-1]] * 33, atol=1e-5)
    assert max(expected) - min(expected) > 0.01


def test_the_published_sizes_have_torchaudio_s_estimate(install: Install, reference: Path) -> None:
    short = np.load(reference / "windows.npz")["short"]
    expected = float(np.load(reference / "answers.npz")["published short"])
    assert install("squim-objective", "pesq_estimator", reference / "published.pth").score([short])[0] == pytest.approx(
        expected, abs=1e-5
    )
