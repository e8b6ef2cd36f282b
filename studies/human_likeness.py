"""Measure how `human_likeness` reacts to people outside the reference, to shipped voices, to planted damage, and to
changes that should not affect it.

    python studies/human_likeness.py [--voices 5] [--clips 4]

Half of the shipped readers are the reference; the other half are people outside it. Each built-in system reads the
words of the readers. The damage is that of `podeval.recording.likeness_windows`, at three strengths each, in clips of
one voice each. The script prints Markdown; docs/studies/human-likeness.md contains the figures. Earlier measurements
are read from podeval's cache.
"""

import argparse
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from podeval.benchmarks import real_pod
from podeval.benchmarks.item import read_voices
from podeval.errors import CannotScore
from podeval.metrics.speech.human_likeness import FACTORS, PeopleReference, Windows, make_reference, score_set
from podeval.recording import Recording
from podeval.recording.likeness_windows import describe_windows, plant_damage
from podeval.recording.recording import read_source
from podeval.systems import registry
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine
from podeval.text.script import Script
from studies.example_outputs import VOICES as OLDER_VOICES

RATE = 16_000
SYSTEMS = ("kokoro", "hibari_piper", "piper", "pico", "espeak_ng")


@dataclass(frozen=True)
class Case:
    """A planted damage: its factor, its strength from 1 to 3, and how much the value of each factor falls."""

    voice: str
    factor: str
    strength: int
    falls: Mapping[str, float]

    @property
    def others(self) -> float:
        """The largest fall of any other factor."""
        return max(fall for factor, fall in self.falls.items() if factor != self.factor)


def read_aloud(name: str, voice: int, texts: Sequence[str]) -> Recording:
    """Have one voice of a built-in system read texts."""
    system = registry.get(name)
    assert isinstance(system, DialogueReader)
    script = Script.parse([{"speaker": "A", "text": " ".join(texts)}])
    speech = system.read(script, [SpokenLine(0, voice, text) for text in texts])
    return Recording.from_samples(speech.samples, speech.rate, name=f"{name} {voice}")


def plant_damages(people: PeopleReference, clips: Sequence[Recording]) -> Iterator[Case]:
    """Measure each clip with each kind of damage at each strength."""
    for clip in clips:
        plain, _ = score_set(people, [describe_windows(clip)])
        for factor, strength in itertools.product(FACTORS, range(3)):
            try:
                values, _ = score_set(people, [describe_windows(plant_damage(clip, factor, strength))])
            except CannotScore as reason:
                print(f"| {clip.name} | {factor} | {strength + 1} | {reason} | |")
                continue
            yield Case(clip.name, factor, strength + 1, {one: plain[one] - values[one] for one in FACTORS})


def code_as_mp3(samples: NDArray[np.float32], bits: int = 64_000) -> NDArray[np.float32]:
    """Encode samples at 16 kHz as MP3, and decode them."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp3") as file:
        stream = file.add_stream("mp3", rate=RATE)
        stream.bit_rate, stream.layout = bits, "mono"
        frame = av.AudioFrame.from_ndarray((samples[None] * 32767).astype(np.int16), "s16p", "mono")
        frame.rate = RATE
        file.mux([*stream.encode(frame), *stream.encode(None)])
    return Recording.from_bytes(buffer.getvalue()).mono()


def change_carriers(recordings: Sequence[Recording]) -> Iterator[tuple[str, list[Windows]]]:
    """Yield a set of recordings after changes of transmission or length: quieter, as MP3, and the first half of
    each.
    """
    yield "20 dB quieter", [describe_windows(_remade(one.mono() * np.float32(0.1))) for one in recordings]
    yield "MP3, 64 kbit/s", [describe_windows(_remade(code_as_mp3(one.mono()))) for one in recordings]
    halves = [one.mono()[: len(one.mono()) // 2] for one in recordings]
    yield "first halves", [describe_windows(_remade(half)) for half in halves]


def _remade(samples: NDArray[np.float32]) -> Recording:
    return Recording.from_samples(samples, RATE)


def print_set(people: PeopleReference, name: str, described: Sequence[Windows]) -> dict[str, float]:
    """Print a row of the table of sets."""
    values, intervals = score_set(people, described)
    low, high = intervals["human_likeness"] or (np.nan, np.nan)
    cells = "".join(f" {values[factor]:.3f} |" for factor in FACTORS)
    whole = f"{values['human_likeness']:.3f} [{low:.3f}, {high:.3f}]"
    print(f"| {name} | {len(described)} | {whole} |{cells}", flush=True)
    return values


def main() -> None:
    """Print the three tables."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--voices", type=int, default=5, help="number of voices in which damages are planted")
    arguments.add_argument("--clips", type=int, default=4, help="number of recordings of each system")
    chosen = arguments.parse_args()
    readers = [voice for pinned in (real_pod.VOICES, OLDER_VOICES) for voice in read_voices(pinned).values()]
    texts, paths = [reader.words for reader in readers], [Path(reader.recording()) for reader in readers]
    people = make_reference([read_source(path) for path in paths[::2]], "every second reader of LibriTTS-R")
    print(f"| set | recordings | human_likeness | {' | '.join(FACTORS)} |\n|---|---|---|{'---|' * len(FACTORS)}")
    print_set(people, "people held out", [describe_windows(Recording.open(path)) for path in paths[1::2]])
    clips, sets = [], {}
    for name in (one for one in SYSTEMS if registry.get(one).available() is None):
        voices = min(2, len(registry.get(name).voices))  # type: ignore[attr-defined]
        parts = [texts[2 * n : 2 * n + 2] for n in range(chosen.clips)]
        sets[name] = [read_aloud(name, n % voices, part) for n, part in enumerate(parts)]
        print_set(people, name, [describe_windows(one) for one in sets[name]])
        clips += sets[name][:voices]
    print("\nLevel, codec and length, of Kokoro:\n")
    for change, described in change_carriers(sets["kokoro"]):
        print_set(people, change, described)
    print("\n| voice | damage | strength | fall | largest other fall |\n|---|---|---|---|---|")
    cases = []
    for case in plant_damages(people, clips[: chosen.voices]):
        cases.append(case)
        fall = case.falls[case.factor]
        print(f"| {case.voice} | {case.factor} | {case.strength} | {fall:.3f} | {case.others:.3f} |", flush=True)
    fallen = [case for case in cases if case.falls[case.factor] > 0]
    alone = [case for case in fallen if case.others < case.falls[case.factor] / 3]
    print(
        f"\nThe damaged factor falls in {len(fallen)} of {len(cases)} cases, the others by less than a third of it in "
        f"{len(alone)}."
    )


if __name__ == "__main__":
    main()
