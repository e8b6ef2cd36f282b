"""CAM++: what it needs in memory, that clips are scored as if each were alone, and as torch scores them."""

import weakref
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import pytest
import torch

from podeval.errors import ModelMissing
from podeval.models import campplus, registry

# The window and the step in which the reference implementation is asked, and the network that it asks.
from podeval.models.campplus import (
    _FRAME,
    _HOP,
    CamPlusPlus,
    _import_network_module,
    make_filter_banks,
    open_network,
)
from podeval.models.interfaces import Samples


@pytest.fixture(scope="module")
def encoder() -> Any:
    try:
        return registry.load("speaker_encoder", "embedded")
    except ModelMissing as missing:
        pytest.skip(str(missing))


class Handed(Sequence[Samples]):
    """Clips made when they are asked for, of two lengths by turns; counts how many are held at once."""

    def __init__(self, count: int) -> None:
        self.count, self.held, self.most_held = count, 0, 0

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, index: int) -> Samples: ...
    @overload
    def __getitem__(self, index: slice) -> "Handed": ...
    def __getitem__(self, index: int | slice) -> "Samples | Handed":
        if isinstance(index, slice) or not 0 <= index < self.count:
            raise IndexError(index)
        clip = np.random.default_rng(index).normal(0, 0.1, 8000 + 4000 * (index % 2)).astype(np.float32)
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        weakref.finalize(clip, self._let_go)
        return clip

    def _let_go(self) -> None:
        self.held -= 1


@pytest.mark.long
def test_clips_are_taken_up_batch_by_batch(encoder: CamPlusPlus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campplus, "_BATCH", 8)
    clips = Handed(3 * 8)
    embeddings = encoder.embed(clips)
    assert embeddings.shape == (len(clips), 192)
    assert clips.most_held <= 8
    alone = encoder.embed([clips[7], clips[18]])
    np.testing.assert_array_equal(embeddings[[7, 18]], alone)


# Shorter and longer than the 2 s over which the network takes means, and one frame more than a multiple of it.
@pytest.mark.every(2)
@pytest.mark.parametrize("frames", [8, 148, 298, 401])
def test_onnx_runtime_gives_what_torch_gives(encoder: CamPlusPlus, frames: int) -> None:
    network = _import_network_module().CAMPPlus(feat_dim=80, embedding_size=192)
    (weights,) = registry.get_card("speaker_encoder", "embedded").verify_files().values()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    features = np.random.default_rng(frames).normal(0, 3, (2, frames, 80)).astype(np.float32)
    with torch.inference_mode():
        expected = network.eval()(torch.from_numpy(features)).numpy()
    # 5.2e-5 on a processor without AVX-512.
    np.testing.assert_allclose(encoder._network.run(features), expected, atol=1e-4)


@pytest.mark.every(3)
@pytest.mark.parametrize("frames", [8, 148, 200])
def test_short_clips_have_the_same_embedding_in_less_time(encoder: CamPlusPlus, frames: int) -> None:
    (weights,) = registry.get_card("speaker_encoder", "embedded").verify_files().values()
    features = np.random.default_rng(frames).normal(0, 3, (3, frames, 80)).astype(np.float32)
    short = open_network(weights, short=True).run(features)
    np.testing.assert_allclose(short, encoder._network.run(features), atol=2e-5)


@pytest.mark.parametrize("samples", [1600, 1999, 2000, 47_999, 48_000, 48_001])
def test_frames_are_counted_as_the_features_have_them(samples: int) -> None:
    banks = make_filter_banks(np.random.default_rng(0).normal(0, 0.1, samples).astype(np.float32))
    assert banks.shape == ((samples - _FRAME) // _HOP + 1, 80)
