"""Faults that need no model: each is found where it is planted, and none where nothing is planted."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.audio import faults
from podeval.audio import samples as sound
from podeval.audio.samples import resample
from podeval.systems.controls import plant_clipped
from podeval.systems.espeak_ng import EspeakNg

RATE = 16_000
Samples = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture
def talk(speech_like: Samples) -> Samples:
    """Syllables for 6 s, of which no two sound the same."""
    return speech_like


def test_undamaged_sound_has_no_faults(talk: Samples) -> None:
    for find in (faults.find_holes, faults.find_clicks, faults.find_clipped, faults.find_cut_end):
        assert find(talk, RATE) == [], find.__name__
    noise = np.random.default_rng(1).normal(0, 0.1, 10 * RATE).astype(np.float32)
    assert faults.find_clicks(noise, RATE) == []
    assert faults.find_loops(noise, RATE) == []


@pytest.mark.parametrize("seconds", [0.03, 0.2])
def test_a_hole_is_found_to_a_millisecond(talk: Samples, seconds: float) -> None:
    damaged = talk.copy()
    start = round(0.85 * RATE)
    damaged[start : start + round(seconds * RATE)] = 0
    (hole,) = faults.find_holes(damaged, RATE)
    assert (hole.start, hole.duration) == pytest.approx((0.85, seconds), abs=0.001)


def test_pauses_of_digital_silence_that_sound_fades_into_are_no_holes(talk: Samples) -> None:
    faded = talk[: 2 * RATE] * np.linspace(1, 0, 2 * RATE, dtype=np.float32) ** 3
    silence = np.zeros(RATE, np.float32)
    assert faults.find_holes(np.concatenate([silence, faded, silence, faded[::-1], silence]), RATE) == []


def test_the_stops_of_a_formant_synthesiser_are_no_holes_and_what_is_lost_in_pieces_is() -> None:
    system = EspeakNg()
    if reason := system.available():
        pytest.skip(reason)
    script = benchmarks.get("real_pod").items("demo")[0].script
    assert script
    robot = system.speak(script, seed=1)
    samples = np.ascontiguousarray(robot.samples[:, 0])
    stops = faults.find_holes(samples, robot.rate)
    assert len(stops) >= 20
    assert faults.leave_out_habit(samples, robot.rate, stops) == []
    # A twentieth of a reader's speech is lost, in pieces of 20 ms.
    reader, rate = READERS[0].copy(), READER_RATE
    piece = round(0.02 * rate)
    for number in np.flatnonzero(np.random.default_rng(2).uniform(size=len(reader) // piece) < 0.05):
        reader[number * piece : (number + 1) * piece] = 0
    lost = faults.find_holes(reader, rate)
    assert len(lost) >= 6
    assert faults.leave_out_habit(reader, rate, lost) == lost
    # A dropout of a tenth of a second among the stops is one all the same, where the sound is loud.
    loud = int(np.abs(samples).argmax())
    samples[loud : loud + round(0.12 * robot.rate)] = 0
    (hole,) = faults.leave_out_habit(samples, robot.rate, faults.find_holes(samples, robot.rate))
    assert hole.start == pytest.approx(loud / robot.rate, abs=0.002)


@pytest.mark.parametrize("height", [0.4, -0.8])
def test_a_click_is_found_at_its_sample(talk: Samples, height: float) -> None:
    damaged = talk.copy()
    damaged[31_000] += height
    (click,) = faults.find_clicks(damaged, RATE)
    assert click.start <= 31_000 / RATE <= click.end + 1 / RATE
    assert click.end - click.start < 0.004


@pytest.mark.parametrize("share", [0.4, 0.7])
def test_a_clipped_run_is_found_at_whatever_level_it_was_clipped(talk: Samples, share: float) -> None:
    damaged = talk.copy()
    part = slice(round(2.1 * RATE), round(2.6 * RATE))
    limit = share * float(np.abs(damaged[part]).max())
    damaged[part] = damaged[part].clip(-limit, limit)
    (run,) = faults.find_clipped(damaged, RATE)
    assert run.start == pytest.approx(2.1, abs=0.05)
    assert 2.2 < run.end < 2.6, "where the syllable fades, nothing is clipped"


READERS = [
    soundfile.read(path, dtype="float32")[0]
    for path in sorted((Path(benchmarks.__file__).parent / "data" / "readers").glob("libritts_r_*.flac"))[:8:2]
]
"""Four people who read, 24 kHz, 16 bit."""

READER_RATE = 24_000
FORMS = [
    *(
        (rate, subtype, level)
        for rate in (8_000, 48_000, 192_000)
        for subtype in ("PCM_16", "FLOAT")
        for level in (0, -30)
    ),
    *(
        (rate, subtype, level)
        for rate in (8_000, 24_000)
        for subtype in ("PCM_U8", "ULAW", "ALAW")
        for level in (0, -42)
    ),
    *((24_000, "PCM_16", level) for level in (-12, -24, -42)),
    *((96_000, subtype, -42) for subtype in ("PCM_16", "PCM_24")),
]


def store(samples: Samples, rate: int, subtype: str, container: str = "WAV") -> Samples:
    """Return the samples as a file of this form gives them back."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, subtype=subtype, format=container)
    file.seek(0)
    stored: Samples = soundfile.read(file, dtype="float32")[0]
    return stored


