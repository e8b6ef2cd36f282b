"""Measure the cost of the list of defects in addition to `wer` and `sptd` of the same recording, in processor time of
one thread.

    python studies/speed/podcast.py make podcast.wav                 # an hour, with its words and turns
    PODEVAL_THREADS=1 python studies/speed/defects_cost.py podcast.wav [--plant 60]

The cache is empty, and the loading of a model counts towards the part that uses it first. With `--plant`, this many
defects are spread evenly over the recording, six kinds in turn: an omitted turn, a repeated turn, a turn that the
script gives to the other voice, a hole, a click, and a repeated stretch of 3 s. The target for an hour is at most 20 %.
"""

import argparse
import json
import resource
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.metrics.defects import find_defects
from podeval.models.interfaces import Word
from podeval.recording import Recording, spoken_script
from podeval.recording.cache import Cache
from podeval.systems.controls import plant_click, plant_hole
from podeval.text.script import Script

Samples = NDArray[np.float32]
Turns = list[dict[str, Any]]

KINDS = ("left out", "twice", "wrong voice", "hole", "click", "loop")
LOOP = 3.0
"""Length in seconds of the repeated stretch."""

SHORTEST_TURN, LONGEST_TURN = 3.0, 9.0
"""Minimum and maximum length, in seconds, of a turn in which a defect is planted."""

WANTED = 0.2


def plant(samples: Samples, rate: int, turns: Turns, count: int) -> tuple[Samples, Turns]:
    """Plant defects in turns that are spread evenly over a recording, with their kinds in turn.

    Returns:
        The recording and the turns of its script.
    """
    fit = [at for at, turn in enumerate(turns) if SHORTEST_TURN < turn["end"] - turn["start"] < LONGEST_TURN]
    chosen = [fit[place] for place in np.linspace(0, len(fit) - 1, count).round().astype(int)]
    spoiled = dict(zip(chosen, cycle(KINDS)))
    parts: list[Samples] = []
    position = 0
    for at, turn in enumerate(turns):
        if (kind := spoiled.get(at)) is None:
            continue
        start, end = round(turn["start"] * rate), round(turn["end"] * rate)
        parts.append(samples[position:start])
        parts += _spoil(samples[start:end].copy(), rate, kind)
        position = end
    other = {"voice 1": "voice 2", "voice 2": "voice 1"}
    written = [
        turn | ({"speaker": other[turn["speaker"]]} if spoiled.get(at) == "wrong voice" else {})
        for at, turn in enumerate(turns)
    ]
    return np.concatenate([*parts, samples[position:]]), written


def _spoil(sound: Samples, rate: int, kind: str) -> list[Samples]:
    loudest = int(np.argmax(np.abs(sound[: -rate // 2]))) / rate
    if kind == "left out":
        return []
    if kind == "twice":
        return [sound, np.zeros(rate // 3, np.float32), sound]
    if kind == "loop":
        middle = round(LOOP * rate)
        return [sound[:middle], sound]
    if kind in ("hole", "click"):
        (plant_hole if kind == "hole" else plant_click)(sound, rate, loudest)
    return [sound]


def measure(path: Path, count: int) -> None:
    """Measure the parts, and print their cost."""
    turns: Turns = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    samples, rate = soundfile.read(path, dtype="float32")
    if count:
        samples, turns = plant(samples, rate, turns, count)
    script = Script.parse([{"speaker": turn["speaker"], "text": turn["text"]} for turn in turns])
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.from_samples(samples, rate, cache=Cache(Path(folder)))
        print(f"{recording.duration / 60:.1f} minutes, {len(turns)} turns, {count} defects planted", flush=True)
        inputs = {"recording": recording, "script": script}
        base = _spend("wer", lambda: catalogue.get("wer")({"recording": recording, "reference_text": script.text}, {}))
        base += _spend("sptd", lambda: catalogue.get("sptd")(inputs, {}))
        again = _watch_second_hearings()
        added = _spend("content_errors", lambda: catalogue.get("content_errors")(inputs, {}))
        added += _spend("speaker_attribution", lambda: catalogue.get("speaker_attribution")(inputs, {}))
        listed: list[str] = []
        added += _spend("the rest of the list", lambda: listed.extend(d.kind for d in find_defects(inputs).defects))
    for job, (stretches, seconds, spent) in again.items():
        print(f"  of that {job}: {stretches} stretches, {seconds:.0f} s heard again in {spent:.1f} s")
    print(f"`wer` and `sptd` {base:.1f} s, the list {added:.1f} s on top: {added / base:.1%} (wanted: {WANTED:.0%})")
    print(f"{len(listed)} defects an hour or so: {dict(Counter(listed))}")


def _watch_second_hearings() -> dict[str, list[float]]:
    """From now on, count by recogniser the stretches that are transcribed again, their seconds, and their cost."""
    spent: dict[str, list[float]] = {}
    hear = spoken_script.listen_again

    def watch(
        recording: Recording, spans: Sequence[Span], language: str | None = None, *, job: str = "transcriber"
    ) -> tuple[Word, ...]:
        begin = _read_clock()
        words = hear(recording, spans, language, job=job)
        # Repeated requests are answered from memory and cost nothing.
        if (cost := _read_clock() - begin) > 0.05:
            known = spent.setdefault(job, [0, 0.0, 0.0])
            spent[job] = [known[0] + len(spans), known[1] + sum(span.duration for span in spans), known[2] + cost]
        return words

    spoken_script.listen_again = watch
    return spent


def _spend(what: str, do: Callable[[], Any]) -> float:
    begin = _read_clock()
    do()
    spent = _read_clock() - begin
    print(f"{what}: {spent:.1f} s", flush=True)
    return spent


def _read_clock() -> float:
    """Return the processor seconds of this process and of its children."""
    clocks = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(clock.ru_utime + clock.ru_stime for clock in clocks)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("podcast", type=Path)
    parser.add_argument("--plant", type=int, default=0, help="so many defects")
    options = parser.parse_args()
    measure(options.podcast, options.plant)
