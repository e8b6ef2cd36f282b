"""Dialogues with defects at known places, for the study in docs/defects-study.md.

A dialogue consists of sentences that a built-in system says or that people read. Defects of the words are planted while
the sentences are joined; defects of the sound and the pace are planted afterwards. A change that alters the length also
shifts the times of defects that were planted before.
"""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import librosa
import numpy as np
from numpy.typing import NDArray

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.recording import Recording
from podeval.systems import registry
from podeval.systems.controls import CLIPPED, HOLE, plant_click, plant_clipped, plant_hole
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine
from podeval.text.script import Script, Turn

Samples = NDArray[np.float32]
DATA = Path(benchmarks.__file__).parent / "data"
PEOPLE = "people"
PAUSE = 0.35
"""Seconds between sentences."""

SECONDS = 210.0
"""Approximate maximum length of a dialogue in seconds, which leaves room for one defect of each kind."""

LOOP, LONG_PAUSE, MUSIC, HURRIED, FASTER = 3.0, 3.0, 10.0, 20.0, 1.3
MUSIC_BELOW = 10.0
"""Number of decibels by which the music is below the speech."""

INVENTED = (
    "Remember that every kitchen deserves a second cup of cinnamon tea.",
    "The old museum opens its northern gallery on the first weekend of October.",
    "Please do not forget to bring seven green umbrellas to the picnic.",
)


@dataclass
class Line:
    """A sentence as text and as sound."""

    turn: int
    text: str
    samples: Samples
    plant: str = ""


@dataclass
class Dialogue:
    """A recording with its script and its planted defects: kind, start and end in seconds."""

    script: Script
    samples: Samples
    rate: int
    planted: list[tuple[str, float, float]] = field(default_factory=list)
    joints: list[float] = field(default_factory=list)
    """The middles of the pauses between sentences."""

    def replace(self, start: float, end: float, sound: Samples) -> None:
        """Replace a stretch with another sound, and shift everything after it."""
        first, last = round(start * self.rate), round(end * self.rate)
        self.samples = np.concatenate([self.samples[:first], sound, self.samples[last:]])
        longer = len(sound) / self.rate - (end - start)
        self.planted = [(k, s + longer * (s >= end), e + longer * (s >= end)) for k, s, e in self.planted]
        self.joints = [at + longer * (at >= end) for at in self.joints]

    def is_free(self, start: float, end: float) -> bool:
        """Return whether there is no planted defect within four seconds of a stretch."""
        return all(end + 4 < begin or start - 4 > last for _, begin, last in self.planted)


def read_scripts() -> list[Script]:
    """Read the 51 scripts of Real-Pod."""
    rows = [json.loads(line) for line in (DATA / "real_pod_scripts.jsonl").read_text(encoding="utf-8").splitlines()]
    return [Script.parse(row["turns"] if "turns" in row else row["script"]) for row in rows]


def make_dialogue(source: str, number: int, chance: random.Random, *, clean: bool) -> Dialogue:
    """Make a dialogue from a source; with `clean`, nothing is planted."""
    dialogue = (
        _read_by_people(chance, clean=clean)
        if source == PEOPLE
        else _read_by_machine(source, number, chance, clean=clean)
    )
    noise = np.random.default_rng(chance.randrange(1 << 30)).normal(0, 2e-5, len(dialogue.samples))
    dialogue.samples = (dialogue.samples + noise).astype(np.float32)
    if not clean:
        _plant_sounds(dialogue, chance)
    return dialogue


class Voices:
    """A built-in system that says sentences; its n-th voice is that of the n-th speaker."""

    def __init__(self, name: str) -> None:
        system = registry.get(name)
        assert isinstance(system, DialogueReader)
        self.reader, self.rate = system, 0

    def say(self, script: Script, turn: int, voice: int, text: str) -> Samples:
        """Say one sentence in one voice."""
        speech = self.reader.read(script, [SpokenLine(turn, voice, text)])
        self.rate = speech.rate
        return speech.samples[:, 0]


