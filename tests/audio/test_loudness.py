"""Loudness against the signals of EBU Tech 3341 and 3342, other meters, and PodEval's own figures.

Levels, durations, phases and tolerances of the EBU cases are those of EBU Tech 3341 (2023), table 1, and EBU
Tech 3342 (2023), table 1. Not covered: 3341 cases 7 and 8 and 3342 cases 5 and 6 (authentic programmes that
only exist as the EBU's files), 3341 cases 11 and 14 (for live meters; 10 and 13 are their file-based twins).
"""

import json
import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.loudness import Loudness, get_channel_weights, measure, measure_podeval
from podeval.errors import BadInput, CannotScore
from podeval.metrics.audio.loudness import score_integrated_loudness, score_loudness_range, score_true_peak

RATE = 48_000
Signal = NDArray[np.floating]
Meter = Callable[[Signal, int], Loudness]


def tones(*segments: tuple[float, float], rate: int = RATE, channels: int = 2) -> Signal:
    """1 kHz sine, in phase in all channels: (level in dBFS, seconds) one after the other."""
    level = np.concatenate([np.full(round(seconds * rate), 10 ** (db / 20)) for db, seconds in segments])
    sine = level * np.sin(2 * np.pi * 1000 / rate * np.arange(len(level)))
    return np.repeat(sine[:, None], channels, axis=1).astype(np.float32)


SILENCE = -math.inf


def tapered_sine(divisor: int, amplitude: float, phase: float, rate: int = RATE) -> Signal:
    """Half a second of a stereo sine at rate/divisor with 10 ms fades; phase in degrees."""
    frames = np.arange(rate // 2)
    sine = amplitude * np.sin(2 * np.pi * frames / divisor + np.radians(phase))
    return np.repeat(tapered(sine, rate)[:, None], 2, axis=1).astype(np.float32)


def tapered(signal: Signal, rate: int) -> Signal:
    fade = np.minimum(1.0, np.arange(len(signal)) / (0.01 * rate))
    return signal * fade * fade[::-1]


def between_samples(offset: int) -> Signal:
    """Cases 20-23: one period of fs/4 at full scale inside fs/6 at half, made at 4 fs, thinned out to fs."""
    fast = 4 * RATE
    carrier = 0.5 * np.sin(2 * np.pi * np.arange(24 * 2000) / 24)  # whole periods keep the phase continuous
    burst = np.sin(2 * np.pi * np.arange(16) / 16)
    signal = tapered(np.concatenate((carrier, burst, carrier)), fast)
    spectrum = np.fft.rfft(signal)
    spectrum[np.fft.rfftfreq(len(signal)) > 0.5 / 4] = 0  # ideal anti-aliasing filter at fs/2
    slow = np.fft.irfft(spectrum, len(signal))[offset::4]
    return np.repeat(slow[:, None], 2, axis=1).astype(np.float32)


def programme(seconds: float, channels: int = 2, rate: int = RATE) -> Signal:
    """Low-pass noise whose level wanders over some 25 dB, as speech over music might."""
    from scipy.signal import lfilter

    frames = round(seconds * rate)
    noise = lfilter([1.0], [1.0, -0.95], np.random.default_rng(7).standard_normal((frames, channels)), axis=0)
    time = np.arange(frames) / rate
    level = -10 - 8 * np.sin(2 * np.pi * time / 7.3) - 4 * np.sin(2 * np.pi * time / 1.7)
    return np.asarray(noise / np.abs(noise).max() * 10 ** (level[:, None] / 20), dtype=np.float32)


TECH_3341_INTEGRATED: dict[str, tuple[list[tuple[float, float]], float]] = {
    "1": ([(-23, 20)], -23.0),
    "2": ([(-33, 20)], -33.0),
    "3": ([(-36, 10), (-23, 60), (-36, 10)], -23.0),
    "4": ([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], -23.0),
    "5": ([(-26, 20), (-20, 20.1), (-26, 20)], -23.0),
}


@pytest.mark.parametrize("case", TECH_3341_INTEGRATED)
def test_tech_3341_integrated_loudness(case: str) -> None:
    segments, expected = TECH_3341_INTEGRATED[case]
    assert measure(tones(*segments), RATE).integrated == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("case", "expected"), [("1", -23.0), ("2", -33.0)])
