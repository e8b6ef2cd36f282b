"""Measure the accuracy of SMR with a profile's separator, on mixes whose ratio is known.

python studies/smr_accuracy.py --music un/usr/share/asterisk/moh --page docs/smr-accuracy.md

The speech is read by the built-in systems; the human and synthetic recordings of ../shared are added if they exist. The
music is synthesised by this script (chords, a pad, drums, all of these with a tune, and a tune alone; stereo, up to 20
kHz), and more is read from a folder, such as the tracks of Debian's asterisk-moh-opsound-wav (8 kHz; CC BY-SA 3.0),
unpacked with `apt-get download` and `dpkg-deb -x` and never committed.

Every speech is mixed with every piece of music, each mix at the next of the ratios, which are set by loudness (ITU-R
BS.1770-4) over the whole mix. The true value is SMR by its own definition, computed from the true stems: the mean over
the segments that the metric found.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.audio import loudness
from podeval.audio.decode import decode
from podeval.audio.samples import resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.systems import registry
from podeval.text.script import Script
from studies.distortions import match_loudness

Samples = NDArray[np.float32]

RATE = 44_100
SECONDS = 20
LEVEL = -20.0
"""Loudness of the speech in every mix, in LUFS."""

RATIOS = (0.0, 2.5, 5.0, 7.5, 10.0)
TARGET = 1.5
MARKS = ("<!-- tables: made by studies/smr_accuracy.py -->", "<!-- /tables -->")
PASSAGE = (
    "The tide tables of this coast were first printed in eighteen thirty, by a man who had never seen the sea. "
    "He worked from the letters of forty harbour masters, and most of them could not agree on the hour. "
    "So he averaged them, and the average turned out to be better than any single letter. "
    "It is the oldest trick in the book, and it still works. "
)
SHARED = (Path(__file__).parents[1] / "../shared/data").resolve()
RECORDED = ("samples/dialogue_kokoro.flac", "samples/dialogue_espeak.flac", "samples/sense_and_sensibility_*.wav")


@dataclass(frozen=True)
class Outcome:
    """One mix, with the true SMR and the metric's value."""

    speech: str
    music: str
    ratio: float
    truth: float | None
    found: float | None
    reason: str = ""

    @property
    def error(self) -> float:
        """The metric's value minus the true value in LU; NaN without a score."""
        return float("nan") if self.truth is None or self.found is None else self.found - self.truth


def spoken() -> Iterator[tuple[str, Samples]]:
    """Yield the speech by name, each of shape `(frames, 1)`."""
    script = Script.parse([{"speaker": name, "text": PASSAGE} for name in ("Ann", "Ben")])
    for name in ("hibari_piper", "espeak_ng"):
        system = registry.get(name)
        if missing := system.available():
            print(f"without {name}: {missing}")
            continue
        speech = system.speak(script, seed=1)
        yield name, _stretch(resample(speech.samples, speech.rate, RATE))
    for pattern in RECORDED:
        files = sorted(SHARED.glob(pattern))
        if files:
            decoded = [decode(file) for file in files]
            joined = np.concatenate([resample(each.samples, each.rate, RATE) for each in decoded])
            yield files[0].stem.rpartition("_64kb")[0] or files[0].stem, _stretch(joined)


def _stretch(samples: Samples) -> Samples:
    return np.asarray(samples[: SECONDS * RATE].mean(axis=1, keepdims=True), np.float32)


def played(folder: Path | None) -> Iterator[tuple[str, Samples]]:
    """Yield the music by name, each of shape `(frames, 2)`."""
    for seed, name in enumerate(("chords", "pad", "drums", "band", "tune")):
        yield name, synthesised(name, seed)
    for file in sorted(folder.glob("*.wav")) if folder else ():
        decoded = decode(file)
        start = 20 * decoded.rate
        track = resample(decoded.samples[start : start + SECONDS * decoded.rate], decoded.rate, RATE)
        yield file.stem, np.asarray(np.repeat(track[:, :1], 2, axis=1), np.float32)


