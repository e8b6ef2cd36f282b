"""Pitch and level are measured once for a recording, and kept with the same bits."""

from pathlib import Path

import numpy as np
import pytest

from podeval.audio.prosody import RATE, measure_prosody
from podeval.recording import Recording
from podeval.recording.cache import Cache, dump_array


def glide() -> np.ndarray:
    """Two seconds of a tone that rises, then silence: pitch and no pitch."""
    frequency = np.linspace(110, 220, 2 * RATE)
    tone = 0.3 * np.sin(2 * np.pi * np.cumsum(frequency) / RATE)
    return np.concatenate([tone, np.zeros(RATE)]).astype(np.float32)


def test_the_second_recording_of_the_same_sound_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, expected = Cache(tmp_path), measure_prosody(glide())
    assert np.isfinite(expected.pitch).any()
    assert np.isnan(expected.pitch).any()
    first = Recording.from_samples(glide(), RATE, cache=cache).prosody()

    def refuse(samples: np.ndarray) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("podeval.audio.prosody.measure_prosody", refuse)
    second = Recording.from_samples(glide(), RATE, cache=cache).prosody()
    for contour in (first, second):
        np.testing.assert_array_equal(contour.pitch, expected.pitch)
        np.testing.assert_array_equal(contour.level, expected.level)
    with pytest.raises(AssertionError, match="measured again"):
        Recording.from_samples(0.5 * glide(), RATE, cache=cache).prosody()


def test_an_entry_in_another_form_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    monkeypatch.setattr(cache, "get", lambda key: dump_array(np.zeros(3)))
    contour = Recording.from_samples(glide(), RATE, cache=cache).prosody()
    assert len(contour.pitch) == len(contour.level) > 100
