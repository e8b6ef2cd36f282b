"""Measure which metric reacts to which distortion: the study behind docs/distortion-study.md.

    python studies/distortion.py corpus WORK --packages UNPACKED_DEBIAN --shared ../shared/data
    python studies/distortion.py run WORK [--metrics a,b] [--items N] [--profile reference]
    python studies/distortion.py windows WORK
    python studies/distortion.py report WORK

`run` scores every distortion of every item with every metric of recordings. It can be killed and started again:
WORK/scores.jsonl has a line for each item, distortion, level and metric, and existing lines are not computed again.
`report` writes the tables and plots under docs/ from the existing lines.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.metrics.catalogue import Metric, load_all_metrics
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.recording.reference_voices import ONLY, ReferenceVoices
from podeval.text.script import Script
from studies import corpus, log, report, window_size
from studies.conditions import CHANGES, CLEAN, DIALOGUES, LEVELS, Subject, dialogue, distorted, subject
from studies.corpus import RATE, Item, Samples
from studies.scripted_dialogues import find_partner, make_scripted_dialogue

FOR_DIALOGUES = ("sptd", "wsim")
"""Metrics that compare voices; they are run on two voices that speak in turn, which diarisation finds."""

FOR_SCRIPTS = ("speaker_attribution",)
"""Metrics of who says which word; they are run on two voices that say the halves of their texts in turn."""

NEED_WORDS = ("content_errors",)
"""Metrics that need the spoken words as the script; they are run on items whose words are known."""

UNCHANGING = tuple(name for name in (CLEAN, *LEVELS) if name not in CHANGES)
ONLY_UNDER = {
    "smr": ("music",),
    "casp": ("music",),
    **dict.fromkeys(("wer", "dnsmos", "distillmos", "sound_fidelity", "pam"), UNCHANGING),
    **dict.fromkeys(("content_errors", "integrity", "speaker_attribution"), UNCHANGING),
}
"""Metrics that are expensive, or of little use under other distortions, and the distortions under which they are
run.
"""

MIX = ("mix", {"source": "mix"}, ("music",))
VARIANTS: dict[str, tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...]] = {
    "reverb_consistency": (("norm", {"norm": True}, (CLEAN, *LEVELS)),),
    "timbre_consistency": (("one voice", {"speakers": 1}, (CLEAN, "voice", "recording")), MIX),
    **dict.fromkeys(("dnsmos", "distillmos", "wer", "timbre_similarity"), (MIX,)),
}
"""Variants in addition to the defaults: the name, the parameters, and the distortions under which it is run. `one
voice` gets no script, only the information that one person speaks (up to version 1.2 of the metric, it was `diarised`,
without repeated items).
"""

Condition = tuple[str, float]
CHANGES_FIRST: list[Condition] = [(CLEAN, 0.0), *((name, level) for name in CHANGES for level in LEVELS[name])]
THE_REST: list[Condition] = [(name, level) for name in LEVELS if name not in CHANGES for level in LEVELS[name]]


@dataclass(frozen=True)
class Task:
    """One metric on one distorted item."""

    item: str
    kind: str
    distortion: str
    level: float
    metric: str
    variant: str
    parameters: dict[str, Any]

    @property
    def key(self) -> tuple[str, str, float, str, str]:
        """The identity of the task; a task is computed only once."""
        return self.item, self.distortion, self.level, self.metric, self.variant


def main() -> None:
    """Run a part of the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("corpus", "run", "windows", "report"))
    parser.add_argument("work", type=Path, help="folder of the corpus and the scores")
    parser.add_argument("--packages", type=Path, default=Path("/"), help="where Debian packages are unpacked")
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"), help="real files beside the repository")
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--metrics", default="", help="some metrics, by commas; all by default")
    parser.add_argument("--items", type=int, default=12, help="so many for what does not change in the middle")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    if options.part == "corpus":
        for sentence in corpus.make(options.work / "corpus", options.packages, options.shared):
            print(sentence, file=sys.stderr)
        print(f"{len(corpus.read(options.work / 'corpus'))} items")
    elif options.part == "run":
        run(options.work, options.profile, options.metrics.split(",") if options.metrics else [], options.items)
    elif options.part == "windows":
        window_size.run(options.work, options.items)
    else:
        report.write(options.work, options.docs)