def clip_half_a_second(samples: Samples, rate: int) -> tuple[Samples, float]:
    """Clip half a second from where the reader is loudest on; return where that is."""
    second = np.abs(samples[: -2 * rate]).reshape(-1)[: (len(samples) - 2 * rate) // 1200 * 1200].reshape(-1, 1200)
    place = float(np.convolve(second.mean(axis=1), np.ones(10), "valid").argmax()) * 1200 / rate
    damaged = samples.copy()
    plant_clipped(damaged, rate, place)
    return damaged, place


@pytest.mark.every(3)
@pytest.mark.parametrize(("rate", "subtype", "level"), FORMS)
def test_people_who_read_are_not_clipped_at_any_rate_depth_or_level(rate: int, subtype: str, level: int) -> None:
    for reader in READERS:
        stored = store(np.float32(10 ** (level / 20)) * resample(reader, READER_RATE, rate), rate, subtype)
        assert faults.find_clipped(stored, rate) == []


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("rate", "subtype", "level"),
    [form for form in FORMS if form[0] > 8_000 and form[1] not in ("PCM_U8", "ULAW", "ALAW")]
    + [(24_000, "ULAW", 0), (24_000, "ALAW", -12)],
)
def test_half_a_second_that_was_clipped_is_found_at_any_rate_depth_and_level(
    rate: int, subtype: str, level: int
) -> None:
    for reader in READERS:
        damaged, place = clip_half_a_second(reader, READER_RATE)
        stored = store(np.float32(10 ** (level / 20)) * resample(damaged, READER_RATE, rate), rate, subtype)
        spans = faults.find_clipped(stored, rate)
        assert spans, (rate, subtype, level)
        assert all(place - 0.1 < span.start < span.end < place + 0.6 for span in spans)


@pytest.mark.parametrize(
    ("container", "subtype"),
    [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), pytest.param("OGG", "OPUS", marks=pytest.mark.long)],
)
def test_clipping_that_was_coded_afterwards_is_mostly_found_and_coding_clips_nothing(
    container: str, subtype: str
) -> None:
    found = 0
    for reader in READERS:
        damaged, _ = clip_half_a_second(reader, READER_RATE)
        assert faults.find_clipped(store(reader, READER_RATE, subtype, container), READER_RATE) == []
        found += bool(faults.find_clipped(store(damaged, READER_RATE, subtype, container), READER_RATE))
    assert found >= 3


