"""Sample arrays that continue on disk: what they hold, and that reading them through does not fill memory."""

import sys
from pathlib import Path

import numpy as np
import pytest

from podeval.audio import samples as sample_room
from podeval.audio.samples import SampleBuffer, let_go

BLOCK = np.random.default_rng(0).normal(0, 0.1, (50_000, 2)).astype(np.float32)


def filled(blocks: int, memory_bytes: int) -> np.ndarray:
    samples = SampleBuffer(2, memory_bytes=memory_bytes)
    for number in range(blocks):
        samples.append(BLOCK * np.float32(number))
    return samples.finish()


def file_pages() -> int:
    """Bytes of mapped files that count as held by this process."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("RssFile")).split()[1])


def test_what_is_read_is_let_go_and_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("counts memory as Linux does")
    monkeypatch.setattr(sample_room, "_HELD_BYTES", 4_000_000)
    samples = filled(150, 1_000_000)
    before = file_pages()
    most = 0
    for _ in range(2):
        for number in range(150):
            block = samples[number * len(BLOCK) : (number + 1) * len(BLOCK)]
            np.testing.assert_array_equal(block, BLOCK * np.float32(number))
            most = max(most, file_pages() - before)
    assert samples.nbytes == 60_000_000
    assert most < 15_000_000
    left = samples[:, 0]
    np.testing.assert_array_equal(left[-len(BLOCK) :], BLOCK[:, 0] * np.float32(149))


def test_a_plain_view_of_what_is_on_disk_is_let_go_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("counts memory as Linux does")
    samples = filled(150, 1_000_000)
    view = np.ascontiguousarray(samples, dtype=np.float32)
    assert type(view) is np.ndarray
    before = file_pages()
    total = view.sum()
    assert file_pages() - before > 50_000_000
    let_go(view[100:])
    assert file_pages() - before < 5_000_000
    assert view.sum() == total


def test_only_a_buffer_s_own_file_is_let_go(tmp_path: Path) -> None:
    (tmp_path / "samples").write_bytes(BLOCK.tobytes())
    # A map whose changes are its own would lose them.
    private = np.memmap(tmp_path / "samples", dtype=np.float32, mode="c")
    private[0] = 7
    let_go(private)
    let_go(BLOCK)
    assert private[0] == 7


def test_what_is_written_survives_being_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_room, "_HELD_BYTES", 100_000)
    samples = filled(3, 1_000)
    samples[0] = 7
    for start in range(0, len(samples), 1000):
        samples[start : start + 1000] *= 2
    assert samples[0].tolist() == [14, 14]
    np.testing.assert_array_equal(samples[-1], 2 * BLOCK[-1] * np.float32(2))


def test_arithmetic_on_samples_gives_plain_arrays_and_numbers() -> None:
    samples = filled(2, 1_000)
    assert type(samples) is not np.ndarray
    for result in (samples * 2, np.abs(samples[:5]), samples[:5].mean(axis=1), np.concatenate([samples, samples])):
        assert type(result) is np.ndarray
    assert isinstance(samples.max(), np.float32)
    assert isinstance(samples[3, 1], np.float32)
