"""PLCMOS: features and marks as in the package, and always the same listeners."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.models.dnsmos import Plcmos, compute_features

ORIGINAL = """
import sys
sys.path.insert(0, {packages!r})
import numpy
from speechmos.plcmos import PLCMOS
samples = numpy.load({path!r})
network = PLCMOS()
numpy.save({features!r}, numpy.float32(network.stft_transform(samples)))
print(numpy.mean([network.get_mos(samples) for _ in range(8)]))
"""


def test_features_and_marks_are_those_of_the_package(
    reference_packages: Path, ask_reference: Any, speech_like: np.ndarray[Any, Any], tmp_path: Path
) -> None:
    """`speechmos` 0.0.1.1: features exactly, the mark to 0.1, as the package draws its listeners by chance."""
    sound = np.concatenate([np.zeros(3000, np.float32), speech_like[: 4 * 16_000]])
    np.save(tmp_path / "sound.npy", sound)
    paths = {"path": str(tmp_path / "sound.npy"), "features": str(tmp_path / "features.npy")}
    printed = ask_reference(ORIGINAL.format(packages=str(reference_packages), **paths), tmp_path)
    np.testing.assert_array_equal(compute_features(sound), np.load(paths["features"]))
    weights = reference_packages / "speechmos" / "plcmos_models" / "plcmos_v2.onnx"
    model = Plcmos({"plcmos_v2.onnx": weights}, listeners=15, seed=0)
    (mark,) = model.score([sound])
    assert mark == pytest.approx(float(printed.split()[-1]), abs=0.1)
    assert model.score([sound]) == mark


def test_a_sound_that_is_heard_once_has_the_marks_of_each_listener(
    reference_packages: Path, speech_like: np.ndarray[Any, Any]
) -> None:
    import onnxruntime

    weights = reference_packages / "speechmos" / "plcmos_models" / "plcmos_v2.onnx"
    sounds = [speech_like[:48_000], speech_like[8_000:90_000]]
    as_published = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
    listeners = np.random.default_rng(0).standard_normal((15, 64)).astype(np.float32)
    expected = [
        np.mean(
            [as_published.run(None, {"degraded_audio": features, "rater_embed": one[None]})[0] for one in listeners]
        )
        for features in (compute_features(sound)[None, None] for sound in sounds)
    ]
    marks = Plcmos({"plcmos_v2.onnx": weights}, listeners=15, seed=0).score(sounds)
    np.testing.assert_allclose(marks, expected, rtol=1e-6)


def test_silence_has_the_features_of_the_quietest_sound() -> None:
    features = compute_features(np.zeros(1600, np.float32))
    assert features.shape == (8, 257)
    assert len(np.unique(features)) == 1
