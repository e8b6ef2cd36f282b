"""Measure what a metric favours besides quality: voices, sexes, rates, levels, codecs, rooms, languages, lengths.

    python studies/bias.py run WORK              makes the clips and scores them; a stopped run continues
    python studies/bias.py run WORK --changed 21 all voices with every change, not only the first six
    python studies/bias.py run WORK --table minutes.csv --voices jf_alpha piper-joe   a share of the work
    python studies/bias.py run WORK --profile reference   the metrics whose models are not in any package
    python studies/bias.py report WORK           writes docs/studies/bias.csv and a picture for each metric

The same sentences are spoken by 21 voices of four engines that ship with podeval (14 of espeak-ng, five of Kokoro,
hibari, Piper), and each clip is changed in one way at a time. A partial effect is the mean difference between a changed
clip and the unchanged clip of the same voice, with its 95 % interval over voices. The sex and the engine of a voice
cannot be changed, so Welch's interval is used for their effects. Chinese is spoken by the voices of espeak-ng, which
sound the same in both languages, and by the voices of Kokoro, which are Japanese and read pinyin (bias_chinese.py).

Metrics that need two voices are given dialogues of 18 short turns by pairs of these voices. `pace` is given about a
minute of one voice, and `smr` speech over music at a known ratio (bias_music.py). Metrics of texts do not depend on a
voice: they are given the scripts of Real-Pod, whole, halved and quartered, and Chinese scripts of the same categories.
"""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.errors import ModelMissing
from podeval.measuring.space_files import BIAS_PICTURE
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.metrics.text.semantic_div import EmbeddedText
from podeval.recording import Recording
from podeval.recording.reference_voices import ReferenceVoices
from podeval.text.script import Script
from studies.bias_effects import Change, partial_effects
from studies.bias_material import (
    CHANGES,
    FAST_MINUTE,
    MEDIUM,
    RATE,
    SENTENCES,
    StudyClip,
    clips,
    dialogue_clips,
    lines_of_a_minute,
    lines_of_dialogue,
    minute_clips,
    say,
    say_dialogue,
    say_lines,
    texts,
    turn_clips,
)
from studies.bias_music import MUSIC_RATE, lines_over_music, music_clips, say_over_music, subtract_ratio
from studies.bias_picture import draw
from studies.distortions import Samples

DOCS = Path(__file__).parents[1] / "docs" / "studies"
CARDS = Path(__file__).parents[1] / "hf_metrics"
Keys = Mapping[str, tuple[str, ...]]

METRICS: Keys = {
    "dnsmos": ("ovrl", "sig", "bak", "p808"),
    "distillmos": ("distillmos",),
    "reverb_consistency": ("reverb_consistency_cv", "srmr"),
    "timbre_consistency": ("timbre_consistency",),
    "loudness": ("range", "true_peak"),
}
MORE: Keys = {
    "sim": ("sim",),
    "wsim": ("wsim",),
    "timbre_similarity": ("timbre_similarity",),
}
OF_FAULTS: Keys = {"integrity": ("faults_per_hour", "plcmos")}
OF_WORDS: Keys = {"content_errors": ("errors_per_1000",), "wer": ("cer",)}
OF_DIALOGUES: Keys = {
    "sptd": ("sptd",),
    "speaker_attribution": ("attribution_accuracy", "cpcer"),
    "dialogue_naturalness": ("dialogue_naturalness",),
}
OF_TURNS: Keys = {"turn_taking": ("human_distance",)}
OF_A_MINUTE: Keys = {"pace": ("rate_cv", "speaking_rate", "pause_share", "f0_range")}
OF_MUSIC: Keys = {"smr": ("smr",)}
OF_TEXTS: Keys = {"distinct_n": ("distinct_2",), "mattr": ("mattr",), "info_dens": ("info_dens", "info_dens_norm")}
OF_MEANING: Keys = {"semantic_div": ("semantic_div",)}
OF_REFERENCE: Keys = {
    "sound_fidelity": ("pesq_estimate",),
    "utmos22": ("utmos22",),
    "nisqa_tts": ("nisqa_tts",),
    "pam": ("pam",),
}
"""Metrics whose models are not in any package; they are scored on a machine with the reference profile."""
OF_REFERENCE_MUSIC: Keys = {"casp": ("casp",)}
PARAMETERS = {"timbre_consistency": {"speakers": 1}}


@dataclass(frozen=True)
class StudyTable:
    """Metrics that are scored on the same clips. Each table is filled separately, so a complete table is kept if the
    study is interrupted.
    """

    file: str
    metrics: Keys
    clips: Callable[[int], Iterator[StudyClip]] = clips
    profile: str = "embedded"
    bases: Mapping[Change, Change] = field(default_factory=dict)
    """For each change, the change with whose clips its clips are compared, if these are not the unchanged clips."""

    @property
    def has_music(self) -> bool:
        """Whether its clips are speech over music."""
        return self.clips is music_clips