def _read_by_machine(name: str, number: int, chance: random.Random, *, clean: bool) -> Dialogue:
    every = [script for script in read_scripts() if len(script.speakers) == 2]
    script, voices = every[number % len(every)], Voices(name)
    chosen: list[Turn] = []
    for turn in script.turns:
        if sum(len(each.text) for each in chosen) > SECONDS * 15:
            break
        chosen.append(turn)
    script = Script(tuple(chosen))
    whose = {speaker: at for at, speaker in enumerate(script.speakers)}
    places = [(at, text) for at, turn in enumerate(script.turns) for text in _split_sentences(turn.text)]
    plants = {} if clean else _choose_lines(script, places, chance)
    lines: list[Line] = []
    for at, (turn, text) in enumerate(places):
        kind, voice = plants.get(at, ""), whose[script.turns[turn].speaker]
        if kind == "sentence_omitted":
            lines.append(Line(turn, text, np.zeros(0, np.float32), kind))
        elif kind == "half_turn_wrong_voice":
            words = text.split()
            halves = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
            lines.append(Line(turn, text, voices.say(script, turn, voice, halves[0])))
            lines.append(Line(turn, "", voices.say(script, turn, 1 - voice, halves[1]), kind))
        else:
            said = _leave_out_a_word(text, chance) if kind == "word_omitted" else text
            own = 1 - voice if kind == "turn_wrong_voice" else voice
            sound = voices.say(script, turn, own, said)
            lines.append(Line(turn, text, sound, kind if kind in ("word_omitted", "turn_wrong_voice") else ""))
            if kind == "sentence_twice":
                lines.append(Line(turn, text, sound, kind))
            if kind == "invented":
                lines.append(Line(turn, "", voices.say(script, turn, voice, chance.choice(INVENTED)), kind))
    return join_lines(script, lines, voices.rate)


def _read_by_people(chance: random.Random, *, clean: bool) -> Dialogue:
    """Join clips of readers of LibriTTS-R, one each, in random order; the script has one speaker."""
    rows = [
        row
        for name in ("real_pod_voices.json", "real_pod_long_voices.json")
        for row in json.loads((DATA / name).read_text(encoding="utf-8"))["voices"]
    ]
    chance.shuffle(rows)
    extra = None if clean else rows.pop()
    kinds = ("sentence_omitted", "sentence_twice", "invented")
    plants = {} if clean else dict(zip(sorted(chance.sample(range(1, len(rows) - 1, 3), 3)), kinds, strict=True))
    script = Script((Turn("1", " ".join(row["words"] for row in rows)),))
    lines: list[Line] = []
    for at, row in enumerate(rows):
        sound, kind = open_clip(row["file"]), plants.get(at, "")
        omitted = kind == "sentence_omitted"
        lines.append(Line(0, row["words"], sound[:0] if omitted else sound, kind if omitted else ""))
        if kind == "sentence_twice":
            lines.append(Line(0, row["words"], sound, kind))
        if kind == "invented" and extra:
            lines.append(Line(0, "", open_clip(extra["file"]), kind))
    return join_lines(script, lines, 24_000)


def open_clip(file: str) -> Samples:
    """Open a reader's clip at 24 kHz."""
    recording = Recording.open(DATA / file)
    return resample(recording.samples[:, 0], recording.rate, 24_000)


def _split_sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?]) +", text) if any(map(str.isalnum, part))]


def _choose_lines(script: Script, places: list[tuple[int, str]], chance: random.Random) -> dict[int, str]:
    """Choose the sentences in which defects are planted, at least two apart and long enough for the kind; return the
    kinds by sentence.
    """
    kinds = ("turn_wrong_voice", "sentence_omitted", "word_omitted", "sentence_twice", "invented")
    alone = {turn for turn, _ in places if sum(each == turn for each, _ in places) == 1}
    plants: dict[int, str] = {}
    for kind in (*kinds, "half_turn_wrong_voice"):
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


def join_lines(script: Script, lines: list[Line], rate: int) -> Dialogue:
    """Join lines with pauses between them, and record the times of the planted defects."""
    pause = np.zeros(round(PAUSE * rate), np.float32)
    pieces: list[Samples] = []
    planted, joints, position = [], [], 0
    for line in lines:
        if line.plant:
            planted.append((line.plant, position / rate, (position + len(line.samples)) / rate))
        if len(line.samples):
            fade = np.minimum(1, np.arange(len(line.samples)) / (0.01 * rate)).astype(np.float32)
            pieces += [line.samples * fade * fade[::-1], pause]
            position += len(line.samples) + len(pause)
            joints.append(position / rate - PAUSE / 2)
    return Dialogue(script, np.concatenate(pieces), rate, planted, joints[:-1])


