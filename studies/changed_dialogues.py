"""Find the metrics that react to another tempo, another pitch, exchanged speakers or another language, on two shared
dialogues.

    python studies/changed_dialogues.py [--engines kokoro espeak] > TABLE

The first five turns of shared/data/samples/dialogue_*.flac (33 s, two voices) are made 20 % faster and slower at the
same pitch, and three semitones higher and lower at the same tempo. Each speaker's later turns, unchanged, are the
reference voices. In another version, the two speakers in the script are exchanged. `german` is the same dialogue in
German by espeak-ng, scored against the English script.
"""

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import espeakng_loader
import librosa
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.audio.samples import mix_to_mono, resample
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.recording.reference_voices import ReferenceVoices
from podeval.systems.engines import read_records, run_worker
from podeval.text.script import Script
from studies.bias import Keys
from studies.distortions import Samples

ENGINES = ("kokoro", "espeak", "german")
SAMPLES = Path(__file__).parents[1] / "../shared/data/samples"
RATE, TURNS = 16_000, 5
KEYS: Keys = {
    "wer": ("wer",),
    "speaker_attribution": ("attribution_accuracy", "cpwer", "swapped_turns", "cpsim"),
    "sim": ("sim",),
    "sptd": ("sptd",),
    "pace": ("speaking_rate", "pitch_range"),
}
OF_VOICES = ("sim", "speaker_attribution")
CHANGES: dict[str, Callable[[Samples], Samples]] = {
    "plain": lambda s: s,
    "20 % faster": lambda s: librosa.effects.time_stretch(s, rate=1.2),
    "20 % slower": lambda s: librosa.effects.time_stretch(s, rate=0.8),
    "3 semitones higher": lambda s: librosa.effects.pitch_shift(s, sr=RATE, n_steps=3),
    "3 semitones lower": lambda s: librosa.effects.pitch_shift(s, sr=RATE, n_steps=-3),
}
Clip = tuple[str, Recording, Script, ReferenceVoices | None]

GERMAN = (
    "Willkommen zurück beim Podcast für neugierige Köpfe. Heute sprechen wir darüber, warum das Meer salzig ist.",
    "Danke für die Einladung. Es klingt nach einer einfachen Frage, aber die Wissenschaft brauchte dreihundert Jahre.",
    "Wirklich? Ich dachte immer, dass die Flüsse einfach Salz ins Meer spülen und dass das alles ist.",
    "Das ist die halbe Geschichte. Regen ist leicht sauer, löst Minerale, und Flüsse tragen sie ins Meer.",
    "Warte, also kommt heißes Wasser aus dem Boden des Ozeans und macht ihn salziger? Das ist verrückt.",
)


def read_dialogue(engine: str) -> Iterator[Clip]:
    """Yield an engine's dialogue with each change, and once with the script's speakers exchanged."""
    recording = Recording.open(SAMPLES / f"dialogue_{engine}.flac")
    samples = resample(mix_to_mono(recording.samples), recording.rate, RATE).astype(np.float32)
    turns = json.loads((SAMPLES / f"dialogue_{engine}.json").read_text(encoding="utf-8"))
    voices = {
        who: Recording.from_samples(
            np.concatenate([samples[round(t["start"] * RATE) : round(t["end"] * RATE)] for t in later]), RATE
        )
        for who in "AB"
        if (later := [turn for turn in turns[TURNS:] if turn["speaker"] == who])
    }
    plain = samples[: round(turns[TURNS]["start"] * RATE)]
    said = [{"speaker": turn["speaker"], "text": turn["text"]} for turn in turns[:TURNS]]
    references = ReferenceVoices(voices)
    exchanged = [{**turn, "speaker": "BA"["AB".index(turn["speaker"])]} for turn in said]
    for name, change in CHANGES.items():
        changed = Recording.from_samples(np.asarray(change(plain), np.float32), RATE)
        for script, label in ((said, name), (exchanged, "speakers exchanged")) if name == "plain" else ((said, name),):
            yield label, changed, Script.parse(script), None
            yield f"{label}, reference voices", changed, Script.parse(script), references


def speak_german() -> Iterator[Clip]:
    """Yield the German dialogue with the English script, and with its own script."""
    german = Script.parse([{"speaker": "AB"[number % 2], "text": line} for number, line in enumerate(GERMAN)])
    lines = [["gmw/de", 50, 175, line] if n % 2 == 0 else ["gmw/de+f3", 60, 175, line] for n, line in enumerate(GERMAN)]
    files = [espeakng_loader.get_library_path(), espeakng_loader.get_data_path()]
    job = {"seed": 0, "parameters": [[2, 80]], "lines": lines}
    rate, sounds, _ = read_records(run_worker("espeak-ng", files, job, 999), len(lines))
    speech = resample(np.concatenate(sounds).astype(np.float32), rate, RATE)
    recording = Recording.from_samples(speech.astype(np.float32), RATE)
    turns = json.loads((SAMPLES / "dialogue_espeak.json").read_text(encoding="utf-8"))[:TURNS]
    english = Script.parse([{key: turn[key] for key in ("speaker", "text")} for turn in turns])
    yield "German, English script", recording, english, None
    yield "German, German script", recording, german, None


def measure(recording: Recording, script: Script, voices: ReferenceVoices | None) -> Iterator[str]:
    """Yield each value of a clip, or the reason why there is none."""
    inputs = {"recording": recording, "reference_text": script.text, "script": script, "reference_voices": voices}
    for name, keys in KEYS.items():
        metric = catalogue.get(name)
        if name not in (OF_VOICES if voices else KEYS) or (name == "sim" and not voices):
            continue
        wanted = (*metric.inputs, *metric.optional_inputs)
        result = metric({key: value for key, value in inputs.items() if key in wanted and value is not None}, {})
        for key in keys:
            if not isinstance(result, Score):
                yield f"{name}.{key}: {result.reason}"
            elif (value := result.values.get(key)) is not None:
                yield f"{name}.{key} {value:.3f}"
        if name == "wer" and isinstance(result, Score):
            yield str(result.notes["transcript"])[:120]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for engine in parser.parse_args().engines:
        for name, recording, script, voices in speak_german() if engine == "german" else read_dialogue(engine):
            writer.writerow([engine, name, *measure(recording, script, voices)])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
