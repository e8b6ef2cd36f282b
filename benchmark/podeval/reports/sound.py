"""The sound of a recording inside a report: MP3 of one or two channels, made of the recording as it is."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

from markupsafe import Markup

from podeval.plots.lines import draw_waveform
from podeval.recording import Recording
from podeval.recording.playback import measure_peaks
from podeval.reports.parts import Player

PLAYED_RATES = (48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000)
"""Rates of MP3, Hz: the sound is brought down to the next of them."""
QUALITY = 0.6
"""Quality of the sound, from 0 (best, largest) to 1: about 60 kbit/s for speech in one channel."""
MOST_SECONDS = 2 * 3600.0
"""Longer recordings are not put into a file, which a browser could not open."""
_PEAKS = 900


def make_player(recording: Recording, marks: Sequence[tuple[float, float]], label: str, hint: str) -> Player:
    """Make a player of a recording; `marks` are stretches in seconds that are marked in its waveform."""
    seconds = max(len(recording.samples) / recording.rate, 1e-3)
    heights = measure_peaks(recording.samples, _PEAKS)
    waveform = draw_waveform(heights, [(start / seconds, end / seconds) for start, end in marks], label)
    return Player(encode_sound(recording), Markup(waveform), hint)


def encode_sound(recording: Recording) -> str:
    """Encode the sound of a recording as an address that holds it, `data:audio/mpeg;base64,…`."""
    import numpy as np
    import soundfile

    from podeval.audio.resample import resample

    samples = recording.samples if recording.channels <= 2 else recording.samples.mean(axis=1, keepdims=True)
    rate = next((rate for rate in PLAYED_RATES if rate <= recording.rate), PLAYED_RATES[-1])
    file = io.BytesIO()
    sound = np.clip(resample(samples, recording.rate, rate), -1.0, 1.0)
    soundfile.write(file, sound, rate, format="MP3", bitrate_mode="VARIABLE", compression_level=QUALITY)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode()
