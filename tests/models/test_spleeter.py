from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from podeval.audio.decode import decode
from podeval.audio.samples import resample
from podeval.models.networks.spleeter import (
    BINS,
    FRAME,
    HOP,
    RATE,
    SEGMENT,
    Spleeter,
)

pytestmark = [pytest.mark.models, pytest.mark.cpu]

Samples = NDArray[np.float32]
TWO_SEGMENTS = 13 * RATE


@pytest.fixture(scope="module")
def spleeter(weights_folder: Callable[[str], Path]) -> Spleeter:
    folder = weights_folder("spleeter-2stems")
    return Spleeter({name: folder / name for name in ("vocals.ckpt", "accompaniment.ckpt")})


@pytest.fixture(scope="module")
def music() -> Samples:
    """Two channels of plucked chords over 13 s, wider on one side than on the other."""
    time = np.arange(TWO_SEGMENTS) / RATE
    since = time % 1.0
    chord = sum(
        np.sin(2 * np.pi * pitch * harmonic * time) * np.exp(-3 * since) / harmonic
        for pitch in (220.0, 277.2, 329.6)
        for harmonic in range(1, 12)
    )
    hiss = np.random.default_rng(1).standard_normal((TWO_SEGMENTS, 2)) * np.exp(-20 * since)[:, np.newaxis]
    return np.asarray(0.1 * np.stack([chord, 0.6 * chord], axis=1) + 0.02 * hiss, dtype=np.float32)


@pytest.fixture(scope="module")
def music_stems(
    spleeter: Spleeter, music: Samples, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Samples, Samples]:
    """Made from a recording on disk."""
    path = tmp_path_factory.mktemp("music") / "music.npy"
    np.save(path, music)
    return spleeter.separate(np.load(path, mmap_mode="r"))


def decibels(signal: Samples, other: Samples) -> float:
    return float(10 * np.log10(np.sum(signal.astype(float) ** 2) / np.sum(other.astype(float) ** 2)))


@pytest.mark.long
def test_the_level_of_speech_over_music_is_found(spleeter: Spleeter, shared_data: Path) -> None:
    """The mix was made at a speech-to-music ratio of 0 dB."""
    decoded = decode(shared_data / "samples/speech_music_mix_0dB.flac")
    mix = resample(decoded.samples, decoded.rate, RATE)
    speech, rest = spleeter.separate(mix)
    assert decibels(speech, rest) == pytest.approx(0.0, abs=1.5)
    assert decibels(mix, mix - speech - rest) > 100


def test_speech_comes_out_cleaner_than_it_went_in(spleeter: Spleeter, music: Samples, shared_data: Path) -> None:
    """In mixes at 0 dB; 8 dB is the least that was measured for the vocals of these weights (November 2026)."""
    decoded = decode(shared_data / "samples/dialogue_kokoro.flac")
    said = resample(decoded.samples, decoded.rate, RATE)[: len(music)]
    played = music.mean(axis=1, keepdims=True)
    played *= np.sqrt(np.sum(said**2) / np.sum(played**2))
    speech, rest = spleeter.separate(said + played)
    assert decibels(said, speech - said) > 8
    assert decibels(played, rest - played) > 8


@pytest.mark.long
def test_music_alone_is_accompaniment(music_stems: tuple[Samples, Samples]) -> None:
    speech, rest = music_stems
    assert decibels(rest, speech) > 15


@pytest.mark.long
def test_stems_add_up_to_the_mix_in_every_band(music: Samples, music_stems: tuple[Samples, Samples]) -> None:
    added = music_stems[0] + music_stems[1]
    above_11_khz = slice(int(11_100 / RATE * len(music)), None)
    bands = [np.abs(np.fft.rfft(signal, axis=0))[above_11_khz] for signal in (music, added)]
    assert decibels(music, music - added) > 100
    assert decibels(bands[0], bands[0] - bands[1]) > 80


@pytest.mark.long
def test_working_in_blocks_from_disk_changes_nothing(
    spleeter: Spleeter, music: Samples, music_stems: tuple[Samples, Samples]
) -> None:
    """Against one spectrogram of the whole recording and one overlap-add, written with torch's own."""
    spectra_wanted = 2 * SEGMENT
    after = (spectra_wanted - 1) * HOP - len(music)
    padded = torch.nn.functional.pad(torch.from_numpy(music.T.copy()), (FRAME, after))
    window = torch.hann_window(FRAME)
    with torch.inference_mode():
        spectra = torch.stft(padded, FRAME, HOP, window=window, center=False, return_complex=True).mT
        assert spectra.shape == (2, spectra_wanted, BINS)
        halves = spectra[:, :SEGMENT].abs(), spectra[:, SEGMENT:].abs()
        shares = torch.cat([spleeter.speech_share(half) for half in halves], dim=1)
        pieces = torch.fft.irfft(shares * spectra) * window / 1.5
        length = padded.shape[1]
        added = torch.nn.functional.fold(pieces.mT, (1, length), (1, FRAME), stride=(1, HOP))
    whole = added[:, 0, 0, FRAME : FRAME + len(music)].T.numpy()
    np.testing.assert_allclose(music_stems[0], whole, atol=1e-6)


@pytest.mark.long
def test_one_channel_is_the_middle_of_two_equal_ones(spleeter: Spleeter, music: Samples) -> None:
    left = music[: 3 * RATE, :1]
    for one, two in zip(spleeter.separate(left), spleeter.separate(np.repeat(left, 2, axis=1)), strict=True):
        assert one.shape == left.shape
        np.testing.assert_allclose(one, two.mean(axis=1, keepdims=True), atol=1e-6)


def test_silence_stays_silence(spleeter: Spleeter) -> None:
    for stem in spleeter.separate(np.zeros((RATE, 2), dtype=np.float32)):
        assert stem.shape == (RATE, 2)
        assert not stem.any()


@pytest.mark.parametrize(
    "frames", [1, pytest.param(SEGMENT * HOP - FRAME, marks=pytest.mark.long), SEGMENT * HOP - FRAME + 1]
)
def test_stems_are_as_long_as_the_mix_at_the_edges_of_a_block(spleeter: Spleeter, frames: int) -> None:
    mix = np.random.default_rng(2).uniform(-0.5, 0.5, (frames, 1)).astype(np.float32)
    speech, rest = spleeter.separate(mix)
    assert speech.shape == rest.shape == mix.shape
    np.testing.assert_allclose(speech + rest, mix, atol=1e-5)