def test_tech_3341_steady_tones_read_the_same_momentary_and_short_term(case: str, expected: float) -> None:
    meter = measure(tones(*TECH_3341_INTEGRATED[case][0]), RATE)
    assert meter.momentary == pytest.approx(expected, abs=0.1)
    assert meter.short_term == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("lfe", [False, True], ids=["5.0", "5.1 with LFE"])
def test_tech_3341_case_6_surround(lfe: bool) -> None:
    levels = [-28, -28, -24, -30, -30]
    if lfe:
        levels.insert(3, 0)  # a loud LFE channel, which must not count
    sine = tones((0, 20), channels=1)
    surround = sine * 10 ** (np.array(levels, dtype=np.float32) / 20)
    assert measure(surround, RATE).integrated == pytest.approx(-23.0, abs=0.1)


def test_tech_3341_case_9_short_term_is_constant() -> None:
    meter = measure(tones(*[(-20, 1.34), (-30, 1.66)] * 5), RATE)
    assert meter.short_term == pytest.approx(-23.0, abs=0.1)


def test_tech_3341_case_12_momentary_is_constant_after_a_second() -> None:
    meter = measure(tones(*[(-20, 0.18), (-30, 0.22)] * 25), RATE)
    assert meter.momentary[meter.momentary_times > 1.0] == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("i", range(20))
def test_tech_3341_case_10_maximum_short_term(i: int) -> None:
    meter = measure(tones((SILENCE, 0.15 * i), (-23, 3), (SILENCE, 1)), RATE)
    assert meter.max_short_term == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("i", range(20))
def test_tech_3341_case_13_maximum_momentary(i: int) -> None:
    meter = measure(tones((SILENCE, 0.02 * i), (-23, 0.4), (SILENCE, 1)), RATE)
    assert meter.max_momentary == pytest.approx(-23.0, abs=0.1)


TECH_3341_TRUE_PEAK = {
    15: (tapered_sine(4, 0.5, 0.0), -6.0),
    16: (tapered_sine(4, 0.5, 45.0), -6.0),
    17: (tapered_sine(6, 0.5, 60.0), -6.0),
    18: (tapered_sine(8, 0.5, 67.5), -6.0),
    19: (tapered_sine(4, 1.41, 45.0), 3.0),
    20: (between_samples(0), 0.0),
    21: (between_samples(1), 0.0),
    22: (between_samples(2), 0.0),
    23: (between_samples(3), 0.0),
}


@pytest.mark.parametrize("case", TECH_3341_TRUE_PEAK)
def test_tech_3341_true_peak(case: int) -> None:
    signal, expected = TECH_3341_TRUE_PEAK[case]
    assert expected - 0.4 <= measure(signal, RATE).true_peak <= expected + 0.2


TECH_3342 = {
    "1": ([-20, -30], 10.0),
    "2": ([-20, -15], 5.0),
    "3": ([-40, -20], 20.0),
    "4": ([-50, -35, -20, -35, -50], 15.0),
}


@pytest.mark.parametrize("case", TECH_3342)
def test_tech_3342_loudness_range(case: str) -> None:
    levels, expected = TECH_3342[case]
    assert measure(tones(*[(level, 20) for level in levels]), RATE).range == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 96_000, 192_000])
def test_a_tone_reads_the_same_at_any_rate(rate: int) -> None:
    meter = measure(tones((-23, 5), rate=rate), rate)
    assert meter.integrated == pytest.approx(-23.0, abs=0.1)
    assert meter.true_peak == pytest.approx(-23.0, abs=0.05)


@pytest.mark.parametrize("rate", [16_000, 22_050, 44_100, 96_000, 192_000])
def test_a_programme_reads_the_same_at_any_rate(rate: int) -> None:
    import soxr

    at_16k = programme(20, channels=1, rate=16_000)
    resampled = soxr.resample(at_16k, 16_000, rate)
    at_48k = measure(soxr.resample(at_16k, 16_000, RATE), RATE)
    meter = measure(resampled, rate)
    assert meter.integrated == pytest.approx(at_48k.integrated, abs=0.05)
    assert meter.range == pytest.approx(at_48k.range, abs=0.05)


