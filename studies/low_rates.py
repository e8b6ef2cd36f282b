"""Measure the effect of a low sampling rate on SMR and, if its weights are installed, on PAM: the same mixes are stored
at 24 and at 16 kHz.

    python studies/low_rates.py [PROFILE] > low_rates.jsonl

The output has a line for each mix with the values at each rate; the last line contains the median and the largest
change of each key.
"""

import itertools
import json
import sys
from collections import defaultdict
from statistics import median
from typing import Any

import numpy as np

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.systems import registry
from studies import distortions
from studies import smr_accuracy as study

RATES = (study.RATE, 24_000, 16_000)
PIECES = ("chords", "pad", "band", "tune")
READERS = ("hibari_piper", "kokoro", "espeak_ng", "pico")
RATIOS = (0, 5, 10, 15)
SECONDS = 20


def main(profile: str = "embedded") -> None:
    """Measure every mix, and print the values."""
    script = benchmarks.get("real_pod").items("demo")[0].script
    assert script
    speeches = {name: registry.get(name).speak(script) for name in READERS if not registry.get(name).available()}
    changes: dict[str, list[float]] = defaultdict(list)
    ratios = itertools.cycle(RATIOS)
    for piece in PIECES:
        for reader, speech in speeches.items():
            ratio = next(ratios)
            mono = speech.samples if speech.samples.ndim == 1 else speech.samples.mean(axis=1)
            mix = lay_over(resample(mono, speech.rate, study.RATE)[: SECONDS * study.RATE], piece, ratio)
            values = {rate: measure(mix, rate, profile) for rate in RATES}
            print(json.dumps({"reader": reader, "music": piece, "ratio": ratio, "values": values}), flush=True)
            for rate, key in itertools.product(RATES[1:], values[RATES[0]]):
                if key in values[rate]:
                    changes[f"{key} at {rate}"].append(abs(values[rate][key] - values[RATES[0]][key]))
    print(json.dumps({key: [median(of), max(of), len(of)] for key, of in changes.items()}))


def lay_over(speech: Any, piece: str, ratio: float) -> Any:
    """Return a stereo mix of speech and a piece of music that is `ratio` LU quieter."""
    voice = np.repeat(speech[:, np.newaxis], 2, axis=1)
    music = study.synthesised(piece, 1)
    music = np.resize(music, (len(voice), music.shape[1]))
    loud = distortions.match_loudness(voice, study.LEVEL, study.RATE)
    return loud + distortions.match_loudness(music, study.LEVEL - ratio, study.RATE)


def measure(mix: Any, rate: int, profile: str) -> dict[str, float]:
    """Return SMR and PAM of a mix that is stored at a rate, if the profile has the models."""
    channels = [resample(np.ascontiguousarray(mix[:, number]), study.RATE, rate) for number in range(2)]
    stored = np.stack(channels, axis=1).astype(np.float32)
    recording = Recording.from_samples(stored, rate, profile=profile, allow_upsampling=True)
    results = {name: catalogue.get(name)({"recording": recording}) for name in ("smr", "pam")}
    return {name: float(one.values[name] or 0) for name, one in results.items() if isinstance(one, Score)}


if __name__ == "__main__":
    main(*sys.argv[1:])
