"""What a metric favours besides quality: voices, sexes, rates, levels, codecs, rooms, languages, lengths.

    python tests/studies/bias.py run WORK              makes the clips and scores them; a stopped run goes on
    python tests/studies/bias.py run WORK --changed 21 all voices under every change, not the first six alone
    python tests/studies/bias.py report WORK           writes docs/studies/bias.csv and a picture a metric

The same sentences are spoken by 21 voices of four engines that ship with podeval (14 of espeak-ng, five of Kokoro,
hibari, Piper), and each clip is changed in one way at a time. A partial effect is the mean difference of a changed
clip from the same voice's plain one, with its 95 % interval over voices; sexes and engines differ between voices, so
there the interval is Welch's. Chinese is spoken by the espeak voices alone, whose sound is the same in both languages.
"""

import argparse
import csv
import io
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.analysis import Recording
from podeval.analysis.reference_voices import ReferenceVoices
from podeval.audio.resample import resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.stats.intervals import mean_ci
from podeval.systems import espeak_ng
from podeval.systems.dialogue_reader import SpokenLine
from podeval.systems.hibari_piper import HibariPiper
from podeval.systems.kokoro import Kokoro
from podeval.text.script import Script
from studies.distortions import Samples, gain, mu_law, reverberate

DOCS = Path(__file__).parents[2] / "docs" / "studies"
RATE = 24_000
SENTENCES = {
    "en": (
        "The ferry leaves the harbour at seven, and the people on it watch the lights of the town grow small.",
        "Most of them work on the other side of the water, and some have taken the same seat for twenty years.",
        "When the fog comes in, the captain sounds the horn, and for a while nobody speaks at all.",
        "Then somebody pours a cup of tea, somebody laughs, and the talk goes on where it had stopped.",
    ),
    "zh": (
        "渡轮早上七点离开港口，船上的人看着镇上的灯光慢慢变小。",
        "他们大多在对岸工作，有些人二十年来一直坐在同一个座位上。",
        "起雾的时候，船长拉响汽笛，有一阵子谁也不说话。",
        "后来有人倒了一杯茶，有人笑了起来，谈话又从停下的地方继续。",
    ),
}
MEDIUM = 2
"""Sentences of a plain clip; short clips have one, long ones four."""
SPEECH_LEVEL = -26.0
"""Level in dB of full scale to which every plain clip is brought."""

METRICS: Mapping[str, tuple[str, ...]] = {
    "dnsmos": ("ovrl", "sig", "bak", "p808"),
    "distillmos": ("distillmos",),
    "reverb_consistency": ("reverb_consistency_cv", "srmr"),
    "timbre_consistency": ("timbre_consistency",),
    "loudness": ("range", "true_peak"),
    "wer": ("cer",),
    "integrity": ("faults_per_hour", "plcmos"),
}
MORE: Mapping[str, tuple[str, ...]] = {
    "sim": ("sim",),
    "content_errors": ("errors_per_1000",),
}
"""Metrics that came later: their values stand in a table of their own, so that earlier ones are not computed again."""
TABLES = {"values.csv": METRICS, "more.csv": MORE}
PARAMETERS = {"timbre_consistency": {"speakers": 1}}


@dataclass(frozen=True)
class StudyVoice:
    """A voice of the study."""

    name: str
    engine: str
    sex: str
    setting: tuple[str, int] | int


@dataclass(frozen=True)
class StudyClip:
    """What is scored: a voice, what was done to it, and what it says."""

    voice: StudyVoice
    factor: str
    level: str
    language: str
    sentences: int

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return f"{self.voice.name}|{self.factor}|{self.level}"


def voices() -> list[StudyVoice]:
    """Return the 21 voices, engines by turns so that the first six are of all of them."""
    variants = [(f"m{n}", "male") for n in range(1, 8)] + [(f"f{n}", "female") for n in range(1, 6)]
    espeak = [
        StudyVoice(f"espeak-{variant}", "espeak-ng", sex, (f"gmw/en-US+{variant}", 50)) for variant, sex in variants
    ]
    espeak += [
        StudyVoice("espeak-low", "espeak-ng", "male", ("gmw/en-US", 30)),
        StudyVoice("espeak-british", "espeak-ng", "male", ("gmw/en", 50)),
    ]
    kokoro = [
        StudyVoice(voice.name, "Kokoro", "female" if voice.name.startswith("jf") else "male", number)
        for number, voice in enumerate(Kokoro().voices)
    ]
    others = [StudyVoice("hibari-heart", "hibari", "female", 0), StudyVoice("piper-joe", "Piper", "male", 1)]
    first = [kokoro[0], kokoro[1], *others, espeak[1], espeak[8]]
    return [*first, *(voice for voice in (*kokoro, *espeak) if voice not in first)]


