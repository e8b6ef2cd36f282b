"""The listening test of docs/validity.md as files: recordings, the design, and the analysis of the answers.

    python studies/validity_test_kit.py make FOLDER                 makes recordings and FOLDER/validity.yaml
    podeval listening add FOLDER/validity.yaml                            adds the test to the site
    podeval listening export validity --form csv > answers.csv            once enough people have listened
    python studies/validity_test_kit.py analyse FOLDER answers.csv  compares metrics with these people

`make` has engines that ship speak the first minute of scripts in Real-Pod's split `spontaneous`, one from each
category. Each recording is used unchanged, in a room with a reverberation time of 0.6 s, encoded with Opus, and a
quarter faster; two excerpts of 20 s are cut from each. This gives twelve systems and 24 items. `--engines` and
`--scripts` reduce the number; `--add NAME=FOLDER` adds the excerpts of another system, from files with the same names.
`analyse` excludes listeners who failed the headphone check or whose marks hardly agree with those of the others,
measures the excerpts, and prints each key's agreement with its interval over systems and items.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import soundfile
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.stats.mushra_scores import Mark
from podeval.systems import registry
from podeval.text.script import Script
from podeval.validation.agreement import FEWEST, Validity, compare, has_direction
from studies.bias_material import code_with, stretch
from studies.distortions import Samples, reverberate
from studies.validity_listening_test import screen

RATE, SECONDS, EXCERPTS, SCRIPTS = 24_000, 20, 2, 12
ENGINES = ("hibari_piper", "kokoro", "espeak_ng")
CONDITIONS: Mapping[str, Callable[[Samples], Samples]] = {
    "plain": lambda samples: samples,
    "room": lambda samples: reverberate(samples, RATE, 0.6, seed=1),
    "opus": lambda samples: code_with(samples, "OGG", "OPUS"),
    "fast": lambda samples: stretch(samples, 1.25),
}
SCALE = "OVL"
METRICS = ("dnsmos", "distillmos", "loudness", "reverb_consistency")
INSTRUCTIONS = (
    "You hear excerpts of conversations, about 20 seconds each. How natural does each sound, as people talking with "
    "each other? 1: not at all, 5: entirely. Judge how it is said, not what is said, and not how clean the recording "
    "is. Use headphones in a quiet room, and hear each excerpt to its end."
)
CONSENT = (
    "You take part of your own will and may stop at any time. Kept are your marks, the time of each page and the code "
    "by which you came, and nothing that says who you are. The marks may be published without that code."
)


def make(folder: Path, engines: Sequence[str], scripts: int, added: Mapping[str, Path]) -> Path:
    """Make the excerpts and the design, and return the design's path."""
    items: dict[str, dict[str, dict[str, str]]] = {}
    for name, samples in _speak_all(engines, scripts):
        for condition, change in CONDITIONS.items():
            changed = change(samples)
            for number in range(EXCERPTS):
                start = number * SECONDS * RATE
                item, system = f"{name[1]}-{number + 1}", f"{name[0]}-{condition}"
                path = folder / "excerpts" / system / f"{item}.flac"
                path.parent.mkdir(parents=True, exist_ok=True)
                soundfile.write(path, changed[start : start + SECONDS * RATE], RATE)
                items.setdefault(item, {})[system] = {"audio": str(path.relative_to(folder))}
    for system, place in added.items():
        for item, stimuli in items.items():
            stimuli[system] = {"audio": str(next(place.resolve().glob(f"{item}.*")))}
    systems = sorted({system for stimuli in items.values() for system in stimuli})
    design = {
        "kind": "mos",
        "id": "validity",
        "title": "How natural are these conversations?",
        "instructions": INSTRUCTIONS,
        "consent": CONSENT,
        "systems": systems,
        "scales": [SCALE],
        "listeners": 36,
        "items_each": len(items),
        "heard": 0.9,
        "headphone_check": {"kind": "antiphase", "failed": "exclude"},
        "items": [{"id": item, "stimuli": stimuli} for item, stimuli in items.items()],
    }
    path = folder / "validity.yaml"
    path.write_text(yaml.safe_dump(design, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def _speak_all(engines: Sequence[str], scripts: int) -> Iterator[tuple[tuple[str, str], Samples]]:
    """Yield each engine's speech for each script (engine and item, samples), long enough for the excerpts."""
    chosen = {item.category: item for item in reversed(benchmarks.get("real_pod").items("spontaneous"))}
    for item in list(chosen.values())[:scripts]:
        script = item.script
        assert script
        for engine in engines:
            turns, length = [], 0.0
            # Only as many turns as fill the excerpts at a brisk pace, because synthesis takes most of the time.
            for turn in script.turns:
                turns.append(turn)
                length += len(turn.text.split()) / 3.5
                if length > 1.3 * EXCERPTS * SECONDS:
                    break
            speech = registry.get(engine).speak(Script(tuple(turns)), seed=1)
            mono = np.asarray(speech.samples.reshape(len(speech.samples), -1).mean(axis=1), np.float32)
            yield (engine, item.id.replace(" ", "_")), resample(mono, speech.rate, RATE)


def read_marks(answers: Path) -> list[Mark]:
    """Return the marks of the sessions that count, from the table of `podeval listening export --form csv`."""
    with answers.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["counted"] in ("True", "true", "1")]
    return [Mark(row["listener"], row["item"], row["stimulus"], float(row["mark"]), row["scale"]) for row in rows]


def analyse(folder: Path, answers: Path, metrics: Sequence[str] = METRICS) -> list[Validity]:
    """Return the agreement of every key of some metrics with the listeners who count."""
    marks = read_marks(answers)
    left_out = screen(marks)
    sums: dict[tuple[str, str], list[float]] = {}
    for mark in marks:
        if mark.rater not in left_out:
            sums.setdefault((mark.stimulus, mark.page), []).append(mark.value)
    people = {output: sum(values) / len(values) for output, values in sums.items()}
    design = yaml.safe_load((folder / "validity.yaml").read_text(encoding="utf-8"))
    paths = {
        (system, item["id"]): folder / stimulus["audio"]
        for item in design["items"]
        for system, stimulus in item["stimuli"].items()
    }
    found = []
    for name in metrics:
        metric = catalogue.get(name)
        values = {output: metric({"recording": Recording.open(paths[output])}) for output in people}
        for key in filter(has_direction, metric.keys):
            scored = {
                output: value
                for output, result in values.items()
                if isinstance(result, Score) and (value := result.values.get(key.name)) is not None
            }
            if len(scored) < FEWEST:
                continue
            scores = {output: people[output] for output in sorted(scored)}
            found.append(compare((name, metric.version, key, scored), SCALE, scores))
    return sorted(found, key=lambda row: -(row.srcc.value if row.srcc.value is not None else -2))


def _describe(row: Validity) -> str:
    low, high = row.srcc.low, row.srcc.high
    bounds = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    value = "–" if row.srcc.value is None else f"{row.srcc.value:.2f}"
    return f"{row.metric}.{row.key}: SRCC {value}{bounds}, {row.srcc.count} outputs, {row.systems.count} systems"


def main() -> None:
    """Make the test, or analyse its answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["make", "analyse"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--scripts", type=int, default=SCRIPTS)
    parser.add_argument("--add", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--metrics", nargs="+", default=list(METRICS))
    options = parser.parse_args()
    if options.step == "make":
        added = {name: Path(place) for name, _, place in (pair.partition("=") for pair in options.add)}
        print(make(options.folder, options.engines, options.scripts, added))
        return
    if options.answers is None:
        parser.error("analyse needs the answers, as `podeval listening export --form csv` writes them")
    rows = analyse(options.folder, options.answers, options.metrics)
    print(f"{len(rows)} keys; the best of many is good by chance")
    print("\n".join(map(_describe, rows)))


if __name__ == "__main__":
    main()
