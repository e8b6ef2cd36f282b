import numpy as np
import pytest

from podeval.audio.prosody import FRAME, RATE, compute_spread, measure_prosody
from podeval.audio.windows import Span


def tone(low: float, high: float, seconds: float = 4.0) -> np.ndarray:
    """A voice that glides by semitones from one frequency to another and back once a second."""
    time = np.arange(int(seconds * RATE)) / RATE
    semitones = 12 * np.log2(high / low) * (0.5 - 0.5 * np.cos(2 * np.pi * time))
    phase = 2 * np.pi * np.cumsum(low * 2 ** (semitones / 12)) / RATE
    return sum(0.2 * np.sin(harmonic * phase) / harmonic for harmonic in range(1, 12)).astype(np.float32)


def test_a_flat_voice_has_no_range_and_a_gliding_one_has_its_own() -> None:
    flat, gliding = (measure_prosody(tone(150, high)) for high in (150, 300))
    assert compute_spread(flat.pitch) < 0.3
    assert np.nanmedian(flat.pitch) == pytest.approx(12 * np.log2(1.5), abs=0.2)
    # A cosine over an octave lies 90 % of the way from its 10th to its 90th percentile.
    assert compute_spread(gliding.pitch) == pytest.approx(12 * 0.95, abs=0.8)


def test_level_does_not_change_pitch_and_moves_the_level() -> None:
    loud, soft = (measure_prosody(gain * tone(120, 180)) for gain in (1.0, 0.1))
    assert compute_spread(loud.pitch) == pytest.approx(compute_spread(soft.pitch), abs=0.2)
    np.testing.assert_allclose(loud.level - soft.level, 20, atol=0.01)


def test_frames_of_a_long_recording_are_where_they_were_in_a_short_one() -> None:
    """31 s are read in two pieces; the voice is heard from 30.5 s."""
    samples = np.zeros(31 * RATE, np.float32)
    samples[int(30.5 * RATE) :] = tone(150, 150, 0.5)
    measured = measure_prosody(samples)
    assert len(measured.pitch) == len(measured.level) == 31 / FRAME + 1
    voiced = np.flatnonzero(np.isfinite(measured.pitch)) * FRAME
    assert voiced.min() > 30.4
    assert measured.inside([Span(30.4, 31.1)]).voiced_seconds == measured.voiced_seconds > 0.3
    assert measured.inside([Span(0, 30)]).voiced_seconds == 0
