"""Measure the effect of small tricks: clips of the bias study's voices, each changed in one way, as a table of values.

    python studies/tricks.py [--voices espeak-m1 hibari-heart] [--set sound words more] > TABLE

Each voice says two sentences at −26 dB relative to full scale. The tricks of sound are: cutting out every pause, mains
hum 20 dB below the speech, and clipping the loudest 2 % of the samples. The tricks of words are: spelling the two
longest words of each sentence letter by letter, spelling a whole sentence, saying a sentence twice, and omitting stage
directions or reading them aloud. `--set more` has others: noise as loud as the speech, inverted in the other channel; a
whistle above the frequencies that models use; louder frequencies above 2 kHz; compression; silence after the speech;
words said one by one; fillers between words; and every "the" left out.
"""

import argparse
import csv
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.text.script import Script
from studies.bias import measure
from studies.bias_material import MEDIUM, RATE, SENTENCES, StudyVoice, say_lines, voices
from studies.distortions import Samples, clip

LINES = SENTENCES["en"][:MEDIUM]
VOICES = ("espeak-m1", "espeak-f2", "espeak-m3", "espeak-low", "hibari-heart", "jf_alpha", "jm_kumo", "piper-joe")
DIRECTIONS = (("(laughs warmly)", "laughs warmly."), ("[sighs]", "sighs."))
"""Stage directions as written before each sentence, and as read aloud."""
KEYS = {
    "dnsmos": ("ovrl",),
    "distillmos": ("distillmos",),
    "timbre_consistency": ("timbre_consistency",),
    "integrity": ("faults_per_hour", "plcmos"),
    "wer": ("wer",),
    "content_errors": ("errors_per_1000",),
}


def cut_pauses(samples: Samples) -> Samples:
    """Leave out every 20 ms that are at least 40 dB below the speech."""
    frame = RATE // 50
    frames = samples[: len(samples) // frame * frame].reshape(-1, frame)
    return np.asarray(frames[np.mean(np.square(frames), axis=1) > 10 ** (-66 / 10)].reshape(-1), np.float32)


def add_hum(samples: Samples, rate: int = RATE, level: float = -46.0) -> Samples:
    """Add 50 Hz and three harmonics at a level in dB relative to full scale."""
    at = np.arange(len(samples)) / rate
    hum = np.sum([np.sin(2 * np.pi * 50 * n * at) / n for n in (1, 2, 3, 4)], axis=0)
    return np.asarray(samples + hum * 10 ** (level / 20) / np.sqrt(np.mean(hum**2)), np.float32)


def spell(line: str, words: int) -> str:
    """Write the longest words of a line letter by letter."""
    longest = sorted(line.split(), key=len)[-words:]
    return " ".join(" ".join(word.strip(".,").upper()) + "," if word in longest else word for word in line.split())


def tricks_of_sound(voice: StudyVoice) -> Iterator[tuple[str, Samples, str]]:
    """Yield the name, the clip and the script of each trick of sound."""
    plain, script = say_lines(voice, "en", LINES), "\n".join(LINES)
    yield "plain", plain, script
    yield "pauses cut out", cut_pauses(plain), script
    yield "hum", add_hum(plain), script
    yield "clipped", clip(plain, 0.02), script


def tricks_of_words(voice: StudyVoice) -> Iterator[tuple[str, Samples, str]]:
    """Yield the name, the clip and the script of each trick of words."""
    script = "\n".join(LINES)
    yield "longest words spelled", say_lines(voice, "en", [spell(line, 2) for line in LINES]), script
    yield "first sentence spelled", say_lines(voice, "en", [spell(LINES[0], len(LINES[0]))]), LINES[0]
    yield "first sentence twice", say_lines(voice, "en", [LINES[0], *LINES]), script
    directed = "\n".join(f"{written} {line}" for (written, _), line in zip(DIRECTIONS, LINES, strict=True))
    yield "directions left out", say_lines(voice, "en", LINES), directed
    read = [f"{spoken} {line}" for (_, spoken), line in zip(DIRECTIONS, LINES, strict=True)]
    yield "directions read", say_lines(voice, "en", read), directed


def invert_noise(samples: Samples, level: float = -26.0) -> Samples:
    """Add noise to the left channel, and subtract it from the right; the result has the shape (frames, 2)."""
    noise = np.random.default_rng(0).normal(0, 10 ** (level / 20), len(samples))
    return np.stack([samples + noise, samples - noise], axis=1).astype(np.float32)


def whistle(samples: Samples, rate: int = RATE, level: float = -36.0) -> Samples:
    """Add a tone of 10 kHz."""
    tone = np.sqrt(2) * np.sin(2 * np.pi * 10_000 * np.arange(len(samples)) / rate)
    return np.asarray(samples + 10 ** (level / 20) * tone, np.float32)


def brighten(samples: Samples, rate: int = RATE, gain: float = 8.0) -> Samples:
    """Make frequencies above 2 kHz louder by `gain` dB, with a rise from 1 kHz on; the level does not change."""
    spectrum = np.fft.rfft(samples)
    octaves = np.clip(np.log2(np.maximum(np.fft.rfftfreq(len(samples), 1 / rate), 1.0) / 1000), 0, 1)
    return _match_level(np.fft.irfft(spectrum * 10 ** (gain * octaves / 20), len(samples)), samples)


def compress(samples: Samples, rate: int = RATE, power: float = 0.4) -> Samples:
    """Bring the level of every 20 ms closer to that of the loudest; the overall level does not change."""
    width = rate // 50
    level = np.sqrt(np.convolve(np.square(samples), np.ones(width) / width, "same")) + 1e-3
    return _match_level(samples * level ** (power - 1), samples)


def _match_level(samples: Samples, like: Samples) -> Samples:
    return np.asarray(samples * np.sqrt(np.mean(np.square(like)) / np.mean(np.square(samples))), np.float32)


def more_tricks(voice: StudyVoice) -> Iterator[tuple[str, Samples, str]]:
    """Yield the name, the clip and the script of each further trick."""
    plain, script = say_lines(voice, "en", LINES), "\n".join(LINES)
    yield "noise inverted in the other channel", invert_noise(plain), script
    yield "whistle at 10 kHz", whistle(plain), script
    yield "above 2 kHz +8 dB", brighten(plain), script
    yield "compressed", compress(plain), script
    yield "10 s of silence after it", np.concatenate([plain, np.zeros(10 * RATE, np.float32)]), script
    yield "word by word", say_lines(voice, "en", script.split()), script
    yield "fillers", say_lines(voice, "en", [line.replace(" the ", ", uh, um, the ") for line in LINES]), script
    yield "the left out", say_lines(voice, "en", [re.sub(r"(?i)\bthe ", "", line) for line in LINES]), script


SETS: dict[str, Callable[[StudyVoice], Iterator[tuple[str, Samples, str]]]] = {
    "sound": tricks_of_sound,
    "words": tricks_of_words,
    "more": more_tricks,
}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", nargs="+", default=VOICES, help="names of the bias study's voices")
    parser.add_argument("--set", nargs="+", choices=SETS, default=("sound", "words"), help="which tricks")
    options = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["voice", "trick", *(f"{name}.{key}" for name, keys in KEYS.items() for key in keys)])
    for voice in voices():
        if voice.name not in options.voices:
            continue
        for name in options.set:
            for trick, samples, script in SETS[name](voice):
                writer.writerow([voice.name, trick, *measure(samples, Script.parse(script), KEYS).values()])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
