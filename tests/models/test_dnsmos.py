"""DNSMOS against the reference's own loop: one window at a time, librosa and onnxruntime."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.models.dnsmos import Dnsmos, list_window_starts, open_parts
from podeval.models.networks.dnsmos import (
    Convolution,
    Layer,
    MaxPool,
    compute_log_power,
    read_p835,
    run_dense,
    run_seamed,
    run_stack,
    wrap_seamless,
)

torch = pytest.importorskip("torch")
RATE = 16_000
PUBLISHED = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)
# The reference's rounding error, as found in its code and measured with speechmos 0.0.1.1.
LOST = {*range(7, 24), *range(119, 123)}


@pytest.fixture(scope="module")
def files(weights_folder: Any) -> tuple[Path, Path]:
    folder = weights_folder("dnsmos")
    return folder / "sig_bak_ovr.onnx", folder / "model_v8.onnx"


@pytest.fixture(scope="module")
def dnsmos(files: tuple[Path, Path]) -> Iterator[Dnsmos]:
    with pytest.MonkeyPatch.context() as environment:
        # Tests that run beside this one would only be waited for by a second thread.
        environment.setenv("PODEVAL_THREADS", "1")
        yield Dnsmos({file.name: file for file in files})


@pytest.fixture(scope="module")
def long(dnsmos: Dnsmos) -> tuple[np.ndarray, np.ndarray]:
    """A recording long enough for the reference to lose windows and find more behind them, and its scores."""
    samples = voice(34)
    return samples, dnsmos.score(samples)


@pytest.fixture(scope="module")
def librosa() -> Any:
    """Its lazy loader reads the source of every frame of the stack, and looks through all modules for each: 25 s."""
    whole = inspect.stack
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "stack", lambda context=1: whole(context=0))
        module = pytest.importorskip("librosa")
        assert module.feature.melspectrogram
    return module


@pytest.fixture(scope="module")
def sessions(files: tuple[Path, Path], librosa: Any) -> tuple[Any, Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    p835, p808 = (onnxruntime.InferenceSession(str(file), options) for file in files)
    return p835, p808


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    """A gliding harmonic tone in syllables over noise, with a digital silence and a clipped stretch."""
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    pitch = 2 * np.pi * np.cumsum(140 + 50 * np.sin(2 * np.pi * 0.4 * t)) / RATE
    tone = sum(np.sin(k * pitch) / k for k in range(1, 20))
    signal = 0.2 * tone * np.clip(np.sin(2 * np.pi * 2.3 * t), 0, 1) + 0.003 * random.standard_normal(len(t))
    signal[(t > 0.3 * seconds) & (t < 0.3 * seconds + 2)] = 0
    signal[t > 0.8 * seconds] *= 20
    return np.clip(signal, -1, 1).astype(np.float32)


def reference(samples: np.ndarray, sessions: tuple[Any, Any], second: int) -> list[float]:
    """SIG, BAK, OVRL and P.808 of the window at one second; the polynomials are those of `dnsmos_local.py`."""
    librosa = pytest.importorskip("librosa")
    while len(samples) < 144_160:
        samples = np.append(samples, samples)
    window = samples[second * RATE : second * RATE + 144_160]
    mel = librosa.feature.melspectrogram(y=window[:-160], sr=RATE, n_fft=321, hop_length=160, n_mels=120)
    picture = ((librosa.power_to_db(mel, ref=np.max) + 40) / 40).T
    raw = sessions[0].run(None, {"input_1": window[None]})[0][0]
    p808 = sessions[1].run(None, {"input_1": picture[None].astype(np.float32)})[0][0, 0]
    return [*(np.polyval(polynomial, mark) for polynomial, mark in zip(PUBLISHED, raw, strict=True)), p808]


@pytest.mark.models
@pytest.mark.parametrize(
    ("seconds", "compared"),
    [(0.6, [0]), (9.01, [0]), pytest.param(17.5, [0, 3, 7], marks=pytest.mark.long)],
)
def test_every_window_has_the_value_it_has_on_its_own(
    dnsmos: Dnsmos, sessions: tuple[Any, Any], seconds: float, compared: list[int]
) -> None:
    samples = voice(seconds)
    found = dnsmos.score(samples)
    assert found[:, 0].tolist() == list(range(compared[-1] + 1))
    expected = [reference(samples, sessions, second) for second in compared]
    np.testing.assert_allclose(found[:, 1:][compared], expected, atol=1e-4)


@pytest.mark.models
@pytest.mark.parametrize("name", ["ami_trn00.flac", "speech_music_mix_0dB.flac"])
def test_the_exported_parts_give_what_torch_gives(files: tuple[Path, Path], shared_data: Path, name: str) -> None:
    """A block of real speech and music through the layers that windows share, and four windows through the others."""
    soundfile = pytest.importorskip("soundfile")
    samples, _ = soundfile.read(shared_data / "samples" / name, dtype="float32", always_2d=True, frames=10 * RATE)
    block = np.ascontiguousarray(samples[: 2 * RATE + 17 * 160].mean(axis=1))
    network, bounds = read_p835(files[0]), torch.tensor([8, 108, 208])
    pools = [index for index, layer in enumerate(network.stack) if isinstance(layer, MaxPool)]
    shared_part, window_part = open_parts(files[0])
    with torch.inference_mode():
        features = compute_log_power(network.transform, torch.from_numpy(block), 160)
        shared = run_seamed(network.stack[: pools[1] + 1], wrap_seamless(features, bounds[:-1], bounds[1:]))
        seconds = torch.stack(shared.whole[0, :, 2:52].tensor_split(2, dim=1))
        windows = torch.cat([seconds, seconds.flip(0), seconds.roll(7, dims=2)], dim=2).repeat(2, 1, 3, 1)
        raw_scores = run_dense(network, run_stack(network.stack[pools[1] + 1 :], windows))
    for ours, expected in zip(shared_part.run_for_all(block), (seconds, shared.heads, shared.tails), strict=True):
        np.testing.assert_allclose(ours, expected.numpy(), atol=2e-5)
    np.testing.assert_allclose(window_part.run(windows.numpy()), raw_scores.numpy(), atol=1e-5)


@pytest.mark.long
@pytest.mark.models
def test_windows_that_the_reference_loses_are_scored_too(
    long: tuple[np.ndarray, np.ndarray], sessions: tuple[Any, Any]
) -> None:
    samples, found = long
    assert found[:, 0].tolist() == list(range(25))
    compared = [6, 7, 15, 23, 24]
    expected = [reference(samples, sessions, second) for second in compared]
    np.testing.assert_allclose(found[:, 1:][compared], expected, atol=1e-4)


@pytest.mark.long
@pytest.mark.models
def test_upstream_windows_are_the_exact_ones_without_the_lost(
    dnsmos: Dnsmos, long: tuple[np.ndarray, np.ndarray]
) -> None:
    samples, exact = long
    upstream = dnsmos.score(samples, windows="upstream")
    kept = [second for second in range(25) if second not in LOST]
    assert upstream[:, 0].tolist() == kept
    np.testing.assert_allclose(upstream[:, 1:], exact[:, 1:][kept], atol=1e-6)


@pytest.mark.long
@pytest.mark.models
def test_a_window_scores_the_same_wherever_a_block_begins(dnsmos: Dnsmos) -> None:
    samples = voice(13)
    whole, later = dnsmos.score(samples), dnsmos.score(samples[RATE:])
    np.testing.assert_allclose(later[:, 1:], whole[:, 1:][1:], atol=1e-5)


class Watched(np.memmap):
    """A memory map that remembers the longest stretch read from it."""

    longest = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        Watched.longest = max(Watched.longest, np.size(found))
        return found


@pytest.mark.models
def test_a_memory_map_is_read_in_short_stretches(dnsmos: Dnsmos, tmp_path: Path) -> None:
    samples = voice(10)
    samples.tofile(tmp_path / "samples")
    found = dnsmos.score(Watched(tmp_path / "samples", dtype=np.float32, mode="r"))
    assert 0 < Watched.longest < 4 * RATE
    np.testing.assert_allclose(found[:, 1:], dnsmos.score(samples)[:, 1:], atol=1e-6)


@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("mtalk/audio/1-1-turn1_amb.wav", "exact"),
        ("podeval/subjective/audio_webmushra/mono_ref.wav", "upstream"),
        *(
            pytest.param(name, windows, marks=pytest.mark.long)
            for name, windows in (
                ("podagent/ref_wav_libritts_r/8193_116805_000012_000000.wav", "upstream"),
                ("podeval/subjective/audio_local_only/HQ/Arts.wav", "upstream"),
                ("podeval/subjective/audio_local_only/podagent/Arts.wav", "exact"),
            )
        ),
    ],
)
def test_means_are_those_of_the_original_code(dnsmos: Dnsmos, shared_data: Path, name: str, windows: Any) -> None:
    soundfile, soxr = pytest.importorskip("soundfile"), pytest.importorskip("soxr")
    goldens = json.loads((shared_data / "golden_values.json").read_text())
    golden = goldens[name] if windows == "upstream" else goldens["_dnsmos_exact_windows"]["values"][name]
    samples, rate = soundfile.read(shared_data / name, dtype="float32", always_2d=True)
    found = dnsmos.score(soxr.resample(samples.mean(axis=1), rate, RATE, quality="HQ"), windows=windows)
    assert len(found) == golden["n_windows"]
    expected = [golden[key] for key in ("SIG", "BAK", "OVRL", "P808_MOS")]
    assert found[:, 1:].mean(axis=0) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("seconds", "count"), [(9.01, 1), (10.5, 1), (11, 2), (17.52, 8), (20, 11), (40, 31)])
def test_windows_are_counted_as_in_the_reference(seconds: float, count: int) -> None:
    assert list_window_starts(round(seconds * RATE), "exact") == list(range(count))


def test_upstream_loses_the_windows_that_the_reference_loses() -> None:
    found = set(list_window_starts(16_384 * RATE, "upstream"))
    assert set(range(16_375)) - found == LOST


@pytest.mark.parametrize("starts", [[4, 12, 16], [8]])
def test_layers_over_a_running_signal_equal_layers_over_each_window(starts: list[int]) -> None:
    torch.manual_seed(0)

    def convolution(channels_in: int, channels_out: int) -> Layer:
        return Convolution(torch.randn(channels_out, channels_in, 3, 3) / 3, torch.randn(channels_out))

    stack = (convolution(1, 4), convolution(4, 6), convolution(6, 3), MaxPool(), convolution(3, 5), MaxPool())
    signal, length = torch.randn(1, 1, 64, 11), 32
    begin = torch.tensor(starts)
    found = run_seamed(stack, wrap_seamless(signal, begin, begin + length))
    for k, start in enumerate(starts):
        expected = run_stack(stack, signal[:, :, start : start + length])[0]
        window = found.whole[0, :, start // 4 : (start + length) // 4].clone()
        changed = found.heads.shape[2]
        assert not torch.allclose(window, expected, atol=1e-5)
        window[:, :changed], window[:, -changed:] = found.heads[k], found.tails[k]
        torch.testing.assert_close(window, expected, atol=1e-5, rtol=1e-5)
