"""MS-CLAP's embeddings against those of the msclap package on the same weights; what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.errors import BadInput

Load = Callable[[str, dict[str, Path]], Any]

PROMPTS = (
    "the sound is clear and clean.",
    "the sound quality is good.",
    "the sound is noisy and with artifacts.",
    "the sound quality is bad.",
)
# Padding within a text, nothing but padding, and more tokens than the usual 77.
OTHERS = ("wow! it sounds so good!", "!", "a prompt of some more words than the others have, to need no padding " * 3)


def published(tiny: Path) -> dict[str, Path]:
    return {"microsoft/msclap": tiny / "hub/msclap", "openai-community/gpt2": tiny / "hub/gpt2"}


@pytest.fixture
def model(tiny_msclap: Path, load_reference: Load) -> Any:
    return load_reference("audio_text", published(tiny_msclap))


def clips(tiny: Path) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    # Importing it takes two seconds: here, and not where tests are listed.
    from podeval.models.networks.msclap import CLIP

    left = np.load(tiny / "sound.npy")[:, 0]
    return [left[:CLIP], left[-CLIP:]]


def test_embeddings_and_scale_are_those_of_the_package(model: Any, tiny_msclap: Path) -> None:
    """Reference: msclap 1.3.4's HTS-AT, projections and text encoder, 1e-4 on vectors of length 1."""
    answers = np.load(tiny_msclap / "answers.npz")
    heard = model.audio(clips(tiny_msclap))
    np.testing.assert_allclose(heard, answers["heard"], atol=1e-4)
    np.testing.assert_allclose(model.text([*PROMPTS, *OTHERS]), answers["said"], atol=1e-4)
    assert model.scale == pytest.approx(float(answers["scale"]), rel=1e-6)
    # The clips are told apart by far more than the tolerance.
    assert abs(heard[0] - heard[1]).max() > 0.01


def test_a_batch_answers_as_one_clip_does(model: Any, tiny_msclap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = clips(tiny_msclap)
    # As where there are more clips than fit into one batch.
    monkeypatch.setattr("podeval.models.networks.msclap._BATCH", 2)
    together = model.audio([one, two, one])
    np.testing.assert_allclose(together[0], model.audio([one])[0], atol=1e-5)
    np.testing.assert_allclose(together[2], together[0], atol=1e-5)
    np.testing.assert_allclose(model.text([*OTHERS])[0], model.text([OTHERS[0]])[0], atol=1e-5)


def test_filters_made_here_are_those_the_package_makes(tiny_msclap: Path) -> None:
    """For a checkpoint that holds none. Reference: torchlibrosa 0.1.0 with the package's configuration, 1e-7."""
    from podeval.models.networks.msclap import make_mel_filters

    expected = np.load(tiny_msclap / "answers.npz")["filters"]
    np.testing.assert_allclose(make_mel_filters(64).numpy(), expected, atol=1e-7)


def test_a_text_that_is_too_long_is_refused(model: Any) -> None:
    with pytest.raises(BadInput, match=r"a prompt has \d+ tokens, more than the 512"):
        model.text(["word " * 400])