def synthesised(name: str, seed: int) -> Samples:
    """Synthesise 20 s of music in A minor at 120 beats per minute."""
    draws = np.random.default_rng(seed)
    mix = np.zeros((SECONDS * RATE, 2))

    def play(at: float, sound: NDArray[np.float64], volume: float) -> None:
        start = round(at * RATE)
        sound = sound[: len(mix) - start] * volume
        side = draws.uniform(0.3, 1.2)
        mix[start : start + len(sound)] += sound[:, np.newaxis] * (np.cos(side), np.sin(side))

    if name in ("chords", "pad", "band"):
        for bar in range(SECONDS // 2):
            for key in ((57, 60, 64), (53, 57, 60), (48, 52, 55), (55, 59, 62))[(bar + seed) % 4]:
                play(bar * 2, _note(key, 2.2, 0.2 if name == "pad" else 1.2, 0.5 if name == "pad" else 0.01, draws), 1)
    if name in ("drums", "band"):
        for quarter in range(SECONDS * 4):
            play(quarter / 4, _beat("hat", draws), 0.4)
            if quarter % 4 == 0:
                play(quarter / 4, _beat("kick", draws), 1.5)
            if quarter % 8 == 4:
                play(quarter / 4, _beat("snare", draws), 0.8)
    if name in ("band", "tune"):
        for half in range(SECONDS * 2):
            play(half / 2, _note(int(draws.choice((69, 71, 72, 74, 76, 79))), 0.6, 3.0, 0.01, draws), 0.7)
    return np.asarray(0.3 * mix / np.abs(mix).max(), np.float32)


def _note(key: int, seconds: float, decay: float, attack: float, draws: np.random.Generator) -> NDArray[np.float64]:
    time = np.arange(round(seconds * RATE)) / RATE
    pitch = 440 * 2 ** ((key - 69) / 12)
    partials = [
        np.sin(2 * np.pi * pitch * n * time + draws.uniform(0, 6.3)) / n for n in range(1, 31) if n * pitch < 20_000
    ]
    return np.asarray(sum(partials) * np.exp(-decay * time) * np.minimum(1, time / attack))


def _beat(drum: str, draws: np.random.Generator) -> NDArray[np.float64]:
    time = np.arange(round(0.2 * RATE)) / RATE
    if drum == "kick":
        return np.asarray(np.sin(2 * np.pi * (50 + 80 * np.exp(-30 * time)) * time) * np.exp(-18 * time))
    noise = draws.standard_normal(len(time))
    return np.asarray(np.diff(noise, prepend=0) * np.exp(-60 * time) if drum == "hat" else noise * np.exp(-25 * time))


def _level(samples: Samples) -> float:
    return loudness.measure(samples, RATE).integrated


def outcome(names: tuple[str, str], said: Samples, music: Samples, ratio: float, variant: str, profile: str) -> Outcome:
    """Mix speech and music at a ratio, measure the mix, and compare the result with that of the true stems."""
    frames = min(len(said), len(music))
    speech, under = np.repeat(said[:frames], 2, axis=1), music[:frames]
    speech = match_loudness(speech, LEVEL, RATE)
    under = match_loudness(under, LEVEL - ratio, RATE)
    recording = Recording.from_samples(speech + under, RATE, profile=profile)
    result = catalogue.get("smr")({"recording": recording}, {"variant": variant})
    if not isinstance(result, Score):
        return Outcome(*names, ratio, None, None, result.reason)

    def true(start: float, end: float) -> float:
        stretch = slice(round(start * RATE), round(end * RATE))
        return _level(speech[stretch]) - _level(under[stretch])

    truth = float(np.mean([true(start, end) for start, end, _ in result.notes["segments"]]))
    return Outcome(*names, ratio, truth, result.values["smr"])


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Say in a sentence whether the target is met."""
    errors = np.array([one.error for one in outcomes if one.found is not None])
    median, worst = np.median(np.abs(errors)), errors[np.abs(errors).argmax()]
    return (
        f"Median absolute error {median:.2f} LU over {len(errors)} of {len(outcomes)} mixes, worst {worst:+.2f} LU; "
        f"the target of {TARGET} LU over at least 20 is {'met' if median < TARGET and len(errors) >= 20 else 'missed'}."
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the errors by ratio, by music and overall, as a Markdown table."""
    lines = ["| mixes | scored | median absolute error | worst | mean error |", "|---|---|---|---|---|"]
    groups: list[tuple[str, Callable[[Outcome], Any]]] = [("ratio ", lambda o: o.ratio), ("", lambda o: o.music)]
    for prefix, key in groups:
        values = sorted({key(one) for one in outcomes})
        lines += [_row(f"{prefix}{value}", [one for one in outcomes if key(one) == value]) for value in values]
    return "\n".join([*lines, _row("all", outcomes)])


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    errors = np.array([one.error for one in outcomes if one.found is not None])
    if not len(errors):
        return f"| {name} | 0 of {len(outcomes)} | | | |"
    figures = f"{np.median(np.abs(errors)):.2f} | {errors[np.abs(errors).argmax()]:+.2f} | {errors.mean():+.2f}"
    return f"| {name} | {len(errors)} of {len(outcomes)} | {figures} |"


def every_mix(outcomes: Sequence[Outcome]) -> str:
    """Return a row for each mix, as CSV."""
    lines = ["speech,music,ratio,truth,smr,error,unscored"]
    for one in outcomes:
        scored = one.found is not None
        shown = f"{one.truth:.2f},{one.found:.2f},{one.error:+.2f}," if scored else f',,,"{one.reason}"'
        lines.append(f"{one.speech},{one.music},{one.ratio:g},{shown}")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure all mixes, print the table, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--music", type=Path, help="a folder of WAV files with music")
    parser.add_argument(
        "--page",
        type=Path,
        help="a page whose part between its two marks becomes the tables; studies/smr.csv next to it gets every mix",
    )
    parser.add_argument("--variant", default="standard", choices=("standard", "podeval"))
    parser.add_argument("--profile", default="embedded")
    chosen = parser.parse_args()
    speeches, tracks = list(spoken()), list(played(chosen.music))
    outcomes = []
    for row, (speaker, said) in enumerate(speeches):
        for column, (track, music) in enumerate(tracks):
            ratio = RATIOS[(row + column) % len(RATIOS)]
            outcomes.append(outcome((speaker, track), said, music, ratio, chosen.variant, chosen.profile))
            print(f"{len(outcomes)} of {len(speeches) * len(tracks)}", end="\r", flush=True)
    text = f"{verdict(outcomes)}\n\n{summary(outcomes)}"
    print(f"{text}\n\n{every_mix(outcomes)}", end="")
    if chosen.page:
        before, mark, rest = chosen.page.read_text(encoding="utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        chosen.page.write_text(f"{before}{mark}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")
        (chosen.page.parent / "studies" / "smr.csv").write_text(every_mix(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
