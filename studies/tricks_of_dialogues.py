"""Measure the effect of tricks on dialogues: one voice made to sound like two, gaps drawn at random, a looped minute.

    python studies/tricks_of_dialogues.py [--tricks voices gaps loop] > TABLE

`voices`: one voice says both parts of a dialogue of 18 turns, and every other turn is limited to telephone frequencies,
reverberated or made brighter; its SPTD is shown next to that of two voices. `gaps`: the pauses in a dialogue of 24
turns by two voices are drawn from people's gaps and overlaps, regardless of the words. `loop`: 20 s of a voice are
repeated four times, and compared with a minute of it.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.stats.turn_taking import OFFSETS, count_people
from podeval.text.script import Script
from studies.bias import Keys, measure
from studies.bias_material import (
    GAPS,
    MEDIUM,
    RATE,
    StudyVoice,
    lines_of_a_minute,
    lines_of_dialogue,
    say_lines,
    set_level,
    speak_role,
    voices,
)
from studies.distortions import Samples, reverberate
from studies.tricks import brighten

OF_VOICES: Keys = {"sptd": ("sptd",), "speaker_attribution": ("attribution_accuracy",), "distillmos": ("distillmos",)}
OF_GAPS: Keys = {"turn_taking": ("human_distance",), "dialogue_naturalness": ("dialogue_naturalness",)}
OF_LOOPS: Keys = {"pace": ("rate_cv",), "integrity": ("loops",)}
Trick = tuple[str, Samples, Script]


def band(samples: Samples, rate: int = RATE) -> Samples:
    """Keep the frequencies from 300 to 3,400 Hz, as a telephone does."""
    spectrum = np.fft.rfft(samples)
    frequencies = np.fft.rfftfreq(len(samples), 1 / rate)
    spectrum[(frequencies < 300) | (frequencies > 3400)] = 0
    return np.asarray(np.fft.irfft(spectrum, len(samples)), np.float32)


SOUNDS: dict[str, Callable[[Samples], Samples]] = {
    "as it is": lambda s: s,
    "telephone": band,
    "room of 0.6 s": lambda s: np.asarray(reverberate(s, RATE, 0.6, seed=1)[: len(s)], np.float32),
    "brighter by 8 dB": brighten,
}


def draw_offsets(count: int, seed: int = 0) -> list[float]:
    """Return gaps and overlaps in seconds with the frequencies of people in broadcasts; each is drawn uniformly within
    its kind.
    """
    random = np.random.default_rng(seed)
    counts = count_people("broadcast")[: len(OFFSETS) + 1].astype(float)
    bounds = (-1.0, *OFFSETS, 2.0)
    return [
        float(random.uniform(bounds[kind], bounds[kind + 1]))
        for kind in random.choice(len(counts), count, p=counts / counts.sum())
    ]


def lay(sounds: Sequence[Samples], offsets: Sequence[float]) -> Samples:
    """Arrange turns one after another with these offsets in seconds between them; negative ones overlap."""
    ends = [0]
    whole = np.zeros(sum(map(len, sounds)) + round(RATE * sum(max(o, 0) for o in offsets)) + RATE, np.float32)
    for number, sound in enumerate(sounds):
        start = max(0, ends[-1] + round(RATE * offsets[number - 1])) if number else 0
        whole[start : start + len(sound)] += sound
        ends.append(start + len(sound))
    return whole[: max(ends)]


def two_by_one(voice: StudyVoice) -> Iterator[Trick]:
    """Yield a dialogue by one voice in which every other turn sounds different."""
    lines = lines_of_dialogue("en")[:18]
    sounds = [_speak_lines(voice, number)[: (18 - number + 1) // 2] for number in (0, 1)]
    for name, change in SOUNDS.items():
        turns = [sounds[n % 2][n // 2] for n in range(18)]
        turns = [set_level(change(turn)) if n % 2 else turn for n, turn in enumerate(turns)]
        yield f"one voice, other turns {name}", lay(turns, [GAPS[n % len(GAPS)] for n in range(18)]), _by_turns(lines)


def gaps_by_chance(voice: StudyVoice, other: StudyVoice) -> Iterator[Trick]:
    """Yield a dialogue of two voices with equal gaps, and with random gaps."""
    lines = lines_of_dialogue("en")[:24]
    sounds = [_speak_lines(each, number)[:12] for number, each in enumerate((voice, other))]
    turns = [sounds[n % 2][n // 2] for n in range(24)]
    yield "gaps of 0.3 s", lay(turns, [0.3] * 23), _by_turns(lines)
    yield "gaps by chance", lay(turns, draw_offsets(23)), _by_turns(lines)


def loops(voice: StudyVoice) -> Iterator[Trick]:
    """Yield a minute of speech, and its first 20 s repeated four times."""
    lines = lines_of_a_minute("en", MEDIUM)
    minute = say_lines(voice, "en", lines)
    yield "a minute", minute, Script.parse("\n".join(lines))
    yield "20 s four times", np.tile(minute[: 20 * RATE], 4), Script.parse("\n".join(lines))


def _speak_lines(voice: StudyVoice, number: int) -> list[Samples]:
    from podeval.audio.samples import resample

    rate, sounds = speak_role(voice, "en", number)
    return [set_level(resample(sound, rate, RATE)) for sound in sounds]


def _by_turns(lines: Sequence[str]) -> Script:
    return Script.parse([{"speaker": "AB"[number % 2], "text": line} for number, line in enumerate(lines)])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tricks", nargs="+", choices=["voices", "gaps", "loop"], default=["voices", "gaps", "loop"])
    parser.add_argument("--voices", nargs="+", default=["jf_alpha", "hibari-heart", "espeak-m1", "espeak-f2"])
    options = parser.parse_args()
    by_name = {voice.name: voice for voice in voices()}
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["voice", "trick", "values"])
    man = by_name["jm_kumo"]
    for name in options.voices:
        voice = by_name[name]
        for kind, tricks, keys in (
            ("voices", two_by_one(voice), OF_VOICES),
            ("gaps", gaps_by_chance(voice, man), OF_GAPS),
            ("loop", loops(voice), OF_LOOPS),
        ):
            if kind in options.tricks:
                for trick, samples, script in tricks:
                    writer.writerow([name, trick, *map(" ".join, measure(samples, script, keys).items())])
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
