"""Compute each metric's output for the example on its card, and store it next to the metrics.

    .venv/bin/python studies/example_outputs.py [METRIC …]

Metrics of texts and of people's answers use the card's own example. Metrics of audio use the tutorials' dialogue, with
its script and a reference voice from the package; some use a longer dialogue that is read aloud for them, and `smr`
uses the dialogue over music that a study plays. A scripted judge answers for metrics that ask one, and random numbers
replace weights that are not in any package (`example_stand_ins.py`).
"""

import atexit
import functools
import json
import shutil
import sys
import tempfile
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.audio.decode import decode
from podeval.audio.samples import resample
from podeval.benchmarks.item import read_scripts, read_voices
from podeval.benchmarks.real_pod import SCRIPTS
from podeval.benchmarks.records import PinnedFile
from podeval.measuring.compute import compute
from podeval.measuring.inputs import MetricInputs
from podeval.measuring.space_files import PREDICTION, TIMES, find_reference
from podeval.metrics import catalogue
from podeval.metrics.catalogue import Metric
from podeval.metrics.description import EXAMPLES, choose_own_profile
from podeval.metrics.judge_use import JudgeConfig
from podeval.systems import registry
from studies import example_stand_ins as stand_ins

VOICES = PinnedFile(
    file="real_pod_long_voices.json",
    revision="sha256:e047a6ebc6bafd3d2f94c4518c78c9c12c70eaf4317573621550116ee3040243",
)
LONGER = ("turn_taking", "pace", "dialogue_naturalness")
"""Metrics that need more turns, or more speech, than the tutorials' dialogue has."""
TOPIC, READER = "Sports_27", "drawn_gaps"
MUSIC, SEED, BELOW = "band", 3, 6.0
"""The music that `studies/smr_accuracy.py` plays under the dialogue for a metric of music, its seed, and how many LU it
is below the speech.
"""

FIVE_MINUTES = 310.0
"""Length in seconds to which the dialogue is repeated for a metric that needs a long recording."""

REQUEST = {
    "instruction": "Why the sea is salty",
    "language": "en",
    "sources": ["Rivers carry salt from the rocks into the sea, and when water evaporates the salt stays behind."],
}
"""The request for the tutorials' dialogue, as if it were a podcast."""

AUDIO = Path(__file__).parents[1] / "docs/tutorials/audio"
PLACES = 4


def get_example_texts(metric: Metric) -> dict[str, Any]:
    """Return the inputs for `compute` from the example on the card of a metric that does not measure a recording."""
    texts = {metric.inputs[0]: PREDICTION[metric.inputs[0]]}
    if metric.reference:
        texts[metric.reference] = find_reference(metric)
    return {name: _read_example(text) for name, text in texts.items()}


def _read_example(text: str) -> Any:
    """Read a value from the card: a Python literal, optionally with a number of repetitions."""
    literal, _, times = text.partition(TIMES)
    return literal_eval(literal) * int(times) if times else literal_eval(literal)


def sources_of(metric: Metric) -> dict[str, Any]:
    """Return the inputs that the example measures."""
    if metric.inputs[0] == "recordings":
        return {"recordings": AUDIO}
    if metric.inputs[0] != "recording":
        return get_example_texts(metric)
    if metric.name in LONGER:
        return {"recording": read_longer_dialogue()}
    if metric.name == "smr":
        return {"recording": mix_dialogue_with_music()}
    if metric.name == "endurance":
        return {"recording": repeat_dialogue()}
    script = (AUDIO / "dialogue.json").read_text(encoding="utf-8")
    turns = json.loads(script)
    names = list(dict.fromkeys(turn["speaker"] for turn in (turns["turns"] if isinstance(turns, dict) else turns)))
    voices = [str(voice.recording()) for voice in read_voices(VOICES).values()]
    sources = {
        "recording": AUDIO / "dialogue.mp3",
        "script": script,
        "reference_text": script,
        "reference_voices": dict(zip(names, voices, strict=False)),
        "request": REQUEST,
    }
    # The voices belong to other people, so a metric that does not require them gets none.
    wanted = (*metric.inputs, *(name for name in metric.optional_inputs if name != "reference_voices"))
    return {name: sources[name] for name in wanted if name in sources}


@functools.cache
def read_longer_dialogue() -> Path:
    """Read a script of Real-Pod aloud, with people's gaps and overlaps; the file is deleted when the process ends."""
    speech = registry.get(READER).speak(read_scripts(SCRIPTS)[TOPIC].script)
    folder = Path(tempfile.mkdtemp(prefix="podeval-example-"))
    atexit.register(shutil.rmtree, folder)
    soundfile.write(folder / "dialogue.wav", speech.samples, speech.rate)
    return folder / "dialogue.wav"


