"""What a listener hears is a copy without a name, and the noise to set the volume by is as loud as it says."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import soundfile

from podeval.audio import loudness
from podeval.errors import BadInput
from podeval.listening import Listening
from podeval.listening.sessions import StimulusSource
from podeval.listening.stimuli import LEVEL, StimulusAudio, write_level_noise
from podeval.recording.playback import Playback


def test_the_noise_has_its_loudness_and_joins_its_own_beginning(tmp_path: Path) -> None:
    path = write_level_noise(tmp_path / "cache")
    samples, rate = soundfile.read(path, dtype="float32")
    measured = loudness.measure(samples, rate, "stereo")
    assert measured.integrated == pytest.approx(LEVEL, abs=0.05)
    steps = np.abs(np.diff(samples[:, 0]))
    assert abs(samples[0, 0] - samples[-1, 0]) <= steps.max(), "no click where it is repeated"
    assert write_level_noise(tmp_path / "cache") == path


def test_a_copy_has_no_tags_and_a_missing_file_is_not_named(tmp_path: Path) -> None:
    source = tmp_path / "secret-system.flac"
    with soundfile.SoundFile(source, "w", 16_000, 1, format="FLAC") as file:
        file.title = "made by secret-system"
        file.write(0.1 * np.sin(np.arange(16_000) / 5))
    service: Any = SimpleNamespace(source=lambda *_: StimulusSource(Path("secret-system.flac")))
    sounds = StimulusAudio(cast(Listening, service), Playback(tmp_path / "copies"), tmp_path)
    copy = sounds.file("session", 0, "A")
    assert b"secret" not in copy.read_bytes()
    assert "secret" not in copy.name
    assert soundfile.info(copy).samplerate == 48_000
    assert len(sounds.peaks("session", 0, "A")) == 600
    source.unlink()
    with pytest.raises(BadInput, match="cannot be played") as refused:
        sounds.file("session", 0, "A")
    assert "secret" not in str(refused.value)
