"""A recording is decoded once, its facts are computed once, and what it is made from does not matter."""

import dataclasses
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.audio import samples as analysis_samples
from podeval.audio.samples import resample
from podeval.errors import BadAudio, BadInput, CannotScore
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.metrics.speech.dnsmos import rate_samples
from podeval.models import registry
from podeval.models.interfaces import Transcript
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.recording.reference_voices import ReferenceVoices
from podeval.recording.speaker_turns import align_turns
from podeval.text.script import Script

RATE = 16_000
SCRIPT = Script.parse(
    [
        {"speaker": "Ann", "text": "Good evening and welcome to the show."},
        {"speaker": "Ben", "text": "Thank you, it is a pleasure to be here."},
    ]
)


def noise(seconds: float = 8.0, rate: int = RATE, channels: int = 1, level: float = 0.1) -> np.ndarray[Any, Any]:
    dice = np.random.default_rng(1)
    return (level * dice.standard_normal((round(seconds * rate), channels))).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.wav"
    soundfile.write(path, noise(), RATE, subtype="FLOAT")
    return path


def test_all_metrics_share_each_fact(file: Path, cache: Cache, models: Any) -> None:
    soundfile.write(file, noise(16), RATE)
    recording = Recording.open(file, cache=cache)
    inputs = {"recording": recording, "script": SCRIPT, "reference_text": SCRIPT.text}
    for name in ("wer", "sptd", "timbre_consistency", "dnsmos", "wer", "sptd", "loudness"):
        assert isinstance(catalogue.get(name)(inputs), Score), name
    assert models.asked == {"music": 1, "transcribe en": 1, "embed": 1, "speech": 1, "score": 1}


def test_a_second_recording_of_the_same_content_asks_the_disk_and_loads_nothing(
    file: Path, cache: Cache, models: Any
) -> None:
    def facts(recording: Recording) -> list[Any]:
        turns = recording.diarization()
        voices = recording.voices(turns)
        quality = rate_samples(recording, "exact")
        plain = [(voice.speaker, voice.seconds, voice.embedding.tolist()) for voice in voices]
        return [recording.speech(), recording.transcript("en"), turns, plain, quality.tolist()]

    first = facts(Recording.open(file, cache=cache))
    loaded = dict(models.loaded)
    moved = file.rename(file.with_name("moved.wav"))
    assert facts(Recording.open(moved, cache=Cache(cache.folder))) == first
    assert models.loaded == loaded


def test_damaged_and_foreign_entries_are_computed_anew(file: Path, cache: Cache, models: Any) -> None:
    before = Recording.open(file, cache=cache).speech()
    (entry,) = cache.folder.glob("??/*")
    entry.write_bytes(entry.read_bytes()[:-3])
    assert Recording.open(file, cache=cache).speech() == before
    cache.put(entry.parent.name + entry.name, b'{"from": "another version"}')
    assert Recording.open(file, cache=cache).speech() == before
    assert models.asked["speech"] == 3


