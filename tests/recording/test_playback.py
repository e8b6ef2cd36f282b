"""Copies that a page plays: one format for all, one loudness for two, made once, and peaks that are theirs."""

import io
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from podeval.audio.decode import hash_file
from podeval.errors import BadInput, PodevalError
from podeval.recording import playback
from podeval.recording.playback import (
    CEILING,
    PEAKS,
    Changed,
    Level,
    Playback,
    Stretch,
    decode_standard,
    match_gains,
    measure_level,
)


def tone(file: Path, rate: int, channels: int = 1, seconds: float = 4.0, height: float = 0.25) -> Path:
    """440 Hz in the first half, 880 Hz in the second."""
    times = np.arange(round(rate * seconds)) / rate
    sound = height * np.sin(2 * np.pi * np.where(times < seconds / 2, 440, 880) * times)
    sf.write(file, np.repeat(sound[:, None], channels, axis=1), rate)
    return file


@pytest.fixture
def kept(tmp_path: Path) -> Playback:
    return Playback(tmp_path / "kept")


def loudest(samples: np.ndarray, rate: int = 48_000) -> float:
    """Hz of the strongest component."""
    spectrum = np.abs(np.fft.rfft(samples[:, 0] * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


@pytest.mark.parametrize(("rate", "channels", "ending"), [(8_000, 1, "wav"), (44_100, 2, "flac"), (96_000, 6, "wav")])
def test_every_copy_is_alike_whatever_it_was_made_from(
    kept: Playback, tmp_path: Path, rate: int, channels: int, ending: str
) -> None:
    copy = kept.copy(Stretch(tone(tmp_path / f"made-by-someone.{ending}", rate, channels), 2.5, 3.5))
    found = sf.info(copy)
    assert (found.samplerate, found.channels, found.subtype, found.format) == (48_000, 2, "PCM_16", "FLAC")
    assert found.frames == 48_000, "a second, and nothing of the length of the whole"
    samples, _ = sf.read(copy)
    assert loudest(samples) == pytest.approx(880, abs=2), "from the second half"
    assert np.abs(samples).max() == pytest.approx(0.25, rel=0.02)
    assert b"someone" not in copy.read_bytes()


def test_a_stretch_is_the_same_read_by_itself_or_cut_from_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stretch = Stretch(tone(tmp_path / "a.flac", 24_000), 1.25, 2.75)
    alone = decode_standard(stretch)
    monkeypatch.setattr(playback, "_SEEKABLE", ())
    assert np.array_equal(decode_standard(stretch), alone)


def test_a_gain_is_that_of_the_samples_and_never_clips_what_was_not_measured(kept: Playback, tmp_path: Path) -> None:
    stretch = Stretch(tone(tmp_path / "a.wav", 48_000))
    before, _ = sf.read(kept.copy(stretch))
    lower, _ = sf.read(kept.copy(stretch, -6.0))
    assert np.allclose(lower, before * 10 ** (-6 / 20), atol=2**-15)
    most, _ = sf.read(kept.copy(stretch, 40.0))
    assert 0.98 < np.abs(most).max() <= 1.0
    assert np.corrcoef(most[:, 0], before[:, 0])[0, 1] > 0.99999, "louder, not clipped"


def test_a_copy_for_blind_listeners_is_no_copy_that_is_played_by_name(kept: Playback, tmp_path: Path) -> None:
    stretch = Stretch(tone(tmp_path / "a.wav", 44_100, seconds=2.3))
    named, hidden = kept.copy(stretch), kept.copy(stretch, seconds=3.0)
    told, _ = sf.read(named, always_2d=True)
    heard, _ = sf.read(hidden, always_2d=True)
    assert len(heard) == 3 * 48_000, "silence hides where it ends"
    assert np.abs(heard[: len(told)] - told).max() <= 2 * 2**-15, "the same sound"
    assert np.abs(heard[len(told) :]).max() <= 2**-15
    assert np.array_equal(heard[:, 0], heard[:, 1]), "what was mono still is"
    exact = kept.copy(stretch, seconds=2.3)
    assert exact.read_bytes() != named.read_bytes(), "also where nothing was added"
    assert sf.info(exact).frames == sf.info(named).frames
    again = Playback(tmp_path / "elsewhere").copy(stretch, seconds=3.0)
    assert again.read_bytes() == hidden.read_bytes(), "ranges of a copy that was made anew fit together"
    assert len(kept.peaks(stretch, seconds=3.0)) == PEAKS


def test_peaks_are_the_highest_magnitudes_of_the_copy(kept: Playback, tmp_path: Path) -> None:
    stretch = Stretch(tone(tmp_path / "a.wav", 44_100), 0.5, 2.0)
    samples, _ = sf.read(kept.copy(stretch, -3.0))
    peaks = kept.peaks(stretch, -3.0)
    parts = np.array_split(np.abs(samples).max(axis=1), PEAKS)
    assert len(peaks) == PEAKS
    assert peaks == pytest.approx([part.max() for part in parts], abs=1e-3)


def test_two_are_brought_to_the_target_or_lower_so_that_neither_clips() -> None:
    assert match_gains(Level(-30, -12), Level(-20, -3), -23) == pytest.approx((7, -3))
    quiet, loud = match_gains(Level(-40, -8), Level(-20, -3), -18)
    assert (-40 + quiet) == pytest.approx(-20 + loud), "equally loud"
    assert -8 + quiet == pytest.approx(CEILING), "as loud as the one with the higher peaks allows"
    assert match_gains(Level(None, 0), Level(-20, -3), -23) == (0, 0), "silence has no loudness to match"


def test_a_level_is_that_of_what_is_heard(kept: Playback, tmp_path: Path) -> None:
    """BS.1770-4: a sine of 997 Hz at 0 dBFS in both channels of stereo reads 0 LUFS (-3.01 in one of them)."""
    times = np.arange(5 * 44_100) / 44_100
    sf.write(tmp_path / "sine.wav", 0.5 * np.sin(2 * np.pi * 997 * times), 44_100)
    found = kept.level(Stretch(tmp_path / "sine.wav"))
    assert found.loudness == pytest.approx(20 * np.log10(0.5), abs=0.05)
    assert found.true_peak == pytest.approx(20 * np.log10(0.5), abs=0.1)
    assert kept.level(Stretch(tmp_path / "sine.wav")) == found
    assert measure_level(np.zeros((48_000, 2), np.float32)).loudness is None


def test_a_copy_is_made_once_also_when_many_ask_at_once(
    kept: Playback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stretch, made = Stretch(tone(tmp_path / "a.wav", 16_000)), []

    def counted(asked: Stretch) -> np.ndarray:
        made.append(asked)
        return decode_standard(asked)

    monkeypatch.setattr(playback, "decode_standard", counted)
    threads = [threading.Thread(target=kept.copy, args=(stretch,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    kept.copy(stretch)
    assert len(made) == 1
    kept.copy(stretch).unlink()
    sf.read(io.BytesIO(kept.copy(stretch).read_bytes()))
    assert len(made) == 2, "what was deleted is made again"


def test_a_recording_that_was_exchanged_is_not_kept_under_the_old_ones_hash(kept: Playback, tmp_path: Path) -> None:
    file = tone(tmp_path / "a.wav", 16_000)
    first, second = (Stretch(file, start, start + 1.0, hash_file(file)) for start in (0.0, 1.0))
    begun = kept.copy(first).read_bytes()
    tone(file, 16_000, height=0.1)
    with pytest.raises(Changed, match="no longer the recording that was added"):
        kept.copy(second)
    with pytest.raises(Changed):
        kept.level(second)
    assert kept.copy(first).read_bytes() == begun, "what is there is the old one's"
    tone(file, 16_000)
    assert kept.copy(second), "put back, it is played again"


def test_what_is_not_there_is_refused_and_a_full_disk_is_said(
    kept: Playback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput):
        kept.copy(Stretch(tmp_path / "gone.wav"))
    with pytest.raises(BadInput):
        kept.copy(Stretch(tmp_path / "gone.wav", 0.0, 1.0, content="0" * 64))
    file = tone(tmp_path / "a.wav", 16_000)
    with pytest.raises(BadInput, match="no sound after"):
        kept.copy(Stretch(file, 10.0, 12.0))
    (tmp_path / "in the way").write_text("a file where a folder has to be")
    with pytest.raises(PodevalError, match="whether the disk is full"):
        Playback(tmp_path / "in the way").copy(Stretch(file))
