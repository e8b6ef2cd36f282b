"""What is found is what librosa finds, frame by frame."""

import librosa
import numpy as np
import pytest
from numpy.typing import NDArray

from podeval.audio.pitch_tracking import find_pitch

RATE = 16_000


def make_voice(random: np.random.Generator, seconds: float) -> NDArray[np.float32]:
    """Harmonics over a pitch that wanders and leaps, with breaks, noise and clicks."""
    length = int(seconds * RATE)
    leaps = np.repeat(random.uniform(-14, 14, length // 4000 + 1), 4000)[:length]
    wander = np.cumsum(random.normal(0, 0.01, length))
    phase = 2 * np.pi * np.cumsum(150 * 2 ** ((leaps + wander) / 12)) / RATE
    voice = sum(random.uniform(0, 0.2) * np.sin(harmonic * phase) for harmonic in range(1, 15))
    voice = voice * np.repeat(random.random(length // 3000 + 1) > 0.3, 3000)[:length]
    voice[random.integers(0, length, 20)] += 0.9
    return (voice + random.uniform(0, 0.05) * random.normal(size=length)).astype(np.float32)


SOUNDS = {
    "silence": np.zeros(8000, np.float32),
    "one level": np.full(8000, 0.3, np.float32),
    "noise": np.random.default_rng(1).normal(0, 0.1, 48_000).astype(np.float32),
    "a tone without an end": np.sin(2 * np.pi * 220 * np.arange(32_000) / RATE).astype(np.float32),
    "above and below what is looked for": np.concatenate(
        [np.sin(2 * np.pi * pitch * np.arange(16_000) / RATE) for pitch in (40, 61, 499, 520, 2000)]
    ).astype(np.float32),
    "shorter than a hop": np.full(100, 0.1, np.float32),
    **{f"voice {seed}": make_voice(np.random.default_rng(seed), 6) for seed in range(4)},
}


@pytest.mark.every(4)
@pytest.mark.parametrize("name", SOUNDS)
@pytest.mark.parametrize(("hop", "steps"), [(320, 5), (160, 2)])
def test_each_frame_has_the_pitch_that_librosa_gives(name: str, hop: int, steps: int) -> None:
    samples = SOUNDS[name]
    frequency, voiced, _ = librosa.pyin(
        samples, sr=RATE, fmin=60, fmax=500, frame_length=1024, hop_length=hop, resolution=1 / steps
    )
    pitch = find_pitch(samples, rate=RATE, lowest=60, highest=500, frame=1024, hop=hop, steps=steps)
    assert np.array_equal(np.isfinite(pitch), voiced)
    np.testing.assert_array_equal(pitch, frequency)


def test_sounds_of_the_test_have_voice_and_none() -> None:
    """So that the comparison compares something."""
    shares = [
        np.isfinite(find_pitch(samples, rate=RATE, lowest=60, highest=500, frame=1024, hop=320, steps=5)).mean()
        for samples in SOUNDS.values()
    ]
    assert min(shares) == 0
    assert max(shares) > 0.9
    assert sum(0.1 < share < 0.9 for share in shares) >= 4