def run(work: Path, profile: str, chosen: Sequence[str], count: int) -> None:
    """Score everything that has no line yet, and write each line as soon as it is finished."""
    items = corpus.read(work / "corpus")
    metrics = [m for m in load_all_metrics() if "recording" in m.inputs and (not chosen or m.name in chosen)]
    done = _done(work / "scores.jsonl", {metric.name: metric.version for metric in metrics})
    absent: set[str] = set()
    begin = time.perf_counter()
    with log.append(work / "scores.jsonl") as out:
        # Score all items under the conditions that the targets are about, then the other conditions; an early end
        # leaves complete comparisons, because the work goes item by item.
        for conditions, of_these in ((CHANGES_FIRST, items), (THE_REST, items[:count])):
            for item in of_these:
                own = subject(item, items, work / "corpus")
                for made, name, level in _recordings(conditions, item, items):
                    tasks = [t for metric in metrics for t in _tasks(metric, own.item, made, name, level)]
                    tasks = [task for task in tasks if task.key not in done and task.metric not in absent]
                    samples = _samples(own, made, name, level, items, work / "corpus") if tasks else None
                    if samples is None:
                        continue
                    recording = Recording.from_samples(samples, RATE, profile=profile, allow_upsampling=True)
                    inputs = _inputs(item, items, made, recording, work / "corpus")
                    for task in tasks:
                        line = _scored(task, inputs, metrics)
                        absent |= {task.metric} if "not_run" in line else set()
                        print(json.dumps({**line, "profile": profile}), file=out, flush=True)
                print(f"{time.perf_counter() - begin:7.0f} s  {item.name}: {len(conditions)} conditions", flush=True)


def _recordings(conditions: Sequence[Condition], item: Item, items: Sequence[Item]) -> Iterator[tuple[str, str, float]]:
    """Yield the recordings made from an item in every condition: its voice alone and, for the first few items,
    dialogues with another voice.
    """
    for name, level in conditions:
        yield "voice", name, level
        if name in CHANGES:
            continue
        if item in items[:DIALOGUES]:
            yield "dialogue", name, level
        if item in [each for each in items if each.text][:DIALOGUES]:
            yield "scripted", name, level


def _samples(own: Subject, made: str, name: str, level: float, items: Sequence[Item], folder: Path) -> Samples | None:
    if made == "voice":
        return distorted(own, name, level)
    if made == "scripted":
        return distorted(replace(own, samples=make_scripted_dialogue(own.item, items, folder)[0]), name, level)
    return distorted(replace(own, samples=dialogue(own)), name, level)


def _tasks(metric: Metric, item: Item, made: str, name: str, level: float) -> Iterator[Task]:
    wanted = "dialogue" if metric.name in FOR_DIALOGUES else "scripted" if metric.name in FOR_SCRIPTS else "voice"
    if made != wanted or name not in ONLY_UNDER.get(metric.name, (name,)):
        return
    kind = item.kind if made == "voice" else "dialogue"
    yield Task(item.name, kind, name, level, metric.name, "", {})
    for variant, parameters, where in VARIANTS.get(metric.name, ()):
        if name in where:
            yield Task(item.name, kind, name, level, metric.name, variant, parameters)


def _inputs(item: Item, items: Sequence[Item], made: str, recording: Recording, folder: Path) -> dict[str, Any]:
    """Return the inputs of the metrics: the script and the reference of a voice, or the references of both voices of a
    dialogue.
    """
    inputs: dict[str, Any] = {"recording": recording}
    if made == "voice":
        voices = {ONLY: item.reference}
        words = item.text or "One voice, whose words are not known."
        inputs["script"] = Script.parse([{"speaker": item.voice, "text": words}])
        if item.text:
            inputs["reference_text"] = item.text
    elif made == "scripted":
        inputs["script"] = make_scripted_dialogue(item, items, folder)[1]
        voices = {voice.voice: voice.reference for voice in (item, find_partner(item, items))}
    else:
        voices = {voice.voice: voice.reference for voice in (item, corpus.other_recording(item, items))}
    if all(voices.values()):
        inputs["reference_voices"] = ReferenceVoices(
            {name: Recording.open(folder / str(file), profile=recording.profile) for name, file in voices.items()}
        )
    return inputs


def _scored(task: Task, inputs: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """Score a task, and return the line of the log."""
    metric = next(metric for metric in metrics if metric.name == task.metric)
    line = {name: getattr(task, name) for name in ("item", "kind", "distortion", "level", "metric", "variant")}
    line["version"] = metric.version
    wanted = (*metric.inputs, *(("reference_text",) if metric.name in NEED_WORDS else ()))
    if any(name not in inputs for name in wanted):
        return {**line, "skipped": "the corpus does not know what this needs of this item"}
    # The words of a script are used only if they are the spoken words.
    wordless = task.variant == "one voice" or (metric.name == "integrity" and "reference_text" not in inputs)
    given = {name: value for name, value in inputs.items() if not (wordless and name == "script")}
    # The recordings should not contain any music.
    chosen = {"music": "unasked"} if metric.name == "integrity" else {}
    result = metric(given, {**chosen, **task.parameters})
    if isinstance(result, Score):
        return {**line, "values": dict(result.values), "stem": result.notes.get("scored") == "speech stem"}
    return {**line, "not_run" if result.cause == "ours" else "unscored": result.reason}


def _done(path: Path, versions: dict[str, str]) -> set[tuple[str, str, float, str, str]]:
    """Return the keys that have a line, except lines of another version and lines for a missing model."""
    names = ("item", "distortion", "level", "metric", "variant")
    return {
        tuple(line[name] for name in names)
        for line in log.read(path)
        if "not_run" not in line and line.get("version") == versions.get(line["metric"])
    }


if __name__ == "__main__":
    main()