CHANGES: Mapping[str, Mapping[str, Callable[[Samples], Samples]]] = {
    "rate": {f"{factor:g} times": lambda s, f=factor: _stretch(s, f) for factor in (0.8, 1.25, 1.5)},  # type: ignore[misc]
    "level": {f"{db:+g} dB": lambda s, d=db: gain(s, d) for db in (-20.0, -10.0, 10.0)},  # type: ignore[misc]
    "codec": {
        "MP3": lambda s: _coded(s, "MP3", "MPEG_LAYER_III"),
        "Opus": lambda s: _coded(s, "OGG", "OPUS"),
        "mu-law, 8 bit": lambda s: mu_law(s, 8),
    },
    "room": {f"{rt:g} s": lambda s, r=rt: reverberate(s, RATE, r, seed=1) for rt in (0.3, 0.6, 1.2)},  # type: ignore[misc]
}
"""By factor, the changes of sound; the plain clip is the fourth of each."""


def clips(changed: int) -> Iterator[StudyClip]:
    """Yield the clips: every voice plain, then voice by voice every change, and Chinese by as many espeak voices."""
    everybody = voices()
    for voice in everybody:
        yield StudyClip(voice, "plain", "plain", "en", MEDIUM)
    for voice in [voice for voice in everybody if voice.engine == "espeak-ng"][:changed]:
        yield StudyClip(voice, "language", "Chinese", "zh", MEDIUM)
    for voice in everybody[:changed]:
        for factor, levels in CHANGES.items():
            for level in levels:
                yield StudyClip(voice, factor, level, "en", MEDIUM)
        yield StudyClip(voice, "length", "one sentence", "en", 1)
        yield StudyClip(voice, "length", "four sentences", "en", 4)


@cache
def engine_of(name: str) -> Kokoro | HibariPiper:
    """Return an engine, loaded once."""
    engine = Kokoro() if name == "Kokoro" else HibariPiper()
    engine.require()
    return engine


def say(voice: StudyVoice, language: str, count: int, first: int = 0) -> Samples:
    """Speak the sentences up to so many, from the first, with pauses of 0.3 s, at the study's rate and level."""
    texts = SENTENCES[language][first:count]
    if isinstance(voice.setting, tuple):
        file, pitch = voice.setting
        if language == "zh":
            file = file.replace("gmw/en-US", "sit/cmn").replace("gmw/en", "sit/cmn")
        job = {"seed": 0, "parameters": [[1, 175], [2, 80]], "lines": [[file, pitch, text] for text in texts]}
        # The system has six voices; the study needs the engine's other variants too.
        rate, sounds, _ = espeak_ng._read_records(espeak_ng._run_worker(job), len(texts))
    else:
        # One voice for all lines; a script would begin with the engine's first.
        spoken = engine_of(voice.engine)._say(
            [SpokenLine(n, voice.setting, text) for n, text in enumerate(texts)], language, 0
        )
        rate, sounds = spoken.rate, list(spoken.lines)
    pause = np.zeros(round(0.3 * rate), np.float32)
    joined = np.concatenate([part for sound in sounds for part in (np.asarray(sound, np.float32), pause)])
    at_rate = resample(joined, rate, RATE)
    power = float(np.mean(np.square(at_rate[np.abs(at_rate) > 1e-3], dtype=np.float64)))
    return gain(at_rate, SPEECH_LEVEL - 10 * math.log10(power))


def run(work: Path, changed: int) -> None:
    """Score every clip that is not in the table yet."""
    work.mkdir(parents=True, exist_ok=True)
    for name, metrics in TABLES.items():
        _fill(work / name, metrics, changed)


