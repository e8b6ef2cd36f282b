"""Compute what each metric gives for the example on its card, and keep it beside the metrics.

    .venv/bin/python tests/studies/example_outputs.py

Metrics of texts and of people's answers take the card's own example; metrics of audio the dialogue of the tutorials,
with its script and a reference voice of the package. Metrics that ask a judge, or whose models the embedded profile
lacks, have none.
"""

import json
from pathlib import Path
from typing import Any

from podeval.benchmarks.real_pod_splits import VOICES
from podeval.benchmarks.spoken import read_voices
from podeval.metrics import catalogue
from podeval.metrics.card_facts import EXAMPLES
from podeval.metrics.compute import compute
from podeval.metrics.declaration import Metric
from podeval.metrics.description import own_profile
from podeval.metrics.inputs import MetricInputs
from podeval.metrics.space_files import example_texts

AUDIO = Path(__file__).parents[2] / "docs/tutorials/audio"
PLACES = 4


def sources_of(metric: Metric) -> dict[str, Any]:
    """What the example measures."""
    if metric.inputs[0] != "recording":
        return example_texts(metric)
    script = (AUDIO / "dialogue.json").read_text(encoding="utf-8")
    turns = json.loads(script)
    names = list(dict.fromkeys(turn["speaker"] for turn in (turns["turns"] if isinstance(turns, dict) else turns)))
    voices = [str(voice.recording()) for voice in read_voices(VOICES).values()]
    sources = {
        "recording": AUDIO / "dialogue.mp3",
        "script": script,
        "reference_text": script,
        "reference_voices": dict(zip(names, voices, strict=False)),
    }
    # The voices are of other people; a metric that can do without is given none.
    wanted = (*metric.inputs, *(name for name in metric.optional_inputs if name != "reference_voices"))
    return {name: sources[name] for name in wanted if name in sources}


def has_example(metric: Metric) -> bool:
    """Whether it can be computed here: it asks nobody, and the embedded profile has its models."""
    return metric.asks is None and own_profile(metric) == "embedded"


def compute_example(metric: Metric) -> dict[str, Any]:
    """What the example gives: each key's value, or why there is none."""
    sources = sources_of(metric)
    result = compute(metric, [MetricInputs(sources)], input_names=tuple(sources))
    (item,) = result["items"]
    if "unscored" in item:
        return {"unscored": item["unscored"]}
    return {
        key.name: round(result[key.name], PLACES) if isinstance(result[key.name], float) else result[key.name]
        for key in metric.keys
        if key.name in result
    }


def main() -> None:
    """Compute all of them and write the file."""
    outputs = {metric.name: compute_example(metric) for metric in catalogue.all_metrics() if has_example(metric)}
    EXAMPLES.write_text(json.dumps(outputs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
