"""WavLM x-vectors equal a plain forward pass of transformers, clip by clip (within 1e-5), through the real loading."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from podeval.errors import CannotScore

REPO = "microsoft/wavlm-base-plus-sv"


@pytest.fixture
def folder(tiny_models: Any, tmp_path: Path) -> Path:
    made: Path = tiny_models.wavlm(tmp_path / "wavlm")
    return made


def test_embeddings_of_clips_of_any_length(load_reference: Callable[..., Any], tiny_models: Any, folder: Path) -> None:
    from transformers import AutoFeatureExtractor, WavLMForXVector

    clips = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((1, 0.5, 1, 0.7, 1, 1, 1, 1))]
    found = load_reference("speaker_encoder", {REPO: folder}).embed(clips)

    extractor = AutoFeatureExtractor.from_pretrained(folder)
    model = WavLMForXVector.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = np.concatenate(
            [
                model(extractor(clip, sampling_rate=16_000, return_tensors="pt").input_values).embeddings.numpy()
                for clip in clips
            ]
        )
    assert found.shape == (8, 20)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(np.linalg.norm(found, axis=1)) > 0


@pytest.mark.cpu
def test_the_weights_of_the_file_are_in_the_model(load_reference: Callable[..., Any], folder: Path) -> None:
    """The checkpoint names the positional convolution as torch once did; a name that is lost would be random."""
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    model = load_reference("speaker_encoder", {REPO: folder})._model
    convolution = model.wavlm.encoder.pos_conv_embed.conv
    assert torch.equal(
        convolution.parametrizations.weight.original0, state["wavlm.encoder.pos_conv_embed.conv.weight_g"]
    )
    assert torch.equal(model.tdnn[2].kernel.weight, state["tdnn.2.kernel.weight"])


def test_a_voice_too_short_is_a_sentence(load_reference: Callable[..., Any], tiny_models: Any, folder: Path) -> None:
    encoder = load_reference("speaker_encoder", {REPO: folder})
    with pytest.raises(CannotScore, match=r"a voice of 0\.30 s is too short"):
        encoder.embed([tiny_models.voice(1), tiny_models.voice(0.3)])
    assert np.isfinite(encoder.embed([tiny_models.voice(0.35)])).all()


def test_no_clips_no_embeddings(load_reference: Callable[..., Any], folder: Path) -> None:
    assert load_reference("speaker_encoder", {REPO: folder}).embed([]).shape == (0, 20)