def _fill(table: Path, metrics: Mapping[str, tuple[str, ...]], changed: int) -> None:
    done = {row["clip"] for row in csv.DictReader(table.open(encoding="utf-8"))} if table.exists() else set()
    plain: dict[tuple[str, str, int], Samples] = {}
    for clip in clips(changed):
        if clip.name in done:
            continue
        said = clip.voice.name, clip.language, clip.sentences
        if said not in plain:
            plain = {said: say(clip.voice, clip.language, clip.sentences)}
        samples = CHANGES[clip.factor][clip.level](plain[said]) if clip.factor in CHANGES else plain[said]
        reference = say(clip.voice, clip.language, 4, MEDIUM) if "sim" in metrics else None
        values = measure(samples, "\n".join(SENTENCES[clip.language][: clip.sentences]), metrics, reference)
        new = not table.exists()
        with table.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(["clip", "voice", "engine", "sex", "factor", "level", *values])
            voice = clip.voice
            writer.writerow([clip.name, voice.name, voice.engine, voice.sex, clip.factor, clip.level, *values.values()])
        print(clip.name, flush=True)


def measure(
    samples: Samples,
    text: str,
    metrics: Mapping[str, tuple[str, ...]] = METRICS,
    reference: Samples | None = None,
) -> dict[str, str]:
    """Return the values of a clip by `metric.key`; empty where it has none.

    Args:
        samples: the clip.
        text: what it says.
        metrics: keys by metric.
        reference: other sentences of the same voice, unchanged, for metrics that compare with a voice.
    """
    recording = Recording.from_samples(samples, RATE)
    values = {}
    for name, keys in metrics.items():
        inputs: dict[str, object] = {"recording": recording, "reference_text": text, "script": Script.parse(text)}
        if reference is not None:
            inputs["reference_voices"] = ReferenceVoices({"A": Recording.from_samples(reference, RATE)})
            inputs["script"] = Script.parse("\n".join(f"A: {line}" for line in text.splitlines()))
        metric = catalogue.get(name)
        wanted = {key: value for key, value in inputs.items() if key in (*metric.inputs, *metric.optional_inputs)}
        if name in PARAMETERS:
            wanted.pop("script", None)
        result = metric(wanted, PARAMETERS.get(name, {}))
        for key in keys:
            value = result.values.get(key) if isinstance(result, Score) else None
            values[f"{name}.{key}"] = "" if value is None else f"{value:.5f}"
    return values


@dataclass(frozen=True)
class PartialEffect:
    """How far a level of a factor moves a key, with its 95 % interval; `voices` is the number it rests on."""

    key: str
    factor: str
    level: str
    effect: float
    low: float | None
    high: float | None
    voices: int


def partial_effects(rows: Sequence[Mapping[str, str]]) -> list[PartialEffect]:
    """Compute the effects from the rows of the table."""
    keys = [name for name in rows[0] if "." in name]
    plain = {row["voice"]: row for row in rows if row["factor"] == "plain"}
    effects: list[PartialEffect] = []
    for key in keys:
        base = {voice: float(row[key]) for voice, row in plain.items() if row[key]}
        levels = dict.fromkeys((row["factor"], row["level"]) for row in rows if row["factor"] != "plain")
        for factor, level in levels:
            pairs = [
                float(row[key]) - base[row["voice"]]
                for row in rows
                if (row["factor"], row["level"]) == (factor, level) and row[key] and row["voice"] in base
            ]
            if len(pairs) > 1:
                ci = mean_ci(pairs)
                effects.append(PartialEffect(key, factor, level, ci.mean, ci.low, ci.high, ci.n))
        effects += _between(key, "sex", "female", base, plain, "male")
        for engine in sorted({row["engine"] for row in plain.values()} - {"Kokoro"}):
            effects += _between(key, "engine", engine, base, plain, "Kokoro")
    return effects


def _between(
    key: str, factor: str, level: str, base: Mapping[str, float], plain: Mapping[str, Mapping[str, str]], against: str
) -> list[PartialEffect]:
    """Return the difference of the voices of a level from those it is set against; sexes within engines."""
    groups: dict[str, list[float]] = {level: [], against: []}
    for voice, value in base.items():
        row = plain[voice]
        same = [base[other] for other in base if plain[other]["engine"] == row["engine"]] if factor == "sex" else [0.0]
        if factor == "sex" and len({plain[v]["sex"] for v in base if plain[v]["engine"] == row["engine"]}) < 2:
            continue
        if row[factor] in groups:
            groups[row[factor]].append(value - sum(same) / len(same))
    one, other = groups[level], groups[against]
    if not one or not other:
        return []
    difference = float(np.mean(one) - np.mean(other))
    if min(len(one), len(other)) < 2:
        return [PartialEffect(key, factor, f"{level} − {against}", difference, None, None, len(one) + len(other))]
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    return [
        PartialEffect(
            key,
            factor,
            f"{level} − {against}",
            difference,
            float(interval.low),
            float(interval.high),
            len(one) + len(other),
        )
    ]