TABLES = (
    StudyTable("values.csv", METRICS),
    StudyTable("more.csv", MORE),
    StudyTable("faults.csv", OF_FAULTS),
    StudyTable("words.csv", OF_WORDS),
    StudyTable("dialogues.csv", OF_DIALOGUES, dialogue_clips),
    StudyTable("turns.csv", OF_TURNS, turn_clips),
    StudyTable("music.csv", OF_MUSIC, music_clips),
    StudyTable("minutes.csv", OF_A_MINUTE, minute_clips, bases=FAST_MINUTE),
    StudyTable("reference.csv", OF_REFERENCE, profile="reference"),
    StudyTable("reference_music.csv", OF_REFERENCE_MUSIC, music_clips, profile="reference"),
)
TEXTS = {"texts.csv": OF_TEXTS, "meanings.csv": OF_MEANING}
"""Metrics of texts, by the file of their table."""
VERSIONS = "versions.json"
"""File with the versions of the metrics whose values each table contains."""


def run(
    work: Path,
    changed: int,
    profile: str = "embedded",
    files: Sequence[str] = (),
    only: Sequence[str] = (),
) -> None:
    """Score every clip that is not in its table yet, for these tables or all, and for these voices or all."""
    work.mkdir(parents=True, exist_ok=True)
    for file, metrics in TEXTS.items():
        # The reference profile's encoder also reads Chinese; its values must not be mixed with those of the embedded
        # encoder.
        path = work / (file if profile == "embedded" else f"reference_{file}")
        if not path.exists() and (metrics is OF_MEANING or profile == "embedded"):
            _note_versions(path, metrics)
            _score_texts(path, metrics, profile)
    for table in TABLES:
        if table.profile == profile and (not files or table.file in files):
            _note_versions(work / table.file, table.metrics)
            _fill(work / table.file, table, changed, only)


def _note_versions(path: Path, metrics: Keys) -> None:
    """Record the versions of a table's metrics; refuse a table that was begun with other versions."""
    kept = _read_versions(path.parent)
    now = {name: catalogue.get(name).version for name in metrics}
    if path.exists() and kept.get(path.name, now) != now:
        raise SystemExit(f"{path} holds {kept[path.name]}, and this would add {now}; move it away and run again")
    (path.parent / VERSIONS).write_text(json.dumps(kept | {path.name: now}, indent=1), encoding="utf-8")


def _read_versions(work: Path) -> dict[str, dict[str, str]]:
    file = work / VERSIONS
    kept: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return kept


def _fill(path: Path, table: StudyTable, changed: int, only: Sequence[str]) -> None:
    done = {row["clip"] for row in csv.DictReader(path.open(encoding="utf-8"))} if path.exists() else set()
    plain: dict[tuple[str, str, int], Samples] = {}
    references: dict[tuple[str, str], Samples] = {}
    for clip in table.clips(changed):
        if clip.name in done or (only and clip.voice.name not in only):
            continue
        said = clip.voice.name, clip.language, clip.sentences
        if table.has_music:
            samples = say_over_music(clip)
        else:
            if said not in plain:
                plain = {said: _speak(clip, table)}
            samples = CHANGES[clip.factor][clip.level](plain[said], RATE) if clip.factor in CHANGES else plain[said]
        if "sim" in table.metrics and (clip.voice.name, clip.language) not in references:
            references = {(clip.voice.name, clip.language): say(clip.voice, clip.language, 4, MEDIUM)}
        rate = MUSIC_RATE if table.has_music else RATE
        reference = references.get((clip.voice.name, clip.language))
        values = measure(samples, _script_of(clip, table), table.metrics, reference, table.profile, rate)
        if table.metrics is OF_MUSIC:
            values = subtract_ratio(values, clip)
        voice = clip.voice
        _append(path, [clip.name, voice.name, voice.engine, voice.sex, clip.factor, clip.level], values)
        print(clip.name, flush=True)


def _speak(clip: StudyClip, table: StudyTable) -> Samples:
    """Return the speech of a clip before it is changed."""
    if clip.voice.pair:
        return say_dialogue(clip.voice.pair, clip.language, clip.sentences)
    if table.metrics is OF_A_MINUTE:
        return say_lines(clip.voice, clip.language, lines_of_a_minute(clip.language, clip.sentences))
    return say(clip.voice, clip.language, clip.sentences)


def _script_of(clip: StudyClip, table: StudyTable) -> Script:
    """Return the script of a clip: a dialogue of two speakers, or the lines of one, who has a name if the metrics
    compare voices.
    """
    if clip.voice.pair:
        lines = lines_of_dialogue(clip.language)[: clip.sentences]
        return Script.parse([{"speaker": "AB"[number % 2], "text": line} for number, line in enumerate(lines)])
    said = SENTENCES[clip.language][: clip.sentences]
    if table.metrics is OF_A_MINUTE:
        said = lines_of_a_minute(clip.language, clip.sentences)
    elif table.has_music:
        said = lines_over_music(clip.language, clip.sentences)
    if "sim" in table.metrics:
        return Script.parse([{"speaker": "A", "text": line} for line in said])
    return Script.parse("\n".join(said))


