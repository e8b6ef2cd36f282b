"""Measure how well `podeval score --defects` finds planted defects: the study behind docs/defects-study.md.

    python studies/defects.py all WORK           everything, overnight; existing results are kept
    python studies/defects.py run WORK --source kokoro --half before --dialogues 1 [--clean]
    python studies/defects.py report WORK        the tables and pictures of the existing results

There are fourteen kinds of defects and four sources. For each kind and source, there are ten places in the half
`before` the thresholds were fixed, and five in the half `after`. The places of `before` come from seeds that were known
when the thresholds were chosen. Those of `after` come from the digest of the thresholds (thresholds.py), so changing a
threshold draws other places. Each person reads one clip; for dialogues of several people (`people in turns`,
planted_readers.py), the clips are cut into turns, with ten places in each half. WORK/heard.jsonl has a line for each
dialogue, so a killed run can resume; lines from other thresholds stay in it but do not count. With `--clean`, nothing
is planted.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.metrics.defects import find_defects
from podeval.recording import Recording
from podeval.recording.cache import Cache
from podeval.systems import registry
from studies import defects_report, log, thresholds
from studies.planted_dialogues import PEOPLE, SECONDS, Dialogue, make_dialogue
from studies.planted_readers import make_readers_dialogue

READERS = "people in turns"
SOURCES = ("hibari_piper", "kokoro", "espeak_ng", PEOPLE, READERS)
HALVES = ("before", "after")
KNOWN_SEEDS = ("1", "b4f0914f966c4e5b")
"""Seeds of the places that were examined before the thresholds were fixed; those of the second were held out until
November 2026.
"""

DIALOGUES = {source: 10 if source == READERS else 5 for source in SOURCES}
"""Number of dialogues for each source and seed; each contains one place of every kind for which there is room."""

LASTING = {source: 35.0 if source == READERS else SECONDS for source in SOURCES}
CLEAN_SECONDS = {source: 1_800.0 if source == PEOPLE else 350.0 if source == READERS else 800.0 for source in SOURCES}
"""Seconds without planted defects for each source and half."""

WALL = 0.4
"""Seconds of one core for a second of dialogue: to make it (0.4 for Kokoro, less for others) and to analyse it (0.1 to
0.2).
"""


def draw_seeds(half: str) -> tuple[str, ...]:
    """Return the seeds of a half; that of `after` is derived from the thresholds."""
    return KNOWN_SEEDS if half == "before" else (thresholds.draw_seed(),)


def list_work() -> list[dict[str, Any]]:
    """List all dialogues of the study, in an order in which every beginning is a study of its own."""
    work: list[dict[str, Any]] = []
    for half in reversed(HALVES):
        for seed in draw_seeds(half):
            of_seed = {"half": half, "seed": seed}
            sources = [source for source in SOURCES if source != READERS or seed != KNOWN_SEEDS[1]]
            clean = {source: math.ceil(CLEAN_SECONDS[source] / LASTING[source]) for source in sources}
            clean = clean if seed != KNOWN_SEEDS[0] else {source: 0 for source in sources}
            for part, counts in (False, DIALOGUES), (True, clean):
                for number in range(max(counts.values())):
                    able = [source for source in sources if number < counts[source]]
                    work += [of_seed | {"source": each, "number": number, "clean": part} for each in able]
    return work


def make(key: dict[str, Any]) -> Dialogue:
    """Make a dialogue of the study."""
    chance = random.Random(f"{key['source']} {key['seed']} {key['number']} {key['clean']}")
    if key["source"] == READERS:
        return make_readers_dialogue(chance, clean=key["clean"])
    # Each dialogue has its own script, as long as there are enough scripts.
    if key["seed"] in KNOWN_SEEDS:
        place = 2 * key["number"] + KNOWN_SEEDS.index(key["seed"]) + (10 if key["clean"] else 0)
    else:
        place = 30 + key["number"] + (5 if key["clean"] else 0)
    return make_dialogue(key["source"], place, chance, clean=key["clean"])


def hear(dialogue: Dialogue, cache: Path) -> dict[str, Any]:
    """Find the defects in a dialogue."""
    recording = Recording.from_samples(dialogue.samples, dialogue.rate, cache=Cache(cache))
    begin = time.process_time()
    report = find_defects({"recording": recording, "script": dialogue.script}, {"integrity": {"music": "unasked"}})
    return {
        "seconds": recording.duration,
        "processor": time.process_time() - begin,
        "planted": dialogue.planted,
        "heard": [(each.kind, each.start, each.end, each.detail[:80]) for each in report.defects],
        "unscored": {name: result.reason for name, result in report.unscored.items()},
    }


def hear_all(work: Path, wanted: list[dict[str, Any]]) -> None:
    """Analyse the dialogues that have not been analysed with the current thresholds yet."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / "heard.jsonl"
    keys = [each | {"thresholds": thresholds.digest_thresholds()} for each in wanted]
    done = log.read(path)
    left = [key for key in keys if not any(all(row.get(name) == value for name, value in key.items()) for row in done)]
    hours = sum(LASTING[key["source"]] for key in left) * WALL / 3600
    print(f"{len(left)} of {len(keys)} dialogues to hear, about {hours:.1f} h of one core")
    for key in left:
        system = None if key["source"] in (PEOPLE, READERS) else registry.get(key["source"]).available()
        if system is not None:
            print(f"{key['source']} is left out: {system}", flush=True)
            continue
        row = key | hear(make(key), work / "cache")
        with log.append(path) as file:
            file.write(json.dumps(row) + "\n")
        print(key, f"{row['seconds']:.0f} s heard in {row['processor']:.0f} s", flush=True)


def main() -> None:
    """Run a part of the study or all of it, or write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, do in (("all", run_all), ("run", run_part), ("report", report)):
        command = commands.add_parser(name)
        command.add_argument("work", type=Path)
        command.set_defaults(do=do)
        if name == "run":
            command.add_argument("--source", default="hibari_piper", choices=SOURCES)
            command.add_argument("--half", default="before", choices=HALVES)
            command.add_argument("--dialogues", type=int, default=1)
            command.add_argument("--clean", action="store_true")
    arguments = parser.parse_args()
    chosen: Callable[[Any], None] = arguments.do
    chosen(arguments)


def run_all(arguments: argparse.Namespace) -> None:
    """Analyse everything, then write the report."""
    hear_all(arguments.work, list_work())
    report(arguments)


def run_part(arguments: argparse.Namespace) -> None:
    """Analyse some dialogues of one source and half."""
    part = {"source": arguments.source, "half": arguments.half, "clean": arguments.clean}
    of_part = [each for each in list_work() if all(each[name] == value for name, value in part.items())]
    hear_all(arguments.work, [each for each in of_part if each["number"] < arguments.dialogues])


def report(arguments: argparse.Namespace) -> None:
    """Write the tables and pictures of the findings with the current thresholds."""
    digest = thresholds.digest_thresholds()
    rows = [row for row in log.read(arguments.work / "heard.jsonl") if row.get("thresholds") == digest]
    defects_report.write(rows, arguments.work)


if __name__ == "__main__":
    main()
