"""How well `podeval defects` finds what is planted: the study behind docs/defects-study.md.

    python tests/studies/defects.py run WORK --source hibari_piper --seed 1 --dialogues 5 [--clean]
    python tests/studies/defects.py report WORK

`run` makes dialogues of Real-Pod's scripts, plants defects at places of chance and lets the proof-listener hear them;
WORK/heard.jsonl has a line for each dialogue, and what is there is not heard again. With `--clean` nothing is planted.
`report` prints the tables of the page from what there is.
"""

import argparse
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from podeval import benchmarks
from podeval.analysis import Recording
from podeval.analysis.cache import Cache
from podeval.audio.resample import resample
from podeval.metrics.defects import find_defects
from podeval.systems import registry
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine
from podeval.text.script import Script, Turn

Samples = NDArray[np.float32]
DATA = Path(benchmarks.__file__).parent / "data"
PEOPLE = "people"
PAUSE = 0.35
SECONDS = 150.0
"""Of a dialogue at most, so that many places are many dialogues."""

NAMED = {
    "sentence_omitted": {"omitted"},
    "word_omitted": {"omitted"},
    "sentence_twice": {"repeated", "loop"},
    "invented": {"inserted"},
    "turn_wrong_voice": {"wrong_voice"},
    "half_turn_wrong_voice": {"wrong_voice"},
    "loop": {"loop", "repeated"},
    "hole": {"hole"},
    "click": {"click"},
    "clipped": {"clipped"},
    "music": {"music"},
    "cut_off": {"cut_off"},
}
"""By what is planted the kinds that name it."""

INVENTED = (
    "Remember that every kitchen deserves a second cup of cinnamon tea.",
    "The old museum opens its northern gallery on the first weekend of October.",
    "Please do not forget to bring seven green umbrellas to the picnic.",
)
NEAR = 1.5
"""Seconds by which a finding may be away from what is planted."""


@dataclass
class Line:
    """A sentence as it is written and as it is said."""

    turn: int
    text: str
    samples: Samples
    plant: str = ""


@dataclass
class Dialogue:
    """What is listened to, with what is planted: kind, start and end in seconds."""

    script: Script
    samples: Samples
    rate: int
    planted: list[tuple[str, float, float]] = field(default_factory=list)


def scripts() -> list[Script]:
    """The 51 scripts of Real-Pod."""
    rows = [json.loads(line) for line in (DATA / "real_pod_scripts_v1.jsonl").read_text(encoding="utf-8").splitlines()]
    return [Script.parse(row["turns"] if "turns" in row else row["script"]) for row in rows]


class Voices:
    """Says sentences: a built-in system, whose n-th voice is the n-th speaker's."""

    def __init__(self, name: str) -> None:
        system = registry.get(name)
        assert isinstance(system, DialogueReader)
        self.reader, self.rate = system, 0

    def say(self, script: Script, turn: int, voice: int, text: str) -> Samples:
        """One sentence in one voice."""
        speech = self.reader.read(script, [SpokenLine(turn, voice, text)])
        self.rate = speech.rate
        return speech.samples[:, 0]


def sentences(text: str) -> list[str]:
    """The sentences of a turn."""
    return [part for part in re.split(r"(?<=[.!?]) +", text) if any(map(str.isalnum, part))]