def _plant_sounds(dialogue: Dialogue, chance: random.Random) -> None:
    """Plant defects of the sound and the pace, the longest first; a defect for which there is no room is not
    planted.
    """
    _plant_hurry(dialogue, chance)
    _plant_music(dialogue, chance)
    joints = [at for at in dialogue.joints if dialogue.is_free(at, at)]
    if joints:
        at = chance.choice(joints)
        silence = np.random.default_rng(chance.randrange(1 << 30)).normal(0, 2e-5, round(LONG_PAUSE * dialogue.rate))
        dialogue.replace(at, at, silence.astype(np.float32))
        dialogue.planted.append(("pause", at - PAUSE / 2, at + LONG_PAUSE + PAUSE / 2))
    spoil: dict[str, tuple[float, Callable[[Samples, int, float], None]]] = {
        "hole": (HOLE, plant_hole),
        "click": (0.0, plant_click),
        "clipped": (CLIPPED, plant_clipped),
    }
    for kind, (length, plant) in spoil.items():
        if (place := _find_loud_place(dialogue, chance)) is not None:
            plant(dialogue.samples, dialogue.rate, place)
            dialogue.planted.append((kind, place, place + length))
    if (place := _find_loud_place(dialogue, chance)) is not None:
        first = round(place * dialogue.rate)
        dialogue.replace(place, place, dialogue.samples[first - round(LOOP * dialogue.rate) : first].copy())
        dialogue.planted.append(("loop", place, place + LOOP))
    samples, rate = dialogue.samples, dialogue.rate
    end = next(at for at in range(len(samples), 0, -rate // 100) if measure_level(samples[at - rate // 50 : at]) > 0.05)
    dialogue.samples = samples[:end]
    dialogue.planted.append(("cut_off", end / rate, end / rate))


def _find_loud_place(dialogue: Dialogue, chance: random.Random) -> float | None:
    samples, rate = dialogue.samples, dialogue.rate
    for _ in range(400):
        at = chance.uniform(5, len(samples) / rate - 8)
        if measure_level(samples[round(at * rate) : round((at + 0.1) * rate)]) > 0.03 and dialogue.is_free(at, at):
            return at
    return None


def _find_stretch(dialogue: Dialogue, length: float, chance: random.Random) -> float | None:
    """Choose a pause between sentences that is followed by a free stretch."""
    last = len(dialogue.samples) / dialogue.rate - length - 8
    fit = [at for at in dialogue.joints if at < last and dialogue.is_free(at, at + length)]
    # If defects of words are planted everywhere, the stretch may contain some; this does not affect whether they are
    # found.
    fit = fit or [at for at in dialogue.joints if at < last]
    return chance.choice(fit) if fit else None


def _plant_hurry(dialogue: Dialogue, chance: random.Random) -> None:
    """Speed up twenty seconds by a factor of 1.3, at the same pitch."""
    if (start := _find_stretch(dialogue, HURRIED, chance)) is None:
        return
    first, last = (round(at * dialogue.rate) for at in (start, start + HURRIED))
    sound = librosa.effects.time_stretch(dialogue.samples[first:last], rate=FASTER)
    end = start + len(sound) / dialogue.rate
    inside = [each for each in dialogue.planted if start <= each[1] < start + HURRIED]
    others = [each for each in dialogue.planted if each not in inside]
    joints = [start + (at - start) / FASTER if start <= at < start + HURRIED else at for at in dialogue.joints]
    dialogue.planted, dialogue.joints = others, [at for at in joints if not start <= at < end]
    dialogue.replace(start, start + HURRIED, sound.astype(np.float32))
    dialogue.planted += [(k, start + (s - start) / FASTER, start + (e - start) / FASTER) for k, s, e in inside]
    dialogue.planted.append(("rate", start, end))


def _plant_music(dialogue: Dialogue, chance: random.Random) -> None:
    """Add ten seconds of music under the speech, faded in and out."""
    if (start := _find_stretch(dialogue, MUSIC, chance)) is None:
        return
    first, size = round(start * dialogue.rate), round(MUSIC * dialogue.rate)
    bed = make_music(size, dialogue.rate, chance)
    gain = measure_level(dialogue.samples[first : first + size]) / measure_level(bed) * 10 ** (-MUSIC_BELOW / 20)
    dialogue.samples[first : first + size] += (gain * bed).astype(np.float32)
    dialogue.planted.append(("music", start, start + MUSIC))


def make_music(size: int, rate: int, chance: random.Random) -> Samples:
    """Synthesise plucked chords over a bass, four per bar, in a random key; the music is made here, so that nobody's
    work is copied.
    """
    time = np.arange(size) / rate
    sound = np.zeros(size)
    key, beat = chance.uniform(180, 320), chance.uniform(0.4, 0.6)
    for number in range(int(size / rate / beat) + 1):
        degree = (0, 9, 5, 7)[number // 4 % 4]
        since = time - number * beat
        decay = np.where(since >= 0, np.exp(-np.maximum(since, 0) / 0.5), 0.0)
        for semitones, strength in ((-12, 0.8), (0, 0.5), (4 if degree != 9 else 3, 0.4), (7, 0.4)):
            pitch = key * 2 ** ((degree + semitones) / 12)
            partials = sum(np.sin(2 * np.pi * n * pitch * since) / n**1.5 for n in range(1, 6))
            sound += strength * decay * partials
    fade = np.minimum(1, np.minimum(np.arange(size), np.arange(size)[::-1]) / (0.3 * rate))
    return (sound * fade / np.abs(sound).max()).astype(np.float32)


def measure_level(samples: Samples) -> float:
    """Return the level of samples: their root mean square."""
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0
