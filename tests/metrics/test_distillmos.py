"""DistillMOS: windows and values as in the package, on real speech; refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.speech.distillmos import WINDOW, place_window_starts
from podeval.models import registry
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.fakes.planted_models import PlantedModels

Samples = NDArray[np.float32]

# The package on whole recordings, which it cuts into windows itself.
ORIGINAL = """
import sys
sys.path.insert(0, {packages!r})
import numpy, torch, distillmos
network = distillmos.ConvTransformerSQAModel().eval()
with torch.inference_mode():
    for path in {files!r}:
        print(network(torch.from_numpy(numpy.load(path))[None]).item())
"""


@pytest.fixture
def installed() -> None:
    for job in ("naturalness", "music_detector", "voice_activity"):
        if reason := registry.get_card(job, "embedded").missing():
            pytest.skip(reason)


def measured(samples: Samples, cache: Path, rate: int = 16_000, **parameters: Any) -> Any:
    recording = Recording.from_samples(samples, rate, cache=Cache(cache))
    return catalogue.get("distillmos")({"recording": recording}, parameters)


def reader(shared_data: Path, number: int) -> Samples:
    """A LibriVox reader, 16 kHz."""
    return Recording.open(sorted(shared_data.glob("samples/sense_and_sensibility_*.wav"))[number]).mono()


@pytest.mark.long
@pytest.mark.models
@pytest.mark.usefixtures("installed")
def test_human_speech_scores_as_in_the_original_code(
    shared_data: Path, ask_reference: Any, reference_packages: Path, tmp_path: Path
) -> None:
    """`distillmos` 0.9.1 to 1e-3: on less than a window, and on 3 windows that are not a whole second apart."""
    joined = np.concatenate([reader(shared_data, 0), reader(shared_data, 1)])
    recordings = {"short": joined[:48_000], "long": joined[: WINDOW + 25_001]}
    for name, samples in recordings.items():
        np.save(tmp_path / f"{name}.npy", samples)
    files = [str(tmp_path / f"{name}.npy") for name in recordings]
    program = ORIGINAL.format(packages=str(reference_packages), files=files)
    printed = ask_reference(program, tmp_path).splitlines()[-2:]
    # The clips have an offset, which the package hears.
    found = [measured(samples, tmp_path / "cache", windows="upstream") for samples in recordings.values()]
    assert [score.values["distillmos"] for score in found] == pytest.approx([float(p) for p in printed], abs=1e-3)
    assert [score.notes for score in found] == [
        {"windows": 1, "windows_left_out": 0},
        {"windows": 3, "windows_left_out": 0},
    ]


@pytest.mark.long
@pytest.mark.models
@pytest.mark.usefixtures("installed")
def test_a_robot_is_far_below_people_and_better_machines(shared_data: Path, tmp_path: Path) -> None:
    """The whole files have 2.25 (espeak-ng), 4.28 (LibriVox) and 4.59 (Kokoro); here are their first 7.68 s."""
    values = []
    for name in ("dialogue_espeak.flac", "dialogue_kokoro.flac"):
        samples = Recording.open(shared_data / "samples" / name).mono()[:WINDOW]
        values.append(measured(samples, tmp_path).values["distillmos"])
    joined = np.concatenate([reader(shared_data, 0), reader(shared_data, 1)])
    values.insert(1, measured(joined[:WINDOW], tmp_path).values["distillmos"])
    assert values == [pytest.approx(2.25, abs=0.35), pytest.approx(4.28, abs=0.35), pytest.approx(4.59, abs=0.2)]


@pytest.mark.parametrize(
    ("frames", "starts"),
    [
        (1, [0]),
        (WINDOW, [0]),
        (WINDOW + 1, [0, 1]),
        (WINDOW + 16_000, [0, 16_000]),
        (WINDOW + 16_001, [0, 8_000, 16_001]),
        (WINDOW + 50_000, [0, 12_500, 25_000, 37_500, 50_000]),
    ],
)
def test_windows_are_at_most_a_second_apart_and_reach_from_end_to_end(frames: int, starts: list[int]) -> None:
    assert place_window_starts(frames) == place_window_starts(frames, spread=True) == starts


@pytest.mark.parametrize(
    ("seconds", "count", "apart"),
    [
        *((38, 32, 1.0), (60, 32, 1.69), (120, 32, 3.63), (180, 46, 3.84)),
        *((600, 156, 3.84), (900, 160, 5.62), (3600, 469, 7.68)),
    ],
)
def test_a_long_recording_has_its_windows_further_apart_and_no_gap(seconds: int, count: int, apart: float) -> None:
    frames = seconds * 16_000
    starts = np.array(place_window_starts(frames, spread=True))
    assert len(starts) == count
    assert np.diff(starts).max() / 16_000 <= apart
    assert (starts[0], starts[-1]) == (0, frames - WINDOW)
    assert len(place_window_starts(frames)) == int(np.ceil(seconds - 7.68)) + 1


class Rated(PlantedModels):
    """All models in one: windows have the values 1, 2, 3."""

    heard = 0

    def score(self, windows: list[Samples]) -> Samples:
        self.heard += len(windows)
        return np.arange(1, len(windows) + 1, dtype=np.float32)


def test_the_score_is_the_mean_over_windows_with_their_timeline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = Rated(spoken=(Span(0.0, 9.0),))
    monkeypatch.setattr(registry, "load", model.load)
    samples = np.random.default_rng(2).normal(0, 0.1, WINDOW + 32_000).astype(np.float32)
    found = measured(samples, tmp_path)
    assert found.values == {"distillmos": 2.0, "distillmos_stem": 2.0}
    assert found.timeline.starts == [0, 1, 2]
    assert found.timeline.window == pytest.approx(7.68)
    assert found.timeline.values == {"distillmos": [1, 2, 3]}
    assert measured(samples, tmp_path).values == found.values
    assert model.heard == 3, "the second time, values come from the cache"