def machine_dialogue(name: str, number: int, chance: random.Random, *, clean: bool) -> Dialogue:
    """A dialogue of a script, with one defect of each kind that is said, and one of each kind of sound."""
    every = [script for script in scripts() if len(script.speakers) == 2]
    script = every[number % len(every)]
    voices = Voices(name)
    chosen: list[Turn] = []
    for turn in script.turns:
        if sum(len(each.text) for each in chosen) > SECONDS * 15:
            break
        chosen.append(turn)
    script = Script(tuple(chosen))
    whose = {speaker: at for at, speaker in enumerate(script.speakers)}
    places = [(at, text) for at, turn in enumerate(script.turns) for text in sentences(turn.text)]
    plants = {} if clean else _choose_lines(script, places, chance)
    lines: list[Line] = []
    for at, (turn, text) in enumerate(places):
        kind, voice = plants.get(at, ""), whose[script.turns[turn].speaker]
        if kind == "sentence_omitted":
            lines.append(Line(turn, text, np.zeros(0, np.float32), kind))
            continue
        if kind == "half_turn_wrong_voice":
            words = text.split()
            halves = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
            lines.append(Line(turn, text, voices.say(script, turn, voice, halves[0])))
            lines.append(Line(turn, "", voices.say(script, turn, 1 - voice, halves[1]), kind))
            continue
        said = _leave_out_a_word(text, chance) if kind == "word_omitted" else text
        voice = 1 - voice if kind == "turn_wrong_voice" else voice
        sound = voices.say(script, turn, voice, said)
        lines.append(Line(turn, text, sound, kind if kind in ("word_omitted", "turn_wrong_voice") else ""))
        if kind == "sentence_twice":
            lines.append(Line(turn, text, sound, kind))
        if kind == "invented":
            lines.append(Line(turn, "", voices.say(script, turn, voice, chance.choice(INVENTED)), kind))
    return _plant_sounds(_join(script, lines, voices.rate), chance, clean=clean)


def people_dialogue(number: int, chance: random.Random, *, clean: bool) -> Dialogue:
    """Readers of LibriTTS-R, one sentence each, in an order of chance; one speaker to the script."""
    rows = json.loads((DATA / "real_pod_voices_v1.json").read_text(encoding="utf-8"))["voices"]
    chance.shuffle(rows)
    script = Script((Turn("1", " ".join(row["words"] for row in rows)),))
    spoken = ("sentence_omitted", "sentence_twice", "invented")
    plants = {} if clean else dict(zip(chance.sample(range(1, len(rows) - 1), 3), spoken, strict=True))
    lines: list[Line] = []
    extra = rows[0]
    if not clean:
        script = Script((Turn("1", " ".join(row["words"] for row in rows[1:])),))
        rows, plants = rows[1:], {at - 1: kind for at, kind in plants.items()}
    for at, row in enumerate(rows):
        recording = Recording.open(DATA / row["file"])
        sound = resample(recording.samples[:, 0], recording.rate, 24_000)
        kind = plants.get(at, "")
        omitted = kind == "sentence_omitted"
        lines.append(Line(0, row["words"], sound[:0] if omitted else sound, kind if omitted else ""))
        if kind == "sentence_twice":
            lines.append(Line(0, row["words"], sound, kind))
        if kind == "invented":
            other = Recording.open(DATA / extra["file"])
            lines.append(Line(0, "", resample(other.samples[:, 0], other.rate, 24_000), kind))
    return _plant_sounds(_join(script, lines, 24_000), chance, clean=clean)


def _choose_lines(script: Script, places: list[tuple[int, str]], chance: random.Random) -> dict[int, str]:
    """By sentence what is planted there; two sentences apart, and long enough to be what it is called."""
    kinds = (
        "turn_wrong_voice",
        "sentence_omitted",
        "word_omitted",
        "sentence_twice",
        "invented",
        "half_turn_wrong_voice",
    )
    alone = {turn for turn, _ in places if sum(each == turn for each, _ in places) == 1}
    plants: dict[int, str] = {}
    for kind in kinds:
        fit = [
            at
            for at, (turn, text) in enumerate(places)
            if 1 < at < len(places) - 1
            and all(abs(at - other) > 2 for other in plants)
            and len(text.split()) >= (10 if kind == "half_turn_wrong_voice" else 6)
            and (kind != "turn_wrong_voice" or turn in alone)
        ]
        if fit:
            plants[chance.choice(fit)] = kind
    return plants