def test_another_model_or_parameter_is_another_fact(
    file: Path, cache: Cache, models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recording.open(file, cache=cache).transcript()
    Recording.open(file, cache=cache).transcript("zh")
    assert models.asked == {"transcribe None": 1, "transcribe zh": 1}
    card = registry.get_card("transcriber", "embedded")
    other = dataclasses.replace(card, options={**card.options, "beam_size": 5})
    monkeypatch.setattr(registry, "get_card", lambda job, profile: other)
    Recording.open(file, cache=cache).transcript()
    assert models.asked["transcribe None"] == 2


def test_a_language_that_is_heard_otherwise_is_transcribed_as_asked(file: Path, cache: Cache, models: Any) -> None:
    models.language = "cy"
    recording = Recording.open(file, cache=cache)
    assert recording.transcript().language == "cy"
    assert recording.transcript("en").language == "en"
    assert recording.transcript("en") is recording.transcript("en")
    assert models.asked == {"transcribe None": 1, "transcribe en": 1}


def test_a_disk_that_keeps_nothing_still_gives_facts_once(file: Path, tmp_path: Path, models: Any) -> None:
    (tmp_path / "in the way").write_text("")
    recording = Recording.open(file, cache=Cache(tmp_path / "in the way" / "cache"))
    assert recording.speech() == recording.speech()
    assert models.asked["speech"] == 1


def test_paths_bytes_and_samples_are_the_same_recording(file: Path, cache: Cache, models: Any) -> None:
    samples, rate = soundfile.read(file, dtype="float32")
    made = [
        Recording.open(file, cache=cache),
        Recording.open(str(file), cache=cache),
        Recording.from_bytes(file.read_bytes(), cache=cache),
        Recording.from_samples(samples, rate, cache=cache),
        Recording.from_samples(samples[:, None].astype(np.float64), float(rate), cache=cache),
    ]
    for recording in made:
        assert (recording.rate, recording.channels, recording.duration) == (RATE, 1, 8.0)
        np.testing.assert_array_equal(recording.samples, made[0].samples)
        assert recording.transcript() == made[0].transcript()
    assert made[2].content == made[0].content
    assert made[3].content == made[4].content
    assert models.asked["transcribe None"] == 2  # by file, by samples


def test_samples_beyond_full_scale_are_kept(tmp_path: Path, cache: Cache) -> None:
    loud = noise(level=1.5)
    assert np.abs(loud).max() > 3
    soundfile.write(tmp_path / "loud.wav", loud, RATE, subtype="FLOAT")
    for recording in (Recording.open(tmp_path / "loud.wav"), Recording.from_samples(loud, RATE)):
        np.testing.assert_array_equal(recording.samples, loud)
        np.testing.assert_array_equal(recording.mono(), loud[:, 0])


@pytest.mark.parametrize(
    ("kind", "values"),
    [("int16", [-32768, 0, 16384]), ("int32", [-(2**31), 0, 2**30]), ("int8", [-128, 0, 64]), ("uint8", [0, 128, 192])],
)
def test_integers_are_scaled_from_their_full_range(kind: str, values: list[int]) -> None:
    recording = Recording.from_samples(np.array(values, dtype=kind), RATE)
    np.testing.assert_allclose(recording.samples[:, 0], [-1.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (
            np.zeros((2, 48_000), np.float32),
            r"48000 channels of 2 frames, .* transpose them to \(frames, channels\)",
        ),
        (np.zeros(0, np.float32), r"must have the shape \(frames,\) or \(frames, channels\), not \(0, 1\)"),
        (np.zeros((2, 2, 2), np.float32), r"not \(2, 2, 2\)"),
        (np.array(["a", "b"]), "must be numbers, not <U1"),
        (np.zeros(8, np.complex64), "must be numbers, not complex64"),
        ([[0.0, 1.0], [0.0]], "their rows have different lengths"),
    ],
    ids=["transposed", "empty", "three axes", "text", "complex", "ragged"],
)
def test_what_is_no_audio_is_refused_in_words(samples: Any, message: str) -> None:
    with pytest.raises(BadAudio, match=message):
        Recording.from_samples(samples, RATE)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(BadInput, match="sampling rate must be a positive number of Hz"):
        Recording.from_samples(noise(1), rate)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_not_numbers_are_a_defect(value: float) -> None:
    samples = noise(2)
    samples[-1] = value
    with pytest.raises(CannotScore, match=r"samples that are not numbers \(NaN or infinity\); export it again"):
        Recording.from_samples(samples, RATE).require_sound()


def test_silence_and_clips_too_short_are_refused() -> None:
    with pytest.raises(CannotScore, match="digital silence from beginning to end"):
        Recording.from_samples(np.zeros(RATE), RATE).require_sound()
    with pytest.raises(CannotScore, match=r"lasts 0\.05 s; at least 0\.4 s are needed"):
        Recording.from_samples(noise(0.05), RATE).require_sound(0.4)
    Recording.from_samples(noise(0.4), RATE).require_sound(0.4)


def test_a_rate_below_the_models_is_refused_unless_allowed(cache: Cache, models: Any) -> None:
    samples = noise(2, 8000)
    allowed = Recording.from_samples(samples, 8000, cache=cache, allow_upsampling=True)
    assert allowed.speech()[0].end == pytest.approx(2.0)
    with pytest.raises(CannotScore, match=r"8000 Hz, below the 16000 Hz .*--allow-upsampling"):
        Recording.from_samples(samples, 8000, cache=cache).speech()


def test_allowing_what_is_not_needed_changes_nothing(file: Path, cache: Cache, models: Any) -> None:
    Recording.open(file, cache=cache).speech()
    Recording.open(file, cache=cache, allow_upsampling=True).speech()
    assert models.asked["speech"] == 1


def test_models_hear_the_mean_of_all_channels(tmp_path: Path, cache: Cache, models: Any) -> None:
    seven = noise(2, channels=7)
    soundfile.write(tmp_path / "seven.wav", seven, RATE, subtype="FLOAT")
    Recording.open(tmp_path / "seven.wav", cache=cache).speech()
    np.testing.assert_allclose(models.heard[0], seven.mean(axis=1), atol=1e-6)


def test_channels_are_mixed_once_for_all_rates_with_the_same_values(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, mixes = noise(2.0, 48_000, 2), []
    mix = analysis_samples.mix_channels

    def mix_and_note(channels: Any) -> Any:
        mixes.append(len(channels))
        return mix(channels)

    monkeypatch.setattr("podeval.recording.recording.mix_channels", mix_and_note)
    recording = Recording.from_samples(samples, 48_000, cache=cache)
    for rate in (16_000, 44_100, 48_000, 16_000):
        np.testing.assert_array_equal(recording.mono(rate), resample(mix(samples), 48_000, rate))
    assert mixes == [96_000]


@pytest.mark.parametrize("left", [0.0, 5e-4])
def test_channels_that_cancel_each_other_are_refused_where_their_mean_is_needed(cache: Cache, left: float) -> None:
    one = noise(2)
    recording = Recording.from_samples(np.hstack([one, (left - 1) * one]), RATE, cache=cache)
    recording.require_sound()
    for hears in (recording.mono, recording.speech, lambda: rate_samples(recording, "exact")):
        with pytest.raises(CannotScore, match="its channels are averaged, because they cancel each other"):
            hears()


def test_channels_of_which_something_is_left_are_averaged(cache: Cache) -> None:
    one = noise(2)
    for other in (-0.99 * one, 0 * one):
        mixed = Recording.from_samples(np.hstack([one, other]), RATE, cache=cache).mono()
        np.testing.assert_allclose(mixed, (one + other)[:, 0] / 2, atol=1e-6)
    assert not Recording.from_samples(np.zeros((RATE, 2)), RATE, cache=cache).mono().any()


def test_turns_follow_the_script_where_there_is_one(file: Path, cache: Cache, models: Any) -> None:
    recording = Recording.open(file, cache=cache)
    aligned = align_turns(recording, SCRIPT)
    assert [turn.speaker for turn in aligned] == ["Ann", "Ben"]
    assert models.asked["diarize"] == 0
    assert [turn.speaker for turn in recording.diarization()] == ["S1", "S2"]
    assert models.asked["transcribe None"] == 1


def test_with_a_script_only_metrics_of_how_turns_overlap_diarise(file: Path, cache: Cache, models: Any) -> None:
    diarising = [metric for metric in catalogue.load_all_metrics() if "diarizer" in metric.needs]
    with_script = [metric for metric in diarising if "script" in (*metric.inputs, *metric.optional_inputs)]
    assert {metric.name for metric in diarising if metric not in with_script} == {"turn_taking", "dialogue_naturalness"}
    soundfile.write(file, noise(16), RATE)
    voices = ReferenceVoices({name: Recording.from_samples(noise(4), RATE, cache=cache) for name in ("Ann", "Ben")})
    inputs = {
        "recording": Recording.open(file, cache=cache),
        "script": SCRIPT,
        "reference_text": SCRIPT.text,
        "reference_voices": voices,
    }
    # Pace wants 40 s and endurance 300 s; tests/metrics has them.
    results = {metric.name: metric(inputs) for metric in with_script if metric.name not in ("pace", "endurance")}
    assert {"sptd", "timbre_consistency", "sim", "wsim", "timbre_similarity"} <= results.keys()
    assert all(isinstance(result, Score) for result in results.values()), results
    assert models.asked["diarize"] == 0


def test_a_script_that_is_not_what_is_heard_does_not_tell_who_speaks(file: Path, cache: Cache, models: Any) -> None:
    other = Script.parse([{"speaker": "A", "text": "Quarks bind gluons."}, {"speaker": "B", "text": "Nobody knew."}])
    with pytest.raises(CannotScore, match="less than half of the script's words were recognised"):
        align_turns(Recording.open(file, cache=cache), other)


def test_voices_are_windows_over_each_speaker_s_joined_speech(cache: Cache, models: Any) -> None:
    recording = Recording.from_samples(noise(30), RATE, cache=cache)
    Turn = type(recording.diarization()[0])  # noqa: N806
    turns = [Turn("A", 0, 4), Turn("B", 24, 24.4), Turn("C", 25, 26), Turn("A", 10, 13), Turn("C", 29, 99)]
    voices = {voice.speaker: voice for voice in recording.voices(turns)}
    assert set(voices) == {"A", "C"}
    assert voices["A"].seconds == pytest.approx(7)
    assert voices["C"].seconds == pytest.approx(2)  # the turn ends with the recording
    assert [[(span.start, span.end) for span in clip] for clip in voices["A"].clips] == [
        [(0, 3)],
        [(2, 4), (10, 11)],
        [(10, 13)],
    ]
    # The stub embeds a clip as (its frames, its number, 1): three of A's windows, then C, shorter than one, whole.
    np.testing.assert_allclose(voices["A"].embedding, [3 * RATE, 2, 1])
    np.testing.assert_allclose(voices["C"].embeddings, [[2 * RATE, 4, 1]])
    assert recording.voices([]) == ()


def test_facts_survive_a_trip_through_the_disk(file: Path, cache: Cache, models: Any) -> None:
    Recording.open(file, cache=cache).transcript()
    again = Recording.open(file, cache=cache).transcript()
    assert isinstance(again, Transcript)
    assert again.words[-1].text == "here"
    assert again.words[-1].end == pytest.approx(8.0)


@pytest.mark.long
def test_a_long_file_is_decoded_mixed_and_metered_in_bounded_memory(tmp_path: Path) -> None:
    """20 minutes of 16 kHz stereo hold 154 MB of samples; buffers may keep 8 MB in memory before they use the disk."""
    path = tmp_path / "long.wav"
    block = (np.random.default_rng(0).standard_normal((RATE * 60, 2)) * 3000).astype(np.int16)
    with soundfile.SoundFile(path, "w", RATE, 2, "PCM_16") as out:
        for _ in range(20):
            out.write(block)
    program = textwrap.dedent(f"""
        import resource
        from podeval.audio import decode, samples
        small = 8 * 2**20
        for function in (samples.mix_to_mono, samples.resample, samples.SampleBuffer.__init__):
            function.__kwdefaults__["memory_bytes"] = small
        decode.DEFAULT_LIMITS.__dict__["memory_bytes"] = small
        from podeval.recording import Recording
        from podeval.audio.loudness import measure
        def peak():
            # Pages of the temporary file are the system's to take back; VmHWM would count them.
            return {{line.split(":")[0]: int(line.split()[1]) for line in open("/proc/self/status") if "kB" in line}}
        import threading, time
        most = before = peak()["RssAnon"]
        def watch():
            global most
            while True:
                most = max(most, peak()["RssAnon"])
                time.sleep(0.05)
        threading.Thread(target=watch, daemon=True).start()
        recording = Recording.open({str(path)!r})
        recording.require_sound()
        assert len(recording.mono()) == 1200 * 16000
        found = measure(recording.samples, recording.rate, recording.layout)
        assert -30 < found.integrated < -10
        print((most - before) // 1024)
    """)
    environment = os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 80
