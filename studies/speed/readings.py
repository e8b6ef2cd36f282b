"""What the readings of figures, signs and abbreviations add to the counting of word errors.

    python studies/speed/readings.py [TURNS]

The text is two episodes of ten minutes of Real-Pod's split `long`; of its transcript one word in 33 is another.
A second text has 76 figures in addition, every other one in the transcript. Both texts are counted by turns with and
without readings, from empty tables of readings every time, in processor seconds. Wanted: at most 1.1 times.
"""

import random
import statistics
import sys
import time
from pathlib import Path

from timing import keep

from podeval import benchmarks
from podeval.text.comparison.english_readings import list_readings
from podeval.text.comparison.word_errors import count_word_errors

FIGURES, EPISODES, WANTED = 76, 2, 1.1
PAIRS = Path(__file__).parents[2] / "tests" / "text" / "data" / "readings_en.tsv"


def make_texts(figures: int) -> tuple[str, str]:
    """Return a script and its transcript, with so many sentences of the tests' table among its own."""
    scripts = [item.script for item in benchmarks.get("real_pod").items("long")[:EPISODES]]
    written = [turn.text for script in scripts if script for turn in script.turns]
    chance = random.Random(0)
    words = [word for text in written for word in text.split()]
    heard = [" ".join(chance.choice(words) if chance.random() < 0.03 else w for w in t.split()) for t in written]
    pairs = [line.split("\t") for line in PAIRS.read_text("utf-8").splitlines() if not line.startswith("#")]
    for number, pair in enumerate(chance.sample(pairs, figures)):
        at = round(number * len(written) / figures)
        written[at] += " " + pair[1 - number % 2]
        heard[at] += " " + pair[number % 2]
    return " ".join(written), " ".join(heard)


def count(script: str, transcript: str, read: bool) -> float:
    """Return the processor seconds of one count."""
    list_readings.cache_clear()
    start = time.process_time()
    count_word_errors(script, transcript, read=read)
    return time.process_time() - start


def main(turns: int) -> None:
    """Print how many times as long the counting takes with readings."""
    for figures in (0, FIGURES):
        script, transcript = make_texts(figures)
        count(script, transcript, True)
        pairs = [(count(script, transcript, False), count(script, transcript, True)) for _ in range(turns)]
        without, with_readings = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(other / one for one, other in pairs)
        what = f"{len(script.split())} words with {figures} figures"
        print(f"{what}: {1000 * without:.1f} ms without readings, {1000 * with_readings:.1f} with, {ratio:.3f} times")
        keep("readings of figures", what, with_readings, without, ratio, WANTED)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