@pytest.mark.parametrize("offset", [-0.3, 0.05, 0.3])
def test_a_constant_offset_clips_nothing_hides_nothing_and_is_a_fault_of_its_own(offset: float) -> None:
    for reader in READERS:
        damaged, _ = clip_half_a_second(reader, READER_RATE)
        shifted = [store(each / 2 + np.float32(offset), READER_RATE, "PCM_16") for each in (reader, damaged)]
        assert [bool(faults.find_clipped(each, READER_RATE)) for each in shifted] == [False, True]
        (span,) = faults.find_offsets(shifted[0], READER_RATE)
        assert (span.start, span.end) == pytest.approx((0, len(reader) / READER_RATE), abs=0.05)
        assert faults.find_offsets(reader, READER_RATE) == []


def test_an_offset_is_removed_from_each_part_to_the_sample_and_hardly_any_is_left_alone() -> None:
    speech = np.concatenate(READERS)
    assert sound.remove_offset(speech, READER_RATE) is speech
    shift = np.where(np.arange(len(speech)) < len(speech) // 2, np.float32(0.1), np.float32(-0.02))
    parts = sound.remove_offset(speech + shift, READER_RATE)
    away = np.abs(parts - speech)
    assert float(np.quantile(away, 0.95)) < 0.005
    (span, *_) = faults.find_offsets(speech + shift, READER_RATE)
    assert span.end == pytest.approx(len(speech) / 2 / READER_RATE, abs=0.1)
    whole = sound.remove_offset(speech + np.float32(0.1), READER_RATE)
    np.testing.assert_allclose(whole, speech, atol=1e-3)


@pytest.mark.every(3)
@pytest.mark.parametrize("frequency", [110, 221.3, 440, 1_000])
@pytest.mark.parametrize("harmonics", [range(1, 60, 2), range(1, 20, 2), range(1, 14), (1, 1.25, 1.5)])
def test_tones_with_flat_waves_are_not_clipped(frequency: float, harmonics: Any) -> None:
    """Square waves, reeds, brass and chords of a synthesiser, as they are and coded by MP3."""
    rate = 24_000
    time = np.arange(2 * rate) / rate
    parts = [np.sin(2 * np.pi * frequency * n * time) / n for n in harmonics if frequency * n < rate / 2]
    tone = np.sum(parts, axis=0)
    tone *= 0.7 / np.abs(tone).max()
    for form, subtype in (("WAV", "PCM_16"), ("MP3", "MPEG_LAYER_III")):
        file = io.BytesIO()
        soundfile.write(file, tone, rate, format=form, subtype=subtype)
        file.seek(0)
        assert faults.find_clipped(soundfile.read(file, dtype="float32")[0], rate) == []


@pytest.mark.parametrize("gain", [2.0, 20.0, 32767.0])
def test_samples_beyond_full_scale_are_a_fault_and_no_clipping(gain: float) -> None:
    for reader in READERS:
        loud = np.float32(gain / np.abs(reader).max()) * reader
        assert faults.find_beyond_scale(loud, READER_RATE)
        assert faults.find_clipped(loud, READER_RATE) == []
        assert faults.find_beyond_scale(reader / np.abs(reader).max(), READER_RATE) == []


@pytest.mark.parametrize("level", [None, -70.0])
@pytest.mark.parametrize("seconds", [2.0, 30.0])
def test_silence_at_the_ends_neither_makes_nor_hides_a_fault(seconds: float, level: float | None) -> None:
    size = round(seconds * READER_RATE)
    noise = np.random.default_rng(3).normal(0, 0 if level is None else 10 ** (level / 20), size).astype(np.float32)
    speech = np.concatenate(READERS[:2])
    loud = int(np.abs(speech[-READER_RATE:]).argmax()) + len(speech) - READER_RATE + 1
    cut = speech[:loud]
    for samples, cut_off in ((speech, 0), (cut, 1)):
        padded = np.concatenate([noise, samples, noise])
        assert len(faults.find_cut_end(samples, READER_RATE)) == cut_off
        ends = faults.find_cut_end(padded, READER_RATE)
        assert [span.end for span in ends] == pytest.approx([seconds + len(samples) / READER_RATE] * cut_off, abs=0.01)
        for find in (faults.find_holes, faults.find_clipped, faults.find_offsets):
            assert find(padded, READER_RATE) == find(samples, READER_RATE) == []
        assert sound.measure_level(padded, READER_RATE) == pytest.approx(
            sound.measure_level(samples, READER_RATE), rel=0.02
        )
        if seconds > sound.SILENT_SECONDS:
            sounding = sound.measure_sounding(padded, READER_RATE)
            assert sounding == pytest.approx(len(samples) / READER_RATE, abs=1.0)


def test_speech_that_becomes_louder_for_good_jumps_once(talk: Samples) -> None:
    samples = np.concatenate([talk, 4 * talk])
    (jump,) = faults.find_level_jumps(samples, RATE, [faults.Span(0.0, 12.0)])
    assert jump.start == pytest.approx(6.0, abs=0.7)
    assert faults.find_level_jumps(np.concatenate([talk, talk]), RATE, [faults.Span(0.0, 12.0)]) == []


def test_an_end_in_the_middle_of_a_syllable_is_cut_off(talk: Samples) -> None:
    loudest = int(np.abs(talk).argmax())
    (end,) = faults.find_cut_end(talk[:loudest], RATE)
    assert end.end == pytest.approx(loudest / RATE)


def test_a_stretch_that_is_heard_again_is_a_loop_with_its_lag() -> None:
    chance = np.random.default_rng(4)
    parts = [np.convolve(chance.normal(0, 0.1, 1600), chance.normal(0, 1, 12), "same") for _ in range(80)]
    sound = np.concatenate(parts).astype(np.float32)
    at = 3 * RATE
    looped = np.concatenate([sound[:at], sound[at - 2 * RATE : at], sound[at:]])
    ((loop, lag),) = faults.find_loops(looped, RATE)
    assert lag == pytest.approx(2.0)
    assert (loop.start, loop.end) == pytest.approx((3.0, 5.0), abs=0.15)


@pytest.mark.parametrize("seconds", [5.0, 30.0, 120.0])
def test_silence_around_speech_makes_no_loop_of_it(seconds: float) -> None:
    speech = resample(np.concatenate(READERS[:2]), READER_RATE, RATE)
    silence = np.zeros(round(seconds * RATE), np.float32)
    assert faults.find_loops(speech, RATE) == []
    assert faults.find_loops(np.concatenate([silence, speech, silence]), RATE) == []
    paused = [part for word in np.array_split(speech, 12) for part in (word, silence[: round(1.5 * RATE)])]
    assert faults.find_loops(np.concatenate(paused), RATE) == []


def test_silence_has_no_faults_and_no_level() -> None:
    silence = np.zeros(RATE, np.float32)
    assert sound.measure_level(silence, RATE) == 0.0
    for find in (faults.find_holes, faults.find_clicks, faults.find_clipped, faults.find_cut_end):
        assert find(silence, RATE) == []
    assert faults.find_loops(silence, RATE) == []


@pytest.mark.parametrize("block", [1000, 4096])
def test_what_is_found_does_not_depend_on_the_blocks_that_are_read(
    talk: Samples, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = np.concatenate([np.zeros(2 * RATE, np.float32), talk + np.float32(0.03), talk, np.zeros(500, np.float32)])
    for border in (40 * block, 48 * block):
        damaged[border - 900 : border + 1100] = 0
    for at in (2 * RATE + 25 * block, 30 * block - 1):
        damaged[at] += 0.9
    damaged[44 * block - 3 : 44 * block + 3] = 1.2
    finders = (
        faults.find_holes,
        faults.find_clicks,
        faults.find_beyond_scale,
        faults.find_offsets,
        sound.find_sound,
        sound.measure_powers,
        sound.remove_offset,
    )
    whole = [np.array(find(damaged, RATE)).tolist() for find in finders]
    assert all(whole)
    for module in (faults, sound):
        monkeypatch.setattr(module, "_BLOCK", block)
    assert [np.array(find(damaged, RATE)).tolist() for find in finders] == whole