@functools.cache
def repeat_dialogue() -> Path:
    """Repeat the tutorials' dialogue for five minutes; the file is deleted when the process ends."""
    spoken = decode(AUDIO / "dialogue.mp3")
    folder = Path(tempfile.mkdtemp(prefix="podeval-example-"))
    atexit.register(shutil.rmtree, folder)
    repeated = np.resize(spoken.samples, (int(FIVE_MINUTES * spoken.rate), spoken.samples.shape[1]))
    soundfile.write(folder / "repeated.wav", repeated, spoken.rate)
    return folder / "repeated.wav"


@functools.cache
def mix_dialogue_with_music() -> Path:
    """Mix the tutorials' dialogue with music that the study of SMR plays; the file is deleted when the process ends."""
    from studies import distortions
    from studies import smr_accuracy as study

    spoken = decode(AUDIO / "dialogue.mp3")
    speech = resample(spoken.samples, spoken.rate, study.RATE)
    music = study.synthesised(MUSIC, SEED)
    music = np.resize(music, (len(speech), music.shape[1]))
    mix = distortions.match_loudness(np.repeat(speech[:, :1], 2, axis=1), study.LEVEL, study.RATE)
    mix = mix + distortions.match_loudness(music, study.LEVEL - BELOW, study.RATE)
    folder = Path(tempfile.mkdtemp(prefix="podeval-example-"))
    atexit.register(shutil.rmtree, folder)
    soundfile.write(folder / "mix.wav", mix, study.RATE)
    return folder / "mix.wav"


def needs_no_models(metric: Metric) -> bool:
    """Return whether the example needs no weights, because the metric is one of texts, or has a scripted judge or
    random numbers.
    """
    judged = bool(metric.asks) and "transcriber" not in metric.jobs({})
    return judged or not metric.needs or choose_own_profile(metric) != "embedded"


def compute_example(metric: Metric) -> dict[str, Any]:
    """Compute the example: `output` contains each key's value, or the reason why there is none; `judge` or `random`
    names the substitute.
    """
    if metric.asks:
        with tempfile.TemporaryDirectory() as folder, stand_ins.start_judge(Path(folder)) as judge:
            output = _compute(metric, bench=JudgeConfig(judge, Path(folder) / "records"))
        return {"output": output, "judge": stand_ins.REPLIES[metric.name]}
    if choose_own_profile(metric) != "embedded":
        with stand_ins.replace_models(metric.needs):
            return {"output": _compute(metric, profile=choose_own_profile(metric)), "random": True}
    of = f"the script {TOPIC} of Real-Pod, read by `{READER}`" if metric.name in LONGER else ""
    if metric.name == "smr":
        of = f"the dialogue of the tutorials (`docs/tutorials/audio`), {BELOW:g} LU over music made by a program,"
    if metric.name == "endurance":
        of = "the dialogue of the tutorials (`docs/tutorials/audio`), played again and again for five minutes,"
    if metric.inputs[0] == "recordings":
        of = "the two recordings of the tutorials (`docs/tutorials/audio`), a person and two voices of Kokoro,"
    return {"output": _compute(metric), **({"of": of} if of else {})}


def _compute(metric: Metric, profile: str = "embedded", bench: JudgeConfig | None = None) -> dict[str, Any]:
    sources = sources_of(metric)
    # A judge hears the recording as it is, so no model is needed to detect that it contains no music.
    takes_source = any(parameter.name == "source" for parameter in metric.parameters)
    parameters = {"source": "mix"} if bench and takes_source else {}
    asked = {"bench": bench, "parameters": parameters} if bench else {}
    # Upsampling is allowed, because random numbers do not depend on missing frequencies.
    inputs = MetricInputs(sources, profile=profile, allow_upsampling=profile != "embedded")
    result = compute(metric, [inputs], input_names=tuple(sources), profile=profile, **asked)
    (item,) = result["items"]
    if "unscored" in item:
        return {"unscored": item["unscored"]}
    return {
        key.name: round(result[key.name], PLACES) if isinstance(result[key.name], float) else result[key.name]
        for key in metric.keys
        if key.name in result
    }


def main(*names: str) -> None:
    """Compute the examples of some metrics or of all, and write the file."""
    kept = json.loads(EXAMPLES.read_text(encoding="utf-8")) if names else {}
    outputs = {name: compute_example(catalogue.get(name)) for name in names or catalogue.NAMES}
    outputs = {name: outputs.get(name, kept.get(name)) for name in catalogue.NAMES}
    EXAMPLES.write_text(json.dumps(outputs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
