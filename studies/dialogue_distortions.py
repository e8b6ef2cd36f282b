"""Measure how the metrics of rhythm react if a single property of a dialogue changes.

    python studies/dialogue_distortions.py [--topics 3]

The built-in system reads a script of Real-Pod, and its turns are arranged with the gaps and overlaps of people
(VoxConverse's counts, seeded). Then one property at a time is changed: all gaps are made equal, overlaps are removed,
the rate is raised by a phase vocoder, or every voice is resynthesised with a constant pitch (by linear prediction; the
same resynthesis with the original pitch is the control). The table shows all keys, averaged over topics.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.prosody import FRAME, measure_prosody
from podeval.audio.samples import mix_to_mono, resample
from podeval.benchmarks import real_pod
from podeval.benchmarks.item import read_scripts
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.stats.turn_taking import OFFSETS, count_people
from podeval.systems import registry

Samples = NDArray[np.float32]

RATE = 16_000
MIDDLES = (-0.8, -0.25, 0.1, 0.35, 0.75, 1.3)
"""A typical offset in seconds for each kind of turn change."""

EQUAL = 0.3
FASTER = 1.25
METRICS = ("turn_taking", "pace", "dialogue_naturalness")


def draw_offsets(turns: int, seed: int) -> list[float]:
    """Return offsets between turns, drawn from those of people."""
    counts = count_people("broadcast")[: len(OFFSETS) + 1]
    drawn = np.random.default_rng(seed).choice(len(counts), size=turns - 1, p=counts / counts.sum())
    return [MIDDLES[kind] for kind in drawn]


def lay_out(turns: Sequence[Samples], offsets: Sequence[float]) -> Samples:
    """Arrange the turns one after another, each at its offset from the end of the previous one."""
    starts = [0]
    for turn, offset in zip(turns, offsets, strict=False):
        starts.append(max(starts[-1], starts[-1] + len(turn) + round(offset * RATE)))
    samples = np.zeros(max(start + len(turn) for start, turn in zip(starts, turns, strict=True)), np.float32)
    for start, turn in zip(starts, turns, strict=True):
        samples[start : start + len(turn)] += turn
    return samples


def resynthesise(samples: Samples, *, flat: bool) -> Samples:
    """Resynthesise speech from its linear prediction and a pulse train, with its own pitch or a constant median
    pitch.
    """
    import librosa
    from scipy.signal import lfilter

    prosody = measure_prosody(samples)
    pitch = np.where(np.isnan(prosody.pitch), np.nan, 100 * 2 ** (prosody.pitch / 12))
    if flat:
        pitch = np.where(np.isnan(pitch), np.nan, np.nanmedian(pitch)) if np.isfinite(pitch).any() else pitch
    hop = round(FRAME * RATE)
    window = np.hanning(2 * hop)
    made, phase = np.zeros(len(samples) + 2 * hop), 0.0
    random = np.random.default_rng(0)
    noise = random.normal(0, 1, len(made))
    pulses = np.zeros(len(made))
    for number, frequency in enumerate(pitch):
        for at in range(number * hop, min((number + 1) * hop, len(made))):
            if np.isnan(frequency):
                pulses[at] = noise[at]
            else:
                phase += frequency / RATE
                if phase >= 1:
                    phase -= 1
                    pulses[at] = np.sqrt(RATE / frequency)
    for start in range(0, len(samples) - 2 * hop, hop):
        frame = samples[start : start + 2 * hop].astype(np.float64)
        level = np.sqrt(np.mean(frame**2))
        if level < 1e-4:
            continue
        filtered = lfilter(
            [1.0],
            librosa.lpc(frame * window + random.normal(0, 1e-6, 2 * hop), order=18),
            pulses[start : start + 2 * hop],
        )
        made[start : start + 2 * hop] += window * filtered * level / max(1e-9, float(np.sqrt(np.mean(filtered**2))))
    return made[: len(samples)].astype(np.float32)


def speed_up(samples: Samples) -> Samples:
    """Return the speech at a higher rate and the same pitch."""
    import librosa

    return np.asarray(librosa.effects.time_stretch(samples, rate=FASTER), dtype=np.float32)


def make_versions(topic: str, seed: int) -> dict[str, Samples]:
    """Return the recordings of one topic, by the change that was made."""
    script = read_scripts(real_pod.SCRIPTS)[topic].script
    speech = registry.get("hibari_piper").speak(script)
    whole = resample(mix_to_mono(speech.samples.reshape(len(speech.samples), -1)), speech.rate, RATE)
    turns = [whole[round(turn.start * RATE) : round(turn.end * RATE)] for turn in speech.turns]
    offsets = draw_offsets(len(turns), seed)
    gaps = [max(offset, 0.1) for offset in offsets]
    changes: dict[str, tuple[Callable[[Samples], Samples], list[float]]] = {
        "as people take turns": (lambda turn: turn, offsets),
        "equal gaps": (lambda turn: turn, [EQUAL] * len(offsets)),
        "no overlaps": (lambda turn: turn, gaps),
        f"{FASTER:g} times faster": (speed_up, offsets),
        "resynthesised": (lambda turn: resynthesise(turn, flat=False), offsets),
        "resynthesised, flat": (lambda turn: resynthesise(turn, flat=True), offsets),
    }
    return {name: lay_out([change(turn) for turn in turns], layout) for name, (change, layout) in changes.items()}


def measure_keys(samples: Samples) -> dict[str, float | None]:
    """Return every key of the metrics of rhythm; None if the recording is unscored."""
    recording = Recording.from_samples(samples, RATE)
    values: dict[str, float | None] = {}
    for metric in map(catalogue.get, METRICS):
        result: Any = metric({"recording": recording}, {"source": "mix"})
        values |= result.values if isinstance(result, Score) else {key.name: None for key in metric.keys}
    return values


def main() -> None:
    """Print a table with a row for each change and a column for each key, averaged over topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=3)
    chosen = [
        topic
        for topic, script in read_scripts(real_pod.SCRIPTS).items()
        if len(script.speakers) == 2 and len(script.turns) >= 24
    ]
    measured: dict[str, list[dict[str, float | None]]] = {}
    for seed, topic in enumerate(chosen[: parser.parse_args().topics]):
        for name, samples in make_versions(topic, seed).items():
            measured.setdefault(name, []).append(measure_keys(samples))
    keys = list(next(iter(measured.values()))[0])
    print("| change | " + " | ".join(keys) + " |\n" + "|---" * (len(keys) + 1) + "|")
    for name, rows in measured.items():
        means = []
        for key in keys:
            values = [value for row in rows if (value := row[key]) is not None]
            means.append(f"{np.mean(values):.3f}" if values else "unscored")
        print(f"| {name} | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