def test_997_hz_at_full_scale_in_one_channel_reads_minus_3_01() -> None:
    """The anchor that ITU-R BS.1770-4, annex 1, states."""
    sine = np.sin(2 * np.pi * 997 / RATE * np.arange(20 * RATE))
    left_only = np.column_stack((sine, np.zeros_like(sine)))
    assert measure(left_only, RATE).integrated == pytest.approx(-3.01, abs=0.02)
    assert measure(sine[:, None], RATE).integrated == pytest.approx(-3.01, abs=0.02)


def test_mono_copied_to_two_channels_is_3_01_louder() -> None:
    mono = programme(10, channels=1)
    # Of a view of the same samples, one channel is measured.
    one, *both = (measure(x, RATE) for x in (mono, np.repeat(mono, 2, axis=1), np.broadcast_to(mono, (len(mono), 2))))
    assert [two.integrated for two in both] == pytest.approx([one.integrated + 10 * math.log10(2)] * 2, abs=1e-6)
    assert [two.true_peak for two in both] == pytest.approx([one.true_peak] * 2, abs=1e-6)
    assert [two.range for two in both] == pytest.approx([one.range] * 2, abs=1e-6)


def test_podeval_variant_does_not_see_channels() -> None:
    mono = programme(10, channels=1)
    one, two = measure_podeval(mono, RATE), measure_podeval(np.repeat(mono, 2, axis=1), RATE)
    assert two.integrated == pytest.approx(one.integrated, abs=1e-6)
    assert two.range == pytest.approx(one.range, abs=1e-6)
    assert two.true_peak == pytest.approx(one.true_peak, abs=1e-6)


def test_blocks_of_a_second_equal_the_whole() -> None:
    """Against ITU-R BS.1770-4 written out plainly, with the coefficients it prints for 48 kHz."""
    from scipy.signal import lfilter, resample_poly

    rate, signal = RATE, programme(12.345)
    shelf = [1.53512485958697, -2.69169618940638, 1.19839281085285], [1, -1.69065929318241, 0.73248077421585]
    high_pass = [1, -2, 1], [1, -1.99004745483398, 0.99007225036621]
    weighted = lfilter(*high_pass, lfilter(*shelf, signal.astype(np.float64), axis=0), axis=0) ** 2
    starts = np.arange(0, len(signal) - round(0.4 * rate) + 1, round(0.1 * rate))
    blocks = np.array([weighted[s : s + round(0.4 * rate)].mean(axis=0).sum() for s in starts])
    gate = blocks[blocks > 10 ** (-6.9309)].mean() / 10
    meter = measure(signal, rate)
    assert meter.integrated == pytest.approx(-0.691 + 10 * math.log10(blocks[blocks > gate].mean()), abs=1e-6)
    assert meter.momentary == pytest.approx(-0.691 + 10 * np.log10(blocks), abs=1e-6)
    # scipy's interpolator is another one; both are near the band-limited truth.
    assert meter.true_peak == pytest.approx(20 * math.log10(np.abs(resample_poly(signal, 4, 1)).max()), abs=0.05)


@pytest.mark.parametrize("at", [0, 31, 32, 33, 63, 64, RATE - 2, RATE - 1, RATE, 2 * RATE - 2])
def test_a_peak_between_two_samples_is_found_wherever_it_is(at: int) -> None:
    signal = np.full((2 * RATE, 1), 1e-3, dtype=np.float32)
    signal[at : at + 2] = 1.0
    # Two full-scale samples meet at sinc(-1/2) + sinc(1/2) = 4/pi, 2.10 dB.
    assert measure(signal, RATE).true_peak == pytest.approx(20 * math.log10(4 / math.pi), abs=0.1)


def test_true_peak_is_not_below_the_sample_peak() -> None:
    signal = np.random.default_rng(3).uniform(-1, 1, (2 * RATE, 2))
    for rate in (RATE, 96_000, 192_000):
        assert measure(signal, rate).true_peak >= 20 * math.log10(np.abs(signal).max()) - 1e-6


def test_oversampling_is_halved_at_96_khz_and_none_at_192_khz() -> None:
    signal = np.tile(tapered_sine(4, 0.5, 45.0), (4, 1))
    assert measure(signal, 96_000).true_peak == pytest.approx(-6.02, abs=0.05)
    assert measure(signal, 192_000).true_peak == pytest.approx(-9.03, abs=0.05)  # the samples' own peak


