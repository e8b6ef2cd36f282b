"""What small tricks bring: clips of the bias study's voices, each changed in one way, as a table of values.

    python tests/studies/tricks.py [--voices espeak-m1 hibari-heart] [--sound] > TABLE

Each voice says two sentences at −26 dB of full scale. Tricks of sound: every pause cut out, mains hum 20 dB below the
speech, the loudest fiftieth of the samples clipped. Tricks of words: the two longest words of each sentence spelled
letter by letter, a whole sentence spelled, a sentence said twice, stage directions left out and read aloud.
`--sound` leaves out those of words.
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))

from podeval.text.script import Script
from studies.bias import measure
from studies.bias_material import MEDIUM, RATE, SENTENCES, StudyVoice, say_lines, voices
from studies.distortions import Samples, clip

LINES = SENTENCES["en"][:MEDIUM]
VOICES = ("espeak-m1", "espeak-f2", "espeak-m3", "espeak-low", "hibari-heart", "jf_alpha", "jm_kumo", "piper-joe")
DIRECTIONS = (("(laughs warmly)", "laughs warmly."), ("[sighs]", "sighs."))
"""As they are written before each sentence, and as they are read."""
KEYS = {
    "dnsmos": ("ovrl",),
    "distillmos": ("distillmos",),
    "timbre_consistency": ("timbre_consistency",),
    "integrity": ("faults_per_hour", "plcmos"),
    "wer": ("wer",),
    "content_errors": ("errors_per_1000",),
}


def cut_pauses(samples: Samples) -> Samples:
    """Leave out every 20 ms that are 40 dB below the speech."""
    frame = RATE // 50
    frames = samples[: len(samples) // frame * frame].reshape(-1, frame)
    return np.asarray(frames[np.mean(np.square(frames), axis=1) > 10 ** (-66 / 10)].reshape(-1), np.float32)


def add_hum(samples: Samples, rate: int = RATE, level: float = -46.0) -> Samples:
    """Add 50 Hz and three harmonics at a level in dB of full scale."""
    at = np.arange(len(samples)) / rate
    hum = np.sum([np.sin(2 * np.pi * 50 * n * at) / n for n in (1, 2, 3, 4)], axis=0)
    return np.asarray(samples + hum * 10 ** (level / 20) / np.sqrt(np.mean(hum**2)), np.float32)


def spell(line: str, words: int) -> str:
    """Write the longest words of a line letter by letter."""
    longest = sorted(line.split(), key=len)[-words:]
    return " ".join(" ".join(word.strip(".,").upper()) + "," if word in longest else word for word in line.split())


def tricks_of_sound(voice: StudyVoice) -> Iterator[tuple[str, Samples, str]]:
    """Yield name, clip and script."""
    plain, script = say_lines(voice, "en", LINES), "\n".join(LINES)
    yield "plain", plain, script
    yield "pauses cut out", cut_pauses(plain), script
    yield "hum", add_hum(plain), script
    yield "clipped", clip(plain, 0.02), script


def tricks_of_words(voice: StudyVoice) -> Iterator[tuple[str, Samples, str]]:
    """Yield name, clip and script."""
    script = "\n".join(LINES)
    yield "longest words spelled", say_lines(voice, "en", [spell(line, 2) for line in LINES]), script
    yield "first sentence spelled", say_lines(voice, "en", [spell(LINES[0], len(LINES[0]))]), LINES[0]
    yield "first sentence twice", say_lines(voice, "en", [LINES[0], *LINES]), script
    directed = "\n".join(f"{written} {line}" for (written, _), line in zip(DIRECTIONS, LINES, strict=True))
    yield "directions left out", say_lines(voice, "en", LINES), directed
    read = [f"{spoken} {line}" for (_, spoken), line in zip(DIRECTIONS, LINES, strict=True)]
    yield "directions read", say_lines(voice, "en", read), directed


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", nargs="+", default=VOICES, help="names of the bias study's voices")
    parser.add_argument("--sound", action="store_true", help="tricks of sound alone")
    options = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["voice", "trick", *(f"{name}.{key}" for name, keys in KEYS.items() for key in keys)])
    for voice in voices():
        if voice.name not in options.voices:
            continue
        for tricks in (tricks_of_sound,) if options.sound else (tricks_of_sound, tricks_of_words):
            for trick, samples, script in tricks(voice):
                writer.writerow([voice.name, trick, *measure(samples, Script.parse(script), KEYS).values()])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
