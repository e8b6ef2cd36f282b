from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

# The network in torch is what a GPU runs.
from podeval.models.networks.distillmos import WINDOW, DistillMos, _compute_spectra, _load_network

pytestmark = [pytest.mark.models, pytest.mark.cpu]

Samples = NDArray[np.float32]

ORIGINAL = """
import sys
sys.path.insert(0, {packages!r})
import numpy, torch, distillmos
network = distillmos.ConvTransformerSQAModel().eval()
with torch.inference_mode():
    for path in {files!r}:
        print(network(torch.from_numpy(numpy.load(path))[None]).item())
"""


@pytest.fixture(scope="module")
def distillmos(weights_folder: Callable[[str], Path]) -> DistillMos:
    return DistillMos({"distill_mos_v7.pt": weights_folder("distillmos") / "distill_mos_v7.pt"})


def of_original(ask_reference: Any, packages: Path, folder: Path, *recordings: Samples) -> list[float]:
    files = [str(folder / f"{number}.npy") for number in range(len(recordings))]
    for file, samples in zip(files, recordings, strict=True):
        np.save(file, samples)
    printed = ask_reference(ORIGINAL.format(packages=str(packages), files=files), folder)
    return [float(line) for line in printed.splitlines()[-len(recordings) :]]


def test_the_network_s_values_are_those_of_the_original(
    distillmos: DistillMos, speech_like: Samples, ask_reference: Any, reference_packages: Path, tmp_path: Path
) -> None:
    """On what needs no real files: tones, noise, very loud and digital silence; each shorter than a window."""
    noise = np.asarray(np.random.default_rng(1).normal(0, 0.1, 50_000), np.float32)
    recordings = [speech_like, noise, speech_like * 30, np.zeros(16_000, np.float32)]
    expected = of_original(ask_reference, reference_packages, tmp_path, *recordings)
    np.testing.assert_allclose(distillmos.score(recordings), expected, atol=1e-3)


def test_a_window_scores_exactly_the_same_alone_and_among_others(distillmos: DistillMos, speech_like: Samples) -> None:
    windows = [np.roll(speech_like, 4_000 * number) for number in range(4)]
    together = distillmos.score(windows)
    assert together.shape == (4,)
    np.testing.assert_array_equal(distillmos.score(windows[3:]), together[3:])
    np.testing.assert_array_equal(distillmos.score(windows[1:3]), together[1:3])


@pytest.mark.long
def test_onnx_runtime_gives_what_torch_gives(
    distillmos: DistillMos, speech_like: Samples, weights_folder: Callable[[str], Path]
) -> None:
    network = _load_network(weights_folder("distillmos") / "distill_mos_v7.pt")
    spectra = _compute_spectra([speech_like, speech_like[::-1]], "cpu")
    with torch.inference_mode():
        np.testing.assert_allclose(
            distillmos.score([speech_like, speech_like[::-1]]), network(spectra).numpy(), atol=2e-6
        )


def test_zeros_stand_behind_a_short_window_and_the_rest_of_a_long_one_is_not_heard(
    distillmos: DistillMos, speech_like: Samples
) -> None:
    padded = np.zeros(WINDOW + 999, np.float32)
    padded[: len(speech_like)] = speech_like
    padded[WINDOW:] = 1.0
    short, long = distillmos.score([speech_like, padded])
    assert short == pytest.approx(long, abs=1e-6)


def test_no_windows_have_no_values(distillmos: DistillMos) -> None:
    assert distillmos.score([]).shape == (0,)