def test_agrees_with_pyloudnorm() -> None:
    import pyloudnorm

    signal = programme(30)
    meter, other = measure(signal, RATE), pyloudnorm.Meter(RATE)
    # pyloudnorm derives its own filter, some 0.04 dB below the standard's coefficients.
    assert meter.integrated == pytest.approx(other.integrated_loudness(signal), abs=0.06)
    # It appends 1.5 s of silence before measuring the range.
    assert meter.range == pytest.approx(other.loudness_range(signal), abs=0.15)


def ffmpeg_ebur128(signal: Signal, rate: int, layout: str) -> dict[str, str]:
    """Last readings of libavfilter's ebur128."""
    import av
    import av.filter

    graph = av.filter.Graph()
    source = graph.add_abuffer(sample_rate=rate, format="flt", layout=layout, time_base=Fraction(1, rate))
    meter, sink = graph.add("ebur128", "metadata=1:peak=true"), graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    readings: dict[str, str] = {}
    for start in [*range(0, len(signal), rate), None]:
        frame = None
        if start is not None:
            packed = np.ascontiguousarray(signal[start : start + rate]).reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(packed, format="flt", layout=layout)
            frame.sample_rate, frame.pts = rate, start
        graph.push(frame)
        try:
            while True:
                readings = dict(graph.pull().metadata) or readings
        except (av.BlockingIOError, av.EOFError):
            pass
    return readings


@pytest.mark.parametrize(("rate", "layout", "channels"), [(48_000, "stereo", 2), (44_100, "5.1", 6)])
def test_agrees_with_ffmpeg(rate: int, layout: str, channels: int) -> None:
    signal = programme(20, channels, rate)
    readings = ffmpeg_ebur128(signal, rate, layout)
    meter = measure(signal, rate, layout)
    assert meter.integrated == pytest.approx(float(readings["lavfi.r128.I"]), abs=0.02)
    assert meter.range == pytest.approx(float(readings["lavfi.r128.LRA"]), abs=0.1)
    peak = max(float(v) for k, v in readings.items() if "true_peaks_ch" in k)
    assert meter.true_peak == pytest.approx(20 * math.log10(peak), abs=0.05)
    assert meter.momentary[-1] == pytest.approx(float(readings["lavfi.r128.M"]), abs=0.02)
    assert meter.short_term[-1] == pytest.approx(float(readings["lavfi.r128.S"]), abs=0.02)


def test_podeval_variant_meets_the_golden_values(shared_data: Path) -> None:
    """shared/data/golden_values.json: measured with PodEval's own code."""
    import soundfile

    golden = json.loads((shared_data / "golden_values.json").read_text())
    names = [name for name, values in golden.items() if "LOUD_IT" in values]
    assert names
    for name in names:
        samples, rate = soundfile.read(shared_data / name, dtype="float32", always_2d=True)
        meter, values = measure_podeval(samples, rate), golden[name]
        assert meter.integrated == pytest.approx(values["LOUD_IT"], abs=1e-3), name
        assert meter.true_peak == pytest.approx(values["LOUD_TP_x4_soxr"], abs=1e-3), name
        assert meter.range == pytest.approx(values["LOUD_LRA_podeval"], abs=1e-3), name
        assert len(meter.short_term) == values["LOUD_LRA_podeval_windows"], name


