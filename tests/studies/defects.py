"""How well `podeval defects` finds what is planted: the study behind docs/defects-study.md.

    python tests/studies/defects.py all WORK           everything, over night; what is there is not heard again
    python tests/studies/defects.py run WORK --source kokoro --half before --dialogues 1 [--clean]
    python tests/studies/defects.py report WORK        the tables and pictures from what there is

Fourteen kinds of defects, four sources, ten places of each kind and source, five in each half. The places of the half
`before` come from a seed that was known when the thresholds were chosen; those of `after` from the digest of the code
that holds the thresholds, so that changing one draws other places. WORK/heard.jsonl has a line for each dialogue and
survives being killed. With `--clean` nothing is planted: half an hour of people, nine minutes of each machine.
"""

import argparse
import ast
import hashlib
import json
import math
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import defects_report
import log
from planted_dialogues import PEOPLE, SECONDS, Dialogue, make_dialogue

import podeval
from podeval.analysis import Recording
from podeval.analysis.cache import Cache
from podeval.metrics.defects import find_defects
from podeval.systems import registry

SOURCES = ("hibari_piper", "kokoro", "espeak_ng", PEOPLE)
HALVES = ("before", "after")
DIALOGUES = 5
"""Of each source and half; each holds one place of every kind that finds room."""

CLEAN_SECONDS = {source: 1_800.0 if source == PEOPLE else 800.0 for source in SOURCES}
"""Of each source that nothing is planted in."""

THRESHOLDS = (
    *("analysis/pace_defects.py", "analysis/second_look.py", "analysis/speech_track.py", "analysis/voices_by_word.py"),
    *("audio/faults.py", "audio/loops.py", "metrics/content_errors.py", "metrics/integrity.py"),
    *("metrics/speaker_attribution.py", "text/content_differences.py"),
)
"""Files that decide what is found."""

WALL = 0.4
"""Seconds of one core that a second of dialogue takes to be made (Kokoro: 0.4, others less) and heard (0.1 to 0.2)."""


def _strip_sentences(source: bytes) -> bytes:
    """Code without what people read, which moves no threshold."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree).encode()


def draw_seed(half: str) -> str:
    """The seed of a half; that of `after` follows from the thresholds."""
    if half == "before":
        return "1"
    digest = hashlib.sha256()
    for name in THRESHOLDS:
        digest.update(_strip_sentences((Path(podeval.__file__).parent / name).read_bytes()))
    return digest.hexdigest()[:16]


def list_work() -> list[dict[str, Any]]:
    """What the whole study hears, in an order in which a part of it is a study as well."""
    planted = [
        {"source": source, "half": half, "number": number, "clean": False}
        for number in range(DIALOGUES)
        for half in HALVES
        for source in SOURCES
    ]
    counts = {source: math.ceil(seconds / SECONDS) for source, seconds in CLEAN_SECONDS.items()}
    clean = [
        {"source": source, "half": "after", "number": number, "clean": True}
        for number in range(max(counts.values()))
        for source in SOURCES
        if number < counts[source]
    ]
    return planted + clean


def hear(dialogue: Dialogue, cache: Path) -> dict[str, Any]:
    """Let the proof-listener hear a dialogue."""
    recording = Recording.from_samples(dialogue.samples, dialogue.rate, cache=Cache(cache))
    begin = time.process_time()
    report = find_defects({"recording": recording, "script": dialogue.script})
    return {
        "seconds": recording.duration,
        "processor": time.process_time() - begin,
        "planted": dialogue.planted,
        "heard": [(each.kind, each.start, each.end, each.detail[:80]) for each in report.defects],
        "unscored": {name: result.reason for name, result in report.unscored.items()},
    }


def hear_all(work: Path, wanted: list[dict[str, Any]]) -> None:
    """Hear what was not heard yet under the thresholds as they are."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / "heard.jsonl"
    keys = [each | {"seed": draw_seed(each["half"])} for each in wanted]
    done = log.read(path)
    left = [key for key in keys if not any(all(row.get(name) == value for name, value in key.items()) for row in done)]
    print(f"{len(left)} of {len(keys)} dialogues to hear, about {len(left) * SECONDS * WALL / 3600:.1f} h of one core")
    for key in left:
        system = None if key["source"] == PEOPLE else registry.get(key["source"]).available()
        if system is not None:
            print(f"{key['source']} is left out: {system}", flush=True)
            continue
        chance = random.Random(f"{key['source']} {key['seed']} {key['number']} {key['clean']}")
        # Every dialogue is of a script of its own, as far as there are so many.
        place = 2 * key["number"] + HALVES.index(key["half"]) + (2 * DIALOGUES if key["clean"] else 0)
        row = key | hear(make_dialogue(key["source"], place, chance, clean=key["clean"]), work / "cache")
        with log.append(path) as file:
            file.write(json.dumps(row) + "\n")
        print(key, f"{row['seconds']:.0f} s heard in {row['processor']:.0f} s", flush=True)


def main() -> None:
    """Run a part or all, or report."""
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
    """Hear everything, then report."""
    hear_all(arguments.work, list_work())
    report(arguments)


def run_part(arguments: argparse.Namespace) -> None:
    """Hear some dialogues of one source and half."""
    part = {"source": arguments.source, "half": arguments.half, "clean": arguments.clean}
    hear_all(arguments.work, [part | {"number": number} for number in range(arguments.dialogues)])


def report(arguments: argparse.Namespace) -> None:
    """Write the tables and pictures of what was heard under the thresholds as they are."""
    seeds = {draw_seed(half) for half in HALVES}
    rows = [row for row in log.read(arguments.work / "heard.jsonl") if row["seed"] in seeds]
    defects_report.write(rows, arguments.work)


if __name__ == "__main__":
    main()