def _leave_out_a_word(text: str, chance: random.Random) -> str:
    words = text.split()
    inner = [at for at in range(1, len(words) - 1) if sum(map(str.isalpha, words[at])) >= 4 and words[at].isalpha()]
    gone = chance.choice(inner or [1])
    return " ".join(words[:gone] + words[gone + 1 :])


def _join(script: Script, lines: list[Line], rate: int) -> Dialogue:
    pause = np.zeros(round(PAUSE * rate), np.float32)
    pieces: list[Samples] = []
    planted = []
    position = 0
    for line in lines:
        if line.plant:
            planted.append((line.plant, position / rate, (position + len(line.samples)) / rate))
        if len(line.samples):
            fade = np.minimum(1, np.arange(len(line.samples)) / (0.01 * rate)).astype(np.float32)
            pieces += [line.samples * fade * fade[::-1], pause]
            position += len(line.samples) + len(pause)
    return Dialogue(script, np.concatenate(pieces), rate, planted)


def _plant_sounds(dialogue: Dialogue, chance: random.Random, *, clean: bool) -> Dialogue:
    """A hole, a click, a clipped run and a loop where it is loud, and an end that is cut off."""
    noise = np.random.default_rng(chance.randrange(1 << 30)).normal(0, 2e-5, len(dialogue.samples))
    dialogue.samples = (dialogue.samples + noise).astype(np.float32)
    if clean:
        return dialogue
    samples, rate, planted = dialogue.samples, dialogue.rate, list(dialogue.planted)
    for kind in ("hole", "click", "clipped", "loop"):
        for _ in range(400):
            at = chance.uniform(5, len(samples) / rate - 8)
            loud = float(np.sqrt(np.mean(samples[round(at * rate) : round((at + 0.1) * rate)] ** 2)))
            if loud > 0.03 and all(at + 4 < start or at - 4 > end for _, start, end in planted):
                break
        else:
            continue
        first = round(at * rate)
        if kind == "hole":
            samples[first : first + round(0.15 * rate)] = 0
            planted.append((kind, at, at + 0.15))
        elif kind == "click":
            samples[first] += chance.choice((-1, 1)) * 0.5 * float(np.abs(samples).max())
            planted.append((kind, at, at))
        elif kind == "clipped":
            part = slice(first, first + round(0.5 * rate))
            limit = 0.4 * float(np.abs(samples[part]).max())
            samples[part] = samples[part].clip(-limit, limit)
            planted.append((kind, at, at + 0.5))
        else:
            copy = samples[first - 3 * rate : first].copy()
            samples = np.concatenate([samples[:first], copy, samples[first:]])
            planted = [(k, s + 3 * (s > at), e + 3 * (s > at)) for k, s, e in planted] + [(kind, at, at + 3)]
    loud_end = next(
        end
        for end in range(len(samples), 0, -rate // 100)
        if np.sqrt(np.mean(samples[end - rate // 50 : end] ** 2)) > 0.05
    )
    dialogue.samples = samples[:loud_end]
    dialogue.planted = [*planted, ("cut_off", loud_end / rate, loud_end / rate)]
    return dialogue


def hear(dialogue: Dialogue, cache: Path) -> dict[str, Any]:
    """Let the proof-listener hear a dialogue."""
    recording = Recording.from_samples(dialogue.samples, dialogue.rate, cache=Cache(cache))
    begin = time.perf_counter()
    report = find_defects({"recording": recording, "script": dialogue.script})
    return {
        "seconds": recording.duration,
        "wall": time.perf_counter() - begin,
        "planted": dialogue.planted,
        "heard": [(each.kind, each.start, each.end, each.detail[:80]) for each in report.defects],
        "unscored": {name: result.reason for name, result in report.unscored.items()},
    }


def run(arguments: argparse.Namespace) -> None:
    """Hear what was not heard yet."""
    work = Path(arguments.work)
    work.mkdir(parents=True, exist_ok=True)
    log = work / "heard.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for number in range(arguments.dialogues):
        key = {"source": arguments.source, "seed": arguments.seed, "number": number, "clean": arguments.clean}
        if any(all(row[name] == value for name, value in key.items()) for row in rows):
            continue
        chance = random.Random(f"{arguments.source} {arguments.seed} {number}")
        place = 20 * arguments.seed + number + (10 if arguments.clean else 0)
        if arguments.source == PEOPLE:
            dialogue = people_dialogue(place, chance, clean=arguments.clean)
        else:
            dialogue = machine_dialogue(arguments.source, place, chance, clean=arguments.clean)
        row = key | hear(dialogue, work / "cache")
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(key, f"{row['seconds']:.0f} s heard in {row['wall']:.0f} s", flush=True)


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    hearing = commands.add_parser("run")
    hearing.add_argument("work")
    hearing.add_argument("--source", default="hibari_piper")
    hearing.add_argument("--seed", type=int, default=1)
    hearing.add_argument("--dialogues", type=int, default=5)
    hearing.add_argument("--clean", action="store_true")
    hearing.set_defaults(do=run)
    telling = commands.add_parser("report")
    telling.add_argument("work")
    telling.set_defaults(do=lambda arguments: report(Path(arguments.work)))
    arguments = parser.parse_args()
    do: Callable[[Any], None] = arguments.do
    do(arguments)


def report(work: Path) -> None:
    """Print the tables: by kind and source recall with its interval and error of time; false alarms an hour."""
    rows = [json.loads(line) for line in (work / "heard.jsonl").read_text().splitlines()]
    hits: dict[tuple[str, str], list[bool]] = {}
    errors: dict[str, list[float]] = {}
    alarms: dict[tuple[str, bool], list[Any]] = {}
    hours: dict[tuple[str, bool], float] = {}
    for row in rows:
        left = [tuple(each) for each in row["heard"]]
        for kind, start, end in row["planted"]:
            match = next((h for h in left if h[0] in NAMED[kind] and h[1] <= end + NEAR and h[2] >= start - NEAR), None)
            hits.setdefault((kind, row["source"]), []).append(match is not None)
            if match:
                errors.setdefault(kind, []).append(abs(match[1] - start))
        clear = [
            h
            for h in left
            if not any(h[1] <= end + 2 * NEAR and h[2] >= start - 2 * NEAR for _, start, end in row["planted"])
        ]
        alarms.setdefault((row["source"], row["clean"]), []).extend(clear)
        hours[row["source"], row["clean"]] = hours.get((row["source"], row["clean"]), 0) + row["seconds"] / 3600
    for kind in NAMED:
        for (of, source), outcomes in sorted(hits.items()):
            if of == kind:
                low, high = binomtest(sum(outcomes), len(outcomes)).proportion_ci(method="wilson")
                print(f"| {kind} | {source} | {sum(outcomes)} of {len(outcomes)} | {low:.2f} to {high:.2f} |")
        if kind in errors:
            print(
                f"   error of time: median {np.median(errors[kind]):.2f} s, 90 % {np.percentile(errors[kind], 90):.2f}"
            )
    for (source, clean), heard in sorted(alarms.items()):
        n, time_heard = len(heard), hours[source, clean]
        bounds = [chi2.ppf(0.025, 2 * n) / 2 if n else 0.0, chi2.ppf(0.975, 2 * n + 2) / 2]
        low, high = (bound / time_heard for bound in bounds)
        where = "undamaged" if clean else "between plants"
        print(f"| {source} | {where} | {n} in {time_heard:.3f} h | {n / time_heard:.1f} | {low:.1f} to {high:.1f} |")
        print("  ", *(f"{each[0]}: {each[3]};" for each in heard))
    print("wall / seconds", sum(row["wall"] for row in rows) / sum(row["seconds"] for row in rows))


if __name__ == "__main__":
    main()