def test_a_long_file_is_measured_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.f32"
    np.tile(programme(10), (6, 1)).tofile(path)
    samples = np.memmap(path, dtype=np.float32, mode="r").reshape(-1, 2)
    measure(samples[: 5 * RATE], RATE)  # imports are not what is measured
    tracemalloc.start()
    measure(samples, RATE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert samples.nbytes > 23e6
    assert peak < 8e6


def test_timelines_give_the_end_of_their_windows() -> None:
    meter = measure(tones((SILENCE, 5), (-23, 5)), RATE)
    assert meter.momentary_times[[0, 1, -1]] == pytest.approx([0.4, 0.5, 10.0])
    assert meter.short_term_times[[0, 1, -1]] == pytest.approx([3.0, 3.1, 10.0])
    assert len(meter.momentary) == len(meter.momentary_times)
    assert len(meter.short_term) == len(meter.short_term_times)
    assert (meter.momentary[meter.momentary_times < 4.95] == -math.inf).all()
    assert (meter.momentary[meter.momentary_times > 5.45] > -23.1).all()


@pytest.mark.parametrize("measuring", [measure, measure_podeval])
class TestRefusals:
    def test_shorter_than_a_gating_block(self, measuring: Meter) -> None:
        with pytest.raises(CannotScore, match=r"at least 0\.4 s"):
            measuring(tones((-23, 0.39)), RATE)
        assert measuring(tones((-23, 0.4)), RATE).integrated < 0

    @pytest.mark.parametrize("level", [SILENCE, -80.0])
    def test_silence(self, measuring: Meter, level: float) -> None:
        with pytest.raises(CannotScore, match="Silent"):
            measuring(tones((level, 5)), RATE)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_samples_that_are_not_numbers(self, measuring: Meter, value: float) -> None:
        signal = tones((-23, 3))
        signal[2 * RATE, 1] = value
        with pytest.raises(CannotScore, match=r"2\.000 s"):
            measuring(signal, RATE)

    def test_too_low_a_rate(self, measuring: Meter) -> None:
        with pytest.raises(CannotScore, match="4000 Hz"):
            measuring(tones((-23, 3), rate=4000), 4000)

    def test_below_3_s_there_is_no_range_and_a_reason(self, measuring: Meter) -> None:
        meter = measuring(tones((-23, 2.99)), RATE)
        assert meter.range is None
        assert "3 s" in meter.reasons["range"]
        assert meter.integrated < 0
        long_enough = measuring(tones((-23, 3.0)), RATE)
        assert long_enough.range == pytest.approx(0.0)
        assert long_enough.reasons == {}


def test_a_silent_stretch_is_gated_but_breaks_podevals_range() -> None:
    signal = tones((-20, 10), (SILENCE, 10), (-30, 10))
    # The windows on the edges of the silence widen the 10 LU of the tones somewhat.
    assert measure(signal, RATE).range == pytest.approx(10, abs=2)
    meter = measure_podeval(signal, RATE)
    assert meter.range is None
    assert "from 10.5 s" in meter.reasons["range"]


@pytest.mark.parametrize("layout", [None, "8 channels", "7.1"])
def test_channels_without_weights_are_refused_with_advice(layout: str | None) -> None:
    with pytest.raises(CannotScore, match="downmix"):
        measure(np.zeros((RATE, 8), dtype=np.float32), RATE, layout)


def test_layout_and_samples_must_agree() -> None:
    with pytest.raises(BadInput, match="6 channels, but the samples have 2"):
        measure(tones((-23, 1)), RATE, "5.1(side)")


def test_layouts_decide_the_weights() -> None:
    assert get_channel_weights(3).tolist() == [1, 1, 1]
    assert get_channel_weights(3, "2.1").tolist() == [1, 1, 0]
    assert get_channel_weights(4, "4 channels").tolist() == [1, 1, 1.41, 1.41]
    assert get_channel_weights(5, "5.0(side)").tolist() == [1, 1, 1, 1.41, 1.41]


@pytest.mark.parametrize(
    ("lufs", "paper", "podeval"),
    [
        # exp(-0.0858 d) below and exp(-0.3291 d) above the ideal range: PodEval's printed constants.
        (-16.0, 1.0, 1.0),
        (-18.0, 1.0, 0.9178),
        (-23.0, 0.6512, 0.5976),
        (-14.0, 1.0, 1.0),
        (-12.0, 0.5178, 0.5178),
    ],
)
def test_integrated_score(lufs: float, paper: float, podeval: float) -> None:
    assert score_integrated_loudness(lufs) == pytest.approx(paper, abs=1e-4)
    assert score_integrated_loudness(lufs, "podeval") == pytest.approx(podeval, abs=1e-4)


@pytest.mark.parametrize(("dbtp", "score"), [(-20.0, 1.0), (-1.0, 1.0), (0.0, 0.01), (1.0, 0.0001)])
def test_true_peak_score(dbtp: float, score: float) -> None:
    assert score_true_peak(dbtp) == pytest.approx(score, rel=1e-3)


@pytest.mark.parametrize(
    ("lu", "score"), [(0.0, 0.01), (2.0, 0.1), (4.0, 1.0), (18.0, 1.0), (27.0, 0.1004), (36.0, 0.01007)]
)
def test_range_score(lu: float, score: float) -> None:
    assert score_loudness_range(lu) == pytest.approx(score, rel=1e-3)
