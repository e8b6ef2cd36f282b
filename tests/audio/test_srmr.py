"""SRMR against SRMRpy's measured values, against a plain loop in double precision, and under reverberation and gain.

References: `golden_values.json` (SRMRpy fee0097 with gammatone 1.0.3 on real clips, mean of channels, resampled to
16 kHz by soxr HQ, first 10 s) and `plain_srmr` below, which computes the published formulas sample by sample.
"""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io, signal
from threadpoolctl import threadpool_info, threadpool_limits

import podeval.audio.srmr as srmr_module
from podeval.audio import modulation
from podeval.audio.decode import decode
from podeval.audio.samples import mix_to_mono, resample
from podeval.audio.srmr import compute_srmr_windows
from tests.fakes.sounds import whispered

RATE = 16_000
MODES = [(True, False), (True, True), (False, False), (False, True)]
CLIPS = [
    *(f"mtalk/audio/{name}.wav" for name in ("1-1-turn1_amb", "1-1-turn1_sem", "1-1-turn2_para")),
    *(
        f"podagent/ref_wav_libritts_r/{name}.wav"
        for name in (
            "1283_129808_000050_000000",
            "294_130872_000016_000000",
            "3373_174983_000007_000000",
            "6215_62347_000008_000000",
            "7478_98645_000002_000000",
            "8193_116805_000012_000000",
        )
    ),
    *(
        f"podeval/subjective/audio_local_only/{name}/Arts.wav"
        for name in ("HQ", "LQ", "mooncast", "mossttsd", "notebooklm", "podagent", "reference")
    ),
    *(f"podeval/subjective/audio_webmushra/mono_{name}.wav" for name in ("c1", "c2", "c3", "ref")),
]

Signal = np.ndarray[Any, np.dtype[np.float64]]


def compute_srmr(samples: Signal, rate: int, fast: bool = True, norm: bool = False) -> float:
    """The value of one window that is the whole signal."""
    _, (value,) = compute_srmr_windows(samples, rate, len(samples) / rate, len(samples) / rate, fast, norm)
    return float(value)


def syllables(seconds: float, *, pitch: float = 120.0, seed: int = 0, rate: int = RATE) -> Signal:
    """A voice's spectrum and an irregular rhythm of syllables."""
    rng = np.random.default_rng(seed)
    voice = np.zeros(int(seconds * rate))
    at = 0
    while at < len(voice):
        length = int(rng.uniform(0.12, 0.3) * rate)
        time = np.arange(length) / rate
        phase = 2 * np.pi * pitch * rng.uniform(0.85, 1.2) * time
        sound = sum(np.sin(k * phase) / k for k in range(1, 25)) * np.sin(np.pi * np.arange(length) / length) ** 2
        voice[at : at + length] += sound[: len(voice) - at]
        at += length + int(rng.uniform(0, 0.12) * rate)
    return 0.1 * voice + rng.normal(0, 1e-4, len(voice))


def in_a_room(dry: Signal, t60: float, *, rate: int = RATE) -> Signal:
    """The signal in a room whose noise-like response decays by 60 dB in `t60` seconds."""
    time = np.arange(int(t60 * rate)) / rate
    response = np.random.default_rng(1).normal(size=len(time)) * 10 ** (-3 * time / t60)
    return np.asarray(signal.fftconvolve(dry, response / np.linalg.norm(response))[: len(dry)])