def report(work: Path, docs: Path = DOCS) -> None:
    """Write the effects as a table, and a picture for each metric."""
    tables = [work / name for name in TABLES if (work / name).exists()]
    effects = [effect for table in tables for effect in partial_effects(list(csv.DictReader(table.open())))]
    with (docs / "bias.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["key", "factor", "level", "effect", "low", "high", "voices"])
        for e in effects:
            bounds = ["" if bound is None else f"{bound:.4f}" for bound in (e.low, e.high)]
            writer.writerow([e.key, e.factor, e.level, f"{e.effect:.4f}", *bounds, e.voices])
    for metric in (*METRICS, *MORE):
        drawn = [effect for effect in effects if effect.key.partition(".")[0] == metric]
        if not drawn:
            continue
        (docs / f"bias-{metric}.svg").write_text(draw(metric, drawn), encoding="utf-8")


def draw(metric: str, effects: Sequence[PartialEffect]) -> str:
    """Draw the effects of one metric: a panel a key, a line an effect with its interval, 0 in the middle."""
    keys = list(dict.fromkeys(effect.key for effect in effects))
    lines = list(dict.fromkeys((effect.factor, effect.level) for effect in effects))
    left, wide, row, top = 190, 210, 17, 56
    bottom = top + row * len(lines)
    height, width = bottom + 24, max(left + wide * len(keys) + 10, 620)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="11" ',
        f'font-family="system-ui, sans-serif" fill="#1a1a1a"><title>What moves {metric} besides quality</title>',
        f'<rect width="{width}" height="{height}" fill="#fff"/><text x="8" y="18" font-size="13" font-weight="600">',
        f"{metric}: difference from the plain clip of the same voice</text>",
    ]
    for number, (factor, level) in enumerate(lines):
        parts.append(f'<text x="8" y="{top + row * number + 12}">{factor}: {level}</text>')
    for column, key in enumerate(keys):
        of_key = {(e.factor, e.level): e for e in effects if e.key == key}
        bounds = [abs(bound) for e in of_key.values() for bound in (e.effect, e.low, e.high) if bound]
        reach, middle = max(bounds, default=1.0), left + wide * column + wide / 2
        parts.append(f'<text x="{middle}" y="40" text-anchor="middle">{key.partition(".")[2]}, ±{reach:.3g}</text>')
        parts.append(f'<line x1="{middle}" x2="{middle}" y1="{top - 8}" y2="{bottom}" stroke="#767676"/>')
        for number, line in enumerate(lines):
            if effect := of_key.get(line):
                parts += _mark(effect, middle, (wide / 2 - 16) / reach, top + row * number + 8)
    parts.append(
        f'<text x="8" y="{height - 8}" fill="#555">Full: the 95 % interval over voices leaves out 0. '
        "Made by tests/studies/bias.py.</text></svg>\n"
    )
    return "".join(parts)


def _mark(effect: PartialEffect, middle: float, scale: float, y: float) -> list[str]:
    """Return one effect as a point with its interval; the point is full where the interval leaves out 0."""
    at = middle + scale * effect.effect
    if effect.low is None or effect.high is None:
        return [f'<circle cx="{at:.1f}" cy="{y}" r="3.5" fill="#fff" stroke="#1a1a1a"/>']
    ends = (middle + scale * effect.low, middle + scale * effect.high)
    fill = "#fff" if effect.low <= 0 <= effect.high else "#1a1a1a"
    return [
        f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}" stroke="#444"/>',
        f'<circle cx="{at:.1f}" cy="{y}" r="3.5" fill="{fill}" stroke="#1a1a1a"/>',
    ]


def _stretch(samples: Samples, factor: float) -> Samples:
    """Speak so many times as fast, at the same pitch."""
    import librosa

    return np.asarray(librosa.effects.time_stretch(samples, rate=factor), np.float32)


def _coded(samples: Samples, container: str, subtype: str) -> Samples:
    """Through a codec at its default rate and back."""
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=container, subtype=subtype)
    file.seek(0)
    decoded, rate = soundfile.read(file, dtype="float32")
    return resample(np.asarray(decoded, np.float32), rate, RATE)


def main() -> None:
    """Run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["run", "report"])
    parser.add_argument("work", type=Path)
    parser.add_argument("--changed", type=int, default=6, help="voices that are changed in every way")
    options = parser.parse_args()
    if options.step == "run":
        run(options.work, options.changed)
    else:
        report(options.work)


if __name__ == "__main__":
    main()