def _append(path: Path, labels: Sequence[str], values: Mapping[str, str]) -> None:
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["clip", "voice", "engine", "sex", "factor", "level", *values])
        writer.writerow([*labels, *values.values()])


def _score_texts(path: Path, metrics: Keys, profile: str) -> None:
    """Score the scripts; the topic takes the place of the voice."""
    profiled = "" if profile == "embedded" else f", {profile} profile"
    for topic, factor, level, script in texts():
        inputs = {"text": script.text, "passage": EmbeddedText(script.text, profile)}
        try:
            values = _read_values(inputs, metrics)
        except ModelMissing:
            # The embedded profile's encoder does not read Chinese.
            if level != "Chinese":
                raise
            continue
        values = {f"{key}{profiled}": value for key, value in values.items()}
        _append(path, [f"{topic}|{factor}|{level}", topic, "", "", factor, level], values)


def measure(
    samples: Samples,
    script: Script,
    metrics: Keys = METRICS,
    reference: Samples | None = None,
    profile: str = "embedded",
    rate: int = RATE,
) -> dict[str, str]:
    """Return the values of a clip by `metric.key`; a missing value is empty.

    Args:
        samples: the clip.
        script: the words that are spoken in it.
        metrics: the keys to read, by metric.
        reference: other sentences of the same voice, unchanged, for metrics that compare with a voice.
        profile: the profile whose models are used.
        rate: sampling rate of the samples in Hz.
    """
    # PAM uses a rate of 44.1 kHz, which is above that of every voice that ships.
    recording = Recording.from_samples(samples, rate, profile=profile, allow_upsampling=True)
    inputs: dict[str, object] = {"recording": recording, "reference_text": script.text, "script": script}
    if reference is not None:
        inputs["reference_voices"] = ReferenceVoices({"A": Recording.from_samples(reference, RATE, profile=profile)})
    return _read_values(inputs, metrics)


def _read_values(inputs: Mapping[str, object], metrics: Keys) -> dict[str, str]:
    values = {}
    for name, keys in metrics.items():
        metric = catalogue.get(name)
        wanted = {key: value for key, value in inputs.items() if key in (*metric.inputs, *metric.optional_inputs)}
        if name in PARAMETERS:
            wanted.pop("script", None)
        result = metric(wanted, PARAMETERS.get(name, {}))
        for key in keys:
            values[f"{name}.{key}"] = _write(result.values.get(key) if isinstance(result, Score) else None)
    return values


def _write(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def report(work: Path, docs: Path = DOCS) -> None:
    """Write the effects as a table, and a picture for each metric; effects without values in WORK stay as they are."""
    bases: dict[str, Mapping[Change, Change]] = {table.file: table.bases for table in TABLES}
    files = (*bases, *TEXTS, *(f"reference_{file}" for file in TEXTS))
    tables = [work / file for file in files if (work / file).exists()]
    effects = [
        effect
        for table in tables
        for effect in partial_effects(list(csv.DictReader(table.open())), bases.get(table.name, {}))
    ]
    versions = {name: of for each in _read_versions(work).values() for name, of in each.items()}
    lines: dict[str, list[list[str]]] = {}
    for e in effects:
        bounds = ["" if bound is None else f"{bound:.4f}" for bound in (e.low, e.high)]
        version = versions[e.key.partition(".")[0]]
        line = [e.key, e.factor, e.level, f"{e.effect:.4f}", *bounds, str(e.voices), version]
        lines.setdefault(e.key, []).append(line)
    earlier = _read_effects(docs / "bias.csv")
    with (docs / "bias.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["key", "factor", "level", "effect", "low", "high", "voices", "version"])
        for key in {**earlier, **lines}:
            writer.writerows(lines.get(key) or earlier[key])
    for metric in dict.fromkeys(effect.key.partition(".")[0] for effect in effects):
        drawn = [effect for effect in effects if effect.key.partition(".")[0] == metric]
        picture = draw(metric, drawn)
        (docs / f"bias-{metric}.svg").write_text(picture, encoding="utf-8")
        if docs == DOCS:
            (CARDS / metric / BIAS_PICTURE).write_text(picture, encoding="utf-8")


def _read_effects(path: Path) -> dict[str, list[list[str]]]:
    """Read the existing lines of the table, by key."""
    lines: dict[str, list[list[str]]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for line in list(csv.reader(file))[1:]:
                lines.setdefault(line[0], []).append(line)
    return lines


def main() -> None:
    """Run the study, or report the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["run", "report"])
    parser.add_argument("work", type=Path)
    parser.add_argument("--changed", type=int, default=6, help="voices that are changed in every way")
    parser.add_argument("--profile", choices=["embedded", "reference"], default="embedded", help="whose models score")
    parser.add_argument("--table", nargs="+", default=(), choices=[t.file for t in TABLES], help="these tables alone")
    parser.add_argument("--voices", nargs="+", default=(), help="these alone, to share the work between processes")
    options = parser.parse_args()
    if options.step == "run":
        run(options.work, options.changed, options.profile, options.table, options.voices)
    else:
        report(options.work)


if __name__ == "__main__":
    main()
