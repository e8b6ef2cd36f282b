"""HT-Demucs in constant memory equals `demucs.apply.apply_model` on the whole recording (within 1e-4 of its peak),
normalised as `demucs.api` does, through the real loading.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from podeval import progress

REPO = "adefossez/HTDemucs"
RATE = 44_100


@pytest.fixture
def folder(tiny_models: Any, tmp_path: Path) -> Path:
    made: Path = tiny_models.htdemucs(tmp_path / "demucs")
    return made


@pytest.fixture
def separator(load_reference: Callable[..., Any], folder: Path) -> Any:
    return load_reference("separator", {REPO: folder})


def whole(folder: Path, samples: Any) -> tuple[Any, Any]:
    """What the package makes of all of it at once: vocals, and the sum of the others."""
    from demucs.apply import apply_model
    from demucs.hf import load_safetensors_model

    model = load_safetensors_model(folder / "955717e8.safetensors").eval()
    mix = torch.from_numpy(np.broadcast_to(samples.T, (2, len(samples))).copy())
    reference = mix.mean(0)
    mean, deviation = reference.mean(), reference.std() + 1e-8
    found = apply_model(model, ((mix - mean) / deviation)[None], shifts=0, split=True, overlap=0.25)[0]
    sources = dict(zip(model.sources, found * deviation + mean, strict=True))
    rest = sources["drums"] + sources["bass"] + sources["other"]
    return sources["vocals"].numpy().T, rest.numpy().T


@pytest.mark.every(4)
@pytest.mark.parametrize("seconds", [0.3, 0.5, 0.876, 1.7], ids=["less than a piece", "a piece", "a seam", "many"])
def test_stereo_equals_the_package_on_the_whole(separator: Any, folder: Path, tiny_models: Any, seconds: float) -> None:
    left, right = (tiny_models.voice(seconds, seed, RATE) for seed in (0, 1))
    samples = np.stack([left + 0.02, 0.5 * right], axis=1)
    found = separator.separate(samples)
    for ours, theirs in zip(found, whole(folder, samples), strict=True):
        assert ours.shape == samples.shape
        assert np.abs(theirs).max() > 1e-3
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max())


def test_one_channel_goes_in_twice_and_comes_out_once(separator: Any, folder: Path, tiny_models: Any) -> None:
    samples = tiny_models.voice(0.9, 2, RATE)[:, np.newaxis]
    reported: list[tuple[str, float, float]] = []
    with progress.listen(lambda *told: reported.append(told)):
        found = separator.separate(samples)
    for ours, theirs in zip(found, whole(folder, samples), strict=True):
        assert ours.shape == samples.shape
        np.testing.assert_allclose(ours[:, 0], theirs.mean(axis=1), atol=1e-4 * np.abs(theirs).max())
    assert reported[-1] == ("separating", len(samples) / RATE, len(samples) / RATE)
    assert np.array_equal(separator.separate(samples)[0], found[0])


def test_the_inverse_transform_is_given_a_real_dc_bin_and_a_cpu_does_not_mind(separator: Any, folder: Path) -> None:
    from demucs.hf import load_safetensors_model

    model = load_safetensors_model(folder / "955717e8.safetensors").eval()
    shape = (1, 4, 2, model.nfft // 2, 12)
    spectrogram = torch.complex(*torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)))
    untouched = model._ispec(spectrogram.clone(), 8 * model.hop_length)
    made_real = separator._model._ispec(spectrogram, 8 * model.hop_length)
    assert torch.equal(made_real, untouched)
    assert not spectrogram.imag[..., 0, :].any()
    assert spectrogram.imag[..., 1:, :].all()


def test_silence_stays_silent_numbers(separator: Any) -> None:
    for stem in separator.separate(np.zeros((RATE // 2, 2), np.float32)):
        assert np.abs(stem).max() < 1e-6