def plain_srmr(samples: Signal, rate: int, fast: bool, norm: bool) -> float:
    """SRMR by its formulas, in double precision: Slaney's coefficients as printed, filters sample by sample."""
    samples = np.asarray(samples, dtype=np.float64)
    ear_q, least = 9.26449, 24.7
    high, low = rate / 2 + ear_q * least, 125 + ear_q * least
    centres = high * np.exp(np.arange(1, 24) / 23 * np.log(low / high)) - ear_q * least
    erbs = centres / ear_q + least
    step, theta = 1 / rate, 2 * np.pi * centres / rate
    decay = np.exp(-2 * np.pi * 1.019 * erbs * step)
    size = int(2 ** np.ceil(np.log2(0.02 * rate)))
    circle = np.exp(2j * np.pi * np.arange(size // 2 + 1) / size)
    outputs, weights = np.empty((23, len(samples))), np.empty((23, len(circle)))
    for i in range(23):
        below = [1, -2 * np.cos(theta[i]) * decay[i], decay[i] ** 2]
        at_centre, output, response = 1.0, samples, np.ones(len(circle))
        for root in (np.sqrt(3 + 2**1.5), -np.sqrt(3 + 2**1.5), np.sqrt(3 - 2**1.5), -np.sqrt(3 - 2**1.5)):
            above = [step, -step * decay[i] * (np.cos(theta[i]) + root * np.sin(theta[i]))]
            output = signal.lfilter(above, below, output)
            at_centre *= abs(
                np.polyval(above[::-1], np.exp(-1j * theta[i])) / np.polyval(below[::-1], np.exp(-1j * theta[i]))
            )
            response = response * abs(np.polyval(above[::-1], 1 / circle) / np.polyval(below[::-1], 1 / circle))
        outputs[i], weights[i] = output / at_centre, response / at_centre
    if fast:
        width, hop = int(0.01 * rate + 0.5), int(0.0025 * rate + 0.5)
        envelope_rate = 400.0
        window = np.zeros(size)
        half = np.arange(width // 2)
        window[size // 2 + half] = window[size // 2 - half] = 0.5 * (1 + np.cos(np.pi * half / (width // 2)))
        spectrum = np.zeros((len(circle), 1 + (len(samples) - size) // hop))
        for column, start in enumerate(range(0, len(samples) - size, hop)):
            spectrum[:, column] = abs(np.fft.rfft(window * samples[start : start + size]))
        # The original's fast mode has the lowest channel first, its slow mode the highest.
        envelopes = (weights @ spectrum / size)[::-1]
    else:
        envelope_rate = float(rate)
        envelopes = abs(signal.hilbert(outputs, int(np.ceil(len(samples) / 16) * 16)))
    frame, hop = int(np.ceil(0.256 * envelope_rate)), int(np.ceil(0.064 * envelope_rate))
    frames = 1 + (envelopes.shape[1] - frame) // hop
    taper = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(frame) / frame)
    bands = 4 * ((30 if norm else 128) / 4) ** (np.arange(8) / 7)
    energies = np.empty((23, 8, frames))
    for k, edge in enumerate(np.tan(np.pi * bands / envelope_rate)):
        denominator = [1 + edge / 2 + edge**2, 2 * edge**2 - 2, 1 - edge / 2 + edge**2]
        output = signal.lfilter([edge / 2, 0, -edge / 2], denominator, envelopes)
        for number in range(frames):
            energies[:, k, number] = ((taper * output[:, number * hop : number * hop + frame]) ** 2).sum(axis=1)
    if norm:
        peak = energies.mean(axis=0).max()
        energies = np.clip(energies, peak / 1000, peak)
    mean = energies.mean(axis=2)
    gathered = np.cumsum(mean.sum(axis=1)[:: 1 if fast else -1]) / mean.sum()
    bandwidth = erbs[::-1][np.nonzero(gathered > 0.9)[0][0]]
    edges = bands - np.tan(np.pi * bands / rate) / 2 * rate / (2 * np.pi)
    last = 4 + int((bandwidth > edges[4:]).sum())
    return float(mean[:, :4].sum() / mean[:, 4:last].sum())


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "clip", [*CLIPS[::3], *(pytest.param(clip, marks=pytest.mark.long) for clip in CLIPS if clip not in CLIPS[::3])]
)
def test_real_clips_read_as_in_srmrpy(golden: dict[str, Any], shared_data: Path, clip: str) -> None:
    decoded = decode(shared_data / clip)
    samples = resample(mix_to_mono(decoded.samples), decoded.rate, RATE)[: 10 * RATE]
    assert compute_srmr(samples, RATE) == pytest.approx(golden[clip]["SRMR_fast"], rel=1e-5)
    assert compute_srmr(samples, RATE, fast=False) == pytest.approx(golden[clip]["SRMR_slow"], rel=1e-5)
    if clip in CLIPS[::3]:
        assert compute_srmr(samples, RATE, fast=False, norm=True) == pytest.approx(
            golden[clip]["SRMR_slow_norm30"], rel=1e-5
        )


def test_srmrpy_s_own_fixture_reads_as_measured_and_not_as_its_stale_ratios(
    golden: dict[str, Any], shared_data: Path
) -> None:
    samples = io.loadmat(str(shared_data / "srmr/test.mat"))["s"].ravel()
    measured = golden["_srmr_test_mat"]
    names = {(False, False): "slow", (True, False): "fast", (True, True): "fast_norm_max_cf30"}
    names[False, True] = "slow_norm_max_cf30"
    for (fast, norm), name in names.items():
        assert compute_srmr(samples, RATE, fast=fast, norm=norm) == pytest.approx(measured[name], rel=1e-5), name


def test_white_noise_reads_as_measured_with_srmrpy() -> None:
    noise = np.random.default_rng(0).standard_normal(3 * RATE)
    assert compute_srmr(noise, RATE) == pytest.approx(0.4141219, rel=1e-5)
    assert compute_srmr(noise, RATE, fast=False) == pytest.approx(0.2495275, rel=1e-5)


@pytest.mark.every(3)
@pytest.mark.parametrize(("fast", "norm"), MODES)
@pytest.mark.parametrize("rate", [8000, 16_000, 22_050])
def test_the_formulas_sample_by_sample_give_the_same(rate: int, fast: bool, norm: bool) -> None:
    samples = syllables(1.7, rate=rate)
    assert compute_srmr(samples, rate, fast=fast, norm=norm) == pytest.approx(
        plain_srmr(samples, rate, fast, norm), rel=1e-5
    )


def test_the_last_column_that_srmrpy_leaves_empty_is_empty_here_too() -> None:
    # 512 + 128 · 40 samples end with the last column, which lies within the last frame.
    samples = syllables(1)[: 512 + 128 * 40]
    assert compute_srmr(samples, RATE) == pytest.approx(plain_srmr(samples, RATE, True, False), rel=1e-5)


def test_slow_mode_takes_fewer_bands_where_energy_lies_low() -> None:
    # 90 % below a channel of 96 Hz bandwidth: K* is 7, and the ratio leaves out the highest band.
    low = signal.sosfilt(signal.butter(6, 500, fs=RATE, output="sos"), syllables(2))
    assert compute_srmr(low, RATE, fast=False) == pytest.approx(plain_srmr(low, RATE, False, False), rel=1e-5)


# windows


@pytest.mark.parametrize(("fast", "norm"), [(True, False), (False, True)])
@pytest.mark.parametrize(
    ("window", "stride"),
    [
        pytest.param(0.8, 0.5, id="a gammatonegram shared by windows"),
        pytest.param(0.8, 0.50007, id="a stride that is no multiple of its hop"),
        pytest.param(0.5, 1.0, id="gaps between windows"),
    ],
)
def test_a_window_reads_what_its_samples_read_alone(fast: bool, norm: bool, window: float, stride: float) -> None:
    samples = in_a_room(syllables(3.5), 0.4)
    starts, values = compute_srmr_windows(samples, RATE, window, stride, fast=fast, norm=norm)
    first = np.round(starts * RATE).astype(int)
    assert first.tolist() == list(range(0, len(samples) - round(window * RATE) + 1, round(stride * RATE)))
    alone = [compute_srmr(samples[start : start + round(window * RATE)], RATE, fast=fast, norm=norm) for start in first]
    np.testing.assert_allclose(values, alone, rtol=1e-5)


def test_silent_windows_have_no_value_and_are_left_out() -> None:
    samples = syllables(10)
    samples[3 * RATE : 7 * RATE] = 0
    for fast in (True, False):
        starts, values = compute_srmr_windows(samples, RATE, 1.0, 1.0, fast=fast)
        assert starts.tolist() == [0, 1, 2, 7, 8, 9]
        assert np.isfinite(values).all()


def test_a_signal_shorter_than_a_window_has_no_windows() -> None:
    starts, values = compute_srmr_windows(syllables(1), RATE, 3.0, 2.0)
    assert len(starts) == len(values) == 0


def test_memory_does_not_grow_with_the_length() -> None:
    def peak(seconds: int) -> int:
        noise = np.random.default_rng(0).standard_normal(seconds * RATE, dtype=np.float32)
        compute_srmr_windows(noise[: 30 * RATE], RATE, 3.0, 2.0)
        tracemalloc.start()
        try:
            compute_srmr_windows(noise, RATE, 3.0, 2.0)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(240) < 1.1 * peak(60)


# behaviour


@pytest.mark.parametrize(("fast", "norm"), MODES)
def test_more_reverberation_reads_lower(fast: bool, norm: bool) -> None:
    dry = whispered(3)
    rooms = [dry, *(in_a_room(dry, t60) for t60 in (0.3, 0.6, 1.2))]
    values = [compute_srmr(samples, RATE, fast=fast, norm=norm) for samples in rooms]
    assert values == sorted(values, reverse=True)
    assert values[0] > 2 * values[-1]


@pytest.mark.parametrize("gain", [1e-20, 1e-4, 32_767.0, 1e25])
def test_gain_changes_nothing(gain: float) -> None:
    samples = syllables(1)
    for fast in (True, False):
        assert compute_srmr(gain * samples, RATE, fast=fast) == pytest.approx(
            compute_srmr(samples, RATE, fast=fast), rel=1e-6
        )


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_small_products_are_made_by_one_thread_and_what_was_set_stands_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def looked(*arguments: Any) -> Any:
        seen.append(blas_threads())
        return modulation.compute_modulation_energies(*arguments)

    monkeypatch.setattr(srmr_module, "compute_modulation_energies", looked)
    noise = np.random.default_rng(0).normal(size=20 * 16_000).astype(np.float32)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        compute_srmr_windows(noise, 16_000, 8, 4)
        assert blas_threads() == before
    assert seen
    assert all(threads == {1} for threads in seen)
