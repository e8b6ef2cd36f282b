"""Check at every rate, depth, level and coding whether `clipped` finds planted clipping and reports nothing else.

Clips of clean speech are stored in every form, unchanged and with half a second clipped at 0.4 times its peak. The
tables are in docs/defects-study.md. To run the script (a few minutes on one core):

    python studies/clipping.py RECORDING… [--seed N]
"""

import argparse
import io
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from podeval.audio.faults import find_clipped
from podeval.audio.samples import resample
from podeval.errors import BadInput
from podeval.recording import Recording
from podeval.systems.controls import CLIPPED, choose_loud_place, plant_clipped

Samples = NDArray[np.float32]

RATES = (8_000, 16_000, 24_000, 44_100, 48_000, 96_000, 192_000)
DEPTHS = {"8 bit": "PCM_U8", "16 bit": "PCM_16", "24 bit": "PCM_24", "float": "FLOAT", "µ-law": "ULAW", "A-law": "ALAW"}
LEVELS = (0, -6, -12, -18, -24, -30, -36, -42)
CODINGS = {
    "MS ADPCM": ("WAV", "MS_ADPCM", None),
    "MP3, small": ("MP3", "MPEG_LAYER_III", 0.9),
    "MP3, large": ("MP3", "MPEG_LAYER_III", 0.3),
    "Opus": ("OGG", "OPUS", None),
    "Vorbis": ("OGG", "VORBIS", None),
}
SECONDS = 20.0


def store(samples: Samples, rate: int, container: str, subtype: str, compression: float | None = None) -> Samples:
    """Store samples in a file of this form, and return the samples that are read from it."""
    file = io.BytesIO()
    options = {} if compression is None else {"compression_level": compression}
    soundfile.write(file, samples, rate, subtype=subtype, format=container, **options)
    file.seek(0)
    stored, _ = soundfile.read(file, dtype="float32")
    return np.asarray(stored, np.float32)


def list_forms(samples: Samples, rate: int) -> Iterator[tuple[str, Samples, int]]:
    """Yield a clip in every form, with the name of the form."""
    for other in RATES:
        at_rate = resample(samples, rate, other)
        for depth, subtype in DEPTHS.items():
            for level in LEVELS:
                gain = np.float32(10 ** (level / 20))
                yield f"{other // 1000} kHz, {depth}, {level} dB", store(gain * at_rate, other, "WAV", subtype), other
    for name, coding in CODINGS.items():
        if name != "Opus" or rate in (8_000, 16_000, 24_000, 48_000):
            yield name, store(samples, rate, *coding), rate
    for offset in (0.02, 0.05, 0.1, 0.3):
        yield f"offset {offset}", store(samples / 2 + np.float32(offset), rate, "WAV", "PCM_16"), rate


def study_clip(samples: Samples, rate: int, chance: random.Random) -> Iterator[tuple[str, int, bool]]:
    """Yield for every form the number of stretches of the clean clip that are reported as clipped, and whether the
    planted one is found.
    """
    place = choose_loud_place(samples, rate, chance)
    clipped = samples.copy()
    plant_clipped(clipped, rate, place)
    first = round(max(0.0, place - 2) * rate)
    around, place = clipped[first : round((place + 3) * rate)], place - first / rate
    for (form, stored, own), (_, damaged, _) in zip(list_forms(samples, rate), list_forms(around, rate), strict=True):
        spans = find_clipped(damaged, own)
        found = any(span.start < place + CLIPPED + 0.2 and span.end > place - 0.2 for span in spans)
        yield form, len(find_clipped(stored, own)), found


def main() -> None:
    """Study every recording; print a line for each form, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    false: dict[str, int] = defaultdict(int)
    found: dict[str, list[bool]] = defaultdict(list)
    for path in options.recordings:
        recording = Recording.open(path)
        samples = recording.samples.mean(axis=1)[: round(SECONDS * recording.rate)]
        try:
            for form, alarms, hit in study_clip(samples, recording.rate, chance):
                false[form] += alarms
                found[form].append(hit)
        except BadInput as error:
            print(f"{path}: {error}")
    for form, hits in found.items():
        print(f"{form:32} false {false[form]:3}   found {sum(hits)} of {len(hits)}")
    print(f"all: false {sum(false.values())}, found {sum(map(sum, found.values()))} of {sum(map(len, found.values()))}")


if __name__ == "__main__":
    main()
